//! What became of each attempt of a call.

use crate::context::{CallContext, IdempotencyKey};
use crate::policy::classify::Class;
use crate::target::Target;
use http::{Method, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One exchange on the wire, as it is told afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(crate) started: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) class: Class,
    pub(crate) status: Option<StatusCode>,
    pub(crate) wait: Option<Duration>,
}

impl Attempt {
    /// When the attempt was signed and sent, by this process's wall clock.
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// How long it took, from signing to the last byte of the body or the failure.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The row of the status table that it was found to be.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// The status, if an answer came.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// The wait that followed; none if nothing followed, zero if the next attempt followed at once.
    #[must_use]
    pub fn wait_after(&self) -> Option<Duration> {
        self.wait
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{}", status.as_u16()),
            None => write!(f, "{}", self.class),
        }
    }
}

/// What a call is known by, from before its first attempt to what is told of it afterwards: kept once for all of these.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) method: Method,
    pub(crate) target: Target,
    /// The route as its owner names it.
    pub(crate) url_template: Option<Arc<str>>,
    pub(crate) context: CallContext,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
}

impl Subject {
    /// With stage or base path, without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.path()
    }

    pub(crate) fn correlation_id(&self) -> &str {
        self.context.correlation_id()
    }

    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_ref().map(IdempotencyKey::as_str)
    }
}

/// The attempts of one call, and what it is known by.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) subject: Arc<Subject>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) elapsed: Duration,
}

impl Story {
    /// A story that has not begun.
    pub(crate) fn of(subject: Arc<Subject>) -> Story {
        Story { subject, attempts: Vec::new(), elapsed: Duration::ZERO }
    }

    /// Goes on by an attempt. Nearly every call has one, so there is room for no more until there are.
    pub(crate) fn push(&mut self, attempt: Attempt) {
        if self.attempts.is_empty() {
            self.attempts.reserve_exact(1);
        }
        self.attempts.push(attempt);
    }

    /// The story, ended; its attempts are not in this one any more.
    pub(crate) fn end(&mut self, elapsed: Duration) -> Story {
        let attempts = std::mem::take(&mut self.attempts);
        Story { subject: Arc::clone(&self.subject), attempts, elapsed }
    }
}
