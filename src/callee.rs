//! What the receiving side checks before it works.
//!
//! A function that other services call begins with [`accept`]; one that outsiders call as well begins with
//! [`accept_front_door`]. Both read the headers that ride along a chain of calls and answer with the [`CallContext`] to
//! make one's own calls with, or with a [`Refusal`] to return at once, before any work is done:
//!
//! | the request | refused with |
//! |---|---|
//! | has no `x-hop-count` (at a front door it begins a chain) | 400 [`MissingHopCount`](RefusalKind::MissingHopCount) |
//! | has one that is not `[1-9][0-9]?`, or two, equal ones too | 400 [`InvalidHopCount`](RefusalKind::InvalidHopCount) |
//! | is at hop 8 or beyond ([`MAX_HOPS`]) | 508 [`HopBudgetExhausted`](RefusalKind::HopBudgetExhausted) |
//! | has an `x-idempotency-key` that is not 1 to 255 visible ASCII characters, or two | 400 [`InvalidIdempotencyKey`](RefusalKind::InvalidIdempotencyKey) |
//! | has an `x-time-budget-ms` of 30 or less: the answer would be too late | 503 [`NoTimeLeft`](RefusalKind::NoTimeLeft) |
//!
//! Where several hold, the first is told. A missing or unusable `x-correlation-id` is replaced by a fresh one, an
//! unusable `x-time-budget-ms` or trace header counts as absent.
//!
//! **Return a refusal, never throw it.** What a handler throws, the gateway turns into a bare 502, which callers send
//! again, once at each level: through a chain of seven that is 2^7 calls. [`Refusal::to_response`] carries
//! `x-should-retry: false`, which stops them all.
//!
//! **This is a cooperative control, not a security control.** The headers are the caller's own word. It works because
//! every caller counts, and it is enforced where calls arrive; who may call at all is decided by the gateway.
//!
//! ```
//! use bytes::Bytes;
//! use eastwest::callee;
//! use http::{Request, Response, StatusCode};
//!
//! fn reserve_stock(request: &Request<Bytes>) -> Response<Bytes> {
//!     let context = match callee::accept(request.headers()) {
//!         Ok(context) => context,
//!         Err(refusal) => return refusal.to_response(),
//!     };
//!     // Work, and hand `&context` to every call that the work makes.
//!     Response::new(Bytes::from(context.correlation_id().to_owned()))
//! }
//!
//! let looping = Request::post("/stock").header("x-hop-count", "8").body(Bytes::new())?;
//! let answer = reserve_stock(&looping);
//! assert_eq!(answer.status(), StatusCode::LOOP_DETECTED);
//! assert_eq!(answer.headers()["x-should-retry"], "false");
//! # Ok::<(), http::Error>(())
//! ```

use crate::context::headers::SHOULD_RETRY;
use crate::context::inbound::{Field, Inbound};
use crate::context::{CallContext, CorrelationId, HopCount, IdempotencyKey, MAX_HOPS, Parts};
use crate::edge::ambient::{Ambient, system};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use std::fmt;
use std::time::{Duration, Instant};

/// Accepts a request from another service, or refuses it.
///
/// To be called first thing: the time budget is counted from here. `headers` are pairs of name and value: a
/// `&http::HeaderMap`, a `&HashMap<String, String>` of a Lambda event, a vector of pairs. Names are compared without
/// regard to case.
///
/// # Errors
/// A [`Refusal`] where the hop count is missing, invalid or exhausted, where the idempotency key is invalid, and where
/// the caller will not wait for the answer any more. It is reported as a `tracing` event.
///
/// ```
/// use eastwest::callee::{self, RefusalKind};
/// use std::collections::HashMap;
///
/// let event_headers = HashMap::from([("X-Hop-Count".to_owned(), "2".to_owned())]);
/// let context = callee::accept(&event_headers)?;
/// assert_eq!(context.next_hop()?.get(), 3);
///
/// let refusal = callee::accept([("x-hop-count", "many")]).err().ok_or("it is invalid")?;
/// assert_eq!(refusal.kind(), RefusalKind::InvalidHopCount);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accept<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<CallContext, Refusal>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    accept_at(&Inbound::read(headers), Door::Inner, system())
}

/// Accepts a request at a door that outsiders use too: a missing hop count begins a chain.
///
/// Everything else is as with [`accept`]; an invalid hop count is refused here as well.
///
/// # Errors
/// A [`Refusal`], as with [`accept`].
///
/// ```
/// use eastwest::callee;
///
/// let context = callee::accept_front_door([("user-agent", "a browser")])?;
/// assert_eq!(context.hop(), 0);
/// assert_eq!(context.next_hop()?.get(), 1);
/// assert!(callee::accept_front_door([("x-hop-count", "0")]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accept_front_door<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<CallContext, Refusal>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    accept_at(&Inbound::read(headers), Door::Front, system())
}

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
    /// 503: the caller would be gone before the answer came. It says nothing about the callee's health.
    NoTimeLeft,
}

impl Refusal {
    /// The event is part of the making, so that no refusal goes unseen.
    fn new(kind: RefusalKind, correlation_id: Option<CorrelationId>) -> Self {
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
        let body = RefusalBody {
            r#type: self.kind.name(),
            message: self.kind.message(),
            correlation_id: self.correlation_id.as_ref().map(CorrelationId::as_str),
        };
        // Three strings always serialise.
        let mut response = Response::new(Bytes::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        response
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
            RefusalKind::NoTimeLeft => "NoTimeLeft",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            RefusalKind::HopBudgetExhausted => {
                "the hop count is 8 or more: the chain of calls is taken to be a loop"
            }
            RefusalKind::InvalidHopCount => {
                "x-hop-count must be one number of 1 to 99, without sign, space or leading zero"
            }
            RefusalKind::InvalidIdempotencyKey => {
                "x-idempotency-key must be one value of 1 to 255 visible ASCII characters"
            }
            RefusalKind::MissingHopCount => {
                "x-hop-count is missing: the caller does not count the hops of its chain"
            }
            RefusalKind::NoTimeLeft => "x-time-budget-ms leaves no time: the answer would come too late",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            RefusalKind::HopBudgetExhausted => StatusCode::LOOP_DETECTED,
            RefusalKind::InvalidHopCount
            | RefusalKind::InvalidIdempotencyKey
            | RefusalKind::MissingHopCount => StatusCode::BAD_REQUEST,
            RefusalKind::NoTimeLeft => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[derive(serde::Serialize)]
struct RefusalBody<'a> {
    r#type: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
}

/// Who comes in where a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// Outsiders, who do not count hops, and other services.
    Front,
    /// Other services only.
    Inner,
}

/// Reads the ambient once, so that a test can say what time it is.
fn accept_at(inbound: &Inbound, door: Door, ambient: &dyn Ambient) -> Result<CallContext, Refusal> {
    let now = ambient.now().monotonic;
    let told_id = correlation_id(&inbound.correlation_id);
    let checked = inbound_hop(&inbound.hop_count, door).and_then(|hop| {
        let key = inbound_key(&inbound.idempotency_key)?;
        Ok((hop, key, deadline(&inbound.time_budget, now)?))
    });
    let (inbound_hop, inbound_idempotency_key, caller_deadline) = match checked {
        Ok(checked) => checked,
        Err(kind) => return Err(Refusal::new(kind, told_id.ok())),
    };
    Ok(CallContext::from(Parts {
        inbound_hop,
        correlation_id: told_id.unwrap_or_else(|untold| untold.replace(ambient)),
        inbound_idempotency_key,
        trace: inbound.trace(),
        lambda_deadline: None,
        caller_deadline,
    }))
}

fn inbound_hop(hop_count: &Field, door: Door) -> Result<Option<HopCount>, RefusalKind> {
    let hop = match hop_count {
        Field::Absent if door == Door::Front => return Ok(None),
        Field::Absent => return Err(RefusalKind::MissingHopCount),
        Field::One(text) => HopCount::parse(text),
        Field::Unusable => None,
    };
    match hop {
        None => Err(RefusalKind::InvalidHopCount),
        Some(hop) if hop.get() >= MAX_HOPS => Err(RefusalKind::HopBudgetExhausted),
        Some(hop) => Ok(Some(hop)),
    }
}

fn inbound_key(key: &Field) -> Result<Option<IdempotencyKey>, RefusalKind> {
    match key {
        Field::Absent => Ok(None),
        Field::One(key) => {
            IdempotencyKey::from_bytes(key).map(Some).map_err(|_| RefusalKind::InvalidIdempotencyKey)
        }
        Field::Unusable => Err(RefusalKind::InvalidIdempotencyKey),
    }
}

/// When the caller stops waiting, as far as it says so in a way that can be read.
fn deadline(time_budget: &Field, now: Instant) -> Result<Option<Instant>, RefusalKind> {
    let Some(budget) = time_budget.one().and_then(whole_millis) else {
        return Ok(None);
    };
    let left = budget.saturating_sub(WAY_BACK);
    if left.is_zero() {
        return Err(RefusalKind::NoTimeLeft);
    }
    // A deadline past what the clock can say is as good as none.
    Ok(now.checked_add(left))
}

fn correlation_id(id: &Field) -> Result<CorrelationId, Untold> {
    match id {
        Field::Absent => Err(Untold::Missing),
        Field::One(id) => CorrelationId::from_bytes(id).map_err(|_| Untold::Unusable),
        Field::Unusable => Err(Untold::Unusable),
    }
}

/// Why there is no inbound correlation id.
#[derive(Clone, Copy, Debug)]
enum Untold {
    Missing,
    Unusable,
}

impl Untold {
    /// Makes a fresh id, and says so where the chain's log breaks off. The old one is never repeated: it may forge lines.
    fn replace(self, ambient: &dyn Ambient) -> CorrelationId {
        let fresh = CorrelationId::fresh_in(ambient);
        if let Untold::Unusable = self {
            tracing::warn!(
                correlation_id = fresh.as_str(),
                "the inbound x-correlation-id is invalid or there are two: replaced by a fresh one"
            );
        }
        fresh
    }
}

/// Reads whole milliseconds, ASCII digits only. More than 64 bits hold is no bound, as if nothing were said.
fn whole_millis(text: &[u8]) -> Option<Duration> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let millis = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

/// What the answer needs for its way back, taken off what the caller says it will wait.
const WAY_BACK: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::{Draw, Moment, some_moment};
    use http::HeaderMap;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap};
    use std::future::{Future, ready};
    use std::io::{self, Write};
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};

    /// Time stands still.
    struct At(Moment);

    impl Ambient for At {
        fn now(&self) -> Moment {
            self.0
        }

        fn draw(&self) -> Draw {
            system().draw()
        }

        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
            Box::pin(ready(()))
        }
    }

    fn refused(headers: &[(&str, &str)]) -> Refusal {
        accept(headers.iter().copied()).expect_err("is refused")
    }

    fn is_fresh(id: &str) -> bool {
        uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)
    }

    /// What `body` logs, at every level.
    fn log_of(body: impl Fn()) -> String {
        #[derive(Clone, Default)]
        struct Log(Arc<Mutex<Vec<u8>>>);
        impl Write for Log {
            fn write(&mut self, text: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(text);
                Ok(text.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            // Another test's thread may have been the first at an event, with nobody listening, and that is remembered.
            body();
            tracing::callsite::rebuild_interest_cache();
            log.0.lock().unwrap().clear();
            body();
        });
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    }

    /// (inbound, what the next call sends or why the request is refused)
    const HOPS: [(&str, Result<u8, RefusalKind>); 17] = [
        ("1", Ok(2)),
        ("3", Ok(4)),
        ("6", Ok(7)),
        ("8", Err(RefusalKind::HopBudgetExhausted)),
        ("9", Err(RefusalKind::HopBudgetExhausted)),
        ("99", Err(RefusalKind::HopBudgetExhausted)),
        ("100", Err(RefusalKind::InvalidHopCount)),
        ("0", Err(RefusalKind::InvalidHopCount)),
        ("-1", Err(RefusalKind::InvalidHopCount)),
        ("+3", Err(RefusalKind::InvalidHopCount)),
        ("03", Err(RefusalKind::InvalidHopCount)),
        (" 3", Err(RefusalKind::InvalidHopCount)),
        ("3.0", Err(RefusalKind::InvalidHopCount)),
        ("1e1", Err(RefusalKind::InvalidHopCount)),
        ("abc", Err(RefusalKind::InvalidHopCount)),
        ("", Err(RefusalKind::InvalidHopCount)),
        ("٣", Err(RefusalKind::InvalidHopCount)),
    ];

    #[test]
    fn a_hop_count_is_one_more_or_a_refusal_and_never_begins_again() {
        for (inbound, expected) in HOPS {
            for accepted in
                [accept([("x-hop-count", inbound)]), accept_front_door([("x-hop-count", inbound)])]
            {
                let next = accepted.map(|context| context.next_hop().unwrap().get());
                assert_eq!(next.map_err(|refusal| refusal.kind()), expected, "{inbound:?}");
            }
        }
    }

    #[test]
    fn the_last_hop_may_work_and_may_not_call() {
        let context = accept([("x-hop-count", "7")]).unwrap();
        assert_eq!(context.hop(), 7);
        assert_eq!(context.next_hop().unwrap_err().hop(), 7);
    }

    #[test]
    fn a_missing_hop_count_begins_a_chain_at_the_front_door_and_nowhere_else() {
        let none: [(&str, &str); 0] = [];
        assert_eq!(accept(none).unwrap_err().kind(), RefusalKind::MissingHopCount);
        let context = accept_front_door(none).unwrap();
        assert_eq!((context.hop(), context.next_hop().unwrap().get()), (0, 1));
    }

    #[test]
    fn two_hop_counts_are_refused_even_if_they_are_equal() {
        for two in [
            [("x-hop-count", "3"), ("x-hop-count", "3")],
            [("x-hop-count", "3"), ("X-Hop-Count", "4")],
            [("X-HOP-COUNT", ""), ("x-hop-count", "4")],
        ] {
            assert_eq!(accept(two).unwrap_err().kind(), RefusalKind::InvalidHopCount);
            assert_eq!(accept_front_door(two).unwrap_err().kind(), RefusalKind::InvalidHopCount);
        }
        assert_eq!(refused(&[("x-hop-count", "3,3")]).kind(), RefusalKind::InvalidHopCount);
    }

    #[test]
    fn an_inbound_correlation_id_is_kept_or_replaced_by_a_fresh_one() {
        let kept = |id: &str| {
            let context = accept([("x-hop-count", "1"), ("X-Correlation-Id", id)]).unwrap();
            context.correlation_id().to_owned()
        };
        let longest = "a".repeat(128);
        for id in ["order-4711", "A.b_c:d", &longest] {
            assert_eq!(kept(id), id);
        }
        for id in ["", "a\r\nx-evil: 1", "a b", "a\0", "é", "a,b", &format!("{longest}a")] {
            assert!(is_fresh(&kept(id)), "{id:?}");
        }
        assert!(is_fresh(accept([("x-hop-count", "1")]).unwrap().correlation_id()));
    }

    #[test]
    fn two_correlation_ids_are_replaced_even_if_they_are_equal() {
        let two = [("x-hop-count", "1"), ("x-correlation-id", "a"), ("x-correlation-id", "a")];
        assert!(is_fresh(accept(two).unwrap().correlation_id()));
    }

    #[test]
    fn a_replaced_correlation_id_is_warned_about_and_never_echoed() {
        let said = log_of(|| {
            accept([("x-hop-count", "1"), ("x-correlation-id", "a\r\nx-evil: 1")]).unwrap();
        });
        assert!(said.contains("WARN") && said.contains("replaced"), "{said}");
        assert!(!said.contains("evil"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let missing = log_of(|| {
            accept([("x-hop-count", "1")]).unwrap();
        });
        assert_eq!(missing, "");
    }

    #[test]
    fn a_refusal_is_an_event_that_repeats_nothing_unchecked() {
        let said = log_of(|| {
            refused(&[("x-hop-count", "evil-hop"), ("x-correlation-id", "order-1")]);
            refused(&[
                ("x-correlation-id", "evil\nid"),
                ("x-idempotency-key", "evil key"),
                ("x-hop-count", "2"),
            ]);
        });
        assert_eq!(said.matches("an inbound call was refused").count(), 2, "{said}");
        assert!(said.contains("InvalidHopCount") && said.contains("order-1"), "{said}");
        assert!(!said.contains("evil"), "{said}");
    }

    #[test]
    fn an_inbound_idempotency_key_is_kept_or_the_request_refused() {
        let key = |key: &str| {
            accept([("x-hop-count", "1"), ("X-Idempotency-Key", key)])
                .map(|context| context.inbound_idempotency_key().map(ToString::to_string))
                .map_err(|refusal| refusal.kind())
        };
        let longest = "k".repeat(255);
        for valid in ["k", "order/4711", &longest] {
            assert_eq!(key(valid), Ok(Some(valid.to_owned())));
        }
        for invalid in ["", "k\n1", "a key", "ké", &format!("{longest}k")] {
            assert_eq!(key(invalid), Err(RefusalKind::InvalidIdempotencyKey), "{invalid:?}");
        }
        let two = [("x-hop-count", "1"), ("x-idempotency-key", "k"), ("x-idempotency-key", "k")];
        assert_eq!(refused(&two).kind(), RefusalKind::InvalidIdempotencyKey);
        assert_eq!(accept([("x-hop-count", "1")]).unwrap().inbound_idempotency_key(), None);
    }

    #[test]
    fn a_time_budget_is_taken_less_30_ms_and_junk_counts_as_absent() {
        let now = some_moment();
        let left = |budgets: &[&str]| {
            let headers = budgets.iter().map(|budget| ("x-time-budget-ms", *budget));
            accept_at(&Inbound::read(headers), Door::Front, &At(now))
                .map(|context| context.time_left(now.monotonic).map(|left| left.as_millis()))
                .map_err(|refusal| refusal.kind())
        };
        assert_eq!(left(&["1500"]), Ok(Some(1470)));
        assert_eq!(left(&["0031"]), Ok(Some(1)));
        for spent in ["30", "29", "0", "0000"] {
            assert_eq!(left(&[spent]), Err(RefusalKind::NoTimeLeft), "{spent}");
        }
        for junk in
            ["", "-5", "+500", "1.5", "1e3", " 500", "500 ms", "٣", "99999999999999999999", &"0".repeat(2000)]
        {
            assert_eq!(left(&[junk]), Ok(None), "{junk:?}");
        }
        assert_eq!(left(&["500", "500"]), Ok(None));
        assert_eq!(left(&[]), Ok(None));
        // The most that 64 bits hold is a bound that no clock reaches, and no panic.
        assert!(left(&["18446744073709551615"]).is_ok());
    }

    #[test]
    fn traces_are_passed_on_and_of_two_neither() {
        let headers = [
            ("x-hop-count", "1"),
            ("X-Amzn-Trace-Id", "Root=1-a;Lineage=1:23e64a83:0"),
            ("traceparent", "00-a-b-01"),
            ("tracestate", "b=2"),
            ("TraceState", "a=1"),
        ];
        let sent = |context: &CallContext| -> Vec<_> {
            let owned = context
                .trace_headers()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            owned.collect()
        };
        let expected = [
            ("x-amzn-trace-id", "Root=1-a;Lineage=1:23e64a83:0"),
            ("traceparent", "00-a-b-01"),
            ("tracestate", "b=2"),
            ("tracestate", "a=1"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(sent(&accept(headers).unwrap()), expected);

        let twice = headers.into_iter().chain([("traceparent", "00-a-b-01"), ("x-amzn-trace-id", "Root=2")]);
        assert_eq!(sent(&accept(twice).unwrap()), expected[2..]);
    }

    #[test]
    fn headers_are_taken_from_every_kind_of_map() {
        let pairs = [("x-hop-count", "2"), ("x-idempotency-key", "k")];
        let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));

        let mut http = HeaderMap::new();
        for (name, value) in pairs {
            http.insert(name, HeaderValue::from_static(value));
        }
        let by_hash: HashMap<String, String> = owned.iter().cloned().collect();
        let by_tree: BTreeMap<String, String> = owned.iter().cloned().collect();
        let vector: Vec<(&str, &str)> = pairs.to_vec();
        let bytes: Vec<(String, Vec<u8>)> =
            owned.iter().cloned().map(|(name, value)| (name, value.into_bytes())).collect();
        for accepted in
            [accept(&http), accept(&by_hash), accept(by_tree), accept(vector), accept(bytes), accept(owned)]
        {
            let context = accepted.unwrap();
            assert_eq!(context.hop(), 2);
            assert_eq!(context.inbound_idempotency_key().unwrap().as_str(), "k");
        }
        http.append("x-hop-count", HeaderValue::from_static("2"));
        assert_eq!(accept(&http).unwrap_err().kind(), RefusalKind::InvalidHopCount);
    }

    #[test]
    fn the_first_reason_is_told() {
        let mut headers = vec![("x-time-budget-ms", "1"), ("x-idempotency-key", " "), ("x-hop-count", "8")];
        assert_eq!(refused(&headers).kind(), RefusalKind::HopBudgetExhausted);
        headers[2].1 = "1";
        assert_eq!(refused(&headers).kind(), RefusalKind::InvalidIdempotencyKey);
        headers[1].1 = "k";
        assert_eq!(refused(&headers).kind(), RefusalKind::NoTimeLeft);
    }

    #[test]
    fn every_refusal_forbids_a_retry_and_names_its_type() {
        let table = [
            (RefusalKind::HopBudgetExhausted, 508, "HopBudgetExhausted"),
            (RefusalKind::InvalidHopCount, 400, "InvalidHopCount"),
            (RefusalKind::InvalidIdempotencyKey, 400, "InvalidIdempotencyKey"),
            (RefusalKind::MissingHopCount, 400, "MissingHopCount"),
            (RefusalKind::NoTimeLeft, 503, "NoTimeLeft"),
        ];
        for (kind, status, name) in table {
            let refusal = Refusal::new(kind, None);
            let response = refusal.to_response();
            assert_eq!((response.status().as_u16(), refusal.status().as_u16()), (status, status));
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(response.headers()["x-should-retry"], "false");
            let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(body, serde_json::json!({"type": name, "message": refusal.to_string()}));
        }
    }

    #[test]
    fn a_refusal_repeats_a_valid_correlation_id_and_no_other() {
        let answered = |id: &str| {
            let response = refused(&[("x-correlation-id", id)]).to_response();
            String::from_utf8(response.body().to_vec()).unwrap()
        };
        assert!(answered("order-1").contains(r#""correlation_id":"order-1""#));
        let other = answered("a\r\nx-evil: 1");
        assert!(!other.contains("correlation_id") && !other.contains("evil"), "{other}");
    }

    #[test]
    fn the_message_states_the_hop_limit_that_is_in_force() {
        assert!(RefusalKind::HopBudgetExhausted.message().contains(&format!(" {MAX_HOPS} or more")));
    }

    fn any_headers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
        let name = prop_oneof![
            4 => Just("x-hop-count".to_owned()),
            2 => Just("X-Correlation-ID".to_owned()),
            2 => Just("x-idempotency-key".to_owned()),
            2 => Just("x-time-budget-ms".to_owned()),
            1 => Just("x-amzn-trace-id".to_owned()),
            1 => Just("Traceparent".to_owned()),
            1 => Just("tracestate".to_owned()),
            1 => ".{0,20}",
        ];
        let value = prop_oneof![
            4 => "[0-9]{1,2}".prop_map(String::into_bytes),
            2 => "[0-9]{0,25}".prop_map(String::into_bytes),
            2 => "[!-~]{0,260}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..1100),
        ];
        prop::collection::vec((name, value), 0..8)
    }

    proptest! {
        #[test]
        fn no_header_set_panics_and_what_is_accepted_can_be_sent_on(headers in any_headers(), front in any::<bool>()) {
            let now = some_moment();
            let door = if front { Door::Front } else { Door::Inner };
            let accepted = accept_at(&Inbound::read(headers), door, &At(now));
            let Ok(context) = accepted else {
                let refusal = accepted.unwrap_err();
                prop_assert_eq!(refusal.to_response().status(), refusal.status());
                return Ok(());
            };
            match context.next_hop() {
                Ok(next) => prop_assert_eq!((next.get(), next.get() < MAX_HOPS), (context.hop() + 1, true)),
                Err(limit) => prop_assert_eq!(limit.hop(), MAX_HOPS - 1),
            }
            let id = context.correlation_id();
            prop_assert!(HeaderValue::from_str(id).is_ok() && CorrelationId::new(id).is_ok());
            if let Some(key) = context.inbound_idempotency_key() {
                prop_assert!(HeaderValue::from_str(key.as_str()).is_ok());
            }
            for (name, value) in context.trace_headers() {
                prop_assert!(!value.is_empty() && value.len() <= 1024, "{}", name);
            }
            prop_assert_ne!(context.time_left(now.monotonic), Some(Duration::ZERO));
        }
    }
}
