//! The settings that every test begins from, and what it looks at afterwards.

use eastwest::policy::backoff::Backoff;
use eastwest::policy::breaker::BreakerSettings;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{Call, CallContext, ClientBuilder, Error, Response, ServiceClient};
use std::time::Duration;

pub(crate) const KEY_ID: &str = "AKIDBEHAVIOUR";
pub(crate) const SECRET: &str = "behaviour-secret";
pub(crate) const TOKEN: &str = "behaviour-session-token";
pub(crate) const REGION: &str = "eu-central-1";

/// A gateway with one route, a client of it, and a clock that neither waits for.
pub(crate) struct Rig {
    pub(crate) gateway: FakeGateway,
    pub(crate) clock: ManualClock,
}

impl Rig {
    /// Answers `POST`, `GET` and all else on `/orders` with `script`, in order, the last one for ever.
    pub(crate) async fn answering(script: impl IntoIterator<Item = Reply>) -> Rig {
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials(KEY_ID, SECRET, Some(TOKEN))
            .region(REGION)
            .manual_clock(&clock)
            .route("ANY", "/orders", script)
            .start()
            .await
            .unwrap();
        Rig { gateway, clock }
    }

    /// A builder whose breaker and retry budget never get in the way.
    pub(crate) fn builder(&self) -> ClientBuilder {
        builder(self.gateway.base_url()).ambient(self.clock.clone())
    }

    pub(crate) fn client(&self) -> ServiceClient {
        self.builder().build().unwrap()
    }

    /// One keyed POST to `/orders`.
    pub(crate) async fn post(&self) -> Result<Response, Error> {
        self.post_with(|call| call).await
    }

    /// One POST to `/orders`, shaped by the test.
    pub(crate) async fn post_with(&self, shape: impl FnOnce(Call) -> Call) -> Result<Response, Error> {
        shape(self.client().post(&CallContext::root(), "/orders")).send().await
    }

    /// How many requests the gateway saw.
    pub(crate) fn seen(&self) -> usize {
        self.gateway.attempts().len()
    }

    /// The requests that the gateway saw; every one of them must have been signed well.
    pub(crate) fn attempts(&self) -> Vec<RecordedAttempt> {
        let attempts = self.gateway.attempts();
        for attempt in &attempts {
            assert!(attempt.signature_valid(), "{}", attempt.explain());
        }
        attempts
    }

    /// The waits between attempts, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u64> {
        self.clock.waits().iter().map(|wait| u64::try_from(wait.as_millis()).unwrap()).collect()
    }
}

pub(crate) fn builder(base_url: impl Into<String>) -> ClientBuilder {
    let base = Duration::from_millis(100);
    ServiceClient::builder(base_url)
        .region(REGION)
        .static_credentials(KEY_ID, SECRET, Some(TOKEN))
        .max_attempts(4)
        .backoff(Backoff::new(base, base, Duration::from_secs(2)))
        .attempt_timeout(Duration::from_secs(1))
        .total_timeout(Duration::from_secs(10))
        .retry_budget(RetryBudget::off())
        .breaker(out_of_reach())
}

/// A breaker that no test's failures open.
pub(crate) fn out_of_reach() -> BreakerSettings {
    BreakerSettings::default().with_failures_in_row(1_000).with_minimum_outcomes(1_000)
}

/// An attempt time that a hanging gateway is waited for in full.
pub(crate) const SHORT: Duration = Duration::from_millis(60);
