//! A client, the embedded gateway and a callee, in that order.

use crate::bridge::{Heard, Integration, Log, reply};
use crate::callee::Callee;
use crate::meanwhile::Meanwhile;
use eastwest::policy::breaker::BreakerSettings;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt};
use eastwest::{Attempt, CallContext, Class, ClientBuilder, Response, ServiceClient};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub const KEY_ID: &str = "AKIDPOWERTOOLS";
pub const SECRET: &str = "powertools-secret";
const REGION: &str = "eu-central-1";

/// The paths below the stage: of a function that throws what Powertools throws, and of one that tells it with a 409.
pub const THROWING: &str = "/orders";
pub const TELLING: &str = "/telling/orders";

/// A client's way to the callee leads through the embedded gateway.
pub struct Rig {
    pub callee: Callee,
    pub gateway: FakeGateway,
    pub clock: ManualClock,
    log: Log,
}

impl Rig {
    /// A gateway that integrates like this, in order, the last for ever.
    pub async fn new(callee: Callee, integrations: impl IntoIterator<Item = Integration>) -> Rig {
        // The parent's process goes by the real clock.
        let (clock, log) = (ManualClock::starting_at(real_now()), Log::default());
        let time = clock.clone();
        let builder = FakeGateway::builder()
            .credentials(KEY_ID, SECRET, None)
            .region(REGION)
            .clock(Arc::new(move || time.wall()));
        let gateway = builder.start().await.unwrap();
        let replies: Vec<_> = integrations.into_iter().map(|one| reply(one, callee, &log)).collect();
        for path in [THROWING, TELLING] {
            gateway.script("POST", path, replies.clone());
        }
        Rig { callee, gateway, clock, log }
    }

    /// A client with the defaults, but for the time that an exchange may take on a slow machine.
    pub fn builder(&self) -> ClientBuilder {
        ServiceClient::builder(self.gateway.base_url())
            .region(REGION)
            .static_credentials(KEY_ID, SECRET, None::<&str>)
            .attempt_timeout(Duration::from_secs(25))
            .total_timeout(Duration::from_secs(100))
            .ambient(self.clock.clone())
    }

    pub fn client(&self) -> ServiceClient {
        self.builder().build().unwrap()
    }

    /// A client whose breaker and retry budget never get in the way of the many calls that it makes at once.
    pub fn client_for_many(&self) -> ServiceClient {
        let breaker = BreakerSettings::default().with_failures_in_row(10_000).with_minimum_outcomes(10_000);
        self.builder().retry_budget(RetryBudget::off()).breaker(breaker).build().unwrap()
    }

    /// A client in whose wait of this number, from 1, the callee finishes the order.
    pub fn client_while_finishing(&self, order: &str, wait: usize) -> ServiceClient {
        let (clock, callee, order) = (self.clock.clone(), self.callee, order.to_owned());
        self.builder().ambient(Meanwhile { clock, callee, order, wait }).build().unwrap()
    }

    /// What the gateway heard from the callee so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.log.all()
    }

    /// What arrived so far. Every signature must have stood.
    pub fn arrived(&self) -> Vec<RecordedAttempt> {
        let arrived = self.gateway.attempts();
        for attempt in &arrived {
            assert!(attempt.signature_valid(), "{}", attempt.explain());
        }
        arrived
    }

    /// The idempotency keys that arrived so far; every request must have had one.
    pub fn keys(&self) -> Vec<String> {
        let key = |attempt: &RecordedAttempt| attempt.header("x-idempotency-key").unwrap().to_owned();
        self.arrived().iter().map(key).collect()
    }

    pub async fn commits(&self, order: &str) -> usize {
        self.callee.commits(order).await.len()
    }
}

pub fn root() -> CallContext {
    CallContext::root()
}

/// An order's id that no other run has used.
pub fn fresh_order() -> String {
    CallContext::root().correlation_id().to_owned()
}

/// An order that is placed at once.
pub fn prompt(order: &str) -> Value {
    json!({ "id": order })
}

/// An order that is placed at once, and answered when the callee is told to.
pub fn late(order: &str) -> Value {
    json!({ "id": order, "late": true })
}

/// What the callee made up as it carried the order out: another execution would have made up another.
pub fn confirmation(answer: &Response) -> String {
    let body: Value = answer.json().unwrap();
    body["confirmation"].as_str().unwrap().to_owned()
}

pub fn classes(attempts: &[Attempt]) -> Vec<Class> {
    attempts.iter().map(Attempt::class).collect()
}

#[allow(clippy::disallowed_methods, reason = "processes agree on the real clock alone")]
fn real_now() -> SystemTime {
    SystemTime::now()
}
