//! The demands that a callee makes of a request, in one value.

use crate::callee::events::{event_headers, event_method};
use crate::callee::refusal::{Refusal, RefusalKind};
use crate::context::inbound::{Field, Inbound};
use crate::context::{CallContext, CorrelationId, HopCount, IdempotencyKey, MAX_HOPS, Parts, headers};
use crate::edge::ambient::{Ambient, system};
use http::HeaderName;
use serde_json::Value;
use std::time::{Duration, Instant};

/// What a callee demands of a request before it works.
///
/// Plain data, made once and used for every request. The hop count is always demanded; everything else has a setting:
///
/// | demand | by default | setting |
/// |---|---|---|
/// | a hop count that is there | yes | [`front_door`](Guard::front_door): a missing one begins a chain |
/// | an idempotency key on POST and PATCH | yes | [`without_idempotency_key`](Guard::without_idempotency_key) |
/// | the key's header | `x-idempotency-key` | [`idempotency_header`](Guard::idempotency_header) |
/// | time left once the answer's way back, 30 ms, is taken off | more than none | [`least_time_left`](Guard::least_time_left) |
///
/// ```
/// use eastwest::callee::{Guard, RefusalKind};
/// use http::{HeaderMap, HeaderValue, Method};
/// use std::time::Duration;
///
/// let guard = Guard::new().least_time_left(Duration::from_millis(200));
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-hop-count", HeaderValue::from_static("2"));
/// let refusal = guard.accept(Method::POST, &headers).err().ok_or("it has no key")?;
/// assert_eq!(refusal.kind(), RefusalKind::MissingIdempotencyKey);
/// assert!(guard.accept(Method::GET, &headers).is_ok());
///
/// headers.insert("x-idempotency-key", HeaderValue::from_static("order-4711"));
/// assert!(guard.accept(Method::POST, &headers).is_ok());
///
/// headers.insert("x-time-budget-ms", HeaderValue::from_static("150"));
/// let refusal = guard.accept(Method::POST, &headers).err().ok_or("it would be too late")?;
/// assert_eq!(refusal.kind(), RefusalKind::NoTimeLeft);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Guard {
    door: Door,
    key_demanded: bool,
    key_header: HeaderName,
    least_time_left: Duration,
}

impl Guard {
    /// The guard of a function that other services call.
    pub fn new() -> Guard {
        Guard {
            door: Door::Inner,
            key_demanded: true,
            key_header: headers::IDEMPOTENCY_KEY,
            least_time_left: Duration::ZERO,
        }
    }

    /// Lets outsiders in, who do not count: a missing hop count begins a chain. An invalid one is refused all the same.
    ///
    /// The key is still demanded; where outsiders send none, say [`without_idempotency_key`](Guard::without_idempotency_key) too.
    pub fn front_door(mut self) -> Guard {
        self.door = Door::Front;
        self
    }

    /// Takes a POST or PATCH without an idempotency key. One that is there must be valid all the same.
    ///
    /// For work that may be done twice. Without a key, the caller's client sends nothing again that may have been done.
    pub fn without_idempotency_key(mut self) -> Guard {
        self.key_demanded = false;
        self
    }

    /// Sets the name of the header that carries the idempotency key; `x-idempotency-key` by default.
    ///
    /// It must be what the callers' [`ClientBuilder::idempotency_header`](crate::ClientBuilder::idempotency_header) says.
    pub fn idempotency_header(mut self, name: HeaderName) -> Guard {
        self.key_header = name;
        self
    }

    /// Refuses, with 503 and [`NoTimeLeft`](RefusalKind::NoTimeLeft), a request whose caller will not wait so long for
    /// the work; the answer's way back, 30 ms, is not part of it. Zero by default.
    ///
    /// A request that does not say how long its caller waits is not refused.
    pub fn least_time_left(mut self, least: Duration) -> Guard {
        self.least_time_left = least;
        self
    }

    /// Accepts a request, or refuses it.
    ///
    /// To be called first thing: the time budget is counted from here. `method` is a `http::Method` or text; `headers`
    /// are pairs, as with [`callee::accept`](crate::callee::accept).
    ///
    /// # Errors
    /// A [`Refusal`] to return at once. It is reported as a `tracing` event.
    pub fn accept<N, V>(
        &self,
        method: impl AsRef<str>,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<CallContext, Refusal>
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        self.check(&self.read(headers), self.demand_of(method.as_ref()), system())
    }

    /// Accepts the event of a Lambda behind a REST API, an HTTP API, a function URL or a load balancer, or refuses it.
    ///
    /// What is read of it is what [`event_headers`](crate::callee::event_headers) and
    /// [`event_method`](crate::callee::event_method) say. An event that names no method must have a key, as nobody knows
    /// what it would do. No shape of an event is a panic.
    ///
    /// # Errors
    /// A [`Refusal`], as with [`accept`](Guard::accept); [`Refusal::to_proxy_reply`] is what the function returns then.
    ///
    /// ```
    /// use eastwest::callee::Guard;
    /// use serde_json::json;
    ///
    /// let guard = Guard::new();
    /// let event = json!({
    ///     "version": "2.0",
    ///     "headers": {"x-hop-count": "3", "x-idempotency-key": "order-4711"},
    ///     "requestContext": {"http": {"method": "POST"}},
    /// });
    /// assert_eq!(guard.accept_event(&event)?.hop(), 3);
    ///
    /// let reply = match guard.accept_event(&json!({"httpMethod": "GET", "headers": null})) {
    ///     Ok(_context) => json!({"statusCode": 200}),
    ///     Err(refusal) => refusal.to_proxy_reply(),
    /// };
    /// assert_eq!(reply["statusCode"], 400);
    /// # Ok::<(), eastwest::callee::Refusal>(())
    /// ```
    pub fn accept_event(&self, event: &Value) -> Result<CallContext, Refusal> {
        let demand = event_method(event).map_or(self.demand_of("POST"), |method| self.demand_of(method));
        self.check(&self.read(event_headers(event)), demand, system())
    }

    /// Where the method is not known, no key is demanded.
    pub(crate) fn accept_any_method<N, V>(
        &self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<CallContext, Refusal>
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        self.check(&self.read(headers), Demand::NoKey, system())
    }

    fn read<N: AsRef<str>, V: AsRef<[u8]>>(&self, headers: impl IntoIterator<Item = (N, V)>) -> Inbound {
        Inbound::read(headers, &self.key_header)
    }

    fn demand_of(&self, method: &str) -> Demand {
        let demanded = ["POST", "PATCH"].iter().any(|name| name.eq_ignore_ascii_case(method));
        if self.key_demanded && demanded { Demand::Key } else { Demand::NoKey }
    }

    /// Reads the ambient once, so that a test can say what time it is.
    pub(crate) fn check(
        &self,
        inbound: &Inbound,
        demand: Demand,
        ambient: &dyn Ambient,
    ) -> Result<CallContext, Refusal> {
        let now = ambient.now().monotonic;
        let told_id = correlation_id(&inbound.correlation_id);
        let checked = inbound_hop(&inbound.hop_count, self.door).and_then(|hop| {
            let key = inbound_key(&inbound.idempotency_key, demand)?;
            Ok((hop, key, deadline(&inbound.time_budget, self.least_time_left, now)?))
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
}

impl Default for Guard {
    fn default() -> Guard {
        Guard::new()
    }
}

/// Who comes in where a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// Outsiders, who do not count hops, and other services.
    Front,
    /// Other services only.
    Inner,
}

/// Whether this very request must carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Key,
    NoKey,
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

fn inbound_key(key: &Field, demand: Demand) -> Result<Option<IdempotencyKey>, RefusalKind> {
    match key {
        Field::Absent if demand == Demand::Key => Err(RefusalKind::MissingIdempotencyKey),
        Field::Absent => Ok(None),
        Field::One(key) => {
            IdempotencyKey::from_bytes(key).map(Some).map_err(|_| RefusalKind::InvalidIdempotencyKey)
        }
        Field::Unusable => Err(RefusalKind::InvalidIdempotencyKey),
    }
}

/// When the caller stops waiting, as far as it says so in a way that can be read.
fn deadline(time_budget: &Field, least: Duration, now: Instant) -> Result<Option<Instant>, RefusalKind> {
    let Some(budget) = time_budget.one().and_then(whole_millis) else {
        return Ok(None);
    };
    let left = budget.saturating_sub(WAY_BACK);
    if left.is_zero() || left < least {
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
