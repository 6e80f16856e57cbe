//! Clients that stand for sandboxes, the embedded gateway as their callee, and one real store between them.

use crate::server::{Server, pause};
use eastwest::fleet::{FleetBreaker, FleetSettings};
use eastwest::policy::breaker::BreakerSettings;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{CallContext, CircuitState, Error, Response, RetryBudget, ServiceClient, StopReason};
use std::time::Duration;

const KEY_ID: &str = "AKIDREDIS";
const SECRET: &str = "redis-secret";
const REGION: &str = "eu-central-1";

/// A gateway, and the clock that it and its clients go by. The store goes by its own.
pub struct Rig {
    pub gateway: FakeGateway,
    pub clock: ManualClock,
}

impl Rig {
    pub async fn answering(script: impl IntoIterator<Item = Reply>) -> Rig {
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials(KEY_ID, SECRET, None)
            .region(REGION)
            .manual_clock(&clock)
            .route("ANY", "/orders", script)
            .start()
            .await
            .unwrap();
        Rig { gateway, clock }
    }

    /// A client that stands for a sandbox of its own: a connection of its own, and every outcome is written.
    pub fn sandbox(&self, server: &Server) -> ServiceClient {
        ServiceClient::builder(self.gateway.base_url())
            .region(REGION)
            .static_credentials(KEY_ID, SECRET, None)
            .retry_budget(RetryBudget::off())
            .breaker(BreakerSettings::default().with_failures_in_row(100_000).with_minimum_outcomes(100_000))
            .attempt_timeout(Duration::from_secs(5))
            // All share one clock, which each of them moves on.
            .total_timeout(Duration::from_secs(36_000))
            .ambient(self.clock.clone())
            .fleet_breaker(FleetBreaker::new("orders", server.store()).settings(settings()))
            .build()
            .unwrap()
    }

    pub fn seen(&self) -> usize {
        self.gateway.attempts().len()
    }
}

/// A second is the most that a store may be waited for: a busy machine is no reason for a test to fail.
pub fn settings() -> FleetSettings {
    FleetSettings::default()
        .with_first_one_in(1)
        .with_open_for(Duration::from_millis(40))
        .with_store_budget(Duration::from_secs(1))
}

pub async fn post(client: &ServiceClient) -> Result<Response, Error> {
    client.post(&CallContext::root(), "/orders").send().await
}

/// Lets a sandbox fail until the circuit has tripped for it.
pub async fn trip(rig: &Rig, sandbox: &ServiceClient) {
    for _ in 0..200 {
        let error = post(sandbox).await.unwrap_err();
        if error.stop_reason() == Some(StopReason::CircuitOpen) {
            return;
        }
        rig.clock.advance(Duration::from_millis(500));
    }
    panic!("the circuit does not trip");
}

#[tokio::test]
async fn one_sandbox_s_failures_keep_the_others_away_until_a_probe_succeeds() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::unavailable()]).await;
    let (one, other) = (rig.sandbox(&server), rig.sandbox(&server));
    trip(&rig, &one).await;
    other.breaker().sync_fleet().await;
    let seen = rig.seen();
    let refused = post(&other).await.unwrap_err();
    assert!(refused.is_circuit_open() && refused.retry_after().is_some());
    assert_eq!((rig.seen(), other.breaker().state()), (seen, CircuitState::Open));

    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    pause(Duration::from_millis(40)).await;
    rig.clock.advance(Duration::from_secs(2));
    post(&other).await.unwrap();
    while other.breaker().state() != CircuitState::Closed {
        pause(Duration::from_millis(1)).await;
    }
    rig.clock.advance(Duration::from_secs(2));
    post(&one).await.unwrap();
    assert_eq!((rig.seen(), one.breaker().state()), (seen + 2, CircuitState::Closed));
}

#[tokio::test]
async fn a_callee_that_answers_one_call_in_five_is_left_to_the_local_breakers() {
    let server = Server::start().await;
    let bad = Reply::unavailable;
    let rig = Rig::answering([Reply::ok()]).await;
    let sandbox = rig.sandbox(&server);
    for _ in 0..40 {
        rig.gateway.script("ANY", "/orders", [bad(), bad(), Reply::ok()]);
        post(&sandbox).await.unwrap();
        rig.clock.advance(Duration::from_millis(300));
        rig.gateway.script("ANY", "/orders", [bad()]);
        let one = sandbox.post(&CallContext::root(), "/orders").max_attempts(2).send().await;
        assert_ne!(one.unwrap_err().stop_reason(), Some(StopReason::CircuitOpen));
    }
}

#[tokio::test]
async fn warming_up_connects_to_the_store_too() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::ok()]).await;
    let sandbox = rig.sandbox(&server);
    sandbox.warm_up(Duration::from_secs(5)).await.unwrap();
    let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.look()).unwrap();
    assert_eq!(clients.lines().count(), 2, "{clients}");
}
