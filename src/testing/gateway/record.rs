//! What the gateway saw, kept for the test to look at.

use crate::testing::lock::lock;
use crate::testing::signature::verdict::Verdict;
use crate::testing::signature::verification::Verification;
use crate::testing::wire::http::RawRequest;
use bytes::Bytes;
use std::fmt;
use std::sync::Mutex;
use std::time::SystemTime;
use tokio::sync::Notify;

/// One exchange as the gateway saw it, kept once it was decided how to answer, before the answer goes out.
#[derive(Clone)]
pub struct RecordedAttempt {
    pub(crate) request: RawRequest,
    pub(crate) verification: Verification,
    pub(crate) received_at: SystemTime,
    pub(crate) connection: usize,
    pub(crate) order: usize,
    pub(crate) status: Option<u16>,
    pub(crate) told: String,
    /// How much of the path is the stage.
    pub(crate) stage: usize,
}

impl RecordedAttempt {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.request.method()
    }

    /// The request target as received: raw path and query. Empty if it is not UTF-8; see [`RecordedAttempt::request`].
    #[must_use]
    pub fn target(&self) -> &str {
        std::str::from_utf8(self.request.target()).unwrap_or_default()
    }

    /// The raw path, stage included.
    #[must_use]
    pub fn path(&self) -> &str {
        std::str::from_utf8(self.request.path()).unwrap_or_default()
    }

    /// The raw path below the stage, as routes are declared; of an attempt at another stage, and behind no gateway, all of it.
    #[must_use]
    pub fn path_below_stage(&self) -> &str {
        self.path().get(self.stage..).filter(|below| !below.is_empty()).unwrap_or("/")
    }

    /// The raw query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.request.query().and_then(|query| std::str::from_utf8(query).ok())
    }

    /// The header lines as received, in order; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn header_lines(&self) -> Vec<String> {
        self.request.header_lines().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// The first value of a header, trimmed; `None` if it is absent or not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    /// All values of a header, trimmed, in order.
    #[must_use]
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.request.header_values(name)
    }

    /// The body, chunking undone.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        self.request.body()
    }

    /// The request as a whole, to be verified once more or altered first.
    #[must_use]
    pub fn request(&self) -> &RawRequest {
        &self.request
    }

    /// What the verifier found on arrival; it looks also where the gateway does not insist on a signature.
    #[must_use]
    pub fn verification(&self) -> &Verification {
        &self.verification
    }

    /// The verdict on the signature.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        self.verification.verdict()
    }

    /// Whether the signature stood.
    #[must_use]
    pub fn signature_valid(&self) -> bool {
        self.verification.is_valid()
    }

    /// Tells a person what the verifier found, secrets hidden; for a test's failure message.
    #[must_use]
    pub fn explain(&self) -> String {
        self.verification.explain()
    }

    /// When the request had arrived, by the gateway's clock.
    #[must_use]
    pub fn received_at(&self) -> SystemTime {
        self.received_at
    }

    /// The number of the connection it came on, from 1: equal numbers mean reuse. 0 in memory.
    #[must_use]
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// The place in the order of arrival, from 1.
    #[must_use]
    pub fn order(&self) -> usize {
        self.order
    }

    /// The status that was sent; `None` if there was no answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// What was done with it, in a few words: `429 TooManyRequestsException`, `reset after reading`.
    #[must_use]
    pub fn told(&self) -> &str {
        &self.told
    }
}

/// Shows neither header values, nor query, nor body.
impl fmt::Debug for RecordedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedAttempt")
            .field("order", &self.order)
            .field("connection", &self.connection)
            .field("request", &self.request)
            .field("verdict", self.verdict())
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// All exchanges so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    attempts: Mutex<Vec<RecordedAttempt>>,
    arrived: Notify,
}

impl Record {
    pub(crate) fn keep(&self, attempt: RecordedAttempt) {
        lock(&self.attempts).push(attempt);
        self.arrived.notify_waiters();
    }

    pub(crate) fn attempts(&self) -> Vec<RecordedAttempt> {
        let mut attempts = lock(&self.attempts).clone();
        attempts.sort_by_key(|attempt| attempt.order);
        attempts
    }

    /// Waits until there are so many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<RecordedAttempt> {
        loop {
            let mut arrived = std::pin::pin!(self.arrived.notified());
            // Enlisted before the look, or what comes in between would be missed.
            arrived.as_mut().enable();
            let attempts = self.attempts();
            if attempts.len() >= count {
                return attempts;
            }
            arrived.await;
        }
    }
}
