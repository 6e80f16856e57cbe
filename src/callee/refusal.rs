//! Why a request is not worked on, and the answer to return instead.

use crate::callee::answer::Answer;
use crate::context::CorrelationId;
use bytes::Bytes;
use http::{Response, StatusCode};
use std::fmt;

/// Why a request is not worked on, and the answer to return instead.
#[derive(Clone, Debug)]
pub struct Refusal {
    kind: RefusalKind,
    correlation_id: Option<CorrelationId>,
}

/// The kinds of refusal. The name of the kind is the `type` in the body of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// 508: the hop count is [`MAX_HOPS`] or more; the chain is taken to be a loop.
    HopBudgetExhausted,
    /// 400: the hop count is not of its grammar, or there are two.
    InvalidHopCount,
    /// 400: the idempotency key is not 1 to 255 visible ASCII characters, or there are two.
    InvalidIdempotencyKey,
    /// 400: there is no hop count, so the caller does not count.
    MissingHopCount,
    /// 400: a POST or PATCH without an idempotency key: sent again, it could be done twice.
    MissingIdempotencyKey,
    /// 503: the caller would be gone before the answer came. It says nothing about the callee's health.
    NoTimeLeft,
}

impl Refusal {
    /// The event is part of the making, so that no refusal goes unseen.
    pub(crate) fn new(kind: RefusalKind, correlation_id: Option<CorrelationId>) -> Self {
        let refusal = Refusal { kind, correlation_id };
        tracing::warn!(
            kind = kind.name(),
            status = kind.status().as_u16(),
            correlation_id = refusal.correlation_id.as_ref().map(CorrelationId::as_str),
            "an inbound call was refused"
        );
        refusal
    }

    /// Why the request is refused.
    #[must_use]
    pub const fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// The status of the answer: 400, 503 or 508.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// The answer to return: JSON with a stable `type`, a `message` and, where the request had a valid one, its
    /// `correlation_id`; and `x-should-retry: false`.
    ///
    /// ```
    /// use eastwest::callee;
    ///
    /// let refusal = callee::accept([("x-correlation-id", "order-4711")]).err().ok_or("it has no hop count")?;
    /// let answer = refusal.to_response();
    /// assert_eq!(answer.status(), 400);
    /// let body: serde_json::Value = serde_json::from_slice(answer.body())?;
    /// assert_eq!(body["type"], "MissingHopCount");
    /// assert_eq!(body["correlation_id"], "order-4711");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        self.answer()
    }

    /// The same answer as a Lambda proxy integration wants it: `statusCode`, `headers`, `body` as text and
    /// `isBase64Encoded`. Both payload formats take it (API Gateway Developer Guide, *Set up Lambda proxy integrations*).
    ///
    /// ```
    /// use eastwest::callee;
    ///
    /// let refusal = callee::accept([("x-hop-count", "8")]).err().ok_or("it is a loop")?;
    /// let reply = refusal.to_proxy_reply();
    /// assert_eq!(reply["statusCode"], 508);
    /// assert_eq!(reply["headers"]["x-should-retry"], "false");
    /// assert!(reply["body"].is_string());
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn to_proxy_reply(&self) -> serde_json::Value {
        self.told().to_proxy_reply()
    }

    /// The answer with a body of the framework's own type.
    pub(crate) fn answer<B: From<String>>(&self) -> Response<B> {
        self.told().to_response()
    }

    fn told(&self) -> Answer<'_> {
        Answer {
            status: self.status(),
            r#type: self.kind.name(),
            message: self.kind.message(),
            correlation_id: self.correlation_id.as_ref().map(CorrelationId::as_str),
            retry_after: None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.message())
    }
}

impl std::error::Error for Refusal {}

impl RefusalKind {
    const fn name(self) -> &'static str {
        match self {
            RefusalKind::HopBudgetExhausted => "HopBudgetExhausted",
            RefusalKind::InvalidHopCount => "InvalidHopCount",
            RefusalKind::InvalidIdempotencyKey => "InvalidIdempotencyKey",
            RefusalKind::MissingHopCount => "MissingHopCount",
            RefusalKind::MissingIdempotencyKey => "MissingIdempotencyKey",
            RefusalKind::NoTimeLeft => "NoTimeLeft",
        }
    }

    pub(crate) const fn message(self) -> &'static str {
        match self {
            RefusalKind::HopBudgetExhausted => {
                "the hop count is 8 or more: the chain of calls is taken to be a loop"
            }
            RefusalKind::InvalidHopCount => {
                "x-hop-count must be one number of 1 to 99, without sign, space or leading zero"
            }
            RefusalKind::InvalidIdempotencyKey => {
                "the idempotency key must be one value of 1 to 255 visible ASCII characters"
            }
            RefusalKind::MissingHopCount => {
                "x-hop-count is missing: the caller does not count the hops of its chain"
            }
            RefusalKind::MissingIdempotencyKey => {
                "the idempotency key is missing: a POST or PATCH that is sent again could be done twice"
            }
            RefusalKind::NoTimeLeft => "x-time-budget-ms leaves no time: the answer would come too late",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            RefusalKind::HopBudgetExhausted => StatusCode::LOOP_DETECTED,
            RefusalKind::InvalidHopCount
            | RefusalKind::InvalidIdempotencyKey
            | RefusalKind::MissingHopCount
            | RefusalKind::MissingIdempotencyKey => StatusCode::BAD_REQUEST,
            RefusalKind::NoTimeLeft => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
