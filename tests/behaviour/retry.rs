//! How often a call is sent, and that every sending is the same intent.

use crate::rig::{Rig, SHORT};
use eastwest::http::Method;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{CallContext, ErrorKind, StopReason};
use std::time::Duration;

#[tokio::test]
async fn a_post_without_a_key_is_not_repeated_after_a_lost_reply() {
    for lost in
        [Reply::close(), Reply::reset(), Reply::hang(), Reply::integration_timeout(), Reply::lambda_failed()]
    {
        let rig = Rig::answering([lost, Reply::ok()]).await;
        let error = rig.post_with(|call| call.no_idempotency_key().attempt_timeout(SHORT)).await.unwrap_err();
        assert_eq!(rig.seen(), 1);
        assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
        assert!(error.may_have_committed());
        assert!(error.to_string().contains("look it up before you send again"), "{error}");
    }
}

#[tokio::test]
async fn a_patch_without_a_key_is_as_final() {
    let rig = Rig::answering([Reply::close(), Reply::ok()]).await;
    let call = rig.client().patch(&CallContext::root(), "/orders").no_idempotency_key();
    assert_eq!(call.send().await.unwrap_err().stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert_eq!(rig.seen(), 1);
}

#[tokio::test]
async fn a_key_that_the_caller_gave_goes_with_every_attempt() {
    let rig = Rig::answering([Reply::integration_timeout(), Reply::unavailable(), Reply::ok()]).await;
    let answer = rig.post_with(|call| call.idempotency_key("order-7")).await.unwrap();
    assert!(rig.attempts().iter().all(|attempt| attempt.header("x-idempotency-key") == Some("order-7")));
    assert_eq!((rig.seen(), answer.idempotency_key()), (3, Some("order-7")));
}

#[tokio::test]
async fn a_post_with_a_key_is_repeated_under_the_same_key_after_a_lost_reply() {
    for lost in [Reply::close(), Reply::reset(), Reply::hang()] {
        let rig = Rig::answering([lost, Reply::ok()]).await;
        rig.post_with(|call| call.attempt_timeout(SHORT)).await.unwrap();
        let attempts = rig.attempts();
        assert_eq!(attempts.len(), 2);
        let key = attempts[0].header("x-idempotency-key").unwrap();
        assert_eq!(attempts[1].header("x-idempotency-key"), Some(key));
    }
}

#[tokio::test]
async fn a_query_carries_a_key_and_is_repeated_under_it_whatever_the_method_is_known_to_promise() {
    let gateway = FakeGateway::builder().credentials("AKID", "secret", None).region("eu-central-1");
    let script = [Reply::integration_timeout(), Reply::integration_timeout()];
    let gateway =
        gateway.manual_clock(&ManualClock::new()).route("QUERY", "/orders", script).without_socket();
    let client = gateway.client().max_attempts(2).build().unwrap();
    let query = Method::from_bytes(b"QUERY").unwrap();
    let error = client.request(&CallContext::root(), query, "/orders").send().await.unwrap_err();
    assert!(error.may_have_committed() && error.idempotency_key().is_some());
    gateway.assert_attempts(2).assert_same_key();
}

#[tokio::test]
async fn a_get_is_repeated_after_a_lost_reply_and_carries_no_key() {
    for lost in [Reply::close(), Reply::hang()] {
        let rig = Rig::answering([lost, Reply::ok()]).await;
        let call = rig.client().get(&CallContext::root(), "/orders").attempt_timeout(SHORT);
        call.send().await.unwrap();
        assert_eq!(rig.seen(), 2);
        assert!(rig.attempts().iter().all(|attempt| attempt.header("x-idempotency-key").is_none()));
    }
}

#[tokio::test]
async fn a_keyless_put_or_delete_is_repeated_on_doubt() {
    for method in [Method::PUT, Method::DELETE] {
        let rig = Rig::answering([Reply::close(), Reply::ok()]).await;
        let call = rig.client().request(&CallContext::root(), method, "/orders").no_idempotency_key();
        call.send().await.unwrap();
        assert_eq!(rig.seen(), 2);
    }
}

#[tokio::test]
async fn a_keyless_post_that_is_safe_by_reference_is_repeated_on_doubt() {
    let rig = Rig::answering([Reply::integration_timeout(), Reply::ok()]).await;
    rig.post_with(|call| call.no_idempotency_key().repeat_safe_by_reference()).await.unwrap();
    assert_eq!(rig.seen(), 2);
    assert!(rig.attempts().iter().all(|attempt| attempt.header("x-idempotency-key").is_none()));
}

#[tokio::test]
async fn one_key_goes_with_all_attempts_and_every_attempt_is_signed_anew() {
    let rig = Rig::answering([Reply::integration_timeout(), Reply::unavailable(), Reply::ok()]).await;
    rig.clock.take_longer_by(Duration::from_secs(1));
    let response = rig.post().await.unwrap();
    let attempts = rig.attempts();
    assert_eq!(attempts.len(), 3);
    for name in ["x-idempotency-key", "x-correlation-id", "x-hop-count"] {
        let first = attempts[0].header(name).unwrap();
        assert!(attempts.iter().all(|attempt| attempt.header(name) == Some(first)), "{name}");
    }
    assert_eq!(attempts[0].header("x-idempotency-key"), response.idempotency_key());
    for pair in attempts.windows(2) {
        assert_ne!(pair[0].header("x-amz-date"), pair[1].header("x-amz-date"));
        assert_ne!(pair[0].header("authorization"), pair[1].header("authorization"));
    }
    let counts: Vec<_> = attempts.iter().map(|attempt| attempt.header("x-attempt-count").unwrap()).collect();
    assert_eq!(counts, ["1", "2", "3"]);
}

#[tokio::test]
async fn two_calls_never_share_a_key() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post().await.unwrap();
    rig.post().await.unwrap();
    let attempts = rig.attempts();
    assert_ne!(attempts[0].header("x-idempotency-key"), attempts[1].header("x-idempotency-key"));
}

#[tokio::test]
async fn one_loop_owns_the_attempts() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let error = rig.post_with(|call| call.max_attempts(3)).await.unwrap_err();
    assert_eq!((rig.seen(), error.attempts().len()), (3, 3));
}

#[tokio::test]
async fn every_attempt_sends_the_whole_body() {
    let body: Vec<u8> = (0..65_536u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let rig = Rig::answering([Reply::lambda_rejected(), Reply::ok()]).await;
    rig.post_with(|call| call.body(body.clone())).await.unwrap();
    let attempts = rig.attempts();
    assert_eq!(attempts.len(), 2);
    for attempt in attempts {
        assert_eq!(attempt.body(), &body);
        assert_eq!(attempt.header("content-length"), Some("65536"));
    }
}

#[tokio::test]
async fn a_refusal_ends_the_call_whatever_its_hint_and_its_words() {
    for (status, kind) in [
        (400, ErrorKind::Rejected),
        (403, ErrorKind::Forbidden),
        (404, ErrorKind::Rejected),
        (409, ErrorKind::Rejected),
        (413, ErrorKind::TooLarge),
        (422, ErrorKind::Rejected),
    ] {
        let answer = r#"{"message":"rate limit exceeded","code":"E1"}"#;
        let rig = Rig::answering([Reply::json(status, answer).header("retry-after", "1"), Reply::ok()]).await;
        let error = rig.post().await.unwrap_err();
        assert_eq!((rig.seen(), rig.waits()), (1, vec![]), "{status}");
        assert_eq!((error.kind(), error.status().unwrap().as_u16()), (kind, status));
        assert_eq!(error.code(), Some("E1"));
    }
    let denied = Reply::access_denied().header("retry-after", "1").body(r#"{"message":"rate limit"}"#);
    let rig = Rig::answering([denied, Reply::ok()]).await;
    assert_eq!(rig.post().await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert_eq!((rig.seen(), rig.waits()), (1, vec![]));
}

#[tokio::test]
async fn max_attempts_is_how_often_it_is_sent() {
    for max in [1, 3] {
        let rig = Rig::answering([Reply::unavailable()]).await;
        rig.post_with(|call| call.max_attempts(max)).await.unwrap_err();
        assert_eq!((rig.seen(), rig.waits().len()), (max as usize, max as usize - 1));
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let error = rig.builder().max_attempts(0).build().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("max_attempts")));
    let error = rig.post_with(|call| call.max_attempts(0)).await.unwrap_err();
    assert_eq!((error.field(), rig.seen()), (Some("max_attempts"), 0));
}

#[tokio::test]
async fn a_500_is_retried_twice_and_a_502_once() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (3, Some(StopReason::StatusCapReached)));
    assert!(error.to_string().contains("500 each time"), "{error}");
    let rig = Rig::answering([Reply::lambda_failed()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (2, Some(StopReason::StatusCapReached)));
}

#[tokio::test]
async fn a_502_after_a_504_waits_as_if_throttled() {
    let wide = eastwest::policy::backoff::Backoff::new(
        Duration::from_millis(100),
        Duration::from_millis(700),
        Duration::from_secs(5),
    );
    let rig = Rig::answering([Reply::integration_timeout(), Reply::lambda_failed(), Reply::ok()]).await;
    rig.post_with(|call| call.backoff(wide)).await.unwrap();
    assert_eq!(rig.waits(), [100, 1_400]);
}

#[tokio::test]
async fn a_callee_that_forbids_it_is_not_asked_again() {
    let marked = Reply::unavailable().header("x-should-retry", "false");
    let rig = Rig::answering([marked, Reply::ok()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (1, Some(StopReason::CalleeForbids)));
}

#[tokio::test]
async fn a_key_in_progress_is_waited_for_and_any_other_conflict_is_final() {
    let busy = Reply::json(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#);
    let rig = Rig::answering([busy.clone(), Reply::ok()]).await;
    rig.post().await.unwrap();
    assert_eq!(rig.seen(), 2);
    let rig = Rig::answering([busy]).await;
    assert_eq!(rig.post().await.unwrap_err().kind(), ErrorKind::InProgress);
    let rig = Rig::answering([Reply::json(409, r#"{"code":"VERSION"}"#), Reply::ok()]).await;
    assert_eq!(rig.post().await.unwrap_err().kind(), ErrorKind::Rejected);
    assert_eq!(rig.seen(), 1);
}

#[tokio::test]
async fn a_conflict_that_was_cut_before_it_said_why_is_sent_again_under_its_key_and_never_without() {
    let cut = Reply::json(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#).truncate_after(9);
    let rig = Rig::answering([Reply::integration_timeout(), cut.clone(), Reply::ok()]).await;
    rig.post().await.unwrap();
    assert_eq!(rig.seen(), 3);
    let rig = Rig::answering([cut, Reply::ok()]).await;
    let error = rig.post_with(|call| call.no_idempotency_key()).await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (1, Some(StopReason::NoIdempotencyKey)));
    assert_eq!((error.kind(), error.may_have_committed()), (ErrorKind::Transport, true));
}

#[tokio::test]
async fn a_used_up_quota_is_not_waited_for() {
    let rig = Rig::answering([Reply::quota_exceeded(), Reply::ok()]).await;
    assert_eq!(rig.post().await.unwrap_err().kind(), ErrorKind::Quota);
    assert_eq!((rig.seen(), rig.waits()), (1, vec![]));
}

#[tokio::test]
async fn how_often_a_500_and_a_502_are_retried_is_set_for_each_by_itself() {
    for (status, server_errors, bad_gateways, sent) in
        [(500, 0, 3, 1), (500, 1, 0, 2), (502, 3, 0, 1), (502, 0, 2, 3), (503, 0, 0, 4)]
    {
        let rig = Rig::answering([Reply::json(status, "{}")]).await;
        let builder = rig.builder().server_error_retries(server_errors).bad_gateway_retries(bad_gateways);
        let call = builder.build().unwrap().get(&CallContext::root(), "/orders");
        call.send().await.unwrap_err();
        assert_eq!(rig.seen(), sent, "{status}: {server_errors} and {bad_gateways}");
    }
}
