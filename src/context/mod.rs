//! What rides along a chain of calls: the hop count, the correlation id, the idempotency key, the trace and the time left.

pub(crate) mod headers;
mod hop;
mod id;
pub(crate) mod inbound;
mod text;
mod trace;

pub use hop::{HopCount, HopLimit, MAX_HOPS};
pub use id::{IdempotencyKey, InvalidCorrelationId, InvalidIdempotencyKey, NoInboundKey};

pub(crate) use id::CorrelationId;
pub(crate) use trace::Trace;

use crate::edge::ambient::{Ambient, system};
use crate::policy::moment::Moment;
use http::{HeaderName, HeaderValue};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// What a call inherits from the chain it belongs to.
///
/// Every call needs one. It comes from [`callee::accept`](crate::callee::accept), which reads it off the request that
/// is being served, or from [`CallContext::root`] where a chain truly begins: in a scheduled job, in a queue's consumer.
/// All calls made with one context are of the same chain: each sends the hop count after the inbound one, the same
/// correlation id and the same trace, and none waits beyond the context's deadline.
///
/// A clone is cheap and shares everything. The `with_` methods change the clone they are called on, and no other.
///
/// ```
/// use eastwest::callee;
/// use std::time::{Duration, SystemTime};
///
/// // In a Lambda: the event's headers, and what the runtime tells of the invocation.
/// let event_headers = [("x-hop-count", "3"), ("x-correlation-id", "order-4711")];
/// let (runtime_deadline, runtime_trace_id) = (SystemTime::UNIX_EPOCH, "Root=1-6858764a-5c96ac04102925a7698c3690");
///
/// let context = callee::accept(event_headers)?
///     .with_lambda_deadline(runtime_deadline)
///     .with_trace_id(runtime_trace_id);
///
/// assert_eq!(context.hop(), 3);
/// assert_eq!(context.next_hop()?.get(), 4);
/// assert_eq!(context.correlation_id(), "order-4711");
/// let deadline = context.deadline().ok_or("it has one")?;
/// assert_eq!(context.time_left(deadline), Some(Duration::ZERO));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CallContext(Arc<Parts>);

/// The parts of a context.
#[derive(Clone)]
struct Parts {
    /// `None` where the chain begins.
    inbound_hop: Option<HopCount>,
    correlation_id: CorrelationId,
    /// Boxed, for a chain that begins here and that nothing bounds has none of it.
    inherited: Option<Box<Inherited>>,
}

/// What a context may have beside its hop and its id.
#[derive(Clone, Default)]
pub(crate) struct Inherited {
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) trace: Trace,
    /// When the sandbox is stopped; what to keep in reserve before that is a setting of the client.
    pub(crate) lambda_deadline: Option<Instant>,
    /// When nobody waits for the answer any more; the answer's way back is taken off already.
    pub(crate) caller_deadline: Option<Instant>,
}

impl CallContext {
    /// Begins a chain: the next hop is 1, the correlation id is a fresh UUID, and there is no deadline.
    ///
    /// Never in a function that serves a request: a chain that forgets its hop count there can run in a circle for ever.
    /// What outsiders call takes [`callee::accept_front_door`](crate::callee::accept_front_door).
    #[must_use]
    pub fn root() -> Self {
        Self::root_in(system())
    }

    fn root_in(ambient: &dyn Ambient) -> Self {
        Self::of(None, CorrelationId::fresh_in(ambient), None)
    }

    /// A context of these parts; no hop is one whose chain begins here.
    pub(crate) fn of(
        inbound_hop: Option<HopCount>,
        correlation_id: CorrelationId,
        inherited: Option<Inherited>,
    ) -> Self {
        CallContext(Arc::new(Parts { inbound_hop, correlation_id, inherited: inherited.map(Box::new) }))
    }

    fn inherited_mut(&mut self) -> &mut Inherited {
        Arc::make_mut(&mut self.0).inherited.get_or_insert_default()
    }

    fn inherits<T>(&self, part: impl FnOnce(&Inherited) -> Option<T>) -> Option<T> {
        self.0.inherited.as_deref().and_then(part)
    }

    /// Sets the correlation id, 1 to 128 characters of `[A-Za-z0-9._:-]`.
    ///
    /// # Errors
    /// [`InvalidCorrelationId`] where the text is anything else. It is not replaced: the caller meant it.
    pub fn with_correlation_id(mut self, id: impl AsRef<str>) -> Result<Self, InvalidCorrelationId> {
        let id = CorrelationId::new(id.as_ref())?;
        Arc::make_mut(&mut self.0).correlation_id = id;
        Ok(self)
    }

    /// Bounds all calls made with this context.
    ///
    /// A deadline is only ever brought forward: of this one and one inherited from the caller, the earlier holds.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        let inherited = self.inherited_mut();
        inherited.caller_deadline = earlier(inherited.caller_deadline, Some(deadline));
        self
    }

    /// Bounds all calls made with this context by a Lambda's own deadline, `Context::deadline()` of `lambda_runtime`.
    ///
    /// To be called as the handler begins: the wall clock is read here, once, and from then on the monotonic clock
    /// counts. Each client keeps a reserve of its own before this deadline, time to answer or to write a dead letter.
    /// A deadline that has passed leaves no time; of two, the earlier holds.
    #[must_use]
    pub fn with_lambda_deadline(self, deadline: SystemTime) -> Self {
        self.with_lambda_deadline_at(deadline, system().now())
    }

    fn with_lambda_deadline_at(mut self, deadline: SystemTime, now: Moment) -> Self {
        let left = deadline.duration_since(now.wall).unwrap_or(Duration::ZERO);
        let inherited = self.inherited_mut();
        // A deadline past what the clock can say is as good as none.
        inherited.lambda_deadline = earlier(inherited.lambda_deadline, now.monotonic.checked_add(left));
        self
    }

    /// Sets the X-Ray trace id, sent as `x-amzn-trace-id`.
    ///
    /// In a Lambda take it from the invocation's context (`xray_trace_id`), not from the environment variable
    /// `_X_AMZN_TRACE_ID`, which is not set where invocations run concurrently.
    /// The text is passed through untouched. Text that is empty, over 1 KiB or no header value is dropped: a trace
    /// never fails a call.
    #[must_use]
    pub fn with_trace_id(mut self, id: impl AsRef<str>) -> Self {
        self.inherited_mut().trace.set_xray(id.as_ref().as_bytes());
        self
    }

    /// Sets `traceparent` (W3C Trace Context, section 3.2), passed through untouched.
    ///
    /// Text that is empty, over 1 KiB or no header value is dropped. An inherited `tracestate` is kept.
    #[must_use]
    pub fn with_traceparent(mut self, parent: impl AsRef<str>) -> Self {
        self.inherited_mut().trace.set_parent(parent.as_ref().as_bytes());
        self
    }

    /// Sets `tracestate` (W3C Trace Context, section 3.3) in place of all its inherited lines, passed through untouched.
    ///
    /// Text that is empty, over 1 KiB or no header value is dropped.
    #[must_use]
    pub fn with_tracestate(mut self, state: impl AsRef<str>) -> Self {
        self.inherited_mut().trace.set_state([state.as_ref().as_bytes()]);
        self
    }

    /// The hop that the request being served arrived with, 1 to 7; 0 where the chain begins.
    #[must_use]
    pub fn hop(&self) -> u8 {
        self.0.inbound_hop.map_or(0, HopCount::get)
    }

    /// The hop that calls made with this context send: the inbound one plus 1, or 1 where the chain begins.
    ///
    /// # Errors
    /// [`HopLimit`] where that would be [`MAX_HOPS`], which every callee refuses: the call must not be sent.
    pub fn next_hop(&self) -> Result<HopCount, HopLimit> {
        HopCount::after(self.0.inbound_hop)
    }

    /// The id that all calls of the chain have in common.
    #[must_use]
    pub fn correlation_id(&self) -> &str {
        self.0.correlation_id.as_str()
    }

    /// The idempotency key of the request being served.
    ///
    /// It is not sent on: each call has a key of its own.
    #[must_use]
    pub fn inbound_idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.0.inherited.as_deref()?.idempotency_key.as_ref()
    }

    /// Derives the key of a call that is made for the inbound one: when the caller sends its request again, its calls
    /// carry the same keys again, so nothing further down is done twice.
    ///
    /// `label` names the call among those that this request makes: `"reserve"`, `"charge"`. Another label, or another
    /// inbound key, gives another key. The key is [`IdempotencyKey::derive`] of `"child"`, the inbound key and the label.
    ///
    /// # Errors
    /// [`NoInboundKey`] where the inbound request carried none, or where the chain begins here.
    pub fn derive_key(&self, label: impl AsRef<str>) -> Result<IdempotencyKey, NoInboundKey> {
        let inbound = self.inbound_idempotency_key().ok_or(NoInboundKey)?;
        Ok(IdempotencyKey::derive(["child", inbound.as_str(), label.as_ref()]))
    }

    /// The trace headers that calls made with this context send: `x-amzn-trace-id`, `traceparent` and the lines of
    /// `tracestate`, those it has.
    pub fn trace_headers(&self) -> impl Iterator<Item = (HeaderName, &HeaderValue)> {
        self.0.inherited.iter().flat_map(|inherited| inherited.trace.headers())
    }

    /// The earliest deadline set or inherited, `None` where nothing bounds the chain.
    ///
    /// A Lambda's own deadline counts in full here; the reserve before it is the client's to keep.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        earlier(self.lambda_deadline(), self.caller_deadline())
    }

    /// The time from `now` to [`deadline`](Self::deadline), zero where it has passed, `None` where there is none.
    #[must_use]
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        self.time_left_with_reserve(now, Duration::ZERO)
    }

    /// When the sandbox itself has to be done, whoever waits or does not.
    pub(crate) fn lambda_deadline(&self) -> Option<Instant> {
        self.inherits(|inherited| inherited.lambda_deadline)
    }

    fn caller_deadline(&self) -> Option<Instant> {
        self.inherits(|inherited| inherited.caller_deadline)
    }

    /// The time left when `lambda_reserve` is kept before a Lambda's own deadline; other deadlines count in full.
    pub(crate) fn time_left_with_reserve(&self, now: Instant, lambda_reserve: Duration) -> Option<Duration> {
        let to = |deadline: Instant| deadline.saturating_duration_since(now);
        let lambda = self.lambda_deadline().map(|deadline| to(deadline).saturating_sub(lambda_reserve));
        earlier(lambda, self.caller_deadline().map(to))
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("hop", &self.hop())
            .field("correlation_id", &self.correlation_id())
            .field("has_inbound_idempotency_key", &self.inbound_idempotency_key().is_some())
            .finish_non_exhaustive()
    }
}

/// The smaller of what is there.
fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;

    fn at_hop(hop: &str) -> CallContext {
        let id = CorrelationId::new("order-1").unwrap();
        CallContext::of(Some(HopCount::parse(hop.as_bytes()).unwrap()), id, None)
    }

    const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_context_crosses_threads_and_a_clone_of_it_is_a_pointer() {
        fn crosses<T: Send + Sync + Clone + 'static>() {}
        crosses::<CallContext>();
        let context = CallContext::root();
        assert!(Arc::ptr_eq(&context.0, &context.clone().0));
        assert_eq!(size_of::<CallContext>(), size_of::<usize>());
    }

    #[test]
    fn a_root_begins_at_hop_1_with_a_fresh_id_and_nothing_else() {
        let (root, other) = (CallContext::root(), CallContext::root());
        assert_eq!(root.hop(), 0);
        assert_eq!(root.next_hop().unwrap().get(), 1);
        assert_eq!(uuid::Uuid::parse_str(root.correlation_id()).unwrap().get_version_num(), 4);
        assert_ne!(root.correlation_id(), other.correlation_id());
        assert_eq!(root.inbound_idempotency_key(), None);
        assert_eq!(root.trace_headers().count(), 0);
        assert_eq!(root.deadline(), None);
        assert_eq!(root.time_left(some_moment().monotonic), None);
    }

    #[test]
    fn the_next_hop_is_the_inbound_one_plus_1_until_a_callee_would_refuse_it() {
        for inbound in 1..7_u8 {
            let context = at_hop(&inbound.to_string());
            assert_eq!(context.hop(), inbound);
            assert_eq!(context.next_hop().unwrap().get(), inbound + 1);
        }
        for inbound in [7_u8, 8, 99] {
            let refused = at_hop(&inbound.to_string()).next_hop();
            assert_eq!(refused.unwrap_err().hop(), inbound);
        }
    }

    #[test]
    fn a_callers_own_correlation_id_is_taken_or_refused_and_never_replaced() {
        let context = CallContext::root().with_correlation_id("Order_4711".replace('_', ":")).unwrap();
        assert_eq!(context.correlation_id(), "Order:4711");
        let refused = context.with_correlation_id("a\r\nx-evil: 1").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("evil"));
    }

    #[test]
    fn a_with_method_leaves_other_clones_alone() {
        let first = CallContext::root();
        let second = first.clone().with_correlation_id("second").unwrap().with_trace_id("Root=1");
        assert_ne!(first.correlation_id(), second.correlation_id());
        assert_eq!(first.trace_headers().count(), 0);
    }

    #[test]
    fn a_deadline_is_brought_forward_and_never_put_off() {
        let now = some_moment().monotonic;
        let context = CallContext::root().with_deadline(now + millis(500));
        let later = context.clone().with_deadline(now + millis(900));
        assert_eq!(later.time_left(now), Some(millis(500)));
        let sooner = context.with_deadline(now + millis(200));
        assert_eq!(sooner.deadline(), Some(now + millis(200)));
        assert_eq!(sooner.time_left(now + millis(150)), Some(millis(50)));
        assert_eq!(sooner.time_left(now + millis(300)), Some(Duration::ZERO));
    }

    #[test]
    fn a_lambdas_deadline_is_counted_on_the_monotonic_clock() {
        let now = some_moment();
        let context = CallContext::root().with_lambda_deadline_at(now.wall + millis(3_000), now);
        assert_eq!(context.deadline(), Some(now.monotonic + millis(3_000)));
        let put_off = context.clone().with_lambda_deadline_at(now.wall + millis(9_000), now);
        assert_eq!(put_off.deadline(), context.deadline());
        let passed = context.with_lambda_deadline_at(now.wall - millis(1), now);
        assert_eq!(passed.time_left(now.monotonic), Some(Duration::ZERO));
    }

    #[test]
    fn the_reserve_is_kept_before_a_lambdas_deadline_and_before_no_other() {
        let now = some_moment();
        let lambda = CallContext::root().with_lambda_deadline_at(now.wall + millis(1_000), now);
        let left = |context: &CallContext| context.time_left_with_reserve(now.monotonic, millis(100));
        assert_eq!(left(&lambda), Some(millis(900)));
        assert_eq!(
            left(&CallContext::root().with_deadline(now.monotonic + millis(1_000))),
            Some(millis(1_000))
        );
        // With the reserve the Lambda's deadline comes first, without it the caller's.
        let both = lambda.with_deadline(now.monotonic + millis(950));
        assert_eq!(left(&both), Some(millis(900)));
        assert_eq!(both.time_left(now.monotonic), Some(millis(950)));
        assert_eq!(both.time_left_with_reserve(now.monotonic, Duration::MAX), Some(Duration::ZERO));
    }

    #[test]
    fn debug_shows_the_id_and_only_whether_there_is_a_key() {
        let root = CallContext::root().with_correlation_id("order-1").unwrap();
        assert_eq!(
            format!("{root:?}"),
            r#"CallContext { hop: 0, correlation_id: "order-1", has_inbound_idempotency_key: false, .. }"#
        );
        let mut keyed = root;
        keyed.inherited_mut().idempotency_key = Some(IdempotencyKey::new("the-key").unwrap());
        let shown = format!("{keyed:?}");
        assert!(shown.contains("has_inbound_idempotency_key: true") && !shown.contains("the-key"), "{shown}");
    }

    #[test]
    fn a_child_s_key_follows_from_the_inbound_key_and_its_label_alone() {
        let with =
            |key: &str| crate::callee::accept([("x-hop-count", "2"), ("x-idempotency-key", key)]).unwrap();
        let reserve = with("the-key").derive_key("reserve").unwrap();
        assert_eq!(reserve, with("the-key").derive_key("reserve").unwrap());
        assert_eq!(reserve, IdempotencyKey::derive(["child", "the-key", "reserve"]));
        assert_ne!(reserve, with("the-key").derive_key("charge").unwrap());
        assert_ne!(reserve, with("another").derive_key("reserve").unwrap());
        assert_eq!(CallContext::root().derive_key("reserve"), Err(NoInboundKey));
    }
}
