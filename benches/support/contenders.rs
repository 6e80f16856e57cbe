//! Three ways to make the same call: signed by hand, a loop by hand, and this crate.

use crate::bare::{self, BoxError, REGION};
use aws_sigv4::http_request::SignableBody;
use aws_smithy_runtime_api::client::identity::Identity;
use bytes::Bytes;
use eastwest::{CallContext, ServiceClient};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use reqwest::{Client, Request, Url};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// One POST of a body to `/orders`; answers with the status and the length of the body that came back.
pub(crate) trait Contender {
    async fn call(&self, body: Bytes) -> Result<(u16, usize), BoxError>;
}

/// (a): reqwest as it comes and a signature by `aws-sigv4`. One attempt, no duties.
pub(crate) struct Signed {
    http: Client,
    identity: Identity,
    url: Url,
}

impl Signed {
    pub(crate) fn new(base: &str) -> Result<Signed, BoxError> {
        Ok(Signed {
            http: Client::builder().build()?,
            identity: bare::credentials().into(),
            url: format!("{base}/orders").parse()?,
        })
    }

    fn request(&self, body: &Bytes) -> Request {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        *request.body_mut() = Some(body.clone().into());
        request
    }

    fn sign(&self, request: &mut Request, body: &Bytes) -> Result<(), BoxError> {
        let url = request.url().as_str();
        let body = SignableBody::Bytes(body);
        let signed = bare::instructions(&self.identity, url, request.headers(), body, SystemTime::now())?;
        bare::apply(signed, request.headers_mut())
    }
}

impl Contender for Signed {
    async fn call(&self, body: Bytes) -> Result<(u16, usize), BoxError> {
        let mut request = self.request(&body);
        self.sign(&mut request, &body)?;
        let answer = self.http.execute(request).await?;
        Ok((answer.status().as_u16(), answer.bytes().await?.len()))
    }
}

/// (b): the smallest loop with a client's duties around (a). Three headers that ride along, an attempt's time cut to what
/// is left of the call's, a signature an attempt, full jitter, and a word for a breaker. It sorts no answers, obeys no
/// `Retry-After` and tells no story.
pub(crate) struct Loop {
    signed: Signed,
    failures: AtomicU32,
}

impl Loop {
    pub(crate) fn new(base: &str) -> Result<Loop, BoxError> {
        Ok(Loop { signed: Signed::new(base)?, failures: AtomicU32::new(0) })
    }
}

impl Contender for Loop {
    async fn call(&self, body: Bytes) -> Result<(u16, usize), BoxError> {
        let end = Instant::now() + TOTAL;
        let (correlation_id, key) = (fresh_id()?, fresh_id()?);
        let mut attempt = 0;
        loop {
            attempt += 1;
            if self.failures.load(Ordering::Relaxed) >= FAILURES_IN_ROW {
                return Err("the circuit is open".into());
            }
            let mut request = self.signed.request(&body);
            let headers = request.headers_mut();
            headers.insert(HOP_COUNT, HeaderValue::from_static("1"));
            headers.insert(CORRELATION_ID, correlation_id.clone());
            headers.insert(IDEMPOTENCY_KEY, key.clone());
            let left = end.saturating_duration_since(Instant::now());
            *request.timeout_mut() = Some(left.min(ATTEMPT));
            self.signed.sign(&mut request, &body)?;
            let answer = self.signed.http.execute(request).await?;
            let (status, length) = (answer.status().as_u16(), answer.bytes().await?.len());
            if status < 500 {
                self.failures.store(0, Ordering::Relaxed);
                return Ok((status, length));
            }
            self.failures.fetch_add(1, Ordering::Relaxed);
            let ceiling = Duration::from_millis(200 << attempt).min(Duration::from_secs(2));
            let wait = ceiling.mul_f64(rand::random());
            if attempt == 3 || wait > end.saturating_duration_since(Instant::now()) {
                return Ok((status, length));
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// This crate, as it is built by default.
pub(crate) struct Eastwest(ServiceClient);

impl Eastwest {
    pub(crate) fn new(base: &str) -> Result<Eastwest, BoxError> {
        let client =
            ServiceClient::builder(base).region(REGION).credentials_provider(bare::credentials()).build()?;
        Ok(Eastwest(client))
    }
}

impl Contender for Eastwest {
    async fn call(&self, body: Bytes) -> Result<(u16, usize), BoxError> {
        let context = CallContext::root();
        let call = self.0.post(&context, "/orders").header(CONTENT_TYPE, "application/json");
        let answer = call.body(body).send().await?;
        Ok((answer.status().as_u16(), answer.body().len()))
    }
}

/// From the thread's dice: `Uuid::new_v4` would ask the kernel each time.
fn fresh_id() -> Result<HeaderValue, BoxError> {
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    Ok(HeaderValue::from_str(id.hyphenated().encode_lower(&mut [0; 36]))?)
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HOP_COUNT: HeaderName = HeaderName::from_static("x-hop-count");
const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
const TOTAL: Duration = Duration::from_secs(10);
const ATTEMPT: Duration = Duration::from_secs(4);
const FAILURES_IN_ROW: u32 = 5;
