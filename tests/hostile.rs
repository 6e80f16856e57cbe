//! What a hostile answer, a careless setting or a bad moment cannot do. Each of these could once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "faults of time need times to be wrong by; no test depends on their values"
)]

#[path = "support/log.rs"]
mod log;

use aws_credential_types::provider::{ProvideCredentials, future};
use eastwest::policy::backoff::Backoff;
use eastwest::policy::breaker::BreakerSettings;
use eastwest::policy::moment::{Draw, Moment};
use eastwest::policy::refine::Verdict;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::testing::{Ambient, FakeGateway, Reply};
use eastwest::{
    CallContext, Class, ClientBuilder, ErrorKind, ServiceClient, StopReason, UserToken, UserTokenFuture,
    UserTokenSource,
};
use http::StatusCode;
use log::Log;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;

const KEY: &str = "AKIDHOSTILE";
const SECRET: &str = "hostile-secret";
const TOKEN: &str = "IQoJb3JpZ2luX2VjE/abc+def==";
const REGION: &str = "eu-central-1";
const MS: Duration = Duration::from_millis(1);

fn builder(url: impl Into<String>) -> ClientBuilder {
    let never = BreakerSettings::default().with_failures_in_row(1_000).with_minimum_outcomes(1_000);
    ServiceClient::builder(url)
        .region(REGION)
        .static_credentials(KEY, SECRET, Some(TOKEN))
        .max_attempts(4)
        .backoff(Backoff::new(MS, MS, 2 * MS))
        .retry_budget(RetryBudget::off())
        .breaker(never)
}

fn root() -> CallContext {
    CallContext::root()
}

async fn gateway(script: impl IntoIterator<Item = Reply>) -> FakeGateway {
    FakeGateway::builder()
        .credentials(KEY, SECRET, Some(TOKEN))
        .region(REGION)
        .route("ANY", "/orders", script)
        .start()
        .await
        .unwrap()
}

fn subscriber(log: &Log) -> impl tracing::Subscriber + Send + Sync + 'static {
    tracing_subscriber::fmt().with_ansi(false).with_writer(log.writer()).finish()
}

/// One failed call whose answer bears this request id, and what was logged of it.
fn logged_with_request_id(id: &str) -> String {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(subscriber(&log));
    let call = || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let gateway = gateway([Reply::json(400, "{}").header("x-amzn-requestid", id)]).await;
            let client = builder(gateway.base_url()).build().unwrap();
            client.post(&root(), "/orders").user_token("Bearer the-user-s-token").send().await.unwrap_err();
        });
    };
    // Another test's thread may have been the first at an event, with nobody listening, and that is remembered.
    call();
    tracing::callsite::rebuild_interest_cache();
    log.clear();
    call();
    log.text()
}

#[test]
fn no_header_of_an_answer_carries_a_secret_into_the_log() {
    for secret in ["Bearer the-user-s-token", TOKEN] {
        let text = logged_with_request_id(secret);
        assert!(text.contains("rejected") && !text.contains(secret), "{text}");
    }
}

#[test]
fn a_request_id_is_bounded_before_it_is_logged() {
    let text = logged_with_request_id(&"z".repeat(200_000));
    assert!(text.contains("rejected") && text.len() < 5_000, "{} bytes", text.len());
}

struct Looker(Arc<Mutex<Option<ServiceClient>>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Looker {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let client = self.0.lock().unwrap().clone();
        if let Some(client) = client.filter(|_| event.metadata().target().starts_with("eastwest")) {
            let _ = client.breaker().state();
        }
    }
}

#[test]
fn a_subscriber_may_look_at_the_breaker_when_the_circuit_opens() {
    let (done, waits) = mpsc::channel();
    std::thread::spawn(move || {
        let held: Arc<Mutex<Option<ServiceClient>>> = Arc::default();
        let _guard =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(Looker(held.clone())));
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let gateway = gateway([Reply::unavailable()]).await;
            let opens = BreakerSettings::default().with_failures_in_row(1);
            let client = builder(gateway.base_url()).breaker(opens).build().unwrap();
            *held.lock().unwrap() = Some(client.clone());
            client.post(&root(), "/orders").send().await.unwrap_err();
            done.send(()).unwrap();
        });
    });
    assert_eq!(waits.recv_timeout(Duration::from_secs(5)), Ok(()), "the call never ends");
}

#[tokio::test]
async fn a_verdict_of_success_never_hands_out_a_cut_body() {
    let big = "x".repeat(200_000);
    let success = Verdict::Class(Class::Success);
    for (what, reply) in [
        ("a 500 over what is kept of an error", Reply::status(500).body(big.clone())),
        ("a 200 over the limit", Reply::status(200).body(big.clone())),
        ("a 404 that broke off", Reply::status(404).body(big.clone()).truncate_after(10)),
    ] {
        let gateway = gateway([reply]).await;
        let client = builder(gateway.base_url())
            .response_body_limit(100_000)
            .on_status(StatusCode::INTERNAL_SERVER_ERROR, success)
            .on_status(StatusCode::OK, success)
            .on_status(StatusCode::NOT_FOUND, success)
            .build()
            .unwrap();
        let cut = client.post(&root(), "/orders").send().await.map(|answer| answer.body().len());
        assert!(cut.is_err(), "{what}: Ok with {cut:?} of 200,000 bytes");
    }
}

#[tokio::test]
async fn a_name_never_serves_for_the_key_and_for_the_user_s_token() {
    for (key, token) in
        [("x-user-token", "x-user-token"), ("x-idempotency-key", "x-idempotency-key"), ("x-same", "x-same")]
    {
        let gateway = gateway([Reply::integration_timeout(), Reply::ok()]).await;
        let built = builder(gateway.base_url()).idempotency_header(key).user_token_header(token).build();
        let Ok(client) = built else { continue };
        let call = client.post(&root(), "/orders").idempotency_key("the-key").user_token("the-token");
        call.send().await.unwrap();
        let attempts = gateway.attempts();
        let keyed = attempts.iter().all(|a| a.header_lines().iter().any(|line| line.contains("the-key")));
        assert!(keyed, "{key}: a POST went out {} times after a 504, never with its key", attempts.len());
    }
}

#[tokio::test]
async fn a_header_with_a_meaning_of_its_own_is_no_name_for_key_or_token() {
    for name in
        ["content-type", "x-apigw-api-id", "x-amzn-trace-id", "traceparent", "content-encoding", "date"]
    {
        let url = "https://api.example.test/prod";
        assert!(builder(url).idempotency_header(name).build().is_err(), "key: {name}");
        assert!(builder(url).user_token_header(name).build().is_err(), "token: {name}");
    }
}

#[tokio::test]
async fn no_number_of_headers_panics() {
    let gateway = gateway([Reply::ok()]).await;
    let client = builder(gateway.base_url()).build().unwrap();
    let call = tokio::spawn(async move {
        let call =
            (0..30_000).fold(client.get(&root(), "/orders"), |call, n| call.header(format!("x-h{n}"), "v"));
        call.send().await.map(|_| ())
    });
    assert_eq!(call.await.expect("no panic").unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn no_pool_idle_timeout_panics() {
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(
            usize::from(info.to_string().contains("adding duration to instant")),
            Ordering::SeqCst,
        );
        before(info);
    }));
    let gateway = gateway([Reply::ok()]).await;
    let client = builder(gateway.base_url()).pool_idle_timeout(Duration::MAX).build().unwrap();
    client.get(&root(), "/orders").send().await.unwrap();
    tokio::time::sleep(20 * MS).await;
    assert_eq!(panics.load(Ordering::SeqCst), 0, "a task of the HTTP client panicked");
}

#[tokio::test]
async fn an_error_s_body_that_holds_the_user_s_token_is_cut_however_it_is_spelt() {
    let bare = "eyJhbGciOi.JIUzI1NiJ9+x/y.sig";
    let with_scheme = format!("Bearer {bare}");
    for (what, body) in [
        ("without its scheme", format!(r#"{{"message":"token {bare} is bad"}}"#)),
        ("as a code", format!(r#"{{"code":"{bare}"}}"#)),
        ("with escaped slashes", format!(r#"{{"message":"{} is bad"}}"#, with_scheme.replace('/', "\\/"))),
        (
            "with an escaped plus",
            format!(r#"{{"message":"{} is bad"}}"#, with_scheme.replace('+', "\\u002B")),
        ),
    ] {
        let gateway = gateway([Reply::json(400, body)]).await;
        let client = builder(gateway.base_url()).build().unwrap();
        let error = client.post(&root(), "/orders").user_token(&with_scheme).send().await.unwrap_err();
        let body: serde_json::Value = error.json().unwrap_or_default();
        let kept = format!("{:?} {:?} {body}", error.message(), error.code());
        assert!(!kept.contains(bare), "{what}: {kept}");
    }
}

#[tokio::test]
async fn that_the_work_may_have_been_done_is_not_undone_by_a_verdict() {
    let gateway = gateway([Reply::integration_timeout()]).await;
    let throttled = Verdict::Class(Class::Throttled);
    let client =
        builder(gateway.base_url()).on_status(StatusCode::GATEWAY_TIMEOUT, throttled).build().unwrap();
    let error = client.post(&root(), "/orders").no_idempotency_key().send().await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert!(error.may_have_committed(), "a 504: {error}");
    gateway.script("ANY", "/orders", [Reply::json(200, r#"{"error":"later"}"#)]);
    let client = builder(gateway.base_url()).on_status(StatusCode::OK, throttled).build().unwrap();
    let error = client.post(&root(), "/orders").send().await.unwrap_err();
    assert!(error.may_have_committed(), "a 200: {error}");
}

#[tokio::test]
async fn an_answer_with_more_header_lines_than_are_read_is_no_lost_one_and_is_not_asked_for_again() {
    let reply = (0..150).fold(Reply::ok(), |reply, n| reply.header(format!("x-h{n}"), "v"));
    let gateway = gateway([reply]).await;
    let once = BreakerSettings::default().with_failures_in_row(1);
    let client = builder(gateway.base_url()).breaker(once).build().unwrap();
    let error = client.post(&root(), "/orders").send().await.unwrap_err();
    assert_eq!((gateway.attempts().len(), error.kind()), (1, ErrorKind::TooLarge));
    assert!(error.may_have_committed(), "it was carried out, most likely");
    assert_eq!(client.breaker().retry_after(), None, "and the callee is well");
}

#[tokio::test]
async fn a_warm_up_that_got_no_connection_says_so() {
    // Takes the connection and never speaks TLS: no connection, as `connect_timeout` counts it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/prod", listener.local_addr().unwrap());
    let client = builder(url).connect_timeout(Duration::from_secs(1)).build().unwrap();
    assert!(client.warm_up(100 * MS).await.is_err());
}

#[tokio::test]
async fn a_call_s_own_rule_beats_the_client_s_classifier() {
    let gateway = gateway([Reply::unavailable()]).await;
    let client =
        builder(gateway.base_url()).classifier(|_| Verdict::Class(Class::Unavailable)).build().unwrap();
    let call = client.post(&root(), "/orders").on_status(StatusCode::SERVICE_UNAVAILABLE, Verdict::Stop);
    let error = call.send().await.unwrap_err();
    assert_eq!((gateway.attempts().len(), error.stop_reason()), (1, Some(StopReason::NotRetryable)));
}

#[tokio::test]
async fn an_api_id_that_is_given_twice_is_refused_and_never_sent_unsigned() {
    let gateway = gateway([Reply::ok()]).await;
    let client = builder(gateway.base_url()).build().unwrap();
    let call = client.get(&root(), "/orders").header("x-apigw-api-id", "one").header("x-apigw-api-id", "two");
    let got = call.send().await;
    let signed =
        gateway.attempts().iter().all(|a| a.header("authorization").unwrap().contains("x-apigw-api-id"));
    assert!(got.is_err() || signed, "sent twice, signed not once");
}

#[test]
fn settings_under_which_no_attempt_could_begin_are_refused() {
    let url = "https://api.example.test/prod";
    let second = Duration::from_secs(1);
    assert!(builder(url).total_timeout(second).min_attempt_time(2 * second).build().is_err());
    // `standard` asks for 50 ms for an attempt to begin.
    assert!(builder(url).total_timeout(40 * MS).build().is_err());
}

/// A clock that moves at each look.
struct Creeping(Mutex<Moment>, Duration);

impl Ambient for Creeping {
    fn now(&self) -> Moment {
        let mut now = self.0.lock().unwrap();
        now.monotonic += self.1;
        now.wall += self.1;
        *now
    }

    fn draw(&self) -> Draw {
        Draw::LOWEST
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn an_open_circuit_always_says_when_to_come_back() {
    let gateway = gateway([Reply::unavailable()]).await;
    let now = Moment { monotonic: Instant::now(), wall: SystemTime::now() };
    let open = BreakerSettings::default().with_failures_in_row(1).with_jitter_percent(0);
    let client = builder(gateway.base_url())
        .breaker(open.with_open_for(100 * MS).with_open_cap(100 * MS))
        .max_attempts(1)
        .ambient(Arc::new(Creeping(Mutex::new(now), 23 * MS)))
        .build()
        .unwrap();
    for n in 0..10 {
        let error = client.post(&root(), "/orders").send().await.unwrap_err();
        assert!(!error.is_circuit_open() || error.retry_after().is_some(), "call {n}: {error}");
    }
}

#[tokio::test]
async fn where_circuit_and_time_both_stop_a_call_the_circuit_is_told() {
    let gateway = gateway([Reply::ok()]).await;
    let client = builder(gateway.base_url()).build().unwrap();
    client.breaker().force_open();
    let call = client.post(&root().with_deadline(Instant::now()), "/orders");
    assert_eq!(call.send().await.unwrap_err().stop_reason(), Some(StopReason::CircuitOpen));
}

struct OnceThenFails(AtomicUsize);

impl UserTokenSource for OnceThenFails {
    fn user_token<'a>(&'a self, _: Option<&'a UserToken>) -> UserTokenFuture<'a> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { if asked == 0 { Ok(UserToken::new("t")?) } else { Err("gone".into()) } })
    }
}

#[tokio::test]
async fn an_identity_that_fails_on_a_retry_hides_nothing_of_the_last_outcome() {
    let gateway = gateway([Reply::unavailable().header("retry-after", "1")]).await;
    let source = OnceThenFails(AtomicUsize::new(0));
    let client = builder(gateway.base_url()).user_token_source(source).build().unwrap();
    let error = client.post(&root(), "/orders").send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status()),
        (ErrorKind::Credentials, Some(StatusCode::SERVICE_UNAVAILABLE))
    );
    let told = (error.class(), error.retry_after());
    assert_eq!(told, (Some(Class::Unavailable), Some(Duration::from_secs(1))));
}

#[tokio::test]
async fn a_line_blames_the_request_or_asks_to_look_up_only_where_that_is_so() {
    let gateway = gateway([Reply::unavailable()]).await;
    let client = builder(gateway.base_url()).build().unwrap();
    let line = client.post(&root(), "/orders").send().await.unwrap_err().to_string();
    assert!(!line.contains("this request may be at fault"), "{line}");
    let line = client.get(&root(), "/orders").send().await.unwrap_err().to_string();
    assert!(!line.contains("look it up before you send again"), "{line}");
}

#[derive(Debug)]
struct Hangs;

impl ProvideCredentials for Hangs {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(std::future::pending())
    }
}

#[tokio::test]
async fn a_provider_that_hangs_is_never_told_as_a_missing_user_token() {
    for n in 0..20 {
        let client = ServiceClient::builder("http://127.0.0.1:9/")
            .region(REGION)
            .credentials_provider(Hangs)
            .min_attempt_time(MS)
            .total_timeout(Duration::from_micros(5_000 + 97 * n))
            .build()
            .unwrap();
        let line = client.get(&root(), "/orders").send().await.unwrap_err().to_string();
        assert!(!line.contains("user token"), "call {n}: {line}");
    }
}

#[tokio::test]
async fn the_debug_of_what_a_classifier_sees_shows_neither_body_nor_header_values() {
    let printed: Arc<Mutex<String>> = Arc::default();
    let print = Arc::clone(&printed);
    let gateway = gateway([Reply::json(400, "body-mark").header("set-cookie", "cookie-mark")]).await;
    let client = builder(gateway.base_url())
        .classifier(move |seen| {
            *print.lock().unwrap() = format!("{seen:?}");
            Verdict::Defer
        })
        .build()
        .unwrap();
    client.post(&root(), "/orders").send().await.unwrap_err();
    let text = printed.lock().unwrap().clone();
    assert!(
        !text.contains("cookie-mark") && !text.contains(&format!("{:?}", b"body-mark".as_slice())),
        "{text}"
    );
}

/// Gives one set that lasts an hour, and from then on fails or hangs.
#[derive(Debug)]
struct Outage {
    asked: AtomicUsize,
    hangs: bool,
}

impl ProvideCredentials for Outage {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        use aws_credential_types::{Credentials, provider::error::CredentialsError};
        let first = self.asked.fetch_add(1, Ordering::SeqCst) == 0;
        let hour = SystemTime::now() + Duration::from_secs(3_600);
        future::ProvideCredentials::new(async move {
            match (first, self.hangs) {
                (true, _) => Ok(Credentials::new(KEY, SECRET, Some(TOKEN.to_owned()), Some(hour), "outage")),
                (false, true) => std::future::pending().await,
                (false, false) => Err(CredentialsError::provider_error("out of order")),
            }
        })
    }
}

fn with_outage(url: String, hangs: bool) -> ServiceClient {
    let provider = Outage { asked: AtomicUsize::new(0), hangs };
    let fast = Backoff::new(MS, MS, MS);
    ServiceClient::builder(url).region(REGION).backoff(fast).credentials_provider(provider).build().unwrap()
}

#[tokio::test]
async fn after_a_mismatch_the_call_is_sent_again_whatever_the_provider_says() {
    let gateway = gateway([Reply::signature_mismatch(), Reply::ok()]).await;
    let client = with_outage(gateway.base_url(), false);
    let got = client.post(&root(), "/orders").send().await;
    assert!(got.is_ok(), "{} attempts: {got:?}", gateway.attempts().len());
}

#[tokio::test]
async fn a_401_or_a_mismatch_takes_no_valid_credentials_from_other_calls() {
    let mut broken = Vec::new();
    for (what, refusal) in [("401", Reply::unauthorized()), ("mismatch", Reply::signature_mismatch())] {
        for hangs in [false, true] {
            let gateway = gateway([refusal.clone()]).await;
            gateway.script("GET", "/other", [Reply::ok()]);
            let client = with_outage(gateway.base_url(), hangs);
            client.get(&root(), "/other").send().await.unwrap();
            let refused = client.post(&root(), "/orders").total_timeout(500 * MS).send();
            let other = async {
                gateway.wait_for_attempts(2).await;
                tokio::time::sleep(100 * MS).await;
                client.get(&root(), "/other").total_timeout(300 * MS).send().await
            };
            let (_, other) = tokio::join!(refused, other);
            if let Err(error) = other {
                broken.push(format!("{what}, provider hangs: {hangs}: {error}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Gives another set each time, as a role that is assumed does.
#[derive(Debug)]
struct Assumes(Arc<AtomicUsize>);

impl ProvideCredentials for Assumes {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        let hour = SystemTime::now() + Duration::from_secs(3_600);
        let set = aws_credential_types::Credentials::new(
            format!("AKID{asked}"),
            SECRET,
            None,
            Some(hour),
            "assumes",
        );
        future::ProvideCredentials::ready(Ok(set))
    }
}

#[tokio::test]
async fn the_bad_tokens_of_end_users_do_not_drive_the_credentials_provider() {
    let asked = Arc::new(AtomicUsize::new(0));
    let gateway = FakeGateway::builder()
        .verify_signatures(false)
        .route("ANY", "/orders", [Reply::unauthorized()])
        .start()
        .await
        .unwrap();
    let provider = Assumes(Arc::clone(&asked));
    let client = ServiceClient::builder(gateway.base_url())
        .region(REGION)
        .credentials_provider(provider)
        .build()
        .unwrap();
    for n in 0..20 {
        client.post(&root(), "/orders").user_token(format!("bad-{n}")).send().await.unwrap_err();
    }
    let (asked, sent) = (asked.load(Ordering::SeqCst), gateway.attempts().len());
    assert!(asked <= 3, "asked {asked} times in a moment, for 20 calls that were sent {sent} times");
}
