//! The seam at which something in memory answers in the place of sockets.

use crate::edge::ambient::Ambient;
use crate::policy::outcome::{Loss, Unsent};
use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What takes signed requests in the place of sockets, and gives back what became of them.
///
/// [`FakeGateway::in_memory`](crate::testing::FakeGateway::in_memory) is one. The client does all else as ever: it signs
/// each attempt, counts it, asks policy and waits.
pub trait Network: Send + Sync + 'static {
    /// Exchanges one request for what became of it.
    ///
    /// What takes longer than `timeout` is [`Delivery::Lost`] as [`Loss::TimedOut`]; nobody else ends it. The time that it
    /// takes passes by [`Ambient::pass`], so that a clock that is turned by hand moves on and nobody sleeps.
    fn exchange<'a>(
        &'a self,
        request: Outgoing,
        timeout: Duration,
        ambient: &'a dyn Ambient,
    ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>>;
}

/// The host of a base URL behind which there is no socket: a name that never resolves (RFC 6761, section 6.2).
pub(crate) const NO_SOCKET: &str = "in-memory.test";

/// A signed request, as it would go over the wire.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The request target: path and query, percent-encoded.
    pub target: String,
    /// All headers, those that the connection adds included.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Outgoing {
    pub(crate) fn new(method: Method, target: String, headers: HeaderMap, body: Bytes) -> Outgoing {
        Outgoing { method, target, headers, body }
    }
}

/// What became of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// It was answered.
    Answered(Response<Bytes>),
    /// The head of an answer came; the body, of which this is the beginning, did not come whole.
    Broken(Response<Bytes>, Loss),
    /// It was written, or may have been, and no answer came.
    Lost(Loss),
    /// Nothing of it was written.
    NeverSent(Unsent),
}
