//! The guard as a layer of tower: in front of an axum router, a `lambda_http` function, or any service of `http` requests.

use crate::callee::guard::Guard;
use crate::callee::refusal::Refusal;
use crate::context::CallContext;
use http::{Request, Response};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;
use tracing::instrument::{Instrument, Instrumented};

/// Puts `guard` in front of a service: what it accepts is served with its [`CallContext`] among the request's
/// extensions, what it refuses is answered at once.
///
/// The service answers `http::Response<B>` with any body that can be made of a `String`: axum's and `lambda_http`'s
/// `Body`, `Bytes`, `http_body_util::Full<Bytes>`. A request that is accepted is served in a span `inbound call` with
/// `hop`, `correlation_id` and `idempotency_key`.
///
/// Leave a route that is called from outside the chain, a health check for one, out of the layer; and behind
/// `lambda_http` add what only Lambda knows:
/// `context.with_lambda_deadline(request.lambda_context().deadline())`. Where a REST API's event has a header twice,
/// `lambda_http` 1.3 keeps the last; [`Guard::accept_event`] sees both and refuses.
///
/// ```
/// use axum::{Extension, Router, body::Body, response::Response, routing::post};
/// use eastwest::callee::{self, Guard};
/// use eastwest::{CallContext, ServiceClient};
///
/// async fn place(Extension(context): Extension<CallContext>, stock: Extension<ServiceClient>) -> Response {
///     match stock.post(&context, "/reservations").json(&["A-7"]).send().await {
///         Ok(reserved) => Response::new(Body::from(reserved.into_body())),
///         Err(error) => error.to_response().map(Body::from),
///     }
/// }
///
/// fn routes(stock: ServiceClient) -> Router {
///     Router::new()
///         .route("/orders", post(place))
///         .layer(Extension(stock))
///         .layer(callee::layer(Guard::new()))
/// }
/// ```
#[must_use]
pub fn layer(guard: Guard) -> GuardLayer {
    GuardLayer { guard }
}

/// What [`layer`] makes.
#[derive(Clone, Debug)]
pub struct GuardLayer {
    guard: Guard,
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService { guard: self.guard.clone(), inner }
    }
}

/// A service behind a [`Guard`].
#[derive(Clone, Debug)]
pub struct GuardService<S> {
    guard: Guard,
    inner: S,
}

impl<S, A, B> Service<Request<A>> for GuardService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: From<String>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = GuardFuture<S::Future>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let context = match self.guard.accept(request.method(), request.headers()) {
            Ok(context) => context,
            Err(refusal) => return GuardFuture(State::Refused(refusal)),
        };
        let span = tracing::info_span!(
            "inbound call",
            otel.kind = "server",
            hop = context.hop(),
            correlation_id = context.correlation_id(),
            idempotency_key = context.inbound_idempotency_key().map(|key| key.as_str()),
        );
        request.extensions_mut().insert::<CallContext>(context);
        let served = span.in_scope(|| self.inner.call(request));
        GuardFuture(State::Served(Box::pin(served.instrument(span))))
    }
}

/// The answer to come, the service's or the guard's.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct GuardFuture<F>(State<F>);

#[derive(Debug)]
enum State<F> {
    Refused(Refusal),
    /// Boxed, as to pin it in place takes `unsafe` or a further crate.
    Served(Pin<Box<Instrumented<F>>>),
}

impl<F, B, E> Future for GuardFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: From<String>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        match &mut self.get_mut().0 {
            State::Refused(refusal) => Poll::Ready(Ok(refusal.answer())),
            State::Served(served) => served.as_mut().poll(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callee::Guard;
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::Waker;

    /// A service that has no place for a request.
    #[derive(Clone)]
    struct Full;

    impl Service<Request<()>> for Full {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            ready(Ok(Response::new(String::new())))
        }
    }

    #[test]
    fn behind_the_guard_a_service_is_ready_when_it_says_so() {
        let mut guarded = GuardService { guard: Guard::new(), inner: Full };
        assert!(guarded.poll_ready(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}
