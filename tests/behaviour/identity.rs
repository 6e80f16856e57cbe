//! Who signs and for which user: fetched once, renewed once, and never shown.

use crate::rig::{KEY_ID, REGION, Rig, SECRET, TOKEN};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use eastwest::testing::{FakeGateway, Reply};
use eastwest::{CallContext, Error, ErrorKind, Response, ServiceClient, StopReason, UserToken};
use eastwest::{UserTokenFuture, UserTokenSource};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A provider that plays a script, the last item for ever, and counts how often it was asked.
#[derive(Clone)]
struct Provider {
    script: Arc<Mutex<Vec<Given>>>,
    asked: Arc<AtomicUsize>,
}

#[derive(Clone)]
enum Given {
    Set(&'static str, Option<SystemTime>),
    Failure,
    Nothing,
}

impl Provider {
    fn giving(script: impl Into<Vec<Given>>) -> Provider {
        Provider { script: Arc::new(Mutex::new(script.into())), asked: Arc::default() }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Provider")
    }
}

impl ProvideCredentials for Provider {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let given = {
            let mut script = self.script.lock().unwrap();
            if script.len() > 1 { script.remove(0) } else { script[0].clone() }
        };
        match given {
            Given::Set(key, expiry) => future::ProvideCredentials::ready(Ok(Credentials::new(
                key,
                SECRET,
                Some(TOKEN.to_owned()),
                expiry,
                "test",
            ))),
            Given::Failure => {
                future::ProvideCredentials::ready(Err(CredentialsError::provider_error("provider is down")))
            }
            Given::Nothing => future::ProvideCredentials::new(std::future::pending()),
        }
    }
}

/// A user's session whose token is renewed when it was refused.
struct Session {
    tokens: Mutex<Vec<&'static str>>,
    asked: AtomicUsize,
}

impl Session {
    fn with(tokens: impl Into<Vec<&'static str>>) -> Arc<Session> {
        Arc::new(Session { tokens: Mutex::new(tokens.into()), asked: AtomicUsize::new(0) })
    }
}

struct Shared(Arc<Session>);

impl UserTokenSource for Shared {
    fn user_token<'a>(&'a self, refused: Option<&'a UserToken>) -> UserTokenFuture<'a> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let mut tokens = self.0.tokens.lock().unwrap();
        if refused.is_some() && tokens.len() > 1 {
            tokens.remove(0);
        }
        let token = UserToken::new(tokens[0]);
        Box::pin(async move { Ok(token?) })
    }
}

async fn post(client: &ServiceClient) -> Result<Response, Error> {
    client.post(&CallContext::root(), "/orders").send().await
}

#[tokio::test]
async fn a_hundred_calls_ask_the_provider_once() {
    let rig = Rig::answering([Reply::ok()]).await;
    let hour = rig.clock.wall() + Duration::from_secs(3_600);
    let provider = Provider::giving([Given::Set(KEY_ID, Some(hour))]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    for _ in 0..100 {
        rig.gateway.script("POST", "/orders", [Reply::unavailable(), Reply::ok()]);
        post(&client).await.unwrap();
    }
    assert_eq!((provider.asked(), rig.seen()), (1, 200));
}

#[tokio::test]
async fn a_hundred_calls_at_once_on_an_expired_set_ask_the_provider_once() {
    let rig = Rig::answering([Reply::ok()]).await;
    let soon = rig.clock.wall() + Duration::from_secs(600);
    let later = rig.clock.wall() + Duration::from_secs(36_000);
    let provider = Provider::giving([Given::Set(KEY_ID, Some(soon)), Given::Set(KEY_ID, Some(later))]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    post(&client).await.unwrap();
    rig.clock.advance(Duration::from_secs(601));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        calls.spawn(async move { post(&client).await.map(drop) });
    }
    assert!(calls.join_all().await.into_iter().all(|result| result.is_ok()));
}

#[tokio::test]
async fn a_failed_early_refresh_keeps_the_old_set_and_spares_the_provider() {
    let rig = Rig::answering([Reply::ok()]).await;
    let minute = rig.clock.wall() + Duration::from_secs(60);
    let provider = Provider::giving([Given::Set(KEY_ID, Some(minute)), Given::Failure]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    for _ in 0..20 {
        post(&client).await.unwrap();
    }
    assert!(provider.asked() <= 2, "asked {} times", provider.asked());
}

#[tokio::test]
async fn a_provider_that_fails_is_a_typed_error_that_sends_nothing_and_fails_no_breaker() {
    let rig = Rig::answering([Reply::ok()]).await;
    let provider = Provider::giving([Given::Failure]);
    let one = eastwest::policy::breaker::BreakerSettings::default().with_failures_in_row(1);
    let client = rig.builder().credentials_provider(provider.clone()).breaker(one).build().unwrap();
    for _ in 0..10 {
        let error = post(&client).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Credentials, 0));
        assert!(!error.may_have_committed());
    }
    assert_eq!((rig.seen(), provider.asked()), (0, 1), "a failure is kept for a moment");
    assert_eq!(client.breaker().state(), eastwest::policy::breaker::State::Closed);
    rig.clock.advance(Duration::from_secs(60));
    post(&client).await.unwrap_err();
}

#[tokio::test]
async fn a_provider_that_never_answers_ends_in_the_call_s_own_time() {
    let rig = Rig::answering([Reply::ok()]).await;
    let provider = Provider::giving([Given::Nothing]);
    let one = eastwest::policy::breaker::BreakerSettings::default().with_failures_in_row(1);
    let client = rig.builder().credentials_provider(provider).breaker(one).build().unwrap();
    let call = client.post(&CallContext::root(), "/orders").attempt_timeout(Duration::from_millis(60));
    let error = call.total_timeout(Duration::from_millis(60)).send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::Credentials, 0));
    assert_eq!(client.breaker().state(), eastwest::policy::breaker::State::Closed);
}

/// A provider that takes its time, by the test's clock.
#[derive(Debug)]
struct Slow(eastwest::testing::ManualClock, Duration);

impl ProvideCredentials for Slow {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        self.0.advance(self.1);
        let set = Credentials::new(KEY_ID, SECRET, Some(TOKEN.to_owned()), None, "test");
        future::ProvideCredentials::ready(Ok(set))
    }
}

#[tokio::test]
async fn a_slow_provider_does_not_age_the_signature() {
    let rig = Rig::answering([Reply::ok()]).await;
    let minutes = Slow(rig.clock.clone(), Duration::from_secs(420));
    let client = rig.builder().credentials_provider(minutes).build().unwrap();
    client
        .get(&CallContext::root(), "/orders")
        .total_timeout(Duration::from_secs(3_600))
        .send()
        .await
        .unwrap();
    assert_eq!(rig.attempts()[0].header("x-amz-date"), Some("20261002T120700Z"));
}

#[tokio::test]
async fn a_session_that_is_over_is_renewed_once() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.gateway.accept("AKIDNEXT", SECRET, Some(TOKEN));
    let provider = Provider::giving([Given::Set(KEY_ID, None), Given::Set("AKIDNEXT", None)]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    post(&client).await.unwrap();
    rig.gateway.revoke(KEY_ID);
    let renewed = post(&client).await.unwrap();
    assert_eq!((renewed.attempts().len(), provider.asked()), (2, 2));
    assert_eq!(post(&client).await.unwrap().attempts().len(), 1);
}

#[tokio::test]
async fn the_same_pair_again_is_final_and_the_error_says_so() {
    let rig = Rig::answering([Reply::ok()]).await;
    let provider = Provider::giving([Given::Set(KEY_ID, None)]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    rig.gateway.revoke(KEY_ID);
    let error = post(&client).await.unwrap_err();
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::Credentials, Some(StopReason::RecoveryUsed)));
    assert_eq!((rig.seen(), provider.asked()), (1, 2));
    assert!(error.to_string().contains("no other credentials than the refused ones"), "{error}");
}

#[tokio::test]
async fn a_missing_route_does_not_ask_for_credentials_again() {
    let rig = Rig::answering([Reply::ok()]).await;
    let provider = Provider::giving([Given::Set(KEY_ID, None)]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    let error = client.post(&CallContext::root(), "/orderz").send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen(), provider.asked()), (ErrorKind::Route, 1, 1));
}

#[tokio::test]
async fn a_marker_against_retries_forbids_a_recovery_too() {
    let rig = Rig::answering([Reply::token_expired().header("x-should-retry", "false"), Reply::ok()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (1, Some(StopReason::CalleeForbids)));
}

#[tokio::test]
async fn a_user_token_goes_in_a_header_of_its_own_unsigned() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post_with(|call| call.user_token("user-token-1")).await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("x-user-token"), Some("user-token-1"));
    let authorization = attempt.header("authorization").unwrap();
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 ") && !authorization.contains("x-user-token"));
    let client = rig.builder().user_token_header("x-session").build().unwrap();
    client.get(&CallContext::root(), "/orders").user_token("user-token-2").send().await.unwrap();
    assert_eq!(rig.attempts().pop().unwrap().header("x-session"), Some("user-token-2"));
    assert_eq!(
        rig.builder().user_token_header("authorization").build().unwrap_err().field(),
        Some("user_token_header")
    );
    let error = rig.post_with(|call| call.user_token("two\nlines")).await.unwrap_err();
    assert_eq!((error.field(), rig.seen()), (Some("user_token"), 2));
}

#[tokio::test]
async fn a_refused_user_token_is_renewed_once() {
    let rig = Rig::answering([Reply::unauthorized(), Reply::ok()]).await;
    let session = Session::with(["old", "new"]);
    let client = rig.builder().user_token_source(Shared(session.clone())).build().unwrap();
    post(&client).await.unwrap();
    let sent: Vec<_> = rig.attempts().iter().map(|a| a.header("x-user-token").unwrap().to_owned()).collect();
    assert_eq!(sent, ["old", "new"]);
    rig.gateway.script("POST", "/orders", [Reply::unauthorized()]);
    let error = post(&client).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.stop_reason()),
        (ErrorKind::Unauthorized, Some(StopReason::RecoveryUsed))
    );
    assert_eq!(rig.seen(), 3, "there is no third token, so nothing was sent again");
}

#[tokio::test]
async fn a_token_source_that_fails_sends_nothing() {
    struct Broken;
    impl UserTokenSource for Broken {
        fn user_token<'a>(&'a self, _: Option<&'a UserToken>) -> UserTokenFuture<'a> {
            Box::pin(async { Err("the login service is down".into()) })
        }
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let error = post(&rig.builder().user_token_source(Broken).build().unwrap()).await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::Credentials, 0));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the login service is down");
}

#[tokio::test]
async fn warming_up_fetches_credentials_and_opens_the_connection_that_the_first_call_uses() {
    let rig = Rig::answering([Reply::ok()]).await;
    let provider = Provider::giving([Given::Set(KEY_ID, None)]);
    let client = rig.builder().credentials_provider(provider.clone()).build().unwrap();
    client.warm_up(Duration::from_secs(1)).await.unwrap();
    let warmed = rig.gateway.attempts();
    assert_eq!((provider.asked(), warmed.len(), rig.gateway.connections()), (1, 1, 1));
    assert_eq!((warmed[0].method(), warmed[0].header("authorization")), ("HEAD", None));
    post(&client).await.unwrap();
    assert_eq!((provider.asked(), rig.gateway.connections()), (1, 1));
    let down = rig.builder().credentials_provider(Provider::giving([Given::Failure])).build().unwrap();
    assert_eq!(down.warm_up(Duration::from_secs(1)).await.unwrap_err().kind(), ErrorKind::Credentials);
}

#[tokio::test]
async fn the_region_of_the_signature_is_the_configured_one_whatever_the_host() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.post().await.unwrap();
    let authorization = rig.attempts()[0].header("authorization").unwrap().to_owned();
    assert!(authorization.contains(&format!("/{REGION}/execute-api/aws4_request")), "{authorization}");
}

#[tokio::test(start_paused = true)]
async fn a_401_of_which_neither_side_can_be_renewed_ends_in_the_call_s_time() {
    struct Hangs;
    impl UserTokenSource for Hangs {
        fn user_token<'a>(&'a self, refused: Option<&'a UserToken>) -> UserTokenFuture<'a> {
            Box::pin(async move {
                match refused {
                    Some(_) => std::future::pending().await,
                    None => Ok(UserToken::new("first")?),
                }
            })
        }
    }
    let script = [Reply::ok(), Reply::unauthorized()];
    let gateway = FakeGateway::builder().credentials(KEY_ID, SECRET, Some(TOKEN)).region(REGION);
    let gateway = gateway.route("POST", "/orders", script).without_socket();
    let provider = Provider::giving([Given::Set(KEY_ID, None), Given::Nothing]);
    let builder = gateway.client().credentials_provider(provider).user_token_source(Hangs);
    let client = builder.total_timeout(Duration::from_secs(10)).build().unwrap();
    let post = || client.post(&CallContext::root(), "/orders").send();
    post().await.unwrap();
    // Credentials that were loaded a moment ago are not asked for again.
    tokio::time::advance(Duration::from_secs(600)).await;
    let error = post().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.stop_reason()),
        (ErrorKind::Unauthorized, Some(StopReason::RecoveryUsed))
    );
    assert!(error.elapsed() <= Duration::from_secs(10), "{:?}", error.elapsed());
}

#[tokio::test]
async fn region_and_credentials_are_those_of_an_aws_configuration_where_it_has_them() {
    let rig = Rig::answering([Reply::ok()]).await;
    let keys = Credentials::new(KEY_ID, SECRET, Some(TOKEN.to_owned()), None, "test");
    let config = aws_config::SdkConfig::builder()
        .region(aws_config::Region::new(REGION))
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .build();
    let over =
        |config| ServiceClient::from_aws_config(rig.gateway.base_url(), config).ambient(rig.clock.clone());
    over(&config).build().unwrap().get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(rig.attempts().len(), 1);
    let empty = aws_config::SdkConfig::builder().build();
    assert_eq!(over(&empty).build().unwrap_err().field(), Some("region"));
    assert_eq!(over(&empty).region(REGION).build().unwrap_err().field(), Some("credentials"));
}
