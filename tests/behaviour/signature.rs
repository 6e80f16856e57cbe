//! A signature is never older than its sending, and a refused one is put right once.

use crate::rig::{KEY_ID, REGION, Rig, TOKEN};
use eastwest::testing::{FakeGateway, Reply};
use eastwest::{CallContext, ErrorKind, StopReason};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn the_time_is_read_after_the_wait_and_not_before() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    // A wait that a frozen sandbox drew out to seven minutes: the first signature would be refused by now.
    rig.clock.take_longer_by(Duration::from_secs(420));
    rig.post_with(|call| call.total_timeout(Duration::from_secs(3_600))).await.unwrap();
    let attempts = rig.attempts();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0].header("x-amz-date"), Some("20261002T120000Z"));
    assert_eq!(attempts[1].header("x-amz-date"), Some("20261002T120700Z"));
}

#[tokio::test]
async fn a_stale_signature_is_made_anew_once_and_without_a_wait() {
    let rig = Rig::answering([Reply::signature_expired(), Reply::ok()]).await;
    rig.post().await.unwrap();
    assert_eq!((rig.seen(), rig.waits()), (2, vec![]));
    let rig = Rig::answering([Reply::signature_expired()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.kind()), (2, ErrorKind::Signature));
    assert_eq!(error.stop_reason(), Some(StopReason::RecoveryUsed));
}

#[tokio::test]
async fn a_clock_that_is_off_is_corrected_once_for_all_calls_and_can_be_repaired() {
    for minutes in [-30i64, 20, 600] {
        let rig = Rig::answering([Reply::ok()]).await;
        let client = rig.client();
        let true_time = rig.clock.wall();
        let offset = Duration::from_secs(minutes.unsigned_abs() * 60);
        let ours = if minutes < 0 { true_time - offset } else { true_time + offset };
        let gateway = FakeGateway::builder()
            .credentials(KEY_ID, crate::rig::SECRET, Some(TOKEN))
            .region(REGION)
            .clock(Arc::new(move || true_time))
            .route("POST", "/orders", [Reply::ok()])
            .start()
            .await
            .unwrap();
        drop(client);
        rig.clock.set_wall(ours);
        let client = crate::rig::builder(gateway.base_url()).ambient(rig.clock.clone()).build().unwrap();
        let first = client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(first.attempts().len(), 2, "{minutes}: refused, measured, signed anew");
        let second = client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(second.attempts().len(), 1, "{minutes}: the offset is kept");
        rig.clock.set_wall(true_time);
        let repaired = client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(repaired.attempts().len(), 2, "{minutes}: the repaired clock is refused once");
        let settled = client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(settled.attempts().len(), 1, "{minutes}: and back at zero");
    }
}

#[tokio::test]
async fn a_wrong_secret_is_tried_once_more_and_then_final() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.builder().static_credentials(KEY_ID, "wrong", Some(TOKEN)).build().unwrap();
    let error = client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Signature, 2));
}

#[tokio::test]
async fn a_wrong_region_or_service_is_a_setting_and_is_not_tried_again() {
    let rig = Rig::answering([Reply::ok()]).await;
    for client in [rig.builder().region("us-east-1"), rig.builder().service("lambda")] {
        let error = client.build().unwrap().post(&CallContext::root(), "/orders").send().await.unwrap_err();
        assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Signature, 1));
        assert!(error.to_string().contains("another `.region(..)` or `.service(..)`"), "{error}");
    }
}

#[tokio::test]
async fn a_route_that_is_not_there_says_so_with_method_and_path_and_no_query() {
    let rig = Rig::answering([Reply::ok()]).await;
    let call = rig.client().post(&CallContext::root(), "/orderz").query("token", "hush");
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::Route, 1));
    let text = error.to_string();
    assert!(text.contains("POST /prod/orderz") && !text.contains("hush"), "{text}");
}

#[tokio::test]
async fn a_denial_is_final() {
    for denied in
        [Reply::access_denied(), Reply::explicit_deny(), Reply::waf_blocked(), Reply::authorizer_denied()]
    {
        let rig = Rig::answering([denied, Reply::ok()]).await;
        assert_eq!(rig.post().await.unwrap_err().kind(), ErrorKind::Forbidden);
        assert_eq!(rig.seen(), 1);
    }
}

#[tokio::test]
async fn static_credentials_that_are_refused_are_final_since_no_others_can_be_had() {
    for refused in [Reply::token_expired(), Reply::token_invalid(), Reply::unauthorized()] {
        let rig = Rig::answering([refused, Reply::ok()]).await;
        let error = rig.post().await.unwrap_err();
        assert_eq!((rig.seen(), error.stop_reason()), (1, Some(StopReason::RecoveryUsed)));
    }
}

#[tokio::test]
async fn what_quotes_the_signed_request_is_cut_to_its_first_sentence() {
    let rig = Rig::answering([Reply::signature_mismatch()]).await;
    let error = rig.post().await.unwrap_err();
    for text in [String::from_utf8_lossy(error.body()).into_owned(), error.message().unwrap().to_owned()] {
        assert!(text.starts_with("The request signature we calculated does not match"), "{text}");
        assert!(!text.contains(TOKEN) && !text.contains("x-amz-security-token"), "{text}");
    }
    let echo = format!(r#"{{"message":"Oops. You sent {TOKEN} here"}}"#);
    let rig = Rig::answering([Reply::json(400, echo)]).await;
    assert_eq!(rig.post().await.unwrap_err().body(), b"Oops.");
}

#[tokio::test]
async fn a_callee_s_own_403_stays_whole() {
    let own = r#"{"error":"forbidden_tenant","message":"No. Never."}"#;
    let rig = Rig::answering([Reply::json(403, own)]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((error.kind(), error.body()), (ErrorKind::Forbidden, own.as_bytes()));
}

#[tokio::test]
async fn an_incidental_header_is_not_signed() {
    let rig = Rig::answering([Reply::ok()]).await;
    let incidental = ["accept-encoding", "via", "x-forwarded-for", "x-amzn-trace-id", "user-agent", "x-mine"];
    rig.post_with(|call| incidental.iter().fold(call, |call, name| call.header(name, "v"))).await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    let authorization = attempt.header("authorization").unwrap();
    let signed = authorization.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(
        signed,
        "host;x-amz-date;x-amz-security-token;x-attempt-count;x-correlation-id;x-hop-count;x-idempotency-key;\
         x-time-budget-ms"
    );
}
