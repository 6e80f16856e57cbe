//! The gateway without a socket: the same scripts, the same verdicts, the same faults, and no time taken.

use crate::edge::ambient::Ambient;
use crate::network::{Delivery, Network, Outgoing};
use crate::policy::outcome::{Loss, Unsent};
use crate::testing::answers::reply::{Behaviour, Delivery as Body, Reply};
use crate::testing::gateway::fake::FakeGateway;
use crate::testing::gateway::shared::{IN_MEMORY, Shared};
use crate::testing::wire::connection::LARGEST_BODY;
use crate::testing::wire::http::RawRequest;
use crate::testing::wire::write::{Stamp, has_no_body, header_lines};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A gateway's scripts, for a client that exchanges with them in memory: see
/// [`ClientBuilder::exchange_with`](crate::ClientBuilder::exchange_with).
#[derive(Clone, Debug)]
pub struct InMemory(Arc<Shared>);

impl FakeGateway {
    /// What a client exchanges with in the place of sockets. It lives on without the gateway.
    #[must_use]
    pub fn in_memory(&self) -> InMemory {
        InMemory(Arc::clone(&self.shared))
    }
}

impl Network for InMemory {
    fn exchange<'a>(
        &'a self,
        request: Outgoing,
        timeout: Duration,
        ambient: &'a dyn Ambient,
    ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>> {
        Box::pin(exchange(&self.0, request, timeout, ambient))
    }
}

async fn exchange(shared: &Shared, request: Outgoing, timeout: Duration, ambient: &dyn Ambient) -> Delivery {
    if shared.refuses.load(Ordering::Relaxed) {
        return Delivery::NeverSent(Unsent::Refused);
    }
    let is_head = request.method == http::Method::HEAD;
    let over_limit = request.body.len() > LARGEST_BODY;
    let body = request.body.slice(..request.body.len().min(LARGEST_BODY));
    let request = raw(&request);
    let reply = match shared.resets_unread(&request, IN_MEMORY) {
        Some(reset) => reset,
        None => shared.decide(request.with_body(body), over_limit, IN_MEMORY),
    };
    let stamp = Stamp { now: shared.now(), number: shared.next_answer(), to_head: is_head, keep_alive: true };
    let (takes, ends) = (reply.delay, ending(&reply));
    let takes = takes.saturating_add(dripping(&reply));
    if takes >= timeout || matches!(ends, Ends::Never) {
        ambient.pass(timeout).await;
        return Delivery::Lost(Loss::TimedOut);
    }
    if !takes.is_zero() {
        ambient.pass(takes).await;
    }
    match ends {
        Ends::Lost(how) => Delivery::Lost(how),
        Ends::Never => Delivery::Lost(Loss::TimedOut),
        Ends::Unsent => Delivery::NeverSent(Unsent::Refused),
        Ends::Answers => match answer(&reply, stamp) {
            Err(how) => Delivery::Lost(how),
            Ok(response) => cut(&reply, response, timeout.saturating_sub(takes), ambient).await,
        },
    }
}

/// How an exchange ends.
enum Ends {
    Answers,
    Lost(Loss),
    Never,
    Unsent,
}

fn ending(reply: &Reply) -> Ends {
    match reply.behaviour {
        Behaviour::Answer => Ends::Answers,
        Behaviour::Close | Behaviour::Dynamic(_) | Behaviour::Reset | Behaviour::ResetBeforeReading => {
            Ends::Lost(Loss::Connection)
        }
        Behaviour::Garbage => Ends::Lost(Loss::Garbage),
        Behaviour::Hang => Ends::Never,
        Behaviour::Refuse => Ends::Unsent,
    }
}

/// The time that a dripping body takes.
fn dripping(reply: &Reply) -> Duration {
    match reply.delivery {
        Body::Drip { chunk, every } if !has_no_body(reply.status) => {
            let pieces = reply.body.len().div_ceil(chunk.max(1));
            every.saturating_mul(u32::try_from(pieces).unwrap_or(u32::MAX))
        }
        _ => Duration::ZERO,
    }
}

/// Cuts the body as the reply says; one that is cut behind its end came whole.
async fn cut(reply: &Reply, response: Response<Bytes>, left: Duration, ambient: &dyn Ambient) -> Delivery {
    let (bytes, how) = match reply.delivery {
        Body::Drip { .. } | Body::Whole => return Delivery::Answered(response),
        Body::ResetAfter(bytes) | Body::TruncateAfter(bytes) => (bytes, Loss::Truncated),
        Body::StallAfter(bytes) => (bytes, Loss::TimedOut),
    };
    if bytes >= response.body().len() {
        return Delivery::Answered(response);
    }
    if how == Loss::TimedOut {
        ambient.pass(left).await;
    }
    Delivery::Broken(response.map(|body| body.slice(..bytes)), how)
}

/// The answer as a client reads it; what no client can read is lost.
fn answer(reply: &Reply, stamp: Stamp) -> Result<Response<Bytes>, Loss> {
    let status = StatusCode::from_u16(reply.status).map_err(|_| Loss::Garbage)?;
    let lines = header_lines(reply, stamp);
    if lines.len() > MOST_HEADER_LINES {
        return Err(Loss::HeadTooLarge);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Loss::Garbage)?;
        headers.append(name, HeaderValue::from_bytes(&value).map_err(|_| Loss::Garbage)?);
    }
    let bodiless = stamp.to_head || has_no_body(reply.status);
    let mut response = Response::new(if bodiless { Bytes::new() } else { reply.body.clone() });
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(response)
}

/// The request as the gateway keeps it, its body apart.
fn raw(request: &Outgoing) -> RawRequest {
    let raw = RawRequest::new(request.method.as_str(), request.target.as_bytes());
    request.headers.iter().fold(raw, |raw, (name, value)| raw.with_header(name.as_str(), value.as_bytes()))
}

/// What the HTTP client reads of a head.
const MOST_HEADER_LINES: usize = 100;
