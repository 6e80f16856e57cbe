//! One intent, from builder to answer.

mod flight;

use self::flight::{Departure, Flight, fly};
use crate::context::{CallContext, IdempotencyKey};
use crate::edge::path::Path;
use crate::edge::user_token::UserToken;
use crate::error::Error;
use crate::intent::Origin;
use crate::policy::backoff::Backoff;
use crate::policy::method::{is_idempotent, is_safe};
use crate::policy::profile::Profile;
use crate::policy::rate_limit::Priority;
use crate::policy::refine::{Sighting, Verdict};
use crate::policy::time_budget::TimeBudget;
use crate::response::Response;
use crate::settings::Overrides;
use crate::shared::{Afterlife, Shared, unkeyed as no_key};
use crate::template::{Draft, checked_header};
use bytes::Bytes;
use http::{Method, StatusCode};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// One intent: a method, a path, a body, and one idempotency key for as many attempts as it takes.
///
/// Made by the verbs of [`ServiceClient`](crate::ServiceClient). What is not valid is kept and told by
/// [`send`](Call::send), before anything is sent.
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    shared: Arc<Shared>,
    // Boxed, so that whoever waits for the call holds nothing of what it was made from.
    parts: Box<Parts>,
}

/// What a call was given so far.
struct Parts {
    draft: Draft,
    key: Key,
    by_reference: bool,
    /// None where the client's values hold, as for nearly every call.
    overrides: Option<Box<Overrides>>,
    fault: Option<Error>,
    /// Of a replay: its letter, and whether it may do the work twice and was not allowed to.
    origin: Option<Box<Origin>>,
    unkeyed: bool,
}

/// Where a call's idempotency key comes from.
enum Key {
    Fresh,
    Given(IdempotencyKey),
    None,
}

impl Call {
    pub(crate) fn new(shared: Arc<Shared>, context: CallContext, method: Method, path: Path) -> Call {
        let key = if is_safe(&method) { Key::None } else { Key::Fresh };
        let draft = Draft::new(context, method, path);
        let parts = Parts {
            draft,
            key,
            by_reference: false,
            overrides: None,
            fault: None,
            origin: None,
            unkeyed: false,
        };
        Call { shared, parts: Box::new(parts) }
    }

    /// Appends path segments, which are data: each is percent-encoded by itself, `/` inside one becomes `%2F`.
    ///
    /// Empty segments, `.` and `..` are refused: they would be another resource.
    ///
    /// ```
    /// # use eastwest::{Call, CallContext, ServiceClient};
    /// # fn order_lines(client: &ServiceClient, context: &CallContext, order: &str, line: u32) -> Call {
    /// client.get(context, "/orders").segments([order, "lines"]).segment(line)
    /// # }
    /// ```
    pub fn segments<S: ToString>(self, segments: impl IntoIterator<Item = S>) -> Call {
        segments.into_iter().fold(self, Call::segment)
    }

    /// Appends one path segment, which is data, as [`segments`](Call::segments) does.
    pub fn segment(mut self, segment: impl ToString) -> Call {
        let path = std::mem::take(&mut self.parts.draft.path);
        self.parts.draft.path = path.segment(segment.to_string());
        self
    }

    /// Ends the path with a slash, after its segments.
    pub fn trailing_slash(mut self) -> Call {
        let path = std::mem::take(&mut self.parts.draft.path);
        self.parts.draft.path = path.trailing_slash();
        self
    }

    /// Appends a query pair. Order and repeats are kept; a space is sent as `%20`, a plus as `%2B`.
    #[doc(alias = "params")]
    pub fn query(mut self, name: impl ToString, value: impl ToString) -> Call {
        self.parts.draft.query.push((name.to_string(), value.to_string()));
        self
    }

    /// Appends query pairs, as [`query`](Call::query) does one.
    pub fn query_pairs<N: ToString, V: ToString>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Call {
        pairs.into_iter().fold(self, |call, (name, value)| call.query(name, value))
    }

    /// Appends a header. Repeats are kept in order.
    ///
    /// Refused are the names that are this client's own (`authorization`, `host`, `content-length`, `x-amz-*`, those
    /// that ride along), hop-by-hop headers and `x-http-method-override`; and values with control characters.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Call {
        match checked_header(name.as_ref(), value.as_ref(), &self.shared.names) {
            Ok(_) if self.parts.draft.headers.len() >= MOST_HEADERS => {
                self.keep_fault(Error::too_large("header", format!("more than {MOST_HEADERS} of them")));
            }
            Ok((name, value)) => self.parts.draft.headers.push(name, value),
            Err(fault) => self.keep_fault(fault),
        }
        self
    }

    /// Sets the body to the JSON of `value`, and `content-type: application/json` unless a header says otherwise.
    pub fn json<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Call {
        match serde_json::to_vec(value) {
            Ok(body) => {
                self.parts.draft.body = body.into();
                self.parts.draft.is_json = true;
            }
            Err(_) => self.keep_fault(Error::configuration("body", "the value cannot be written as JSON")),
        }
        self
    }

    /// Sets the body: bytes, or a `String`, or what else becomes [`Bytes`]. It is kept whole and sent byte for byte on every
    /// attempt; at most 10,485,760 bytes by default.
    pub fn body(mut self, body: impl Into<Bytes>) -> Call {
        self.parts.draft.body = body.into();
        self.parts.draft.is_json = false;
        self
    }

    /// Sets the idempotency key: 1 to 255 visible ASCII characters.
    ///
    /// A key made from a clock or from an attempt's number is no key: the same intent must give the same key each
    /// time, and another intent another one. Without this, a call of an unsafe method gets one fresh UUID.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Call {
        if is_safe(&self.parts.draft.method) {
            self.keep_fault(Error::configuration("idempotency_key", "a safe method carries none"));
            return self;
        }
        match IdempotencyKey::new(key) {
            Ok(key) => self.parts.key = Key::Given(key),
            Err(fault) => self.keep_fault(Error::configuration("idempotency_key", fault.to_string())),
        }
        self
    }

    /// Sets the idempotency key to the one that follows from the inbound request's key and `label`
    /// ([`CallContext::derive_key`]): a caller that is run again sends the same keys again.
    ///
    /// Where the inbound request carried no key there is none to derive from: that is an error, not a fresh key.
    pub fn idempotency_key_for(mut self, label: impl AsRef<str>) -> Call {
        match self.parts.draft.context.derive_key(label) {
            Ok(key) => self.idempotency_key(key),
            Err(fault) => {
                self.keep_fault(Error::configuration("idempotency_key", fault.to_string()));
                self
            }
        }
    }

    /// Sends no idempotency key. A POST or PATCH is then not sent again where the first sending may have been
    /// carried out.
    pub fn no_idempotency_key(mut self) -> Call {
        self.parts.key = Key::None;
        self
    }

    /// Allows sending again without a key: the callee recognises a repeat by a reference of its own in the request.
    pub fn repeat_safe_by_reference(mut self) -> Call {
        self.parts.by_reference = true;
        self
    }

    /// Allows the replay of a letter without a key that may have been carried out: it may be carried out once more. Look
    /// it up first. Any other call is as it was.
    pub fn allow_unkeyed(mut self) -> Call {
        self.parts.unkeyed = false;
        self
    }

    /// Sends this user's token, in place of what the client's source would give, in a header of its own.
    ///
    /// It is not signed, logged or kept; after a 401 there is no other to try.
    pub fn user_token(mut self, token: impl AsRef<str>) -> Call {
        match UserToken::new(token) {
            Ok(token) => self.parts.draft.user_token = Some(token),
            Err(fault) => self.keep_fault(Error::configuration("user_token", fault.to_string())),
        }
        self
    }

    /// Names the route for spans and counters, `/orders/{id}` for instance: of few values, where paths are of many.
    pub fn url_template(mut self, template: impl AsRef<str>) -> Call {
        self.parts.draft.url_template = Some(template.as_ref().into());
        self
    }

    /// Takes times and counts from another profile, for this call.
    pub fn profile(mut self, profile: Profile) -> Call {
        self.overrides().profile = Some(profile);
        self
    }

    /// Bounds the whole call, waits and bodies included.
    pub fn total_timeout(mut self, timeout: Duration) -> Call {
        self.overrides().total_timeout = Some(timeout);
        self
    }

    /// Bounds one exchange, from connecting to the last byte of the body; it is cut to what is left of the total.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Call {
        self.overrides().attempt_timeout = Some(timeout);
        self
    }

    /// Sets how often the call is sent in all, the first time included.
    pub fn max_attempts(mut self, attempts: u32) -> Call {
        self.overrides().max_attempts = Some(attempts);
        self
    }

    /// Sets the waits between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Call {
        self.overrides().backoff = Some(backoff);
        self
    }

    /// Sets what an answer of this status means, for this call.
    pub fn on_status(mut self, status: StatusCode, verdict: Verdict) -> Call {
        self.overrides().refinements.set_status(status, verdict);
        self
    }

    /// Sets a function that refines the status table, for this call.
    pub fn classifier(
        mut self,
        classifier: impl Fn(&Sighting<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Call {
        self.overrides().refinements.set_classifier(Arc::new(classifier));
        self
    }

    /// Sets whose attempts go first where a limit of the client lets not all start; [`Priority::Normal`] by default.
    pub fn priority(mut self, priority: Priority) -> Call {
        self.overrides().priority = Some(priority);
        self
    }

    /// Sets how many bytes of a successful answer's body are read; a longer one is an error.
    pub fn response_body_limit(mut self, bytes: usize) -> Call {
        self.overrides().response_body_limit = Some(bytes);
        self
    }

    /// Sends the call, as often as the rules allow, until it succeeds or is given up.
    ///
    /// Dropping the future is safe at any point: what it held is given back. Whether an attempt on its way was
    /// carried out is then not known.
    ///
    /// # Errors
    /// Every way in which a call ends without a success: [`Error::kind`] says which.
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> + Send {
        // Boxed, so that whoever waits for a call holds little of it, and without its type, so that its code is made once, here.
        let flight: Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>> =
            Box::pin(fly(|| self.take_off()));
        flight
    }

    /// All that is found out before the first attempt.
    fn take_off(self) -> Result<(Flight, Departure), Error> {
        let Call { shared, parts } = self;
        let Parts { draft, key, by_reference, overrides, fault, origin, unkeyed } = *parts;
        if let Some(fault) = fault {
            return Err(fault);
        }
        if unkeyed {
            return Err(no_key());
        }
        shared.check_user(origin.as_deref(), draft.user_token.is_some())?;
        if let Some(own) = &overrides {
            own.check()?;
        }
        let own = overrides.map(|own| own.over(&shared.settings));
        let settings = own.as_ref().unwrap_or(&shared.settings);
        settings.check()?;
        let key = match key {
            Key::Fresh => Some(shared.fresh_key()),
            Key::Given(key) => Some(key),
            Key::None => None,
        };
        let repeatable = key.is_some() || by_reference || is_idempotent(&draft.method);
        let terms = match &own {
            Some(own) => Arc::new(own.terms(repeatable)),
            None => shared.terms(repeatable),
        };
        let start = shared.gates.ambient.now().monotonic;
        let left = draft.context.time_left_with_reserve(start, settings.profile.deadline_reserve);
        let deadline = left.and_then(|left| start.checked_add(left));
        let Profile { total_timeout, min_attempt_time, .. } = settings.profile;
        let time = TimeBudget::new(start, total_timeout, deadline, min_attempt_time);
        let departure = Departure { start, time, hop_limit: draft.context.next_hop().err() };
        let order = draft.into_order(&shared, settings, key)?;
        Ok((Flight { shared, order, terms, afterlife: Afterlife { by_reference, origin } }, departure))
    }

    fn overrides(&mut self) -> &mut Overrides {
        self.parts.overrides.get_or_insert_default()
    }

    /// The call as the replay of a letter; what is wrong with it is told at once.
    pub(crate) fn replaying(mut self, origin: Origin, unkeyed: bool) -> Result<Call, Error> {
        (self.parts.origin, self.parts.unkeyed) = (Some(Box::new(origin)), unkeyed);
        self.parts.fault.take().map_or(Ok(self), Err)
    }

    fn keep_fault(&mut self, fault: Error) {
        self.parts.fault.get_or_insert(fault);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.parts.draft.method)
            .field("context", &self.parts.draft.context)
            .field("body_len", &self.parts.draft.body.len())
            .finish_non_exhaustive()
    }
}

/// Far more than the gateway's limit on header bytes lets through, and far fewer than a header map can hold.
const MOST_HEADERS: usize = 1_000;
