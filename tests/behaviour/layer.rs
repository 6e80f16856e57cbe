//! The guard as a layer in front of axum, over real sockets.

use crate::log::Log;
use crate::rig::builder;
use crate::service::{Port, Service, answer};
use axum::http::{HeaderName, Request, Response};
use bytes::Bytes;
use eastwest::callee::{self, Guard};
use eastwest::{CallContext, ErrorKind, ServiceClient};
use serde_json::Value;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service as _;
use tracing_subscriber::fmt::format::FmtSpan;

async fn echo(guard: Guard) -> Service {
    Port::free().await.serve(guard, |context| async move {
        let key = context.inbound_idempotency_key().map_or("none", |key| key.as_str());
        answer(200, &format!("{} {} {key}", context.hop(), context.correlation_id()))
    })
}

fn client(service: &Service) -> ServiceClient {
    builder(&service.url).build().unwrap()
}

#[tokio::test]
async fn a_handler_behind_the_layer_finds_its_context() {
    let service = echo(Guard::new()).await;
    let context = callee::accept([("x-hop-count", "2"), ("x-correlation-id", "order-1")]).unwrap();
    let call = client(&service).post(&context, "/any").idempotency_key("key-1");
    assert_eq!(call.send().await.unwrap().body(), "3 order-1 key-1");
}

#[tokio::test]
async fn what_the_layer_refuses_never_reaches_the_handler_and_is_not_sent_again() {
    let refusals = [
        (Guard::new(), 400, "MissingIdempotencyKey"),
        (
            Guard::new().without_idempotency_key().least_time_left(Duration::from_secs(3_600)),
            503,
            "NoTimeLeft",
        ),
    ];
    for (guard, status, told) in refusals {
        let service = Port::free().await.serve(guard, |_| async { panic!("the handler was reached") });
        let call = client(&service).post(&CallContext::root(), "/orders").no_idempotency_key();
        let error = call.send().await.unwrap_err();
        let body: Value = error.json().unwrap();
        assert_eq!((error.status().unwrap().as_u16(), &body["type"]), (status, &Value::from(told)));
        assert_eq!(
            (service.arrived(), error.headers().unwrap()["x-should-retry"].as_bytes()),
            (1, &b"false"[..])
        );
    }
}

#[tokio::test]
async fn a_get_needs_no_key_and_a_key_may_have_another_header() {
    let guard = Guard::new().idempotency_header(HeaderName::from_static("idempotency-key")).unwrap();
    let service = echo(guard).await;
    let context = CallContext::root().with_correlation_id("order-1").unwrap();
    assert_eq!(client(&service).get(&context, "/").send().await.unwrap().body(), "1 order-1 none");
    let renamed = builder(&service.url).idempotency_header("idempotency-key").build().unwrap();
    let call = renamed.post(&context, "/").idempotency_key("key-1");
    assert_eq!(call.send().await.unwrap().body(), "1 order-1 key-1");
    let refused = client(&service).post(&context, "/").send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.status().unwrap().as_u16()), (ErrorKind::Rejected, 400));
}

/// A service of plain bytes that tells how often it was asked.
#[derive(Clone, Default)]
struct Plain(Arc<Mutex<usize>>);

impl tower_service::Service<Request<()>> for Plain {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        *self.0.lock().unwrap() += 1;
        tracing::info!(has_context = request.extensions().get::<CallContext>().is_some(), "at work");
        ready(Ok(Response::new(Bytes::from_static(b"done"))))
    }
}

fn inbound(hop: &str) -> Request<()> {
    let request = Request::post("/").header("x-hop-count", hop).header("x-correlation-id", "order-1");
    request.header("x-idempotency-key", "key-1").body(()).unwrap()
}

#[tokio::test]
async fn the_eighth_hop_is_answered_508_by_a_layer_of_any_body() {
    let plain = Plain::default();
    let mut guarded = callee::layer(Guard::new()).layer(plain.clone());
    let looping = guarded.call(inbound("8")).await.unwrap();
    assert_eq!((looping.status().as_u16(), *plain.0.lock().unwrap()), (508, 0));
    assert_eq!(looping.headers()["x-should-retry"], "false");
    assert_eq!(guarded.call(inbound("7")).await.unwrap().body(), "done");
    assert_eq!(*plain.0.lock().unwrap(), 1);
}

#[tokio::test]
async fn an_accepted_request_is_served_in_a_span_with_the_three_ids() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(log.writer())
        .finish();
    let mut guarded = callee::layer(Guard::new()).layer(Plain::default());
    {
        let _heard = tracing::subscriber::set_default(subscriber);
        tracing::callsite::rebuild_interest_cache();
        guarded.call(inbound("3")).await.unwrap();
    }
    let said = log.text();
    let work = said.lines().find(|line| line.contains("at work")).unwrap();
    for part in ["inbound call", "hop=3", "order-1", "key-1", "has_context=true"] {
        assert!(work.contains(part), "{part}: {said}");
    }
}
