//! What rides along, and what a caller may not set.

use crate::rig::Rig;
use eastwest::testing::Reply;
use eastwest::{CallContext, ErrorKind, StopReason, callee};

#[tokio::test]
async fn an_inbound_correlation_id_with_a_line_break_is_replaced_and_goes_nowhere() {
    let rig = Rig::answering([Reply::ok()]).await;
    let context = callee::accept([("x-hop-count", "1"), ("x-correlation-id", "a\r\nx-evil: 1")]).unwrap();
    rig.client().post(&context, "/orders").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    let sent = attempt.header("x-correlation-id").unwrap();
    assert!(uuid::Uuid::parse_str(sent).is_ok(), "{sent}");
    assert!(!attempt.header_lines().iter().any(|line| line.contains("evil")));
}

#[tokio::test]
async fn a_key_with_a_control_character_is_refused_by_name_before_anything_is_sent() {
    let rig = Rig::answering([Reply::ok()]).await;
    for key in ["k\n1", "", "a b", "é", "k\u{7f}", &"k".repeat(256)] {
        let error = rig.post_with(|call| call.idempotency_key(key)).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("idempotency_key")));
        assert!(key.is_empty() || !error.to_string().contains(key), "{error}");
    }
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn the_hop_count_is_one_more_than_the_inbound_one_and_never_eight() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    client.post(&callee::accept_front_door::<&str, &str>([]).unwrap(), "/orders").send().await.unwrap();
    for inbound in ["3", "6"] {
        let context = callee::accept([("x-hop-count", inbound)]).unwrap();
        client.post(&context, "/orders").send().await.unwrap();
    }
    let sent: Vec<_> = rig.attempts().iter().map(|a| a.header("x-hop-count").unwrap().to_owned()).collect();
    assert_eq!(sent, ["1", "4", "7"]);
    let seventh = callee::accept([("x-hop-count", "7")]).unwrap();
    let error = client.post(&seventh, "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::HopLimit, Some(StopReason::HopLimit)));
    assert_eq!(rig.seen(), 3);
}

#[test]
fn an_inbound_hop_count_that_is_not_one_exactly_is_refused_and_never_zero() {
    for junk in ["8", "0", "-1", "+3", "03", " 3", "3 ", "3.0", "1e1", "abc", "", "٣", "100", "3,3"] {
        assert!(callee::accept([("x-hop-count", junk)]).is_err(), "{junk}");
        assert!(callee::accept_front_door([("x-hop-count", junk)]).is_err(), "{junk}");
    }
    assert!(callee::accept([("x-hop-count", "3"), ("X-Hop-Count", "3")]).is_err());
    assert!(callee::accept::<&str, &str>([]).is_err());
}

#[tokio::test]
async fn names_that_are_not_the_caller_s_are_refused_before_anything_is_sent() {
    let rig = Rig::answering([Reply::ok()]).await;
    let refused = [
        "authorization",
        "Host",
        "content-length",
        "x-amz-date",
        "x-amz-security-token",
        "connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "keep-alive",
        "proxy-authorization",
        "expect",
        "x-http-method-override",
        "x-hop-count",
        "x-correlation-id",
        "x-idempotency-key",
        "x-time-budget-ms",
        "x-attempt-count",
        "x-user-token",
    ];
    for name in refused {
        let error = rig.post_with(|call| call.header(name, "v")).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("header")), "{name}");
    }
    for (name, value) in [("x-a", "a\r\nb"), ("x-a", "a\u{0}"), ("x a", "v"), ("", "v"), ("x-a", "a\tb")] {
        let error = rig.post_with(|call| call.header(name, value)).await.unwrap_err();
        assert_eq!(error.field(), Some("header"), "{name}: {value:?}");
    }
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn a_caller_s_own_headers_go_out_as_given_repeats_in_order() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post_with(|call| {
        call.header("x-tag", "b").header("x-tag", "a").header("x-name", "café").header("via", "me")
    })
    .await
    .unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header_values("x-tag"), ["b", "a"]);
    assert_eq!(attempt.header("x-name"), Some("café"));
    assert_eq!(attempt.header("via"), Some("me"));
}

#[tokio::test]
async fn trace_headers_pass_through_untouched_and_unsigned() {
    let rig = Rig::answering([Reply::ok()]).await;
    let trace =
        "Root=1-6858764a-5c96ac04102925a7698c3690;Parent=77eb47fb7ef089fe;Sampled=0;Lineage=1:23e64a83:0";
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let inbound = [
        ("x-hop-count", "1"),
        ("x-amzn-trace-id", trace),
        ("traceparent", parent),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
    ];
    let context = callee::accept(inbound).unwrap();
    rig.client().post(&context, "/orders").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("x-amzn-trace-id"), Some(trace));
    assert_eq!(attempt.header("traceparent"), Some(parent));
    assert_eq!(attempt.header_values("tracestate"), ["a=1", "b=2"]);
    let signed = attempt.header("authorization").unwrap();
    assert!(!signed.contains("trace"), "{signed}");
}

#[tokio::test]
async fn the_name_of_the_key_s_header_can_be_another() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.builder().idempotency_header("Idempotency-Key").build().unwrap();
    client.post(&CallContext::root(), "/orders").idempotency_key("order-7").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("idempotency-key"), Some("order-7"));
    assert_eq!(attempt.header("x-idempotency-key"), None);
    let acted_upon =
        ["x-api-key", "x-forwarded-for", "forwarded", "range", "set-cookie", "x-amzn-requestid", "x-real-ip"];
    for taken in ["host", "x-hop-count", "authorization", "a b"].into_iter().chain(acted_upon) {
        let error = rig.builder().idempotency_header(taken).build().unwrap_err();
        assert_eq!(error.field(), Some("idempotency_header"), "{taken}");
    }
}

#[tokio::test]
async fn json_names_its_type_unless_the_caller_did() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post_with(|call| call.json(&[1])).await.unwrap();
    rig.post_with(|call| call.json(&[1]).header("content-type", "application/vnd.orders+json"))
        .await
        .unwrap();
    rig.post_with(|call| call.body("x")).await.unwrap();
    let types: Vec<_> =
        rig.attempts().iter().map(|a| a.header("content-type").map(ToOwned::to_owned)).collect();
    let given = |name: &str| Some(name.to_owned());
    assert_eq!(types, [given("application/json"), given("application/vnd.orders+json"), None]);
}

#[tokio::test]
async fn nothing_asks_for_a_compressed_answer_and_a_bodiless_post_says_so() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("accept-encoding"), None);
    assert_eq!(attempt.header("content-length"), Some("0"));
}

#[tokio::test]
async fn a_context_s_trace_rides_along_as_it_was_given() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let context = CallContext::root().with_traceparent(parent).with_tracestate("congo=t61rcWkgMzE,rojo=1");
    rig.client().post(&context, "/orders").send().await.unwrap();
    let attempts = rig.attempts();
    assert_eq!(attempts.len(), 2);
    for attempt in attempts {
        assert_eq!(attempt.header("traceparent"), Some(parent));
        assert_eq!(attempt.header("tracestate"), Some("congo=t61rcWkgMzE,rojo=1"));
    }
}
