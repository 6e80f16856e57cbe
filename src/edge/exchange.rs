//! What the loop asks of the edge, and how the edge does it.

use crate::context::headers::{ATTEMPT_COUNT, TIME_BUDGET_MS};
use crate::edge::ambient::Ambient;
use crate::edge::body::BodyLimits;
use crate::edge::clock_skew::{ClockSkew, measure};
use crate::edge::credentials::CredentialCache;
use crate::edge::order::Order;
use crate::edge::sigv4::{BodyHash, Signer};
use crate::edge::transport::{Exchanged, Transport, header_bytes};
use crate::edge::{Seen, Shown};
use crate::error::{Error, ErrorKind};
use crate::policy::classify::Recovery;
use crate::policy::gateway::{ErrorBody, first_sentence};
use crate::policy::moment::Moment;
use aws_credential_types::Credentials;
use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, HeaderValue};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What the loop asks of the edge: an identity, one exchange, and one recovery.
pub(crate) trait Exchange: Sync {
    /// Who signs.
    type Identity: Send + Sync;

    /// Finds out who signs, within the time given.
    fn identity(&self, within: Duration) -> impl Future<Output = Result<Self::Identity, Error>> + Send;

    /// Signs anew and sends once; an error means that nothing could be signed.
    /// `timeout` covers everything to the last byte of the body.
    fn attempt(
        &self,
        order: &Order,
        identity: &Self::Identity,
        number: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Seen, Error>> + Send;

    /// Puts right what the gateway refused; false if sending again is pointless.
    fn recover(
        &self,
        recovery: Recovery,
        refused: &Self::Identity,
        seen: Option<&Seen>,
        within: Duration,
    ) -> impl Future<Output = bool> + Send;
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
    /// The value of `x-apigw-api-id`, for an endpoint's own DNS name.
    pub(crate) api_id: Option<HeaderValue>,
}

impl Edge {
    /// Hashes a body once for all attempts.
    pub(crate) fn body_hash(&self, body: &[u8]) -> BodyHash {
        self.signer.body_hash(body)
    }

    /// The unsigned headers of one attempt.
    fn template(&self, order: &Order, number: u32, timeout: Duration) -> HeaderMap {
        let mut headers = order.headers.clone();
        headers.insert(ATTEMPT_COUNT, HeaderValue::from(number));
        if let Some(id) = &self.api_id {
            headers.insert("x-apigw-api-id", id.clone());
        }
        if self.announce_time_budget {
            let left = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            headers.insert(TIME_BUDGET_MS, HeaderValue::from(left));
        }
        headers
    }

    /// What an exchange showed, with what its `Date` tells, and without what it must not tell.
    fn seen(
        &self,
        exchanged: Exchanged,
        (sent, signed): (Moment, SystemTime),
        credentials: &Credentials,
    ) -> Seen {
        let ended = self.ambient.now();
        let mut received = ended;
        let (mut clock_gap, mut signature_age) = (None, None);
        let shown = match exchanged {
            Exchanged::Answered {
                status,
                headers,
                body,
                oversized,
                sent,
                received: head,
            } => {
                received = head;
                let gap = measure(&headers, sent, received);
                // The gap to the clock that signed, which is ours with the offset that was in force.
                clock_gap = gap.map(|gap| gap.saturating_sub(self.skew.seconds()));
                signature_age = date(&headers).map(|date| seconds_between(signed, date));
                if let Some(gap) = gap.filter(|_| status != http::StatusCode::FORBIDDEN) {
                    self.skew.note(gap, false);
                }
                let body = if status.is_success() {
                    body
                } else {
                    without_echo(&headers, body, credentials)
                };
                Shown::Answered {
                    status,
                    headers,
                    body,
                    oversized,
                }
            }
            Exchanged::Lost {
                how, thawed, source, ..
            } => Shown::Lost {
                how,
                thawed,
                cause: source,
            },
            Exchanged::NeverSent { why, reason, source } => Shown::NeverSent {
                why,
                reason,
                cause: source,
            },
        };
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
    type Identity = Credentials;

    async fn identity(&self, within: Duration) -> Result<Credentials, Error> {
        self.credentials.get(within).await.map_err(|fault| {
            let mut error = Error::of(ErrorKind::Credentials, None, fault.to_string());
            error.inner_mut().cause = Some(Box::new(fault));
            error
        })
    }

    async fn attempt(
        &self,
        order: &Order,
        credentials: &Credentials,
        number: u32,
        timeout: Duration,
    ) -> Result<Seen, Error> {
        let template = self.template(order, number, timeout);
        let sent = self.ambient.now();
        let signing_time = self.skew.corrected(sent.wall);
        let signed = self
            .signer
            .sign(
                &order.method,
                &order.target,
                &template,
                &order.body_hash,
                credentials,
                signing_time,
            )
            .map_err(|fault| Error::of(ErrorKind::Credentials, None, fault.to_string()))?;
        let headers = signed.into_headers();
        let size = header_bytes(&headers, &order.target);
        if size > self.header_limit {
            let reason = format!(
                "{size} bytes with the signature, the limit is {}",
                self.header_limit
            );
            return Err(Error::too_large("headers", reason));
        }
        let limits = BodyLimits {
            success: order.response_body_limit,
            error: order.error_body_limit,
        };
        let body = order.body.clone();
        let exchanged = self
            .transport
            .exchange(&order.method, &order.target, headers, body, timeout, limits)
            .await;
        Ok(self.seen(exchanged, (sent, signing_time), credentials))
    }

    async fn recover(
        &self,
        recovery: Recovery,
        refused: &Credentials,
        seen: Option<&Seen>,
        within: Duration,
    ) -> bool {
        match recovery {
            Recovery::Clock => {
                if let Some(gap) = seen.and_then(Seen::raw_gap) {
                    self.skew.note(gap, true);
                }
                true
            }
            Recovery::Signature => {
                // Sent again whether or not others can be had: the answer may have been about the way, not the key.
                let _ = self.credentials.refresh(refused, within).await;
                true
            }
            Recovery::Credentials | Recovery::Identity => self
                .credentials
                .refresh(refused, within)
                .await
                .is_ok_and(|refreshed| refreshed.changed),
        }
    }
}

/// An error's body that quotes the signed request is cut to its first sentence, for the token is in it.
fn without_echo(headers: &HeaderMap, body: Bytes, credentials: &Credentials) -> Bytes {
    let holds = |needle: &[u8]| {
        !needle.is_empty()
            && body
                .windows(needle.len())
                .any(|window| window.eq_ignore_ascii_case(needle))
    };
    let token = credentials.session_token().unwrap_or_default().as_bytes();
    if !holds(b"x-amz-security-token") && !holds(token) {
        return body;
    }
    let message = ErrorBody::read(headers, &body).message.unwrap_or_default();
    let sentence = first_sentence(&message);
    let still_told = sentence.contains("x-amz-security-token")
        || (!token.is_empty()
            && sentence
                .as_bytes()
                .windows(token.len())
                .any(|window| window == token));
    Bytes::from(if still_told {
        String::new()
    } else {
        sentence.to_owned()
    })
}

fn date(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

fn seconds_between(earlier: SystemTime, later: SystemTime) -> i64 {
    let whole = |d: Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    match later.duration_since(earlier) {
        Ok(ahead) => whole(ahead),
        Err(behind) => -whole(behind.duration()),
    }
}
