//! A client, an nginx and the embedded gateway, in that order.

use crate::nginx::{Nginx, Served, Site};
use eastwest::policy::backoff::Backoff;
use eastwest::policy::breaker::BreakerSettings;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{CallContext, ClientBuilder, ServiceClient};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const KEY_ID: &str = "AKIDNGINX";
const SECRET: &str = "nginx-secret";
const TOKEN: &str = "nginx-session-token";
const REGION: &str = "eu-central-1";

/// A client's way to the embedded gateway leads through nginx.
pub struct Rig {
    gateway: FakeGateway,
    nginx: Nginx,
    /// Time that passes only in waits. It starts at the real time: nginx dates answers, and so does the gateway.
    pub clock: ManualClock,
}

impl Rig {
    /// An embedded gateway that answers on `/orders`, in order, the last reply for ever.
    pub async fn new(site: Site, script: impl IntoIterator<Item = Reply>) -> Rig {
        let (gateway, clock) = gateway(script).await;
        let nginx = Nginx::start(&site, gateway.addr()).await;
        Rig { gateway, nginx, clock }
    }

    /// The same with an nginx that looks for the gateway where it is not.
    pub async fn with_upstream_elsewhere(site: Site, elsewhere: SocketAddr) -> Rig {
        let (gateway, clock) = gateway([Reply::ok()]).await;
        let nginx = Nginx::start(&site, elsewhere).await;
        Rig { gateway, nginx, clock }
    }

    /// Answers on one more path below the stage.
    pub fn also_answers(&self, path: &str, script: impl IntoIterator<Item = Reply>) {
        self.gateway.script("ANY", path, script);
    }

    /// A builder whose breaker and retry budget never get in the way, and whose waits pass real time.
    pub fn real_time_builder(&self) -> ClientBuilder {
        let base = Duration::from_millis(100);
        ServiceClient::builder(format!("http://{}/prod", self.nginx.addr()))
            .region(REGION)
            .static_credentials(KEY_ID, SECRET, Some(TOKEN))
            .max_attempts(4)
            .backoff(Backoff::new(base, base, Duration::from_secs(2)))
            .attempt_timeout(Duration::from_secs(20))
            .total_timeout(Duration::from_secs(60))
            .retry_budget(RetryBudget::off())
            .breaker(BreakerSettings::default().with_failures_in_row(10_000).with_minimum_outcomes(10_000))
    }

    /// The same, with waits that take no time.
    pub fn builder(&self) -> ClientBuilder {
        self.real_time_builder().ambient(Arc::new(self.clock.clone()))
    }

    pub fn client(&self) -> ServiceClient {
        self.builder().build().unwrap()
    }

    /// Waits until so many requests are in nginx's log.
    pub async fn has_served(&self, requests: usize) {
        self.nginx.has_served(requests).await;
    }

    /// What went through nginx and what arrived, now that all is over. Every signature must have stood.
    pub async fn seen(self) -> (Vec<Served>, Vec<RecordedAttempt>) {
        let (served, arrived) = self.seen_unverified().await;
        for attempt in &arrived {
            assert!(attempt.signature_valid(), "{}", attempt.explain());
        }
        (served, arrived)
    }

    /// The same where nginx may have broken signatures.
    pub async fn seen_unverified(self) -> (Vec<Served>, Vec<RecordedAttempt>) {
        let served = self.nginx.served().await;
        let asked_twice = served.iter().find(|line| line.upstream.contains(','));
        assert!(asked_twice.is_none(), "nginx itself sent again: {asked_twice:?}");
        assert_eq!(self.gateway.malformed_requests(), 0);
        (served, self.gateway.attempts())
    }
}

/// The values of a header over all attempts.
pub fn header<'a>(arrived: &'a [RecordedAttempt], name: &str) -> Vec<&'a str> {
    arrived.iter().filter_map(|attempt| attempt.header(name)).collect()
}

pub fn root() -> CallContext {
    CallContext::root()
}

#[allow(clippy::disallowed_methods, reason = "nginx dates its answers by the real clock")]
pub fn real_now() -> SystemTime {
    SystemTime::now()
}

async fn gateway(script: impl IntoIterator<Item = Reply>) -> (FakeGateway, ManualClock) {
    let clock = ManualClock::starting_at(real_now());
    let time = clock.clone();
    let gateway = FakeGateway::builder()
        .credentials(KEY_ID, SECRET, Some(TOKEN))
        .region(REGION)
        .clock(Arc::new(move || time.wall()))
        .route("ANY", "/orders", script)
        .start()
        .await
        .unwrap();
    (gateway, clock)
}
