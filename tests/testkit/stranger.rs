//! The tests that a stranger would write of an SDK of three calls, with faults.

use crate::sdk::{Order, Orders};
use eastwest::testing::{FakeGateway, GatewayBuilder, IdempotentCallee, ManualClock, Reply};
use eastwest::{CallContext, ErrorKind, StopReason};

fn gateway() -> GatewayBuilder {
    FakeGateway::builder().manual_clock(&ManualClock::new())
}

fn sdk(gateway: &FakeGateway) -> Orders {
    Orders(gateway.client().build().unwrap())
}

#[tokio::test]
async fn an_order_is_placed_once_behind_a_504() {
    let callee = IdempotentCallee::new(|_, n| Reply::json(201, format!(r#"{{"id":"o-{n}"}}"#)));
    let script = [callee.commits_then(Reply::integration_timeout()), Reply::reset(), callee.answers()];
    let gateway = gateway().route("POST", "/orders", script).without_socket();
    let placed = sdk(&gateway).place(&CallContext::root(), "request-1", "A-7").await.unwrap();
    assert_eq!(placed, Order { id: "o-1".to_owned() });
    gateway.assert_attempts(3).assert_same_key().assert_resigned();
    callee.assert_commits(1);
}

#[tokio::test]
async fn a_look_up_survives_a_throttle_and_a_cut_body() {
    let order = || Reply::json(200, r#"{"id":"o-7"}"#);
    let script = [Reply::throttled(), order().truncate_after(5), order()];
    let gateway = gateway().route("GET", "/orders/o-7", script).without_socket();
    assert_eq!(sdk(&gateway).order(&CallContext::root(), "o-7").await.unwrap().id, "o-7");
    gateway.assert_attempts(3).assert_statuses([429, 200, 200]).assert_resigned();
}

#[tokio::test]
async fn a_cancellation_that_is_never_answered_is_in_doubt() {
    let gateway = gateway().route("DELETE", "/orders/o-7", [Reply::stall()]).without_socket();
    let error = sdk(&gateway).cancel(&CallContext::root(), "o-7").await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_committed()), (ErrorKind::Timeout, true));
    gateway.story().assert_same_key().assert_hop_count(1);
}

#[tokio::test]
async fn a_used_up_quota_is_told_at_once_over_a_socket_too() {
    let gateway = gateway().route("DELETE", "/orders/o-7", [Reply::quota_exceeded()]).start().await.unwrap();
    let error = sdk(&gateway).cancel(&CallContext::root(), "o-7").await.unwrap_err();
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::Quota, Some(StopReason::NotRetryable)));
    gateway.assert_attempts(1);
}
