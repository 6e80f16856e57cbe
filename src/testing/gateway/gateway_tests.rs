//! Routing, scripts, refusals and the record, as a raw client sees them.

use crate::testing::answers::reply::Reply;
use crate::testing::clock::ManualClock;
use crate::testing::gateway::fake::FakeGateway;
use crate::testing::gateway::raw_client::{Client, ask, open, order, signed_order, strict};
use crate::testing::gateway::shared::ANY;
use crate::testing::signature::signed::{KEY, SECRET, Signer, TOKEN, noon};
use crate::testing::signature::verdict::Verdict;
use crate::testing::wire::http::RawRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[tokio::test]
async fn a_script_is_followed_in_order_and_its_last_reply_repeats() {
    let gateway = open([Reply::status(503), Reply::throttled(), Reply::ok()]).await;
    let mut client = Client::connect(&gateway).await;
    for status in [503, 429, 200, 200] {
        assert_eq!(client.ask(&order()).await.status, status);
    }
    gateway.script(ANY, "/orders", [Reply::status(404)]);
    assert_eq!(client.ask(&order()).await.status, 404);
    gateway.script(ANY, "/orders", []);
    assert_eq!(client.ask(&order()).await.body, r#"{"ok":true}"#);
}

#[tokio::test]
async fn a_script_for_the_method_goes_before_one_for_any() {
    let gateway = open([Reply::status(500)]).await;
    gateway.script("POST", "/orders", [Reply::status(201)]);
    assert_eq!(ask(&gateway, &order()).await.status, 201);
    assert_eq!(
        ask(&gateway, &RawRequest::new("GET", "/prod/orders").with_header("host", "h")).await.status,
        500
    );
}

#[tokio::test]
async fn an_exchange_is_recorded_as_it_came() {
    let gateway = open([Reply::ok()]).await;
    let request = RawRequest::new("PATCH", "/prod/orders?q=a%20b&id=2&id=1")
        .with_header("Host", "h")
        .with_header("X-Twice", "1")
        .with_header("x-twice", "2")
        .with_body("body");
    ask(&gateway, &request).await;
    let [attempt] = &gateway.attempts_on("/orders")[..] else { panic!("{:?}", gateway.attempts()) };
    assert_eq!(attempt.method(), "PATCH");
    assert_eq!(attempt.target(), "/prod/orders?q=a%20b&id=2&id=1");
    assert_eq!((attempt.path(), attempt.query()), ("/prod/orders", Some("q=a%20b&id=2&id=1")));
    assert_eq!(attempt.header_lines(), ["Host: h", "X-Twice: 1", "x-twice: 2", "content-length: 4"]);
    assert_eq!(attempt.header_values("X-TWICE"), ["1", "2"]);
    assert_eq!(&attempt.body()[..], b"body");
    assert_eq!(attempt.verdict(), &Verdict::AuthorizationMissing);
    assert!(gateway.attempts_on("/other").is_empty());
}

#[tokio::test]
async fn where_there_is_no_route_or_stage_the_token_is_said_to_be_missing() {
    let gateway = strict().route("POST", "/orders", [Reply::ok()]).start().await.unwrap();
    for target in ["/prod/orders/", "/prod/order", "/production/orders", "/orders", "/prod/Orders"] {
        let request = RawRequest::new("POST", target).with_header("host", "h");
        let answer = ask(&gateway, &Signer::new().sign(request)).await;
        assert_eq!(
            (answer.status, &*answer.body),
            (403, r#"{"message":"Missing Authentication Token"}"#),
            "{target}"
        );
        assert_eq!(answer.header("x-amzn-errortype"), Some("MissingAuthenticationTokenException"));
    }
    let other_method = RawRequest::new("PUT", "/prod/orders").with_header("host", "h");
    assert_eq!(ask(&gateway, &Signer::new().sign(other_method)).await.status, 403);
}

#[tokio::test]
async fn without_a_stage_paths_begin_at_the_root() {
    let gateway = FakeGateway::builder().verify_signatures(false).stage("").route(ANY, "/", [Reply::ok()]);
    let gateway = gateway.start().await.unwrap();
    assert_eq!(gateway.base_url(), format!("http://{}", gateway.addr()));
    assert_eq!(ask(&gateway, &RawRequest::new("GET", "/").with_header("host", "h")).await.status, 200);
}

#[tokio::test]
async fn a_signature_that_does_not_stand_is_refused_and_uses_no_reply_up() {
    let gateway = strict().route("POST", "/orders", [Reply::status(201), Reply::status(202)]);
    let gateway = gateway.start().await.unwrap();
    let mut client = Client::connect(&gateway).await;
    assert_eq!(
        client.ask(&order()).await.header("x-amzn-errortype"),
        Some("MissingAuthenticationTokenException")
    );
    let wrong = Signer { secret: "wrong", ..Signer::new() }.sign(order());
    assert_eq!(client.ask(&wrong).await.header("x-amzn-errortype"), Some("InvalidSignatureException"));
    assert_eq!(client.ask(&signed_order()).await.status, 201);
    assert_eq!(client.ask(&signed_order()).await.status, 202);
    let valid: Vec<bool> = gateway.attempts().iter().map(|attempt| attempt.signature_valid()).collect();
    assert_eq!(valid, [false, false, true, true]);
}

#[tokio::test]
async fn each_refusal_has_the_gateways_type_and_words() {
    let gateway = strict().route(ANY, "/orders", [Reply::ok()]).start().await.unwrap();
    let with_authorization = |value: &str| {
        let mut request = signed_order();
        request.replace_header("authorization", value);
        request
    };
    let incomplete = "IncompleteSignatureException";
    let invalid = "InvalidSignatureException";
    for (request, kind, words) in [
        (with_authorization("Bearer x"), incomplete, "Invalid key=value pair (missing equal-sign)"),
        (
            with_authorization("AWS4-HMAC-SHA256 Signature=a"),
            incomplete,
            "Authorization header requires 'Credential' parameter. Authorization header requires 'SignedHeaders' parameter.\"",
        ),
        (
            Signer { region: "us-east-1", ..Signer::new() }.sign(order()),
            invalid,
            "valid region, not 'us-east-1'. ",
        ),
        (
            Signer { key: "AKIDOTHER", ..Signer::new() }.sign(order()),
            "AccessDeniedException",
            "token included in the request is invalid.",
        ),
        (
            Signer { at: noon() - Duration::from_secs(420), ..Signer::new() }.sign(order()),
            invalid,
            r#"{"message":"Signature expired: 20261002T095300Z is now earlier than 20261002T095500Z (20261002T100000Z - 5 min.)"}"#,
        ),
        (
            Signer { at: noon() + Duration::from_secs(1_200), ..Signer::new() }.sign(order()),
            invalid,
            r#"{"message":"Signature not yet current: 20261002T102000Z is still later than 20261002T100500Z (20261002T100000Z + 5 min.)"}"#,
        ),
        (
            Signer { secret: "x", ..Signer::new() }.sign(order()),
            invalid,
            "does not match the signature you provided.",
        ),
    ] {
        let answer = ask(&gateway, &request).await;
        assert_eq!((answer.status, answer.header("x-amzn-errortype")), (403, Some(kind)), "{answer:?}");
        assert!(answer.body.contains(words), "{} in {}", words, answer.body);
        assert!(serde_json::from_str::<serde_json::Value>(&answer.body).is_ok(), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_mismatch_echoes_the_canonical_request_with_the_session_token_as_the_real_one_does() {
    let gateway = strict().route("POST", "/orders", [Reply::signature_mismatch()]).start().await.unwrap();
    let refused = ask(&gateway, &Signer { secret: "x", ..Signer::new() }.sign(order())).await;
    let scripted = ask(&gateway, &signed_order()).await;
    for answer in [refused, scripted] {
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("should have been\n'POST\n/prod/orders\n\nhost:127.0.0.1\n"), "{message}");
        assert!(message.contains(&format!("x-amz-security-token:{TOKEN}\n")), "{message}");
        assert!(
            message.contains("The String-to-Sign should have been\n'AWS4-HMAC-SHA256\n20261002T100000Z\n")
        );
    }
}

#[tokio::test]
async fn a_revoked_session_is_expired_and_a_revoked_key_invalid() {
    let gateway = strict().credentials("AKIDLASTING", SECRET, None).route(ANY, "/orders", [Reply::ok()]);
    let gateway = gateway.start().await.unwrap();
    let lasting = Signer { key: "AKIDLASTING", token: None, ..Signer::new() }.sign(order());
    assert_eq!(ask(&gateway, &lasting).await.status, 200);
    gateway.revoke(KEY);
    gateway.revoke("AKIDLASTING");
    let expired = ask(&gateway, &signed_order()).await;
    assert_eq!(expired.header("x-amzn-errortype"), Some("ExpiredTokenException"));
    assert!(ask(&gateway, &lasting).await.body.contains("is invalid."));
    gateway.accept(KEY, SECRET, Some(TOKEN));
    assert_eq!(ask(&gateway, &signed_order()).await.status, 200);
}

#[tokio::test]
async fn the_clock_that_was_given_dates_the_answers_and_judges_the_signatures() {
    let seconds = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&seconds);
    let gateway = strict()
        .clock(Arc::new(move || noon() + Duration::from_secs(read.load(Ordering::Relaxed))))
        .route("POST", "/orders", [Reply::ok()])
        .start()
        .await
        .unwrap();
    let answer = ask(&gateway, &signed_order()).await;
    assert_eq!((answer.status, answer.header("date")), (200, Some("Fri, 02 Oct 2026 10:00:00 GMT")));
    seconds.store(301, Ordering::Relaxed);
    let answer = ask(&gateway, &signed_order()).await;
    assert_eq!((answer.status, answer.header("date")), (403, Some("Fri, 02 Oct 2026 10:05:01 GMT")));
}

#[tokio::test]
async fn a_clock_turned_by_hand_is_the_gateways_too() {
    let clock = ManualClock::starting_at(noon());
    let gateway =
        strict().manual_clock(&clock).route("POST", "/orders", [Reply::ok()]).start().await.unwrap();
    assert_eq!(ask(&gateway, &signed_order()).await.status, 200);
    clock.advance(Duration::from_secs(301));
    let answer = ask(&gateway, &signed_order()).await;
    assert_eq!((answer.status, answer.header("date")), (403, Some("Fri, 02 Oct 2026 10:05:01 GMT")));
    assert_eq!(gateway.attempts()[1].received_at(), clock.wall());
}

#[tokio::test]
async fn a_scripted_expiry_names_the_signed_time_and_the_gateways() {
    let gateway = strict()
        .route("POST", "/orders", [Reply::signature_expired(), Reply::signature_not_yet_current()])
        .start()
        .await
        .unwrap();
    let signed = Signer { at: noon() - Duration::from_secs(60), ..Signer::new() }.sign(order());
    assert_eq!(
        ask(&gateway, &signed).await.body,
        r#"{"message":"Signature expired: 20261002T095900Z is now earlier than 20261002T095500Z (20261002T100000Z - 5 min.)"}"#
    );
    assert_eq!(
        ask(&gateway, &signed).await.body,
        r#"{"message":"Signature not yet current: 20261002T095900Z is still later than 20261002T100500Z (20261002T100000Z + 5 min.)"}"#
    );
}

#[tokio::test]
async fn a_dynamic_reply_sees_the_attempt_and_is_dressed_by_its_script() {
    let decide = |attempt: &crate::testing::RecordedAttempt| Reply::json(200, format!("{}", attempt.order()));
    let gateway = open([Reply::dynamic(decide).header("x-dressed", "1")]).await;
    for order_of_arrival in ["1", "2"] {
        let answer = ask(&gateway, &order()).await;
        assert_eq!((&*answer.body, answer.header("x-dressed")), (order_of_arrival, Some("1")));
    }
    assert_eq!(gateway.attempts()[1].status(), Some(200));
}

#[tokio::test]
async fn a_dynamic_reply_that_never_decides_ends_in_a_500() {
    fn again(_: &crate::testing::RecordedAttempt) -> Reply {
        Reply::dynamic(again)
    }
    let gateway = open([Reply::dynamic(again)]).await;
    assert_eq!(ask(&gateway, &order()).await.status, 500);
}

#[tokio::test]
async fn waiting_for_attempts_ends_when_they_are_there() {
    let gateway = Arc::new(open([Reply::ok()]).await);
    let waiting = tokio::spawn({
        let gateway = Arc::clone(&gateway);
        async move { gateway.wait_for_attempts(2).await.len() }
    });
    ask(&gateway, &order()).await;
    assert!(!waiting.is_finished());
    ask(&gateway, &order()).await;
    assert_eq!(waiting.await.unwrap(), 2);
}

#[tokio::test]
async fn nothing_that_is_printed_shows_a_secret() {
    let gateway = strict().route("POST", "/orders", [Reply::json(200, "answered")]).start().await.unwrap();
    ask(&gateway, &signed_order().with_header("x-user-token", "user-secret")).await;
    let attempts = gateway.attempts();
    let signature = attempts[0].header("authorization").unwrap().split_once("Signature=").unwrap().1;
    for text in [format!("{gateway:?}"), format!("{attempts:?}"), format!("{:?}", strict())] {
        for secret in [SECRET, TOKEN, "user-secret", "answered", signature] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
