//! One HTTP exchange, over reqwest.

use crate::edge::ambient::Ambient;
use crate::edge::body::{self, BodyLimits, Ended};
use crate::edge::fault::Fault;
use crate::edge::head::set;
use crate::edge::pool::{Lease, Pool, TransportSettings};
use crate::edge::sort::{Fate, fate_of_body, fate_of_request};
use crate::policy::moment::Moment;
use crate::policy::outcome::{Loss, Unsent};
use crate::target::Target;
#[cfg(feature = "testing")]
use crate::{
    edge::outgoing::outgoing,
    network::{Delivery, Network, Outgoing},
};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Exchanges one request for one answer; follows no redirect, retries nothing, asks no proxy unless told to.
///
/// A sandbox that was frozen wakes to connections that died meanwhile. After an idle time longer than the pool's, by
/// either clock, and after a connection that ended without an answer, the next exchange begins with an empty pool; the
/// TLS settings and their session tickets are kept.
pub(crate) struct Transport {
    pool: Pool,
    ambient: Arc<dyn Ambient>,
    /// What answers in the place of sockets.
    #[cfg(feature = "testing")]
    network: Option<Arc<dyn Network>>,
}

impl Transport {
    /// Builds the one HTTP client. No connection is opened.
    ///
    /// # Errors
    /// TLS settings that cannot work.
    pub(crate) fn new(settings: TransportSettings, ambient: Arc<dyn Ambient>) -> Result<Transport, Fault> {
        Ok(Transport {
            pool: Pool::new(settings)?,
            ambient,
            #[cfg(feature = "testing")]
            network: None,
        })
    }

    /// Sends one request as it is given, now, and reads the answer: all of it, to the last byte of the body, in `timeout`.
    ///
    /// A success whose body breaks off is lost. Of any other answer the status decides, and what came of the body is
    /// kept; a success that passes its limit is told as oversized, and only its beginning is kept.
    pub(crate) async fn exchange(
        &self,
        (method, target, mut headers, body): (&Method, &Target, HeaderMap, Bytes),
        begun: Moment,
        timeout: Duration,
        limits: BodyLimits,
    ) -> Exchanged {
        #[cfg(feature = "testing")]
        if let Some(network) = &self.network {
            let outgoing = outgoing(method, target, headers, body);
            // Boxed, so that an exchange over sockets holds nothing of it.
            return Box::pin(self.exchange_in_memory(&**network, outgoing, timeout, limits)).await;
        }
        let lease = self.pool.lease(begun);
        if self.pool.speaks_only_http1() {
            // The HTTP client would add both to a copy that has no room for them. HTTP/2 has another field for the first.
            set(&mut headers, HOST, target.host_value().clone());
            if !body.is_empty() {
                set(&mut headers, CONTENT_LENGTH, HeaderValue::from(body.len()));
            }
        }
        let request = request(method, target, headers, body, timeout);
        let mut response = match lease.client.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                let fate = fate_of_request(&error, target.host());
                return self.failed(&lease, fate, None, error, timeout);
            }
        };
        let received = self.ambient.now();
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let (body, ended) = body::read(&mut response, limits).await;
        match ended {
            Ended::Broken(error) if status.is_success() => {
                self.failed(&lease, Fate::Lost(fate_of_body(&error)), Some(status), error, timeout)
            }
            _ => {
                let now = self.ambient.now();
                self.pool.give_back(&lease, now, true);
                Exchanged::Answered {
                    status,
                    headers,
                    body,
                    oversized: matches!(ended, Ended::Over),
                    broken: matches!(ended, Ended::Broken(_)),
                    sent: lease.began,
                    received,
                    ended: now,
                }
            }
        }
    }

    fn failed(
        &self,
        lease: &Lease,
        fate: Fate,
        status: Option<StatusCode>,
        error: reqwest::Error,
        timeout: Duration,
    ) -> Exchanged {
        let now = self.ambient.now();
        // The URL holds the query, which no error may show.
        let source: BoxError = error.without_url().into();
        match fate {
            Fate::NeverSent(why, reason) => {
                self.pool.give_back(lease, now, false);
                Exchanged::NeverSent { why, reason, source }
            }
            Fate::Lost(how) => {
                let unanswered = how == Loss::Connection;
                let frozen = now.since(&lease.began) > timeout.saturating_add(FROZEN);
                let stale = unanswered && lease.answered && lease.idle >= STALE;
                self.pool.give_back(lease, now, status.is_some());
                if unanswered {
                    self.pool.renew_after(lease);
                }
                Exchanged::Lost { how, status, source, thawed: frozen || stale }
            }
        }
    }

    /// Drops all idle connections: the next exchange opens one.
    #[cfg(test)]
    pub(crate) fn renew(&self) {
        self.pool.renew();
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("pool", &self.pool).finish_non_exhaustive()
    }
}

#[cfg(feature = "testing")]
impl Transport {
    /// Exchanges over what stands in for sockets, where there is one.
    pub(crate) fn over(self, network: Option<Arc<dyn Network>>) -> Transport {
        Transport { network, ..self }
    }

    async fn exchange_in_memory(
        &self,
        network: &dyn Network,
        outgoing: Outgoing,
        timeout: Duration,
        limits: BodyLimits,
    ) -> Exchanged {
        let sent = self.ambient.now();
        let delivery = network.exchange(outgoing, timeout, &*self.ambient).await;
        let ended = self.ambient.now();
        let (response, broken) = match delivery {
            Delivery::Answered(response) => (response, None),
            Delivery::Broken(response, how) => (response, Some(how)),
            Delivery::Lost(how) => {
                return Exchanged::Lost { how, status: None, source: how.as_str().into(), thawed: false };
            }
            Delivery::NeverSent(why) => {
                let reason = format!("nothing was sent ({why:?})");
                return Exchanged::NeverSent { why, source: reason.clone().into(), reason };
            }
        };
        let (parts, body) = response.into_parts();
        if let Some(how) = broken.filter(|_| parts.status.is_success()) {
            let (status, source) = (Some(parts.status), how.as_str().into());
            return Exchanged::Lost { how, status, source, thawed: false };
        }
        let (status, headers) = (parts.status, parts.headers);
        let (body, oversized) = body::cut(body, status.is_success(), limits);
        let broken = broken.is_some();
        Exchanged::Answered { status, headers, body, oversized, broken, sent, received: ended, ended }
    }
}

/// What became of one exchange.
pub(crate) enum Exchanged {
    /// An answer came.
    Answered {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
        /// Its body, or the beginning of it.
        body: Bytes,
        /// Whether the body went on past the limit.
        oversized: bool,
        /// Whether the body broke off before its end; of a success that is told as lost instead.
        broken: bool,
        /// When the request was begun.
        sent: Moment,
        /// When the head of the answer was there.
        received: Moment,
        /// When the last byte of its body was there.
        ended: Moment,
    },
    /// The request was written, or may have been, and no whole answer came back.
    Lost {
        /// How it was lost.
        how: Loss,
        /// The status, where the head of the answer came and the body broke off.
        status: Option<StatusCode>,
        /// The error beneath, without the URL.
        source: BoxError,
        /// Whether the sandbox seems to have been frozen: the exchange took longer than it was allowed to, or met a
        /// connection that had been idle and ended without an answer.
        thawed: bool,
    },
    /// Nothing of the request left this process.
    NeverSent {
        /// Why not.
        why: Unsent,
        /// Why not, in one line that names the host.
        reason: String,
        /// The error beneath, without the URL.
        source: BoxError,
    },
}

/// Shows neither body nor headers.
impl fmt::Debug for Exchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exchanged::Answered { status, body, oversized, .. } => {
                write!(f, "Answered({status}, {} bytes, oversized: {oversized})", body.len())
            }
            Exchanged::Lost { how, status, thawed, .. } => {
                write!(f, "Lost({how:?}, {status:?}, thawed: {thawed})")
            }
            Exchanged::NeverSent { why, reason, .. } => write!(f, "NeverSent({why:?}, {reason})"),
        }
    }
}

/// An error of any kind, kept as a source.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

fn request(
    method: &Method,
    target: &Target,
    headers: HeaderMap,
    body: Bytes,
    timeout: Duration,
) -> reqwest::Request {
    let mut request = reqwest::Request::new(method.clone(), target.url().clone());
    *request.headers_mut() = headers;
    *request.timeout_mut() = Some(timeout);
    if !body.is_empty() {
        *request.body_mut() = Some(body.into());
    } else if *method == Method::POST || *method == Method::PUT || *method == Method::PATCH {
        // A length is expected with these (RFC 9110, section 8.6), and reqwest leaves it out.
        set(request.headers_mut(), CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    request
}

/// An exchange that took longer than it may by this much was not slow: nothing ran.
const FROZEN: Duration = Duration::from_secs(1);
/// A connection that nobody used for this long may be gone at the other end.
const STALE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
