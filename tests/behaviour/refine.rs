//! What an API's owner gets wrong is put right in one line, without lifting the key rule.

use crate::rig::Rig;
use eastwest::policy::refine::Verdict;
use eastwest::testing::Reply;
use eastwest::{CallContext, Class, ErrorKind, StopReason};
use http::StatusCode;

#[tokio::test]
async fn a_500_that_is_a_validation_error_is_not_retried_once_it_is_said() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let rejected = Verdict::Class(Class::Rejected);
    let client = rig.builder().on_status(StatusCode::INTERNAL_SERVER_ERROR, rejected).build().unwrap();
    let error = client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((rig.seen(), error.kind(), error.may_have_committed()), (1, ErrorKind::Rejected, false));
}

#[tokio::test]
async fn a_classifier_sees_status_headers_and_body() {
    let quota = Reply::json(403, r#"{"code":"DAILY_QUOTA"}"#).header("x-plan", "basic");
    let rig = Rig::answering([quota]).await;
    let client = rig.builder().classifier(|seen| {
        let basic = seen.headers.get("x-plan").is_some_and(|plan| plan == "basic");
        let daily = seen.body_start.windows(11).any(|window| window == b"DAILY_QUOTA");
        if seen.status == StatusCode::FORBIDDEN && basic && daily {
            Verdict::Class(Class::QuotaExhausted)
        } else {
            Verdict::Defer
        }
    });
    let error = client.build().unwrap().post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Quota);
}

#[tokio::test]
async fn no_rule_makes_an_unkeyed_post_repeatable() {
    let rig = Rig::answering([Reply::lambda_rejected(), Reply::ok()]).await;
    let throttled = Verdict::Class(Class::Throttled);
    let rule = |call: eastwest::Call| call.on_status(StatusCode::INTERNAL_SERVER_ERROR, throttled);
    let error = rig.post_with(|call| rule(call).no_idempotency_key()).await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (1, Some(StopReason::NoIdempotencyKey)));
    rig.gateway.script("ANY", "/orders", [Reply::lambda_rejected(), Reply::ok()]);
    rig.post_with(rule).await.unwrap();
}

#[tokio::test]
async fn a_success_that_hides_a_failure_can_be_called_one() {
    let hidden = Reply::json(200, r#"{"error":"busy"}"#);
    let rig = Rig::answering([hidden, Reply::ok()]).await;
    let client = rig.builder().classifier(|seen| {
        if seen.body_start.starts_with(br#"{"error""#) {
            Verdict::Class(Class::Unavailable)
        } else {
            Verdict::Defer
        }
    });
    client.build().unwrap().post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(rig.seen(), 2);
}

#[tokio::test]
async fn a_stop_keeps_the_row_and_ends_the_call() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    let error = rig
        .post_with(|call| call.on_status(StatusCode::SERVICE_UNAVAILABLE, Verdict::Stop))
        .await
        .unwrap_err();
    assert_eq!((rig.seen(), error.kind()), (1, ErrorKind::Unavailable));
    assert_eq!(error.stop_reason(), Some(StopReason::NotRetryable));
}

#[tokio::test]
async fn a_call_s_own_classifier_goes_before_the_client_s_which_is_asked_where_it_says_nothing() {
    let rig = Rig::answering([Reply::json(409, "{}"), Reply::ok()]).await;
    let client = rig.builder().classifier(|seen| match seen.status {
        StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => Verdict::Stop,
        _ => Verdict::Defer,
    });
    let client = client.build().unwrap();
    let call = || client.post(&CallContext::root(), "/orders");
    let busy = |seen: &eastwest::Sighting<'_>| match seen.status {
        StatusCode::CONFLICT => Verdict::Class(Class::Unavailable),
        _ => Verdict::Defer,
    };
    call().classifier(busy).send().await.unwrap();
    assert_eq!(rig.seen(), 2);
    rig.gateway.script("ANY", "/orders", [Reply::unavailable(), Reply::json(409, "{}"), Reply::ok()]);
    call().classifier(busy).send().await.unwrap_err();
    call().send().await.unwrap_err();
    assert_eq!(rig.seen(), 4);
}
