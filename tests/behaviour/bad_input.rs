//! What cannot be right is refused by name, before anything is sent.

use crate::rig::{Rig, SHORT, builder};
use eastwest::policy::breaker::BreakerSettings;
use eastwest::testing::Reply;
use eastwest::{CallContext, ErrorKind, ServiceClient};
use std::time::Duration;

#[test]
fn a_base_url_that_cannot_be_right_is_refused() {
    for url in [
        "https://user:secret@api.example.test/prod",
        "https://api.example.test/prod#part",
        "https://api.example.test/prod?stage=1",
        "http://api.example.test/prod",
        "http://169.254.169.254/",
        "ftp://api.example.test/",
        "api.example.test/prod",
        "https://",
        "https:///prod",
        "",
        "https://api.example.test/a\nb",
    ] {
        let error = builder(url).build().unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("base_url")), "{url}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    builder("http://api.example.test/prod").dangerously_allow_http().build().unwrap();
    for loopback in ["http://127.0.0.1:8080/prod", "http://localhost", "http://[::1]:80/v1/"] {
        builder(loopback).build().unwrap();
    }
}

#[test]
fn region_and_credentials_are_never_guessed() {
    let url = "https://abc.execute-api.eu-central-1.amazonaws.com/prod";
    let error = ServiceClient::builder(url).static_credentials("A", "s", None).build().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("region")));
    let error =
        ServiceClient::builder(url).region("  ").static_credentials("A", "s", None).build().unwrap_err();
    assert_eq!(error.field(), Some("region"));
    let error = ServiceClient::builder(url).region("eu-central-1").build().unwrap_err();
    assert_eq!(error.field(), Some("credentials"));
}

#[test]
fn a_region_that_is_not_the_host_s_own_is_refused_where_the_host_tells_it() {
    let url = "https://abc.execute-api.eu-central-1.amazonaws.com/prod";
    let built = |url, region| builder(url).region(region).build();
    let error = built(url, "eu-west-1").unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("region")));
    assert!(error.to_string().contains("eu-west-1") && error.to_string().contains("eu-central-1"), "{error}");
    assert!(format!("{error:?}").contains("region: is eu-west-1"), "{error:?}");
    built(url, " eu-central-1 ").unwrap();
    built("https://orders.example.com", "eu-west-1").unwrap();
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let new = || builder("https://api.example.test/prod");
    let (one, two) = (Duration::from_secs(1), Duration::from_secs(2));
    let field = |builder: eastwest::ClientBuilder| builder.build().unwrap_err().field();
    assert_eq!(field(new().total_timeout(one).attempt_timeout(two)), Some("attempt_timeout"));
    assert_eq!(field(new().attempt_timeout(one).connect_timeout(two)), Some("connect_timeout"));
    assert_eq!(field(new().total_timeout(Duration::ZERO)), Some("total_timeout"));
    assert_eq!(field(new().max_attempts(0)), Some("max_attempts"));
    assert!(field(new().breaker(BreakerSettings::default().with_failures_in_row(0))).is_some());
    assert_eq!(field(new().service("exec ute")), Some("service"));
    assert_eq!(field(new().region("eu central")), Some("region"));
}

#[tokio::test]
async fn a_call_s_own_settings_are_checked_too() {
    let rig = Rig::answering([Reply::ok()]).await;
    let shorter = |call: eastwest::Call| call.total_timeout(SHORT).attempt_timeout(Duration::from_secs(1));
    assert_eq!(rig.post_with(shorter).await.unwrap_err().field(), Some("attempt_timeout"));
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn a_path_that_would_be_another_resource_is_refused() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    for path in [
        "/a/../b",
        "..",
        "/a/.",
        "/%2e%2e/b",
        "/a/%2E",
        "/a//b",
        "//evil.example/x",
        "/a?x=1",
        "/a#f",
        "/a%zz",
        "/a%",
        "/a\nb",
        "/a\u{0}",
        "https://evil.example/",
    ] {
        let error = client.get(&CallContext::root(), path).send().await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("path")), "{path:?}");
    }
    for segment in ["", ".", ".."] {
        let error = client.get(&CallContext::root(), "/a").segments([segment]).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{segment:?}");
    }
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn what_is_over_the_gateway_s_limits_is_refused_before_it_is_sent() {
    let rig = Rig::answering([Reply::ok()]).await;
    let error = rig.post_with(|call| call.body(vec![0u8; 10_485_761])).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::TooLarge, Some("body")));
    let error = rig.post_with(|call| call.query("q", "x".repeat(8_192))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let error = rig.post_with(|call| call.header("x-big", "x".repeat(10_240))).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::TooLarge, Some("headers")));
    assert_eq!(rig.seen(), 0);
    // Ten megabytes are hashed twice on the way, which takes its time where nothing is optimised.
    let patient = |call: eastwest::Call| {
        call.attempt_timeout(Duration::from_secs(30)).total_timeout(Duration::from_secs(60))
    };
    rig.post_with(|call| patient(call).body(vec![0u8; 10_485_760])).await.unwrap();
}

#[tokio::test]
async fn a_key_on_a_safe_method_is_refused() {
    let rig = Rig::answering([Reply::ok()]).await;
    let call = rig.client().get(&CallContext::root(), "/orders").idempotency_key("k");
    assert_eq!(call.send().await.unwrap_err().field(), Some("idempotency_key"));
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn the_first_fault_is_told() {
    let rig = Rig::answering([Reply::ok()]).await;
    let error = rig.post_with(|call| call.header("host", "x").idempotency_key("")).await.unwrap_err();
    assert_eq!(error.field(), Some("header"));
}

#[tokio::test]
async fn an_access_key_with_a_stray_line_break_is_a_typed_error_and_no_panic() {
    let rig = Rig::answering([Reply::ok()]).await;
    for (key, secret, token) in
        [("AKID\n", "s", "t"), ("AKID", "s", "t\r\n"), ("AK ID", "s", "t"), ("", "s", "t")]
    {
        let client = rig.builder().static_credentials(key, secret, Some(token)).build().unwrap();
        let error = client.get(&CallContext::root(), "/orders").send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credentials, "{key:?} {token:?}");
    }
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn what_asks_for_no_answer_or_cannot_be_written_or_is_said_twice_is_refused_by_name() {
    struct Unwritable;
    impl serde::Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("secret-mark"))
        }
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let error = rig.post_with(|call| call.json(&Unwritable)).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("body")));
    assert!(!format!("{error} {error:?}").contains("secret-mark"));
    let client = rig.builder().api_id("abc123").build().unwrap();
    let tunnel = client.request(&CallContext::root(), http::Method::CONNECT, "/orders");
    assert_eq!(tunnel.send().await.unwrap_err().field(), Some("method"));
    let call = client.post(&CallContext::root(), "/orders").header("x-apigw-api-id", "other");
    assert_eq!(call.send().await.unwrap_err().field(), Some("x-apigw-api-id"));
    assert_eq!(rig.seen(), 0);
}

#[tokio::test]
async fn the_limits_on_urls_and_on_kept_bodies_are_the_ones_that_were_set() {
    let page = "x".repeat(100);
    let rig = Rig::answering([Reply::json(404, page.clone())]).await;
    let client = rig.builder().url_limit(100).error_body_limit(10).build().unwrap();
    let error = client.get(&CallContext::root(), "/orders").query("q", &page).send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::TooLarge, 0));
    let error = client.get(&CallContext::root(), "/orders").query("q", "x").send().await.unwrap_err();
    assert_eq!((error.body(), rig.seen()), (&page.as_bytes()[..10], 1));
    let error = rig.post_with(|call| call.query("q", &page)).await.unwrap_err();
    assert_eq!(error.body(), page.as_bytes());
}

#[test]
fn an_address_for_another_host_than_the_base_url_s_is_refused() {
    let builder = builder("https://api.example.test/prod");
    let elsewhere = builder.resolve("other.example.test", "127.0.0.1:443".parse().unwrap());
    assert_eq!(elsewhere.build().unwrap_err().field(), Some("resolve"));
}

#[tokio::test]
async fn a_thousand_headers_are_sent_and_one_more_is_refused() {
    let rig = Rig::answering([Reply::ok()]).await;
    let with =
        |count: usize| rig.post_with(move |call| (0..count).fold(call, |call, _| call.header("x-a", "")));
    assert!(with(1_000).await.is_ok());
    let error = with(1_001).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::TooLarge, Some("header")));
    assert_eq!(rig.seen(), 1);
}
