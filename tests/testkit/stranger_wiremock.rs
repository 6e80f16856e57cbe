//! The tests that a stranger would write of an SDK of three calls, with faults, in wiremock.

use crate::sdk::{Order, Orders};
use eastwest::testing::wiremock::{SignedFor, has_idempotency_key, hop_count, in_order, signed_for};
use eastwest::testing::{ManualClock, Reply};
use eastwest::{CallContext, ErrorKind};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer};

async fn sdk() -> (MockServer, SignedFor, Orders) {
    let (server, clock) = (MockServer::start().await, ManualClock::new());
    let signed = signed_for("eu-central-1", "AKIDEXAMPLE", "secret").clock(&clock);
    let orders = Orders(signed.client(&server).build().unwrap());
    (server, signed, orders)
}

#[tokio::test]
async fn an_order_is_placed_behind_a_504_and_a_throttle() {
    let (server, signed, orders) = sdk().await;
    let script = [Reply::integration_timeout(), Reply::throttled(), Reply::json(201, r#"{"id":"o-1"}"#)];
    let mock = Mock::given(method("POST")).and(path("/prod/orders")).and(signed.clone());
    let mock = mock.and(hop_count(1)).and(has_idempotency_key()).respond_with(in_order(script));
    mock.expect(3).mount(&server).await;
    let placed = orders.place(&CallContext::root(), "request-1", "A-7").await.unwrap();
    assert_eq!(placed, Order { id: "o-1".to_owned() });
    assert!(signed.reports().is_empty(), "{}", signed.reports().join("\n"));
}

#[tokio::test]
async fn a_look_up_is_not_repeated_where_it_is_not_allowed() {
    let (server, signed, orders) = sdk().await;
    let mock = Mock::given(method("GET")).and(path("/prod/orders/o-7")).and(signed);
    mock.respond_with(Reply::access_denied()).expect(1).mount(&server).await;
    let error = orders.order(&CallContext::root(), "o-7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_cancellation_survives_a_lambda_that_was_not_run() {
    let (server, signed, orders) = sdk().await;
    let mock = Mock::given(method("DELETE")).and(signed).and(has_idempotency_key());
    let script = in_order([Reply::lambda_rejected(), Reply::status(204)]);
    mock.respond_with(script).expect(2).mount(&server).await;
    orders.cancel(&CallContext::root(), "o-7").await.unwrap();
}
