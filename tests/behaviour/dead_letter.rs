//! A call that was given up leaves a letter, and the letter makes the same call again.

use crate::log::Log;
use crate::rig::{Rig, SECRET, SHORT, TOKEN, builder};
use eastwest::dead_letter::{DeadLetter, DeadLetterSink, FileSink, StoreFuture};
use eastwest::policy::breaker::BreakerSettings;
use eastwest::testing::{FakeGateway, RecordedAttempt, Reply};
use eastwest::{
    Call, CallContext, Error, ErrorKind, ServiceClient, StopReason, UserToken, UserTokenFuture,
    UserTokenSource, callee,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps letters in memory.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Vec<DeadLetter>>>);

impl DeadLetterSink for Shelf {
    fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
        self.0.lock().unwrap().push(letter);
        Box::pin(async { Ok(()) })
    }
}

/// Says that it failed.
struct Broken;

impl DeadLetterSink for Broken {
    fn store(&self, _: DeadLetter) -> StoreFuture<'_> {
        Box::pin(async { Err("no room left".into()) })
    }
}

/// A call with all that a letter has to keep or to leave out.
fn laden(call: Call) -> Call {
    call.segments(["a b", "c/d"])
        .query("q", "query mark &=+")
        .query("q", "")
        .header("tenant", "t-1")
        .header("tenant", "t-2 é")
        .header("cookie", "cookie-mark")
        .header("x-api-key", "api-key-mark")
        .header("x-identity", "Bearer bearer-mark")
        .header("content-type", "application/x-own")
        .user_token("user-token-mark")
        .body(&b"body mark \x00\xff"[..])
}

async fn failed(client: &ServiceClient, shape: impl FnOnce(Call) -> Call) -> Error {
    let context = callee::accept([("x-hop-count", "2"), ("x-correlation-id", "order-7")])
        .unwrap()
        .with_trace_id("Root=1-6858764a-5c96ac04102925a7698c3690");
    shape(client.post(&context, "/orders")).send().await.unwrap_err()
}

/// A letter as it comes back from where it was stored.
fn through_json(error: &Error) -> DeadLetter {
    let json = serde_json::to_string(&error.dead_letter().unwrap()).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn altered(letter: &DeadLetter, alter: impl FnOnce(&mut DeadLetter)) -> DeadLetter {
    let mut altered = letter.clone();
    alter(&mut altered);
    altered
}

fn refused(replay: Result<Call, Error>) -> (ErrorKind, Option<&'static str>) {
    let error = replay.unwrap_err();
    (error.kind(), error.field())
}

/// What must be alike in a call's attempt and in its replay's.
fn essence(attempt: &RecordedAttempt) -> (String, String, Vec<u8>, Vec<Vec<String>>) {
    let names =
        ["x-idempotency-key", "x-correlation-id", "x-hop-count", "content-type", "tenant", "x-amzn-trace-id"];
    let values = |name| attempt.header_values(name).into_iter().map(str::to_owned).collect();
    let headers = names.map(values).to_vec();
    (attempt.method().to_owned(), attempt.target().to_owned(), attempt.body().to_vec(), headers)
}

#[tokio::test]
async fn a_replay_is_the_same_call_signed_anew_with_its_attempts_from_1() {
    let rig = Rig::answering([]).await;
    rig.gateway.script("POST", "/orders/a%20b/c%2Fd", [Reply::unavailable()]);
    let error = failed(&rig.client(), laden).await;
    let letter = through_json(&error);
    assert_eq!(letter, error.dead_letter().unwrap());
    assert_eq!((letter.path.as_str(), letter.hop, letter.attempts), ("/orders/a%20b/c%2Fd", 3, 4));
    assert_eq!((letter.status, letter.kind.as_str()), (Some(503), "Unavailable"));
    assert_eq!(letter.stop_reason.as_deref(), Some("AttemptsExhausted"));
    let first = rig.attempts().remove(0);
    assert_eq!(letter.idempotency_key.as_deref(), first.header("x-idempotency-key"));

    rig.gateway.script("POST", "/orders/a%20b/c%2Fd", [Reply::unavailable(), Reply::ok()]);
    rig.clock.advance(Duration::from_secs(60));
    let replay = rig.client().replay(&letter).unwrap().user_token("another-token");
    assert_eq!(replay.send().await.unwrap().attempts().len(), 2);
    let replayed = &rig.attempts()[4];
    assert_eq!(essence(replayed), essence(&first));
    assert_eq!(replayed.header("x-attempt-count"), Some("1"));
    assert_ne!(replayed.header("authorization"), first.header("authorization"));
    // What is not in the letter is not made up.
    for name in ["cookie", "x-api-key", "x-identity"] {
        assert!(first.header(name).is_some() && replayed.header(name).is_none(), "{name}");
    }
    assert_eq!(replayed.header("x-user-token"), Some("another-token"));
}

#[tokio::test]
async fn what_was_asked_in_a_users_name_is_not_asked_again_without_a_user() {
    struct Session;
    impl UserTokenSource for Session {
        fn user_token<'a>(&'a self, _: Option<&'a UserToken>) -> UserTokenFuture<'a> {
            Box::pin(async { Ok(UserToken::new("token-of-the-source")?) })
        }
    }
    let rig = Rig::answering([Reply::json(404, "{}"), Reply::ok()]).await;
    let with_source = rig.builder().user_token_source(Session).build().unwrap();
    let of_the_source = failed(&with_source, |call| call).await;
    let rig_again = Rig::answering([Reply::json(404, "{}"), Reply::ok()]).await;
    let of_the_call = failed(&rig_again.client(), |call| call.user_token("token-of-the-call")).await;
    for (rig, error) in [(&rig, of_the_source), (&rig_again, of_the_call)] {
        let letter = through_json(&error);
        let refused = rig.client().replay(&letter).unwrap().send().await.unwrap_err();
        assert_eq!((refused.kind(), refused.field()), (ErrorKind::Configuration, Some("user_token")));
        assert_eq!(rig.seen(), 1);
        rig.client().replay(&letter).unwrap().user_token("token-anew").send().await.unwrap();
        assert_eq!(rig.attempts()[1].header("x-user-token"), Some("token-anew"));
    }
    let letter = through_json(&failed(&with_source, |call| call.segment("gone")).await);
    let error = with_source.replay(&letter).unwrap().send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Route);
}

#[tokio::test]
async fn the_query_and_the_bare_base_path_come_out_as_they_were() {
    for path in ["", "/"] {
        let rig = Rig::answering([Reply::json(404, "{}")]).await;
        let error = failed(&rig.client(), |call| call.query("", "").query("a=&", "é +")).await;
        let _ = rig.client().replay(&through_json(&error)).unwrap().send().await;
        let attempts = rig.attempts();
        assert_eq!(attempts.first().unwrap().target(), attempts.last().unwrap().target());
        let root = rig.client().put(&CallContext::root(), path).send().await.unwrap_err();
        let _ = rig.client().replay(&through_json(&root)).unwrap().send().await;
        let attempts = rig.attempts();
        assert_eq!(attempts[attempts.len() - 2].target(), attempts[attempts.len() - 1].target(), "{path:?}");
    }
}

#[tokio::test]
async fn a_letter_holds_no_secret_and_its_debug_no_content() {
    let rig = Rig::answering([]).await;
    let echo = Reply::signature_mismatch();
    rig.gateway.script("POST", "/orders/a%20b/c%2Fd", [echo]);
    let letter = failed(&rig.client(), laden).await.dead_letter().unwrap();
    assert_eq!(letter.withheld_headers, ["cookie", "x-api-key", "x-identity", "x-user-token"]);
    let (json, shown) = (serde_json::to_string(&letter).unwrap(), format!("{letter:?}"));
    let signatures = rig.gateway.attempts();
    let signature = |attempt: &RecordedAttempt| {
        attempt.header("authorization").unwrap().rsplit('=').next().unwrap().to_owned()
    };
    let mut secrets: Vec<_> = signatures.iter().map(signature).collect();
    secrets.extend(
        ["cookie-mark", "api-key-mark", "bearer-mark", "user-token-mark", SECRET, TOKEN].map(str::to_owned),
    );
    for secret in &secrets {
        assert!(!json.contains(secret.as_str()) && !shown.contains(secret.as_str()), "{secret}");
    }
    for content in ["query", "t-1", "body mark", "Ym9keSBtYXJr"] {
        assert!(!shown.contains(content), "{content} is in {shown}");
    }
    assert!(json.contains("Ym9keSBtYXJr") && json.contains("t-1"));
}

#[tokio::test]
async fn each_failed_call_that_could_be_replayed_has_a_letter_and_no_other_has() {
    let rig = Rig::answering([Reply::json(422, r#"{"code":"E-1","message":"no such sku"}"#)]).await;
    let shelf = Shelf::default();
    let client = rig.builder().dead_letter_sink(shelf.clone()).build().unwrap();
    let rejected = failed(&client, |call| call).await;
    client.breaker().force_open();
    let open = failed(&client, |call| call).await;
    let context = callee::accept([("x-hop-count", "7")]).unwrap();
    let looped = client.post(&context, "/orders").send().await.unwrap_err();
    let stored = shelf.0.lock().unwrap().clone();
    assert_eq!(stored, [&rejected, &open, &looped].map(|error| error.dead_letter().unwrap()));
    let seen: Vec<_> =
        stored.iter().map(|letter| (letter.kind.as_str(), letter.attempts, letter.hop)).collect();
    assert_eq!(seen, [("Rejected", 1, 3), ("CircuitOpen", 0, 3), ("HopLimit", 0, 8)]);
    assert_eq!((stored[0].code.as_deref(), stored[0].message.as_deref()), (Some("E-1"), Some("no such sku")));
    assert_eq!((stored[1].first_attempt_at, stored[1].created_at), (None, rig.clock.wall()));
    assert_eq!(rig.seen(), 1);
    // Nothing of these will ever be sent.
    let wrong = failed(&client, |call| call.header("host", "evil")).await;
    let too_large = failed(&client, |call| call.body(vec![0; 10_485_761])).await;
    assert!(wrong.dead_letter().is_none() && too_large.dead_letter().is_none());
    client.breaker().reset();
    rig.gateway.script("ANY", "/orders", [Reply::json(200, "no json")]);
    let answer = client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert!(answer.json::<u32>().unwrap_err().dead_letter().is_none());
    let dropped = Reply::hang();
    rig.gateway.script("ANY", "/orders", [dropped]);
    let call = client.post(&CallContext::root(), "/orders").send();
    tokio::select! {
        _ = call => panic!("nobody answers"),
        _ = rig.gateway.wait_for_attempts(3) => {}
    }
    assert_eq!(shelf.0.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_letter_that_does_not_fit_is_refused_by_the_name_of_what_is_wrong() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let client = rig.client();
    let letter = failed(&client, |call| call).await.dead_letter().unwrap();
    type Tamper = fn(&mut DeadLetter);
    let cases: [(&str, Tamper); 9] = [
        ("schema_version", |letter| letter.schema_version = 2),
        ("base_url", |letter| letter.base_url.push_str("/v2")),
        ("method", |letter| letter.method = "PO ST".to_owned()),
        ("header", |letter| letter.headers.push(("authorization".to_owned(), "x".to_owned()))),
        ("header", |letter| letter.headers.push(("x".to_owned(), "a\r\nb: c".to_owned()))),
        ("idempotency_key", |letter| letter.idempotency_key = Some("a b".to_owned())),
        ("correlation_id", |letter| letter.correlation_id = "a b".to_owned()),
        ("hop", |letter| letter.hop = 0),
        ("query", |letter| letter.query = "a=%ff".to_owned()),
    ];
    for (field, tamper) in cases {
        assert_eq!(
            refused(client.replay(&altered(&letter, tamper))),
            (ErrorKind::Configuration, Some(field))
        );
    }
    let other = builder(format!("{}/v2", rig.gateway.base_url())).build().unwrap();
    assert_eq!(refused(other.replay(&letter)).1, Some("base_url"));
    let looped = altered(&letter, |letter| letter.hop = 8);
    let error = client.replay(&looped).unwrap().send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::HopLimit, 4));
    let astray = altered(&letter, |letter| letter.path = "/../admin".to_owned());
    assert_eq!(client.replay(&astray).unwrap().send().await.unwrap_err().field(), Some("path"));
    assert_eq!(rig.seen(), 4);
}

#[tokio::test]
async fn a_letter_without_a_key_that_may_have_committed_is_replayed_only_where_that_is_allowed() {
    let rig = Rig::answering([Reply::integration_timeout(), Reply::ok()]).await;
    let client = rig.client();
    let letter = failed(&client, |call| call.no_idempotency_key()).await.dead_letter().unwrap();
    assert!(letter.may_have_committed && letter.idempotency_key.is_none());
    let error = client.replay(&letter).unwrap().send().await.unwrap_err();
    assert_eq!((error.field(), rig.seen()), (Some("idempotency_key"), 1));
    client.replay(&letter).unwrap().allow_unkeyed().send().await.unwrap();
    assert_eq!(rig.attempts()[1].header("x-idempotency-key"), None);
    let harmless = altered(&letter, |letter| letter.may_have_committed = false);
    client.replay(&harmless).unwrap().send().await.unwrap();
    let known = altered(&letter, |letter| letter.repeat_safe_by_reference = true);
    client.replay(&known).unwrap().send().await.unwrap();
    let safe = altered(&letter, |letter| letter.method = "GET".to_owned());
    client.replay(&safe).unwrap().send().await.unwrap();
}

#[tokio::test]
async fn the_letter_of_a_failed_replay_takes_the_place_of_the_first_and_is_no_more_harmless() {
    let rig = Rig::answering([Reply::integration_timeout(), Reply::throttled()]).await;
    let shelf = Shelf::default();
    let client = rig.builder().max_attempts(1).dead_letter_sink(shelf.clone()).build().unwrap();
    let first = failed(&client, |call| call).await.dead_letter().unwrap();
    rig.clock.advance(Duration::from_secs(600));
    let again = client.replay(&first).unwrap().send().await.unwrap_err().dead_letter().unwrap();
    assert_eq!((&again.id, again.created_at), (&first.id, first.created_at));
    assert_eq!(again.first_attempt_at, first.first_attempt_at);
    assert!(again.last_attempt_at > first.last_attempt_at);
    assert_eq!((again.status, again.may_have_committed), (Some(429), true));
    assert_eq!(*shelf.0.lock().unwrap(), [first, again]);
}

/// Collects what is told on this thread until the guard is dropped.
fn listening(log: &Log) -> tracing::subscriber::DefaultGuard {
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .with_writer(log.writer());
    tracing::subscriber::set_default(subscriber.finish())
}

fn lines_with(log: &Log, text: &str) -> usize {
    log.text().lines().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn a_replay_after_the_idempotency_window_warns() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let letter = failed(&rig.client(), |call| call).await.dead_letter().unwrap();
    let log = Log::default();
    let _listening = listening(&log);
    let warnings = || lines_with(&log, "the key no longer protects");
    rig.clock.advance(Duration::from_secs(3_500));
    let _ = rig.client().replay(&letter).unwrap();
    assert_eq!(warnings(), 0);
    let short = rig.builder().idempotency_window(Duration::from_secs(600)).build().unwrap();
    let _ = short.replay(&letter).unwrap();
    assert_eq!(warnings(), 1);
    rig.clock.advance(Duration::from_secs(200));
    let _ = rig.client().replay(&letter).unwrap();
    assert_eq!(warnings(), 2);
    // A key that was never sent cannot have been forgotten.
    let never_sent = altered(&letter, |letter| letter.first_attempt_at = None);
    let _ = rig.client().replay(&never_sent).unwrap();
    assert_eq!(warnings(), 2);
}

#[tokio::test]
async fn a_sink_that_fails_hides_nothing_and_is_reported() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let client = rig.builder().dead_letter_sink(Broken).build().unwrap();
    let log = Log::default();
    let _listening = listening(&log);
    let error = failed(&client, |call| call).await;
    assert_eq!(error.stop_reason(), Some(StopReason::AttemptsExhausted));
    assert!(error.dead_letter().is_some());
    assert_eq!(lines_with(&log, "no room left"), 1);
}

#[tokio::test]
async fn letters_of_an_outage_lie_in_the_file_until_they_are_replayed() {
    let path: PathBuf = std::env::temp_dir().join(format!("eastwest-outage-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let rig = Rig::answering([Reply::hang(), Reply::unavailable()]).await;
    let sink = FileSink::open(&path).unwrap();
    let once = BreakerSettings::default().with_failures_in_row(2);
    let client =
        rig.builder().breaker(once).attempt_timeout(SHORT).dead_letter_sink(sink.clone()).build().unwrap();
    for _ in 0..3 {
        failed(&client, |call| call).await;
    }
    let letters = sink.list().await.unwrap().letters;
    assert_eq!(letters.iter().map(|letter| letter.attempts).collect::<Vec<_>>(), [2, 0, 0]);
    client.breaker().reset();
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    for letter in &letters {
        client.replay(letter).unwrap().send().await.unwrap();
        sink.acknowledge(&letter.id).await.unwrap();
    }
    assert_eq!(sink.count().await.unwrap(), 0);
    std::fs::remove_file(path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_letter_has_its_own_time_however_short_the_caller_s_was() {
    /// Takes a moment, as a disk does.
    struct Slow(Shelf);
    impl DeadLetterSink for Slow {
        fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
            std::thread::sleep(Duration::from_millis(5));
            self.0.store(letter)
        }
    }
    let gateway = FakeGateway::builder().route("POST", "/orders", [Reply::hang()]).without_socket();
    let shelf = Shelf::default();
    let client = gateway.client().dead_letter_sink(Slow(shelf.clone())).build().unwrap();
    let context = callee::accept([("x-hop-count", "1"), ("x-time-budget-ms", "1000")]).unwrap();
    let error = client.post(&context, "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Timeout, 1));
    let stored: Vec<_> = shelf.0.lock().unwrap().iter().map(|letter| letter.status).collect();
    assert_eq!(stored, [None], "it is safe before the call ends");
}
