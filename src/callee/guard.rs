//! The demands that a callee makes of a request, in one value.

use crate::callee::demands::{Demand, Door, correlation_id, deadline, inbound_hop, inbound_key};
use crate::callee::events::{event_headers, event_method};
use crate::callee::refusal::Refusal;
use crate::context::inbound::Inbound;
use crate::context::{CallContext, Inherited, headers};
use crate::edge::ambient::{Ambient, system};
use http::HeaderName;
use serde_json::Value;
use std::time::Duration;

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
    /// It must be what the callers' [`ClientBuilder::idempotency_header`](crate::ClientBuilder::idempotency_header) says,
    /// and is held to the same rule.
    ///
    /// # Errors
    /// [`HeaderTaken`] where the name means something else already: `x-hop-count`, `authorization`, `content-type`, `date`.
    pub fn idempotency_header(mut self, name: HeaderName) -> Result<Guard, HeaderTaken> {
        if headers::has_another_meaning(&name, &headers::IDEMPOTENCY_KEY) {
            return Err(HeaderTaken(name));
        }
        self.key_header = name;
        Ok(self)
    }

    /// Refuses, with 503 and [`NoTimeLeft`](crate::callee::RefusalKind::NoTimeLeft), a request whose caller will not wait so long for
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
        let (inbound_hop, idempotency_key, caller_deadline) = match checked {
            Ok(checked) => checked,
            Err(kind) => return Err(Refusal::new(kind, told_id.ok())),
        };
        let correlation_id = told_id.unwrap_or_else(|untold| untold.replace(ambient));
        let inherited =
            Inherited { idempotency_key, trace: inbound.trace(), lambda_deadline: None, caller_deadline };
        Ok(CallContext::of(inbound_hop, correlation_id, Some(inherited)))
    }
}

impl Default for Guard {
    fn default() -> Guard {
        Guard::new()
    }
}

/// A header name that cannot be the idempotency key's, because it has another meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` has another meaning: it cannot carry an idempotency key")]
pub struct HeaderTaken(HeaderName);

impl HeaderTaken {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.0
    }
}
