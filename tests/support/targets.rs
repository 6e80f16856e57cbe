//! What meets bytes from outside, each with what must hold whatever they are: for the fuzzer, and for the corpus it left.

use eastwest::bytes::Bytes;
use eastwest::callee::{self, Guard};
use eastwest::dead_letter::DeadLetter;
use eastwest::policy::attempts::{Attempts, Decision, Terms};
use eastwest::policy::backoff::Backoff;
use eastwest::policy::breaker::Effect;
use eastwest::policy::gateway::{ErrorBody, GatewayError, clean, first_sentence, request_id};
use eastwest::policy::moment::Draw;
use eastwest::policy::outcome::{Answer, Outcome};
use eastwest::policy::retry_after::{self, Hint};
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::policy::time_budget::TimeBudget;
use eastwest::testing::{
    Ambient, Delivery, ManualClock, Network, Outgoing, RawRequest, VerifierSettings, verify,
};
use eastwest::{
    AttemptSigner, CallContext, IdempotencyKey, MAX_HOPS, QuotaHeaders, RateLimit, Reset, ServiceClient,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

/// A target's name, and what it does with bytes.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All of them. A target's corpus is the directory of its name.
pub(crate) const TARGETS: [Target; 9] = [
    ("answer", answer),
    ("chain", chain),
    ("event", event),
    ("exchange", exchange),
    ("ids", ids),
    ("letter", letter),
    ("request", request),
    ("retry_after", hint),
    ("target", target),
];

/// An answer of the gateway: two bytes of status, header lines up to an empty one, the body.
pub(crate) fn answer(data: &[u8]) {
    let [high, low, rest @ ..] = data else { return };
    let number = u16::from_be_bytes([*high, *low]) % 900 + 100;
    let Ok(status) = StatusCode::from_u16(number) else { return };
    let (headers, body) = head_and_body(rest);
    let named = GatewayError::read(status, &headers);
    let read = ErrorBody::read(&headers, body);
    if let Some(message) = &read.message {
        assert!(message.chars().count() <= 600 && !message.chars().any(char::is_control), "{message:?}");
        assert!(message.starts_with(first_sentence(message)));
    }
    if let Some(code) = &read.code {
        assert!(!code.chars().any(char::is_control), "{code:?}");
    }
    if let Some(id) = request_id(&headers) {
        assert!(id.len() <= 256 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
    }
    assert!(!clean(&String::from_utf8_lossy(body), 64).chars().any(char::is_control));
    for repeatable in [true, false] {
        decide(status, &headers, body, repeatable, named);
    }
}

/// Whatever an answer says, the table's promises hold for what is done about it.
fn decide(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    repeatable: bool,
    named: Option<GatewayError>,
) {
    let terms = Terms {
        max_attempts: 5,
        attempt_timeout: Duration::from_secs(4),
        backoff: Backoff::new(Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(2)),
        server_error_retries: 2,
        bad_gateway_retries: 1,
        refinements: Arc::default(),
        repeatable,
    };
    let now = CLOCK.now();
    let time = TimeBudget::new(now.monotonic, Duration::from_secs(60), None, Duration::from_millis(50));
    let mut attempts = Attempts::new(&terms, time);
    attempts.begin(now.monotonic);
    let shown = Outcome::Answered(Answer {
        status,
        headers,
        body,
        oversized: false,
        broken: false,
        clock_gap: None,
        signature_age: None,
        gateway_now: now.wall,
    });
    let budget = RetryBudget::off();
    let decision = attempts.observe(&shown, now.monotonic, Draw::LOWEST, &budget, |effect| {
        assert!(effect != Effect::Success || status.is_success(), "{status} is no success");
        false
    });
    let forbidden = headers.get_all("x-should-retry").iter().any(|value| value == "false");
    match decision {
        Decision::Return => assert!(status.is_success(), "{status}"),
        Decision::Retry(wait, _) => {
            assert!(!forbidden && !status.is_success() && !status.is_redirection(), "{status}");
            assert!(repeatable || !attempts.may_have_committed(), "{status} {named:?} without a key");
            assert!(wait >= retry_after::read(headers, now.wall).duration().unwrap_or_default());
            assert!(wait <= Duration::from_secs(60));
        }
        Decision::Recover(_) => assert!(!forbidden && matches!(status.as_u16(), 401 | 403), "{status}"),
        _ => {}
    }
}

/// The same as a whole client meets it, on every attempt, quota headers and all: what is told of it is what it said.
pub(crate) fn exchange(data: &[u8]) {
    let [high, low, rest @ ..] = data else { return };
    let number = u16::from_be_bytes([*high, *low]) % 900 + 100;
    let (headers, body) = head_and_body(rest);
    let mut said = Response::new(Bytes::copy_from_slice(body));
    *said.status_mut() = StatusCode::from_u16(number).unwrap();
    *said.headers_mut() = headers;
    let clock = ManualClock::new();
    let quota = match number % 3 {
        0 => QuotaHeaders::ietf(),
        1 => QuotaHeaders::x_ratelimit(Reset::PointInTime),
        _ => QuotaHeaders::x_ratelimit(Reset::SecondsFromNow),
    };
    let client = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
        .region("eu-central-1")
        .static_credentials("AKIDEXAMPLE", "secret", Some("SESSION/TOKEN+1"))
        .ambient(clock.clone())
        .exchange_with(Says(said.clone()))
        .rate_limit(RateLimit::per_second(1_000).quota_headers(quota))
        .build()
        .unwrap();
    let call = client.post(&CallContext::root(), "/orders").body("{}").send();
    let waited = || clock.waits().iter().sum::<Duration>();
    let error = match RUNTIME.block_on(call) {
        Ok(answer) => {
            assert!(answer.status().is_success() && answer.status() == said.status());
            assert_eq!((answer.headers(), answer.body()), (said.headers(), said.body()));
            return;
        }
        Err(error) => error,
    };
    assert!((1..=4).contains(&error.attempts().len()), "{error}");
    assert!(waited() <= Duration::from_secs(10) && error.elapsed() <= Duration::from_secs(10), "{error}");
    assert!(!error.to_string().chars().any(char::is_control), "{error}");
    assert!(!format!("{error} {error:?}").contains("SESSION/TOKEN+1"));
    for (name, value) in error.headers().into_iter().flatten() {
        assert!(said.headers().get_all(name).iter().any(|given| given == value), "{name}");
    }
    assert!(error.to_response().status().is_client_error() || error.to_response().status().is_server_error());
    if let Some(letter) = error.dead_letter() {
        serde_json::to_vec(&letter).unwrap();
    }
}

/// A network that always says the same.
struct Says(Response<Bytes>);

impl Network for Says {
    fn exchange<'a>(
        &'a self,
        _: Outgoing,
        _: Duration,
        _: &'a dyn Ambient,
    ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>> {
        Box::pin(async { Delivery::Answered(self.0.clone()) })
    }
}

/// `Retry-After` and `Date`, each on as many lines as there are.
pub(crate) fn hint(data: &[u8]) {
    let (headers, _) = head_and_body(data);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    if let Hint::After(least) = retry_after::read(&headers, now) {
        assert!(!least.is_zero());
        for draw in [Draw::LOWEST, Draw::HIGHEST] {
            let wait = retry_after::wait(least, draw);
            assert!(wait >= least && wait <= least.saturating_add(Duration::from_secs(5)));
        }
    }
}

/// Headers of an inbound request, as pairs of any bytes: what is accepted can be sent on.
pub(crate) fn chain(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n');
    let pairs: Vec<(String, &[u8])> = lines
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b':')?;
            Some((String::from_utf8_lossy(&line[..at]).into_owned(), &line[at + 1..]))
        })
        .collect();
    let told = callee::accept(pairs.iter().map(|(name, value)| (name, value)));
    match told {
        Ok(context) => sendable(&context),
        Err(refusal) => {
            assert!(refusal.to_response().headers()["x-should-retry"] == "false");
            assert!(matches!(refusal.status().as_u16(), 400 | 503 | 508));
        }
    }
    if let Ok(context) = callee::accept_front_door(pairs) {
        sendable(&context);
    }
}

/// A Lambda event of any shape.
pub(crate) fn event(data: &[u8]) {
    let Ok(event) = serde_json::from_slice(data) else { return };
    match Guard::new().accept_event(&event) {
        Ok(context) => sendable(&context),
        Err(refusal) => assert!(refusal.to_proxy_reply()["statusCode"].is_u64()),
    }
}

/// Every accepted context makes a valid outbound request.
fn sendable(context: &CallContext) {
    assert!(context.hop() < MAX_HOPS);
    assert!(HeaderValue::from_str(context.correlation_id()).is_ok());
    assert!((1..=128).contains(&context.correlation_id().len()));
    if let Some(key) = context.inbound_idempotency_key() {
        assert!(HeaderValue::from_str(key.as_str()).is_ok());
        assert_eq!(context.derive_key("label").ok(), context.derive_key("label").ok());
    }
    for (name, value) in context.trace_headers() {
        assert!(value.len() <= 8_192, "{name}");
    }
    if context.next_hop().is_ok() {
        drop(CLIENT.post(context, "/orders").header("tenant", "t-1").json(&[1]));
    }
}

/// Keys and ids.
pub(crate) fn ids(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let well_formed = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    assert_eq!(IdempotencyKey::new(&text).is_ok(), well_formed, "{text:?}");
    let derived = IdempotencyKey::derive([data]);
    assert_eq!(derived, IdempotencyKey::derive([data]));
    assert!(IdempotencyKey::new(derived.as_str()).is_ok());
    if let Ok(context) = CallContext::root().with_correlation_id(&text) {
        assert_eq!(context.correlation_id(), text);
        sendable(&context);
    }
}

/// A dead letter out of a store that anybody may have written to.
pub(crate) fn letter(data: &[u8]) {
    let Ok(letter) = serde_json::from_slice::<DeadLetter>(data) else { return };
    let written = serde_json::to_vec(&letter).unwrap();
    assert_eq!(serde_json::from_slice::<DeadLetter>(&written).unwrap(), letter);
    // Errors are values; what is refused is named.
    if let Err(error) = CLIENT.replay(&letter) {
        assert!(error.field().is_some(), "{error}");
    }
}

/// The embedded gateway's own reading of a request.
pub(crate) fn request(data: &[u8]) {
    if let Ok(request) = RawRequest::parse(data) {
        let settings =
            VerifierSettings::new("eu-central-1", "execute-api").credentials("AKIDEXAMPLE", "secret", None);
        let _ = verify(&request, &settings, CLOCK.now().wall);
    }
}

/// A path, and after a newline pairs of a query: what is signed is what is verified, or it is refused by name.
pub(crate) fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (path, query) = text.split_once('\n').unwrap_or((&text, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    let query: Vec<_> = query.split('\n').filter(|text| !text.is_empty()).map(pair).collect();
    let credentials = aws_credential_types::Credentials::new("AKIDEXAMPLE", "secret", None, None, "fuzz");
    let base = "https://abc123.execute-api.eu-central-1.amazonaws.com/prod";
    let now = CLOCK.now().wall;
    let signer = match AttemptSigner::new(base, (path, &query), "eu-central-1", credentials, b"{}") {
        Ok(signer) => signer,
        Err(error) => return assert!(error.field().is_some(), "{error}"),
    };
    let signed = signer.sign(&HeaderMap::new(), now).unwrap();
    let (target, host) = signer.request_target();
    assert!(target.starts_with("/prod") && !target.contains("//") && !target.contains("/../"), "{target}");
    let mut request = RawRequest::new("POST", target).with_header("host", host).with_body(&b"{}"[..]);
    for (name, value) in &signed {
        request = request.with_header(name.as_str(), value.as_bytes());
    }
    let settings =
        VerifierSettings::new("eu-central-1", "execute-api").credentials("AKIDEXAMPLE", "secret", None);
    let verdict = verify(&request, &settings, now);
    assert!(verdict.is_valid(), "{path:?}: {}", verdict.explain());
}

/// Header lines up to an empty one, and the rest. What is no header line is passed over.
fn head_and_body(data: &[u8]) -> (HeaderMap, &[u8]) {
    let (mut headers, mut rest) = (HeaderMap::new(), data);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[at + 1..].trim_ascii())) {
            headers.append(name, value);
        }
    }
    (headers, rest)
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap());

static CLOCK: LazyLock<ManualClock> = LazyLock::new(ManualClock::new);

static CLIENT: LazyLock<ServiceClient> = LazyLock::new(|| {
    ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
        .region("eu-central-1")
        .static_credentials("AKIDEXAMPLE", "secret", None)
        .build()
        .unwrap()
});
