//! What the gateway does with a request: an answer, or one of the ways in which there is none.

use crate::testing::gateway::record::RecordedAttempt;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What the gateway does with one request: an answer, or one of the ways in which there is none.
///
/// A reply made with [`Reply::status`] or [`Reply::json`] is the *callee's*, passed through by the gateway, which adds its
/// ids and its `Date`. The gateway's own answers have names: [`Reply::throttled`], [`Reply::integration_timeout`] and so on.
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

    /// Reads the request, then closes the connection without a word.
    pub fn close() -> Self {
        Reply::silent(Behaviour::Close)
    }

    /// Answers with bytes that are no HTTP, then closes.
    pub fn garbage() -> Self {
        Reply::silent(Behaviour::Garbage)
    }

    /// Reads the request and never answers; the connection stays open for as long as the client holds it.
    pub fn hang() -> Self {
        Reply::silent(Behaviour::Hang)
    }

    /// Reads the request, then resets the connection (TCP RST).
    pub fn reset() -> Self {
        Reply::silent(Behaviour::Reset)
    }

    /// Resets the connection (TCP RST) as soon as the head has told which script is meant, the body unread. The signature is
    /// not looked at, and the attempt is recorded without a body.
    pub fn reset_before_reading() -> Self {
        Reply::silent(Behaviour::ResetBeforeReading)
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

    /// Sends head and so many bytes of the body, then nothing; the connection stays open.
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.delivery = Delivery::StallAfter(bytes);
        self
    }

    /// Sends head and so many bytes of the body, then closes.
    pub fn truncate_after(mut self, bytes: usize) -> Self {
        self.delivery = Delivery::TruncateAfter(bytes);
        self
    }

    /// Sends the body in pieces of so many bytes, waiting so long before each.
    pub fn drip(mut self, chunk: usize, every: Duration) -> Self {
        self.delivery = Delivery::Drip { chunk: chunk.max(1), every };
        self
    }

    /// Sets whether the connection may be used again. Default: yes, where the client wants it.
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = keep_alive;
        self
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

    /// The status that goes out, if one does.
    pub(crate) fn status_sent(&self) -> Option<u16> {
        matches!(self.behaviour, Behaviour::Answer).then_some(self.status)
    }

    fn silent(behaviour: Behaviour) -> Self {
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
            Behaviour::Reset => "Reset",
            Behaviour::ResetBeforeReading => "ResetBeforeReading",
        })
    }
}

/// How a body goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    Drip { chunk: usize, every: Duration },
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
