//! Why a request is not worked on, and the answer to return instead.

use crate::callee::answer::Answer;
use crate::context::CorrelationId;
use bytes::Bytes;
use http::{Response, StatusCode};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// 508: the hop count is [`MAX_HOPS`](crate::MAX_HOPS) or more; the chain is taken to be a loop.
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
    /// The event and the count are part of the making, so that no refusal goes unseen.
    pub(crate) fn new(kind: RefusalKind, correlation_id: Option<CorrelationId>) -> Self {
        REFUSED.count(kind);
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
    /// `isBase64Encoded`. Both payload formats take it (API Gateway Developer Guide, *Lambda proxy integrations in API
    /// Gateway* and *Create AWS Lambda proxy integrations for HTTP APIs*).
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

/// How many requests this process has refused so far, by kind: one reading of counters that only grow.
///
/// All guards of the process count together. To sum it over a fleet, log what is new since the last reading; it is `serde` data.
///
/// ```
/// use eastwest::callee::{self, RefusalKind};
///
/// let before = callee::refusals().of(RefusalKind::HopBudgetExhausted);
/// assert!(callee::accept([("x-hop-count", "8")]).is_err());
/// assert!(callee::refusals().of(RefusalKind::HopBudgetExhausted) > before);
/// ```
#[must_use]
pub fn refusals() -> Refusals {
    REFUSED.read()
}

/// How many requests were refused, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Refusals {
    /// [`RefusalKind::HopBudgetExhausted`].
    pub hop_budget_exhausted: u64,
    /// [`RefusalKind::InvalidHopCount`].
    pub invalid_hop_count: u64,
    /// [`RefusalKind::InvalidIdempotencyKey`].
    pub invalid_idempotency_key: u64,
    /// [`RefusalKind::MissingHopCount`].
    pub missing_hop_count: u64,
    /// [`RefusalKind::MissingIdempotencyKey`].
    pub missing_idempotency_key: u64,
    /// [`RefusalKind::NoTimeLeft`].
    pub no_time_left: u64,
}

impl Refusals {
    /// The refusals of one kind.
    #[must_use]
    pub fn of(&self, kind: RefusalKind) -> u64 {
        match kind {
            RefusalKind::HopBudgetExhausted => self.hop_budget_exhausted,
            RefusalKind::InvalidHopCount => self.invalid_hop_count,
            RefusalKind::InvalidIdempotencyKey => self.invalid_idempotency_key,
            RefusalKind::MissingHopCount => self.missing_hop_count,
            RefusalKind::MissingIdempotencyKey => self.missing_idempotency_key,
            RefusalKind::NoTimeLeft => self.no_time_left,
        }
    }

    /// The refusals of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Refusals {
            hop_budget_exhausted,
            invalid_hop_count,
            invalid_idempotency_key,
            missing_hop_count,
            missing_idempotency_key,
            no_time_left,
        } = self;
        [
            hop_budget_exhausted,
            invalid_hop_count,
            invalid_idempotency_key,
            missing_hop_count,
            missing_idempotency_key,
            no_time_left,
        ]
        .into_iter()
        .sum()
    }
}

/// The counters. None orders any other, so all are relaxed.
struct Counters {
    hop_budget_exhausted: AtomicU64,
    invalid_hop_count: AtomicU64,
    invalid_idempotency_key: AtomicU64,
    missing_hop_count: AtomicU64,
    missing_idempotency_key: AtomicU64,
    no_time_left: AtomicU64,
}

impl Counters {
    const fn new() -> Counters {
        Counters {
            hop_budget_exhausted: AtomicU64::new(0),
            invalid_hop_count: AtomicU64::new(0),
            invalid_idempotency_key: AtomicU64::new(0),
            missing_hop_count: AtomicU64::new(0),
            missing_idempotency_key: AtomicU64::new(0),
            no_time_left: AtomicU64::new(0),
        }
    }

    fn count(&self, kind: RefusalKind) {
        let counter = match kind {
            RefusalKind::HopBudgetExhausted => &self.hop_budget_exhausted,
            RefusalKind::InvalidHopCount => &self.invalid_hop_count,
            RefusalKind::InvalidIdempotencyKey => &self.invalid_idempotency_key,
            RefusalKind::MissingHopCount => &self.missing_hop_count,
            RefusalKind::MissingIdempotencyKey => &self.missing_idempotency_key,
            RefusalKind::NoTimeLeft => &self.no_time_left,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Refusals {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Refusals {
            hop_budget_exhausted: count(&self.hop_budget_exhausted),
            invalid_hop_count: count(&self.invalid_hop_count),
            invalid_idempotency_key: count(&self.invalid_idempotency_key),
            missing_hop_count: count(&self.missing_hop_count),
            missing_idempotency_key: count(&self.missing_idempotency_key),
            no_time_left: count(&self.no_time_left),
        }
    }
}

/// Of the whole process: guards are made anew for every request.
static REFUSED: Counters = Counters::new();

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [RefusalKind; 6] = [
        RefusalKind::HopBudgetExhausted,
        RefusalKind::InvalidHopCount,
        RefusalKind::InvalidIdempotencyKey,
        RefusalKind::MissingHopCount,
        RefusalKind::MissingIdempotencyKey,
        RefusalKind::NoTimeLeft,
    ];

    #[test]
    fn each_kind_is_counted_by_itself() {
        let counters = Counters::new();
        for (times, kind) in (1..).zip(ALL) {
            (0..times).for_each(|_| counters.count(kind));
        }
        assert_eq!(ALL.map(|kind| counters.read().of(kind)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(counters.read().total(), 21);
    }

    #[test]
    fn what_is_logged_names_every_kind() {
        let line = serde_json::to_value(Refusals::default()).unwrap();
        assert_eq!(line.as_object().unwrap().len(), ALL.len());
    }

    #[test]
    fn every_refusal_that_is_made_counts_for_the_process() {
        for kind in ALL {
            // Other tests of this process refuse too, so it may be more.
            let before = refusals().of(kind);
            let _ = Refusal::new(kind, None);
            assert!(refusals().of(kind) > before, "{kind:?}");
        }
    }
}
