//! What the gateway does with a request: an answer, or one of the ways in which there is none.

use crate::testing::gateway::record::RecordedAttempt;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What the gateway does with one request: an answer, or one of the ways in which there is none.
///
/// A reply made with [`Reply::status`] or [`Reply::json`] is the *callee's*, passed through by the gateway, which adds its
/// ids and its `Date`. The gateway's own answers have names: [`Reply::throttled`], [`Reply::integration_timeout`] and so on,
/// and [`Reply::gateway_response`] gives each by API Gateway's own name for it.
///
/// ```
/// use eastwest::testing::Reply;
/// use std::time::Duration;
///
/// // In order: a rate that is exceeded, a lost connection, an answer that is cut, and one that is slow.
/// let script = [
///     Reply::throttled().header("Retry-After", "2"),
///     Reply::reset(),
///     Reply::json(200, r#"{"id":"o-1"}"#).truncate_after(4),
///     Reply::json(200, r#"{"id":"o-1"}"#).delay(Duration::from_secs(1)),
/// ];
/// # let _ = script;
/// ```
///
/// With the feature `wiremock` a reply is a responder there too.
#[derive(Clone)]
#[must_use]
pub struct Reply {
    pub(crate) behaviour: Behaviour,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) omitted: Vec<String>,
    pub(crate) body: Bytes,
    pub(crate) surface: Surface,
    pub(crate) delay: Duration,
    pub(crate) delivery: Delivery,
    pub(crate) keep_alive: bool,
}

impl Reply {
    /// The callee answers with this status and no body.
    pub fn status(status: u16) -> Self {
        Reply {
            behaviour: Behaviour::Answer,
            status,
            headers: Vec::new(),
            omitted: Vec::new(),
            body: Bytes::new(),
            surface: Surface::Callee,
            delay: Duration::ZERO,
            delivery: Delivery::Whole,
            keep_alive: true,
        }
    }

    /// The callee answers with this status and JSON text, sent as it is.
    pub fn json(status: u16, text: impl Into<String>) -> Self {
        Reply::status(status).header("Content-Type", "application/json").body(text.into())
    }

    /// Decides when the request is there. What is set on this reply besides (delay, headers and so on) is set on the reply
    /// that was decided on.
    pub fn dynamic(decide: impl Fn(&RecordedAttempt) -> Reply + Send + Sync + 'static) -> Self {
        Reply::silent(Behaviour::Dynamic(Arc::new(decide)))
    }

    /// Adds a header line, sent unchecked. Where it bears the name of one that the gateway would add, it takes its place;
    /// of `content-type` an answer has one, the last that was given.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let name = name.into();
        if name.eq_ignore_ascii_case("content-type") {
            self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        }
        self.headers.push((name, value.into()));
        self
    }

    /// Leaves out a header that the gateway would add, `Date` for instance.
    pub fn without_header(mut self, name: impl Into<String>) -> Self {
        self.omitted.push(name.into());
        self
    }

    /// Sets the body, without touching `Content-Type`.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits so long before doing anything, by the process's own clock.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets whether the connection may be used again. Default: yes, where the client wants it.
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// The status that it answers with; `None` where there is no answer, or where it is decided on when the request is there.
    #[must_use]
    pub fn status_code(&self) -> Option<u16> {
        matches!(self.behaviour, Behaviour::Answer).then_some(self.status)
    }

    /// Settles a dynamic reply.
    pub(crate) fn resolve(self, attempt: &RecordedAttempt) -> Reply {
        let mut reply = self;
        for _ in 0..DEEPEST_DECISION {
            let Behaviour::Dynamic(decide) = &reply.behaviour else {
                return reply;
            };
            let decided = decide(attempt);
            reply = decided.overlaid_with(reply);
        }
        Reply::json(500, r#"{"message":"a dynamic reply never came to a decision"}"#)
    }

    /// What is done, in a few words for the story of a test.
    pub(crate) fn told(&self) -> String {
        let mut told = match &self.behaviour {
            Behaviour::Answer => self.status.to_string(),
            Behaviour::Close => "closed without a word".to_owned(),
            Behaviour::Dynamic(_) => "not decided on".to_owned(),
            Behaviour::Garbage => "bytes that are no HTTP".to_owned(),
            Behaviour::Hang => "never answered".to_owned(),
            Behaviour::Refuse => "connection refused".to_owned(),
            Behaviour::Reset => "reset after reading".to_owned(),
            Behaviour::ResetBeforeReading => "reset before reading".to_owned(),
        };
        let error_type = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-amzn-errortype"));
        if let Some((_, value)) = error_type {
            told += &format!(" {}", String::from_utf8_lossy(value));
        }
        told += &match self.delivery {
            Delivery::Drip { chunk, every } => format!(", dripping {chunk} bytes every {every:?}"),
            Delivery::ResetAfter(bytes) => format!(", reset after {bytes} bytes of the body"),
            Delivery::StallAfter(bytes) => format!(", stalled after {bytes} bytes of the body"),
            Delivery::TruncateAfter(bytes) => format!(", closed after {bytes} bytes of the body"),
            Delivery::Whole => String::new(),
        };
        if !self.delay.is_zero() {
            told += &format!(", {:?} later", self.delay);
        }
        told
    }

    pub(crate) fn silent(behaviour: Behaviour) -> Self {
        Reply { behaviour, ..Reply::status(0) }
    }

    fn overlaid_with(mut self, over: Reply) -> Reply {
        self.headers.extend(over.headers);
        self.omitted.extend(over.omitted);
        self.delay = self.delay.saturating_add(over.delay);
        self.keep_alive &= over.keep_alive;
        if !over.body.is_empty() {
            self.body = over.body;
        }
        if !matches!(over.delivery, Delivery::Whole) {
            self.delivery = over.delivery;
        }
        self
    }
}

/// Shows no header value and no body.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("behaviour", &self.behaviour)
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("delay", &self.delay)
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}

/// What is done on the wire.
#[derive(Clone)]
pub(crate) enum Behaviour {
    Answer,
    Close,
    Dynamic(Decide),
    Garbage,
    Hang,
    Refuse,
    Reset,
    ResetBeforeReading,
}

type Decide = Arc<dyn Fn(&RecordedAttempt) -> Reply + Send + Sync>;

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Behaviour::Answer => "Answer",
            Behaviour::Close => "Close",
            Behaviour::Dynamic(_) => "Dynamic",
            Behaviour::Garbage => "Garbage",
            Behaviour::Hang => "Hang",
            Behaviour::Refuse => "Refuse",
            Behaviour::Reset => "Reset",
            Behaviour::ResetBeforeReading => "ResetBeforeReading",
        })
    }
}

/// How a body goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    Drip { chunk: usize, every: Duration },
    ResetAfter(usize),
    StallAfter(usize),
    TruncateAfter(usize),
    Whole,
}

/// Who answers, which decides the headers that are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The callee, through a REST API.
    Callee,
    /// An HTTP API itself.
    HttpApi,
    /// A REST API itself.
    RestApi,
}

/// A dynamic reply may decide on a dynamic reply so many times.
const DEEPEST_DECISION: usize = 16;
