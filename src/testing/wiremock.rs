//! Matchers and responders for wiremock: what a request must carry, and API Gateway's answers.
//!
//! Every [`Reply`] is a responder, [`in_order`] plays several, and the functions here are matchers. wiremock answers and does
//! no more: a fault on the wire is then a 501 that says so, and `FakeGateway` is what can make it.
//!
//! ```
//! use eastwest::testing::{ManualClock, Reply};
//! use eastwest::testing::wiremock::{attempt, has_idempotency_key, hop_count, in_order, signed_for};
//! use eastwest::CallContext;
//! use wiremock::matchers::{method, path};
//! use wiremock::{Mock, MockServer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (server, clock) = (MockServer::start().await, ManualClock::new());
//! let signed = signed_for("eu-central-1", "AKIDEXAMPLE", "secret").clock(&clock);
//! Mock::given(method("POST"))
//!     .and(path("/prod/orders"))
//!     .and(signed.clone())
//!     .and(hop_count(1))
//!     .and(has_idempotency_key())
//!     .respond_with(in_order([Reply::throttled(), Reply::json(201, r#"{"id":"o-1"}"#)]))
//!     .expect(2)
//!     .mount(&server)
//!     .await;
//!
//! let client = signed.client(&server).build()?;
//! let answer = client.post(&CallContext::root(), "/orders").send().await?;
//!
//! assert_eq!(answer.status(), 201);
//! assert!(signed.reports().is_empty(), "{}", signed.reports().join("\n"));
//! # Ok(())
//! # }
//! ```

use crate::edge::ambient::{Ambient, system};
use crate::testing::answers::named::impossible;
use crate::testing::answers::reply::{Behaviour, Delivery, Reply};
use crate::testing::clock::ManualClock;
use crate::testing::gateway::record::RecordedAttempt;
use crate::testing::gateway::shared::IN_MEMORY;
use crate::testing::lock::lock;
use crate::testing::signature::amz_date;
use crate::testing::signature::settings::VerifierSettings;
use crate::testing::signature::verification::Verification;
use crate::testing::signature::verifier::verify;
use crate::testing::wire::http::RawRequest;
use crate::testing::wire::write::{Stamp, header_lines};
use ::wiremock::{Match, Request, Respond, ResponseTemplate};
use http::{HeaderName, HeaderValue, StatusCode};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Matches requests that are signed with these credentials for `execute-api` in this Region: the signature is verified, on
/// all that arrived.
#[must_use]
pub fn signed_for(
    region: impl Into<String>,
    access_key_id: impl Into<String>,
    secret_access_key: impl Into<String>,
) -> SignedFor {
    let settings = VerifierSettings::new(region, "execute-api");
    SignedFor::by(settings.credentials(access_key_id, secret_access_key, None))
}

/// Matches requests with this hop count, once.
#[must_use]
pub fn hop_count(hops: u8) -> Carries {
    Carries::exactly("x-hop-count", hops.to_string())
}

/// Matches requests with this correlation id, once.
#[must_use]
pub fn correlation_id(id: impl Into<String>) -> Carries {
    Carries::exactly("x-correlation-id", id.into())
}

/// Matches requests with one idempotency key, of 1 to 255 visible ASCII characters.
#[must_use]
pub fn has_idempotency_key() -> Carries {
    Carries { name: "x-idempotency-key", value: None }
}

/// Matches the attempt of this number, from 1.
#[must_use]
pub fn attempt(number: u32) -> Carries {
    Carries::exactly("x-attempt-count", number.to_string())
}

/// Plays these responders in order, the last one for ever; none at all answer [`Reply::ok`].
#[must_use]
pub fn in_order<R: Respond + 'static>(responders: impl IntoIterator<Item = R>) -> InOrder {
    let empty = InOrder { responders: Vec::new(), at: AtomicUsize::new(0) };
    responders.into_iter().fold(empty, InOrder::then)
}

/// Matches what is signed well; clones share their reports. See [`signed_for`].
#[derive(Clone, Debug)]
pub struct SignedFor {
    settings: VerifierSettings,
    clock: Option<ManualClock>,
    reports: Arc<Mutex<Vec<String>>>,
}

impl SignedFor {
    /// Matches requests whose signature stands by these settings.
    #[must_use]
    pub fn by(settings: VerifierSettings) -> SignedFor {
        SignedFor { settings, clock: None, reports: Arc::default() }
    }

    /// Expects this session token with the credentials.
    #[must_use]
    pub fn session_token(mut self, token: impl Into<String>) -> SignedFor {
        let token = Some(token.into());
        self.settings.identities.iter_mut().for_each(|known| known.token.clone_from(&token));
        self
    }

    /// Judges the time of signatures by this clock. Default: the process's own.
    #[must_use]
    pub fn clock(mut self, clock: &ManualClock) -> SignedFor {
        self.clock = Some(clock.clone());
        self
    }

    pub(crate) fn expected(&self) -> (&VerifierSettings, Option<&ManualClock>) {
        (&self.settings, self.clock.as_ref())
    }

    /// What was found on each request that did not match, for a test's failure message. It holds no secret.
    #[must_use]
    pub fn reports(&self) -> Vec<String> {
        lock(&self.reports).clone()
    }
}

impl Match for SignedFor {
    fn matches(&self, request: &Request) -> bool {
        let found = verify(&raw(request), &self.settings, now(self.clock.as_ref()));
        if !found.is_valid() {
            lock(&self.reports).push(found.explain());
        }
        found.is_valid()
    }
}

/// Matches what carries a header once, with a value.
#[derive(Clone, Debug)]
pub struct Carries {
    name: &'static str,
    /// `None` for any visible one.
    value: Option<String>,
}

impl Carries {
    fn exactly(name: &'static str, value: String) -> Carries {
        Carries { name, value: Some(value) }
    }
}

impl Match for Carries {
    fn matches(&self, request: &Request) -> bool {
        let values: Vec<&[u8]> =
            request.headers.get_all(self.name).iter().map(HeaderValue::as_bytes).collect();
        match (values.as_slice(), &self.value) {
            ([found], Some(value)) => *found == value.as_bytes(),
            ([found], None) => (1..=255).contains(&found.len()) && found.iter().all(u8::is_ascii_graphic),
            _ => false,
        }
    }
}

/// Plays responders in order. See [`in_order`].
pub struct InOrder {
    responders: Vec<Box<dyn Respond>>,
    at: AtomicUsize,
}

impl InOrder {
    /// Adds one more, which may be of another kind: wiremock's own `ResponseTemplate` after a [`Reply`]. Other than a reply, it
    /// is dated by the process's clock.
    #[must_use]
    pub fn then(mut self, responder: impl Respond + 'static) -> InOrder {
        self.responders.push(Box::new(responder));
        self
    }
}

impl Respond for InOrder {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        match self.responders.get(at).or(self.responders.last()) {
            Some(responder) => responder.respond(request),
            None => Reply::ok().respond(request),
        }
    }
}

impl fmt::Debug for InOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InOrder").field("responders", &self.responders.len()).field("at", &self.at).finish()
    }
}

/// The answer with its headers, its delay and its ids, dated by the clock that the request was signed by. wiremock breaks no connection and no body: for a reply that does, the
/// answer is a 501 that says so.
impl Respond for Reply {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let number = ANSWERS.fetch_add(1, Ordering::Relaxed) + 1;
        let request = raw(request);
        // The client's own time: dated by another clock, the answer would have the client correct its own.
        let signed_at = request.header("x-amz-date").and_then(amz_date::parse);
        let now = signed_at.unwrap_or_else(|| now(None));
        let seen = RecordedAttempt {
            request,
            verification: Verification::not_checked(),
            received_at: now,
            connection: IN_MEMORY,
            order: number,
            status: None,
            told: String::new(),
            stage: 0,
        };
        let stamp = Stamp { now, number, to_head: false, keep_alive: true };
        let reply = self.clone().resolve(&seen);
        template(&reply, stamp)
            .or_else(|| template(&impossible(CANNOT), stamp))
            .unwrap_or_else(|| ResponseTemplate::new(StatusCode::NOT_IMPLEMENTED))
    }
}

/// `None` where wiremock cannot do it.
fn template(reply: &Reply, stamp: Stamp) -> Option<ResponseTemplate> {
    let pieces = |chunk: usize| u32::try_from(reply.body.len().div_ceil(chunk.max(1))).unwrap_or(u32::MAX);
    let delay = match (&reply.behaviour, reply.delivery) {
        (Behaviour::Hang, _) => return Some(ResponseTemplate::new(StatusCode::OK).set_delay(A_DAY)),
        (Behaviour::Answer, Delivery::Whole) => reply.delay,
        (Behaviour::Answer, Delivery::Drip { chunk, every }) => {
            reply.delay.saturating_add(every.saturating_mul(pieces(chunk)))
        }
        _ => return None,
    };
    let mut headers = Vec::new();
    for (name, value) in header_lines(reply, stamp) {
        // The length is the server's own to tell.
        if !name.eq_ignore_ascii_case("content-length") {
            headers
                .push((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(&value).ok()?));
        }
    }
    let template = ResponseTemplate::new(StatusCode::from_u16(reply.status).ok()?).append_headers(headers);
    Some(template.set_body_raw(reply.body.to_vec(), "").set_delay(delay))
}

/// The request as the verifier reads it.
fn raw(request: &Request) -> RawRequest {
    let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let raw = RawRequest::new(request.method.as_str(), format!("{}{query}", request.url.path()));
    let raw = request
        .headers
        .iter()
        .fold(raw, |raw, (name, value)| raw.with_header(name.as_str(), value.as_bytes()));
    raw.with_body(request.body.clone())
}

fn now(clock: Option<&ManualClock>) -> SystemTime {
    clock.map_or_else(|| system().now().wall, ManualClock::wall)
}

const A_DAY: Duration = Duration::from_secs(86_400);
const CANNOT: &str = "wiremock can only answer: a connection or a body is broken by FakeGateway, with the same reply in its script";
/// How many answers were given, of which ids are made.
static ANSWERS: AtomicUsize = AtomicUsize::new(0);
