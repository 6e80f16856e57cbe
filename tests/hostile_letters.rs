//! What a letter does not give away, a sink does not hold up and a replay does not forget. Each of these once failed.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "behaviour/rig.rs"]
mod rig;

use eastwest::dead_letter::{DeadLetter, FileSink};
use eastwest::policy::classify::Class;
use eastwest::policy::refine::Verdict;
use eastwest::testing::Reply;
use eastwest::{Call, CallContext, Error, ServiceClient};
use http::StatusCode;
use rig::{Rig, builder};
use std::path::PathBuf;

async fn failed(client: &ServiceClient, shape: impl FnOnce(Call) -> Call) -> Error {
    shape(client.post(&CallContext::root(), "/orders")).send().await.unwrap_err()
}

fn json(letter: &DeadLetter) -> String {
    serde_json::to_string(letter).unwrap()
}

#[tokio::test]
async fn a_letter_of_another_api_behind_the_same_endpoint_is_refused() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let orders = rig.builder().api_id("aaaaaaaaaa").build().unwrap();
    let payments = rig.builder().api_id("bbbbbbbbbb").build().unwrap();
    let letter = failed(&orders, |call| call).await.dead_letter().unwrap();
    let seen = rig.seen();
    if let Ok(call) = payments.replay(&letter) {
        let _ = call.send().await;
    }
    assert_eq!(rig.seen(), seen, "sent to {:?}", rig.attempts()[seen].header("x-apigw-api-id"));
}

#[tokio::test]
async fn no_secret_comes_back_by_a_2xx_that_is_a_failure() {
    let echo = r#"{"message":"no such user: user-token-mark","code":"behaviour-session-token"}"#;
    let rig = Rig::answering([Reply::json(200, echo)]).await;
    let error = failed(&rig.client(), |call| {
        call.user_token("user-token-mark").on_status(StatusCode::OK, Verdict::Class(Class::Rejected))
    })
    .await;
    let letter = json(&error.dead_letter().unwrap());
    assert!(!letter.contains("user-token-mark") && !letter.contains("behaviour-session-token"), "{letter}");
}

#[tokio::test]
async fn no_secret_comes_back_by_a_2xx_that_is_too_large() {
    let rig =
        Rig::answering([Reply::status(200).body("echo: user-token-mark behaviour-session-token")]).await;
    let error = failed(&rig.client(), |call| call.user_token("user-token-mark").response_body_limit(4)).await;
    let letter = json(&error.dead_letter().unwrap());
    println!("{letter}");
    let error =
        failed(&rig.client(), |call| call.user_token("user-token-mark").response_body_limit(42)).await;
    let letter = letter + &json(&error.dead_letter().unwrap());
    assert!(!letter.contains("user-token-mark"), "{letter}");
}

#[tokio::test]
async fn no_signature_of_long_lived_keys_comes_back_by_a_callees_echo() {
    let gateway = eastwest::testing::FakeGateway::builder()
        .credentials("AKIDLONG", "secret", None)
        .region(rig::REGION)
        .route(
            "ANY",
            "/orders",
            [Reply::dynamic(|attempt| {
                let line = attempt.header("authorization").unwrap_or_default().to_owned();
                Reply::status(400).header("content-type", "text/plain").body(line)
            })],
        )
        .start()
        .await
        .unwrap();
    let client = builder(gateway.base_url()).static_credentials("AKIDLONG", "secret", None).build().unwrap();
    let letter = failed(&client, |call| call).await.dead_letter().unwrap();
    assert!(!json(&letter).contains("Signature="), "{:?}", letter.message);
}

#[tokio::test]
async fn what_is_withheld_does_not_come_back_by_a_callees_echo() {
    let rig = Rig::answering([Reply::json(403, r#"{"message":"key api-key-mark is not known"}"#)]).await;
    let letter =
        failed(&rig.client(), |call| call.header("x-api-key", "api-key-mark")).await.dead_letter().unwrap();
    assert_eq!(letter.withheld_headers, ["x-api-key"]);
    assert!(!json(&letter).contains("api-key-mark"), "{:?}", letter.message);
}

#[tokio::test]
async fn credentials_are_withheld_whatever_their_name() {
    let rig = Rig::answering([Reply::json(404, "{}")]).await;
    let mut leaked = Vec::new();
    for (name, value) in [
        ("x-identity", " Bearer the-mark-1"),
        ("x-identity", "Token the-mark-1"),
        ("x-identity", "Negotiate the-mark-1"),
        ("x-identity", "ApiKey the-mark-1"),
        ("x-identity", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.the-mark-1"),
        ("ocp-apim-subscription-key", "the-mark-1"),
        ("x-functions-key", "the-mark-1"),
        ("x-access-key", "the-mark-1"),
        ("x-amzn-oidc-data", "the-mark-1"),
        ("x-csrf", "the-mark-1"),
    ] {
        let letter = failed(&rig.client(), |call| call.header(name, value)).await.dead_letter().unwrap();
        if json(&letter).contains("the-mark-1") {
            leaked.push((name, value));
        }
    }
    assert!(leaked.is_empty(), "{leaked:?}");
}

#[tokio::test]
async fn the_letter_of_a_failed_replay_still_names_what_has_to_be_given_again() {
    let rig = Rig::answering([Reply::json(404, "{}")]).await;
    let client = rig.client();
    let first = failed(&client, |call| call.header("cookie", "c")).await.dead_letter().unwrap();
    assert_eq!(first.withheld_headers, ["cookie"]);
    let again = client.replay(&first).unwrap().send().await.unwrap_err().dead_letter().unwrap();
    assert_eq!((&again.id, &again.withheld_headers), (&first.id, &first.withheld_headers));
}

#[tokio::test]
async fn the_letter_of_a_replay_that_was_never_sent_keeps_what_became_of_the_last_attempt() {
    let rig = Rig::answering([Reply::integration_timeout()]).await;
    let client = rig.builder().max_attempts(1).build().unwrap();
    let first = failed(&client, |call| call).await.dead_letter().unwrap();
    client.breaker().force_open();
    let again = client.replay(&first).unwrap().send().await.unwrap_err().dead_letter().unwrap();
    assert!(again.first_attempt_at.is_some());
    assert_eq!(again.last_attempt_at, first.last_attempt_at);
}

#[tokio::test]
async fn a_letter_says_that_a_user_token_has_to_be_given_again() {
    let rig = Rig::answering([Reply::json(404, "{}")]).await;
    let letter = failed(&rig.client(), |call| call.user_token("alice-token")).await.dead_letter().unwrap();
    assert!(
        letter.withheld_headers.iter().any(|name| name == "x-user-token"),
        "{:?}",
        letter.withheld_headers
    );
}

#[tokio::test]
async fn of_a_call_that_was_never_sent_there_is_no_first_attempt_of_the_key() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let client = builder(format!("http://127.0.0.1:{port}")).max_attempts(1).build().unwrap();
    let letter = failed(&client, |call| call).await.dead_letter().unwrap();
    assert!(!letter.may_have_committed);
    assert_eq!(letter.first_attempt_at, None, "{}", letter.kind);
}

#[test]
fn the_file_sink_is_not_starved_by_the_thread_that_waits_for_it() {
    let path: PathBuf = std::env::temp_dir().join(format!("eastwest-starved-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build().unwrap();
    let stored = runtime.block_on(async {
        let sink = FileSink::open(&path).unwrap();
        let client = builder("http://127.0.0.1:9").dead_letter_sink(sink).build().unwrap();
        client.breaker().force_open();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let client = client.clone();
            calls.spawn(async move { failed(&client, |call| call).await.is_circuit_open() });
        }
        calls.join_all().await;
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().filter(|line| !line.is_empty()).count()
    });
    std::fs::remove_file(&path).unwrap();
    assert_eq!(stored, 8, "a call ends when its letter is stored, and none waits in vain");
}

#[tokio::test]
async fn there_is_no_letter_of_headers_that_are_too_large() {
    let rig = Rig::answering([Reply::ok()]).await;
    let error = failed(&rig.client(), |call| call.header("x-a", "a".repeat(11_000))).await;
    assert_eq!(rig.seen(), 0);
    assert!(error.dead_letter().is_none(), "{error}");
}
