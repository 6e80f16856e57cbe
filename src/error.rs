//! What a failed call tells its caller.

use crate::error_kind::ErrorKind;
use crate::intent::Intent;
use crate::json::NotThisJson;
use crate::policy::attempts::StopReason;
use crate::policy::classify::Class;
use crate::policy::gateway::{GatewayError, request_id};
use crate::story::{Attempt, Story};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Why a call has no answer to give, or why a client or call cannot be built.
///
/// Two axes: [`kind`](Error::kind) says what the caller can do, [`stop_reason`](Error::stop_reason) why no further
/// attempt was made. Neither its `Display` nor its `Debug` shows a query, a body, a credential or a signature.
///
/// ```
/// use eastwest::{Error, ErrorKind};
/// use std::time::Duration;
///
/// enum Next { Later(Duration), FixTheRequest, LookItUp, GiveUp }
///
/// fn what_to_do(error: &Error) -> Next {
///     match error.kind() {
///         // First: a lost success may be followed by a refusal.
///         _ if error.may_have_committed() && error.idempotency_key().is_none() => Next::LookItUp,
///         ErrorKind::Rejected | ErrorKind::TooLarge => Next::FixTheRequest,
///         ErrorKind::CircuitOpen | ErrorKind::Throttled => {
///             Next::Later(error.retry_after().unwrap_or(Duration::from_secs(5)))
///         }
///         _ => Next::GiveUp,
///     }
/// }
/// ```
pub struct Error(Box<Inner>);

/// A boxed cause that crosses threads.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// The last answer, as far as it is kept.
#[derive(Default)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) gateway_error: Option<GatewayError>,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

pub(crate) struct Inner {
    pub(crate) kind: ErrorKind,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) class: Option<Class>,
    pub(crate) what: String,
    pub(crate) field: Option<&'static str>,
    pub(crate) answer: Option<Answered>,
    pub(crate) story: Option<Story>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) may_have_committed: bool,
    /// Whether the call is one that must not be sent again on a doubt.
    pub(crate) look_it_up: bool,
    pub(crate) cause: Option<Cause>,
    /// What the call was, where there was one.
    pub(crate) intent: Option<Box<Intent>>,
}

impl Error {
    /// A setting, or a part of a call, that is not valid.
    pub(crate) fn configuration(field: &'static str, reason: impl Into<String>) -> Error {
        Error::of(ErrorKind::Configuration, Some(field), reason.into())
    }

    /// A request over a limit, before it was sent.
    pub(crate) fn too_large(field: &'static str, reason: impl Into<String>) -> Error {
        Error::of(ErrorKind::TooLarge, Some(field), reason.into())
    }

    pub(crate) fn of(kind: ErrorKind, field: Option<&'static str>, what: String) -> Error {
        Error(Box::new(Inner {
            kind,
            stop_reason: None,
            class: None,
            what,
            field,
            answer: None,
            story: None,
            retry_after: None,
            may_have_committed: false,
            look_it_up: false,
            cause: None,
            intent: None,
        }))
    }

    pub(crate) fn from_inner(inner: Inner) -> Error {
        Error(Box::new(inner))
    }

    pub(crate) fn inner_mut(&mut self) -> &mut Inner {
        &mut self.0
    }

    /// What became of each attempt, where there was a call.
    pub(crate) fn story(&self) -> Option<&Story> {
        self.0.story.as_ref()
    }

    /// What the call was.
    pub(crate) fn intent(&self) -> Option<&Intent> {
        self.0.intent.as_deref()
    }

    /// What the caller can do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Why no further attempt was made; none if the call never came to an attempt's decision (settings, decoding).
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop_reason
    }

    /// Whether the breaker was open and nothing was sent for that reason.
    #[must_use]
    pub fn is_circuit_open(&self) -> bool {
        self.0.kind == ErrorKind::CircuitOpen
    }

    /// Which setting, or which part of the call, is not valid.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        self.0.field
    }

    /// The row of the status table that the last attempt was found to be.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.0.class
    }

    /// The last answer's status.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.0.answer.as_ref().map(|answer| answer.status)
    }

    /// The last answer's headers.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.0.answer.as_ref().map(|answer| &answer.headers)
    }

    /// The gateway's own name for the failure, if it is one of those that this client knows.
    #[must_use]
    pub fn gateway_error(&self) -> Option<GatewayError> {
        self.0.answer.as_ref().and_then(|answer| answer.gateway_error)
    }

    /// The callee's own code: JSON `code`, `error.code`, or a problem's `type`. At most 512 characters, cleaned.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.answer.as_ref().and_then(|answer| answer.code.as_deref())
    }

    /// The message of gateway or callee. At most 512 characters, cleaned; untrusted all the same, and therefore in no
    /// printed form of the error: log it where you want it.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.answer.as_ref().and_then(|answer| answer.message.as_deref())
    }

    /// The last answer's body, up to the limit on what is kept (64 KiB by default).
    ///
    /// Of an answer that quotes the signed request only the first sentence is kept.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.0.answer.as_ref().map_or(&[], |answer| &answer.body)
    }

    /// Decodes the last answer's body as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if there is no body, or it is not the JSON of a `T`.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(self.body()).map_err(|cause| {
            let mut error =
                Error::of(ErrorKind::Decode, None, "the error's body is not the JSON asked for".into());
            error.0.cause = Some(Box::new(NotThisJson::from(&cause)));
            error
        })
    }

    /// The gateway's id of the last request, to ask its owners about.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.headers().and_then(request_id)
    }

    /// All attempts, in order.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        self.0.story.as_ref().map_or(&[], |story| &story.attempts)
    }

    /// How long the call took.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.story.as_ref().map_or(Duration::ZERO, |story| story.elapsed)
    }

    /// When the first attempt was sent, by this process's wall clock.
    #[must_use]
    pub fn first_attempt_at(&self) -> Option<SystemTime> {
        self.attempts().first().map(Attempt::started)
    }

    /// When the last attempt was sent, by this process's wall clock.
    #[must_use]
    pub fn last_attempt_at(&self) -> Option<SystemTime> {
        self.attempts().last().map(Attempt::started)
    }

    /// When to come back: what the last answer asked for, or when the breaker lets a probe through, or the rate limit an attempt.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the callee may have done the work, on any attempt: a 504 and then a 429 stays true.
    ///
    /// Never true of a GET, HEAD or OPTIONS: what only reads leaves nothing behind.
    #[must_use]
    pub fn may_have_committed(&self) -> bool {
        self.0.may_have_committed
    }

    /// The correlation id of the call.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.0.story.as_ref().map(|story| story.subject.correlation_id())
    }

    /// The idempotency key of the call.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.0.story.as_ref().and_then(|story| story.subject.idempotency_key())
    }

    /// The one status that every attempt showed, if there were several.
    fn same_status_each_time(&self) -> Option<StatusCode> {
        let (first, rest) = self.attempts().split_first()?;
        let all_alike = !rest.is_empty() && rest.iter().all(|attempt| attempt.status == first.status);
        first.status.filter(|_| all_alike)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        if let Some(story) = &inner.story {
            write!(f, "{} {}: ", story.subject.method, story.subject.path())?;
        }
        if let Some(field) = inner.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&inner.what)?;
        match self.attempts() {
            _ if inner.kind == ErrorKind::Decode => {}
            [] => {}
            [_] => f.write_str("; after 1 attempt")?,
            many => write!(f, "; after {} attempts", many.len())?,
        }
        if let Some(reason) = inner.stop_reason {
            write!(f, "; {reason}")?;
        }
        if let Some(wait) = inner.retry_after {
            write!(f, "; come back after {:.1} s", wait.as_secs_f64())?;
        }
        // An outage says 503 each time; what says 500 each time may be about this very request.
        if let Some(status) = self.same_status_each_time().filter(|_| inner.class == Some(Class::ServerError))
        {
            write!(f, "; {} each time: this request may be at fault", status.as_u16())?;
        }
        if inner.may_have_committed && inner.story.is_some() {
            f.write_str(if inner.look_it_up {
                "; it may have been carried out: look it up before you send again"
            } else {
                "; it may have been carried out"
            })?;
        }
        match (self.correlation_id(), self.request_id()) {
            (Some(id), Some(request)) => write!(f, " [correlation {id}, request {request}]")?,
            (Some(id), None) => write!(f, " [correlation {id}]")?,
            (None, _) => {}
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("stop_reason", &self.0.stop_reason)
            .field("what", &self.to_string())
            .field("field", &self.0.field)
            .field("status", &self.status())
            .field("gateway_error", &self.gateway_error())
            .field("request_id", &self.request_id())
            .field("attempts", &self.attempts())
            .field("may_have_committed", &self.0.may_have_committed)
            .field("correlation_id", &self.correlation_id())
            .field("idempotency_key", &self.idempotency_key())
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}
