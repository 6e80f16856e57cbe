//! What the loop asks of the edge, and how the edge does it.

use crate::context::headers::{API_ID, ATTEMPT_COUNT, CORRELATION_ID, HOP_COUNT, TIME_BUDGET_MS, count};
use crate::edge::ambient::Ambient;
use crate::edge::base_url::BaseUrl;
use crate::edge::body::BodyLimits;
use crate::edge::clock_skew::{self, ClockSkew};
use crate::edge::credential_state::CredentialsFault;
use crate::edge::credentials::CredentialCache;
use crate::edge::head::{add, set, size_over};
use crate::edge::kept::Kept;
use crate::edge::order::Order;
use crate::edge::path::Path;
use crate::edge::redact::Secrets;
use crate::edge::sigv4::{BodyHash, Signer};
use crate::edge::transport::{Exchanged, Transport};
use crate::edge::user_token::{UserToken, UserTokenSource};
use crate::edge::{Seen, Shown};
use crate::error::{Cause, Error};
use crate::error_kind::ErrorKind;
use crate::policy::classify::Recovery;
use crate::policy::moment::Moment;
use aws_credential_types::Credentials;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// What the loop asks of the edge: an identity, one exchange, and one recovery.
pub(crate) trait Exchange: Sync {
    /// Who signs.
    type Identity: Send + Sync;

    /// Finds out who signs, within the time given.
    fn identity(
        &self,
        order: &Order,
        within: Duration,
    ) -> impl Future<Output = Result<Self::Identity, Error>> + Send;

    /// Signs anew and sends once; an error means that nothing could be signed. It is the attempt of this number, and now is
    /// when it is signed. `timeout` covers everything to the last byte of the body.
    fn attempt(
        &self,
        order: &Order,
        identity: &Self::Identity,
        attempt: (u32, Moment),
        timeout: Duration,
    ) -> impl Future<Output = Result<Seen, Error>> + Send;

    /// What is kept of an attempt that is not handed out as an answer, without the secrets that it went out with: it is told,
    /// logged and written down.
    fn keep(&self, seen: Seen, identity: &Self::Identity) -> Kept;

    /// Puts right what the gateway refused; an error says why sending again is pointless.
    fn recover(
        &self,
        recovery: Recovery,
        order: &Order,
        refused: &Self::Identity,
        seen: Option<&Kept>,
        within: Duration,
    ) -> impl Future<Output = Result<(), &'static str>> + Send;
}

/// The edge of one client: who signs, how, by which clock, over which connections.
pub(crate) struct Edge {
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) signer: Signer,
    pub(crate) credentials: CredentialCache,
    pub(crate) skew: ClockSkew,
    pub(crate) transport: Transport,
    pub(crate) announce_time_budget: bool,
    pub(crate) header_limit: usize,
    pub(crate) error_body_limit: usize,
    /// The value of `x-apigw-api-id`, for an endpoint's own DNS name.
    pub(crate) api_id: Option<HeaderValue>,
    pub(crate) user_tokens: Option<Arc<dyn UserTokenSource>>,
    pub(crate) user_token_header: HeaderName,
    pub(crate) idempotency_header: HeaderName,
}

/// Who signs an attempt, and for which user.
pub(crate) struct Identity {
    pub(super) credentials: Credentials,
    pub(super) user_token: Option<UserToken>,
}

impl Edge {
    /// Hashes a body once for all attempts.
    pub(crate) fn body_hash(&self, body: &[u8]) -> BodyHash {
        self.signer.body_hash(body)
    }

    /// Fetches credentials and opens a connection ahead of the first call, each within `within`.
    ///
    /// The HTTP client knows no bare connecting, so it is an unsigned HEAD of the base URL, whose answer says nothing.
    pub(crate) async fn warm_up(&self, base: &BaseUrl, within: Duration) -> Result<(), Error> {
        self.credentials.get(within).await.map_err(no_credentials)?;
        let target = base.target(&Path::default(), &[])?;
        let limits = BodyLimits { success: 0, error: 0 };
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        let request = (&Method::HEAD, &target, headers, body);
        match self.transport.exchange(request, self.ambient.now(), within, limits).await {
            Exchanged::NeverSent { reason, source, .. } => {
                let mut error = Error::of(ErrorKind::Transport, None, reason);
                error.inner_mut().cause = Some(source);
                Err(error)
            }
            Exchanged::Lost { how, source, .. } => {
                let mut error = Error::of(ErrorKind::Transport, None, how.as_str().to_owned());
                error.inner_mut().cause = Some(source);
                Err(error)
            }
            Exchanged::Answered { .. } => Ok(()),
        }
    }

    /// The unsigned headers of one attempt.
    fn template(
        &self,
        order: &Order,
        identity: &Identity,
        number: u32,
        timeout: Duration,
    ) -> Result<HeaderMap, Error> {
        // With room for what is added here, by the signature and by the HTTP client.
        let mut headers = HeaderMap::with_capacity(order.headers.len() + 15);
        for header in order.headers.iter() {
            add(&mut headers, header);
        }
        set(&mut headers, HOP_COUNT, count(u32::from(order.hop)));
        set(&mut headers, CORRELATION_ID, value_of("correlation_id", order.subject.correlation_id())?);
        if let Some(key) = order.subject.idempotency_key() {
            set(&mut headers, self.idempotency_header.clone(), value_of("idempotency_key", key)?);
        }
        if let Some(token) = &identity.user_token {
            // Sensitive, so the signer leaves it out.
            set(&mut headers, self.user_token_header.clone(), token.value().clone());
        }
        set(&mut headers, ATTEMPT_COUNT, count(number));
        if let Some(id) = &self.api_id {
            set(&mut headers, API_ID, id.clone());
        }
        if self.announce_time_budget {
            let left = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            set(&mut headers, TIME_BUDGET_MS, HeaderValue::from(left));
        }
        Ok(headers)
    }

    /// What an exchange showed, with what its `Date` tells.
    fn seen(&self, exchanged: Exchanged, (sent, offset): (Moment, i64)) -> Seen {
        let (mut clock_gap, mut signature_age, mut times) = (None, None, None);
        let shown = match exchanged {
            Exchanged::Answered { status, headers, body, oversized, broken, sent, received, ended } => {
                times = Some((received, ended));
                let gap = self.skew.measure(&headers, sent, received);
                // The gap to the clock that signed, which is ours with the offset that was in force.
                clock_gap = gap.map(|gap| gap.saturating_sub(offset));
                // Only a refusal is judged by it.
                if !status.is_success() {
                    signature_age = clock_skew::signature_age(&headers, sent.wall, offset);
                }
                if let Some(gap) = gap.filter(|_| status != http::StatusCode::FORBIDDEN) {
                    self.skew.note(gap, false);
                }
                Shown::Answered { status, headers, body, oversized, broken }
            }
            Exchanged::Lost { how, thawed, source, .. } => Shown::Lost { how, thawed, cause: source },
            Exchanged::NeverSent { why, reason, source } => Shown::NeverSent { why, reason, cause: source },
        };
        let (received, ended) = times.unwrap_or_else(|| {
            let now = self.ambient.now();
            (now, now)
        });
        Seen {
            shown,
            sent,
            received,
            ended,
            clock_gap,
            signature_age,
            gateway_now: self.skew.corrected(ended.wall),
        }
    }
}

impl Exchange for Edge {
    type Identity = Identity;

    async fn identity(&self, order: &Order, within: Duration) -> Result<Identity, Error> {
        // Only whoever waits for two has to know how long the first took.
        let began = self.user_tokens.as_ref().map(|_| self.ambient.now());
        let credentials = self.credentials.get(within).await.map_err(no_credentials)?;
        let user_token = match (&order.user_token, &self.user_tokens) {
            (Some(own), _) => Some(UserToken::clone(own)),
            (None, Some(source)) => {
                let taken = began.map_or(Duration::ZERO, |began| self.ambient.now().since(&began));
                let left = within.saturating_sub(taken);
                let late = |_| Err("no user token in the time that was left".into());
                // Boxed, so that who has no source pays for none.
                let asked = Box::pin(tokio::time::timeout(left, source.user_token(None)));
                let given = asked.await.unwrap_or_else(late);
                Some(given.map_err(no_user_token)?)
            }
            (None, None) => None,
        };
        Ok(Identity { credentials, user_token })
    }

    async fn attempt(
        &self,
        order: &Order,
        identity: &Identity,
        (number, sent): (u32, Moment),
        timeout: Duration,
    ) -> Result<Seen, Error> {
        let template = self.template(order, identity, number, timeout)?;
        let (offset, signing_time) = (self.skew.seconds(), self.skew.corrected(sent.wall));
        let (hash, credentials) = (&order.body_hash, &identity.credentials);
        let signed = self
            .signer
            .sign(&order.subject.method, &order.subject.target, template, hash, credentials, signing_time)
            .map_err(|fault| Error::of(ErrorKind::Credentials, None, fault.to_string()))?;
        let headers = signed.into_headers();
        if let Some(size) = size_over(self.header_limit, &headers, &order.subject.target) {
            let reason = format!("{size} bytes with the signature, the limit is {}", self.header_limit);
            return Err(Error::too_large("headers", reason));
        }
        let limits = BodyLimits { success: order.response_body_limit, error: self.error_body_limit };
        let body = order.body.clone();
        let request = (&order.subject.method, &order.subject.target, headers, body);
        let exchanged = self.transport.exchange(request, sent, timeout, limits).await;
        Ok(self.seen(exchanged, (sent, offset)))
    }

    fn keep(&self, mut seen: Seen, identity: &Identity) -> Kept {
        if let Shown::Answered { headers, body, .. } = &mut seen.shown {
            let secrets = Secrets::of(&identity.credentials, identity.user_token.as_ref());
            *body = secrets.clear_body(headers, std::mem::take(body));
            secrets.clear_headers(headers);
        }
        Kept::of(seen)
    }

    async fn recover(
        &self,
        recovery: Recovery,
        order: &Order,
        refused: &Identity,
        seen: Option<&Kept>,
        within: Duration,
    ) -> Result<(), &'static str> {
        self.put_right(recovery, order, (refused, seen), within).await
    }
}

/// An id as a header's value. Ids are checked when they are made, so that each is one.
#[inline(never)]
fn value_of(field: &'static str, id: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(id).map_err(|_| Error::configuration(field, "not a header value"))
}

fn no_credentials(fault: CredentialsFault) -> Error {
    let mut error = Error::of(ErrorKind::Credentials, None, fault.to_string());
    error.inner_mut().cause = Some(Box::new(fault));
    error
}

fn no_user_token(cause: Cause) -> Error {
    let mut error = Error::of(ErrorKind::Credentials, None, "the source of the user's token failed".into());
    error.inner_mut().cause = Some(cause);
    error
}
