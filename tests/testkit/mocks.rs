//! The adapters for wiremock: what they match, and that they answer as the gateway does.

use eastwest::testing::wiremock::{
    SignedFor, attempt, correlation_id, has_idempotency_key, hop_count, in_order, signed_for,
};
use eastwest::testing::{FakeGateway, GatewayResponse, ManualClock, PathEncoding, Reply, VerifierSettings};
use eastwest::{CallContext, ClientBuilder, Error, ErrorKind, RetryBudget, ServiceClient};
use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, ResponseTemplate};

/// Not a word that an answer holds: what holds the session token is not shown.
const TOKEN: &str = "SessionOfTheMocks";

fn client(server: &MockServer, clock: &ManualClock) -> ClientBuilder {
    ServiceClient::builder(format!("{}/prod", server.uri()))
        .region("eu-central-1")
        .static_credentials("AKIDEXAMPLE", "secret", Some(TOKEN))
        .retry_budget(RetryBudget::off())
        .ambient(clock.clone())
}

#[tokio::test]
async fn the_client_of_a_matcher_is_the_one_that_it_expects() {
    let (server, clock) = (MockServer::start().await, ManualClock::new());
    for signed in [
        signed().session_token(TOKEN).clock(&clock),
        signed(),
        SignedFor::by(VerifierSettings::new("eu-west-1", "lambda").credentials("AKIDOTHER", "other", None)),
    ] {
        server.reset().await;
        let mock = Mock::given(wiremock::matchers::path("/prod/orders")).and(signed.clone());
        mock.respond_with(Reply::ok()).expect(1).mount(&server).await;
        let client = signed.client(&server).build().unwrap();
        client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert!(signed.reports().is_empty(), "{}", signed.reports().join("\n"));
    }
}

/// One request of a client, as wiremock sees it.
async fn request(clock: &ManualClock) -> Request {
    let server = MockServer::start().await;
    let context = eastwest::callee::accept([("x-hop-count", "2"), ("x-correlation-id", "chain-1")]).unwrap();
    let call = client(&server, clock).build().unwrap().post(&context, "/a b/é").query("q", "x & y+z");
    call.json(&["A-7"]).send().await.unwrap_err();
    server.received_requests().await.unwrap().remove(0)
}

fn signed() -> SignedFor {
    signed_for("eu-central-1", "AKIDEXAMPLE", "secret")
}

#[tokio::test]
async fn a_signature_is_verified_and_what_is_wrong_with_it_reported() {
    let clock = ManualClock::new();
    let request = request(&clock).await;
    let right = || signed().session_token(TOKEN).clock(&clock);
    assert!(right().matches(&request));
    for (wrong, words) in [
        (signed_for("eu-west-1", "AKIDEXAMPLE", "secret").session_token(TOKEN).clock(&clock), "valid region"),
        (signed_for("eu-central-1", "AKIDEXAMPLE", "x").session_token(TOKEN).clock(&clock), "does not match"),
        (signed().clock(&clock), "session token"),
        (signed().session_token(TOKEN), "signature"),
    ] {
        assert!(!wrong.clone().matches(&request));
        let reports = wrong.reports().join("\n");
        assert!(reports.to_lowercase().contains(words), "{words}: {reports}");
    }
    let mut altered = request.clone();
    altered.body.push(b' ');
    assert!(!right().matches(&altered));
    let settings = VerifierSettings::new("eu-central-1", "execute-api");
    let settings =
        settings.credentials("AKIDEXAMPLE", "secret", Some(TOKEN)).path_encoding(PathEncoding::Single);
    let once = SignedFor::by(settings).clock(&clock);
    assert!(!once.matches(&request));
    assert!(once.reports()[0].contains("likely cause: the path was encoded twice"), "{:?}", once.reports());
}

#[tokio::test]
async fn matchers_match_what_the_client_sent_once_and_nothing_else() {
    let request = request(&ManualClock::new()).await;
    assert!(hop_count(3).matches(&request) && !hop_count(2).matches(&request));
    assert!(correlation_id("chain-1").matches(&request) && !correlation_id("chain").matches(&request));
    assert!(attempt(1).matches(&request) && !attempt(2).matches(&request));
    assert!(has_idempotency_key().matches(&request));
    let with_key = |keys: &[&str]| {
        let mut altered = request.clone();
        altered.headers.remove("x-idempotency-key");
        for key in keys {
            altered.headers.append("x-idempotency-key", key.parse().unwrap());
        }
        altered
    };
    for keys in [&[][..], &[""], &["two words"], &["a", "a"], &[&"k".repeat(256)]] {
        assert!(!has_idempotency_key().matches(&with_key(keys)), "{keys:?}");
    }
}

#[tokio::test]
async fn every_answer_of_the_gateway_is_a_responder_that_answers_as_the_gateway_does() {
    let (server, clock) = (MockServer::start().await, ManualClock::new());
    for kind in GatewayResponse::ALL {
        server.reset().await;
        Mock::given(any()).respond_with(kind.reply()).mount(&server).await;
        let gateway = FakeGateway::builder().manual_clock(&clock).route("POST", "/x", [kind.reply()]);
        let gateway = gateway.without_socket();
        let post = async |client: ClientBuilder| {
            let client = client.max_attempts(1).build().unwrap();
            client.post(&CallContext::root(), "/x").send().await.unwrap_err()
        };
        let told = |error: &Error| {
            let (body, class) = (String::from_utf8_lossy(error.body()).into_owned(), error.class());
            (error.kind(), class, error.status(), error.message().map(str::to_owned), body)
        };
        let (mocked, expected) = (post(client(&server, &clock)).await, post(gateway.client()).await);
        assert_eq!(told(&mocked), told(&expected), "{}", kind.as_str());
        assert!(mocked.request_id().is_some(), "{}", kind.as_str());
    }
}

#[tokio::test]
async fn responders_play_in_order_of_any_kind_and_the_last_repeats() {
    let (server, clock) = (MockServer::start().await, ManualClock::new());
    let script = in_order([Reply::throttled(), Reply::json(201, "1")]).then(ResponseTemplate::new(204));
    Mock::given(any()).respond_with(script).mount(&server).await;
    let client = client(&server, &clock).max_attempts(1).build().unwrap();
    let get =
        async || client.get(&CallContext::root(), "/x").send().await.map(|answer| answer.status().as_u16());
    assert_eq!(get().await.unwrap_err().kind(), ErrorKind::Throttled);
    for status in [201, 204, 204] {
        assert_eq!(get().await.unwrap(), status);
    }
    server.reset().await;
    Mock::given(any()).respond_with(in_order::<Reply>([])).mount(&server).await;
    assert_eq!(get().await.unwrap(), 200);
}

#[tokio::test]
async fn a_fault_that_wiremock_cannot_make_is_a_501_that_says_so() {
    let (server, clock) = (MockServer::start().await, ManualClock::new());
    for reply in [Reply::reset(), Reply::garbage(), Reply::refuse(), Reply::ok().truncate_after(3)] {
        server.reset().await;
        Mock::given(any()).respond_with(reply).mount(&server).await;
        let call = client(&server, &clock).build().unwrap().get(&CallContext::root(), "/x");
        let error = call.send().await.unwrap_err();
        assert_eq!((error.status().unwrap().as_u16(), error.attempts().len()), (501, 1));
        assert!(error.message().unwrap().contains("FakeGateway"), "{error}");
    }
}
