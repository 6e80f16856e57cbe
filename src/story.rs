//! What became of each attempt of a call.

use crate::context::{CorrelationId, IdempotencyKey};
use crate::policy::classify::Class;
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

/// The attempts of one call and the ids that they carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The route as its owner names it.
    pub(crate) url_template: Option<Arc<str>>,
    /// The callee's host.
    pub(crate) server_address: Arc<str>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) elapsed: Duration,
    pub(crate) correlation_id: CorrelationId,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
}

impl Story {
    /// A story that has not begun.
    pub(crate) fn of(
        (method, path): (Method, String),
        (correlation_id, idempotency_key): (CorrelationId, Option<IdempotencyKey>),
    ) -> Story {
        Story {
            method,
            path,
            url_template: None,
            server_address: Arc::default(),
            attempts: Vec::new(),
            elapsed: Duration::ZERO,
            correlation_id,
            idempotency_key,
        }
    }

    /// The same, with where it goes and the route that it takes.
    pub(crate) fn along(mut self, server_address: &Arc<str>, url_template: Option<Arc<str>>) -> Story {
        (self.server_address, self.url_template) = (Arc::clone(server_address), url_template);
        self
    }

    /// Goes on by an attempt. Nearly every call has one, so there is room for no more until there are.
    pub(crate) fn push(&mut self, attempt: Attempt) {
        if self.attempts.is_empty() {
            self.attempts.reserve_exact(1);
        }
        self.attempts.push(attempt);
    }

    /// The story, ended: what can be moved out of this one is not in it any more.
    pub(crate) fn end(&mut self, elapsed: Duration) -> Story {
        Story {
            method: self.method.clone(),
            path: std::mem::take(&mut self.path),
            url_template: self.url_template.take(),
            server_address: Arc::clone(&self.server_address),
            attempts: std::mem::take(&mut self.attempts),
            elapsed,
            correlation_id: self.correlation_id.clone(),
            idempotency_key: self.idempotency_key.take(),
        }
    }

    pub(crate) fn correlation_id(&self) -> &str {
        self.correlation_id.as_str()
    }

    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_ref().map(IdempotencyKey::as_str)
    }
}
