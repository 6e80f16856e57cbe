//! Nothing secret reaches a log, whoever writes it and however much is asked for. A process of its own: the subscriber
//! is the whole process's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "support/log.rs"]
mod heard;

use eastwest::policy::retry_budget::RetryBudget;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{CallContext, ServiceClient};
use heard::Log;
use tracing_subscriber::fmt::format::FmtSpan;

const KEY_ID: &str = "AKIDSECRECY";
const SECRET: &str = "secret-access-key-of-the-test";
const TOKEN: &str = "session-token-of-the-test";
const USER_TOKEN: &str = "user-token-of-the-test";

#[tokio::test]
async fn a_subscriber_at_trace_never_sees_a_secret() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_writer(log.writer())
        .init();
    tracing::trace!("the subscriber listens");
    log::trace!("and what is written to the older facade is heard too");
    let clock = ManualClock::new();
    let gateway = FakeGateway::builder()
        .credentials(KEY_ID, SECRET, Some(TOKEN))
        .region("eu-central-1")
        .manual_clock(&clock)
        .start()
        .await
        .unwrap();
    let client = ServiceClient::builder(gateway.base_url())
        .region("eu-central-1")
        .static_credentials(KEY_ID, SECRET, Some(TOKEN))
        .retry_budget(RetryBudget::off())
        .ambient(clock)
        .build()
        .unwrap();
    let scripts = [
        vec![Reply::json(200, r#"{"mark":"answer-body-mark"}"#)],
        vec![Reply::unavailable().body("answer-body-mark"), Reply::ok()],
        vec![Reply::signature_mismatch()],
        vec![Reply::signature_expired(), Reply::token_expired()],
        vec![Reply::json(400, r#"{"message":"answer-body-mark"}"#)],
        vec![Reply::reset(), Reply::ok()],
        vec![Reply::garbage()],
        vec![Reply::json(200, "answer-body-mark").truncate_after(4)],
        vec![Reply::unauthorized()],
    ];
    for script in scripts {
        gateway.script("POST", "/orders", script);
        let call = client
            .post(&CallContext::root(), "/orders")
            .query("q", "query-mark")
            .header("x-own", "header-mark")
            .user_token(USER_TOKEN)
            .json(&["request-body-mark"]);
        tracing::info!("{call:?}");
        match call.send().await {
            Ok(answer) => tracing::info!("{answer:?} {:?}", answer.json::<u32>()),
            Err(error) => {
                tracing::info!("{error} {error:?}");
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    tracing::info!("{cause} {cause:?}");
                    source = cause.source();
                }
            }
        }
    }
    tracing::info!("{client:?}");
    let text = log.text();
    assert!(text.contains("the older facade"));
    assert!(text.contains("the subscriber listens") && text.contains("retrying"), "the log is the one");
    assert!(gateway.attempts().len() >= scripts_and_retries(), "the calls were made");
    let mut secrets = vec![SECRET.to_owned(), TOKEN.to_owned(), USER_TOKEN.to_owned(), KEY_ID.to_owned()];
    for mark in ["answer-body-mark", "request-body-mark", "query-mark", "header-mark"] {
        secrets.push(mark.to_owned());
    }
    for attempt in gateway.attempts() {
        let authorization = attempt.header("authorization").unwrap();
        secrets.push(authorization.rsplit("Signature=").next().unwrap().to_owned());
    }
    for secret in secrets {
        let line = text.lines().find(|line| line.contains(&secret));
        assert!(line.is_none(), "{secret} is in: {}", line.unwrap());
    }
}

/// At the least: one attempt a script, and a second for each that is retried.
fn scripts_and_retries() -> usize {
    15
}
