//! One task: call after call, of all kinds, some of them dropped on their way.

use crate::callee::padding;
use crate::exchange::REFERENCE;
use crate::ledger::Ledger;
use crate::record::{End, Kind, Told};
use crate::stage::{PATH, REGION};
use crate::tally::Tally;
use crate::time::{now, sleep, up_to};
use crate::vault::Vault;
use crate::watch::Board;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::{AccountQuota, Backoff, BreakerSettings, Call, CallContext, Error, Priority, RateLimit};
use eastwest::{Response, ServiceClient};
use fastrand::Rng;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What all tasks share.
pub struct Office {
    pub ledger: Arc<Ledger>,
    pub board: Arc<Board>,
    pub tally: Tally,
    pub over: AtomicBool,
}

/// How a client is set: as it comes, or so that neither breaker nor retry budget gets in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Default,
    Wide,
}

/// A client that calls through the proxy and reports to the account; a paced one has a rate limit and a limit on calls in
/// flight, both of them too narrow for its tasks.
pub fn client(
    proxy: std::net::SocketAddr,
    (vault, account): (&Vault, &AccountQuota),
    (manner, paced): (Manner, bool),
) -> Result<ServiceClient, Error> {
    let builder = ServiceClient::builder(format!("http://{proxy}/prod"))
        .region(REGION)
        .credentials_provider(vault.clone())
        .account_quota(account.clone())
        .connect_timeout(Duration::from_millis(500))
        .attempt_timeout(Duration::from_millis(1_000))
        .total_timeout(TOTAL);
    let builder = match paced {
        true => builder.rate_limit(RateLimit::per_second(50)).calls_in_flight(6),
        false => builder,
    };
    match manner {
        Manner::Default => builder,
        Manner::Wide => builder
            .max_attempts(5)
            .backoff(Backoff::new(
                Duration::from_millis(50),
                Duration::from_millis(100),
                Duration::from_millis(500),
            ))
            .retry_budget(RetryBudget::off())
            .breaker(
                BreakerSettings::default().with_failures_in_row(u32::MAX).with_minimum_outcomes(u32::MAX),
            ),
    }
    .build()
}

/// Calls until the office closes.
pub async fn work(task: usize, client: ServiceClient, manner: Manner, office: Arc<Office>, mut rng: Rng) {
    while !office.over.load(Ordering::Relaxed) {
        sleep(up_to(&mut rng, THINKING)).await;
        one(task, &client, manner, &office, &mut rng).await;
    }
}

/// Makes one call in fair weather, and says whether it was answered.
pub async fn probe(client: &ServiceClient, manner: Manner, office: &Office, rng: &mut Rng) -> bool {
    let (kind, reference) = (Kind::Put, office.ledger.reference());
    office.ledger.open(reference, kind, None);
    let ended = call(client, kind, (reference, None), rng).send().await;
    let end = match &ended {
        Ok(answer) => answered(office, (kind, reference), answer),
        Err(error) => failed(office, manner, error),
    };
    office.ledger.close(reference, now(), end);
    ended.is_ok()
}

async fn one(task: usize, client: &ServiceClient, manner: Manner, office: &Office, rng: &mut Rng) {
    let kind = [Kind::Get, Kind::KeyedPost, Kind::KeyedPost, Kind::KeylessPost, Kind::Put][rng.usize(0..5)];
    let reference = office.ledger.reference();
    let own = matches!(kind, Kind::KeyedPost | Kind::Put) && rng.bool();
    let key = own.then(|| format!("order-{reference}"));
    office.ledger.open(reference, kind, key.as_deref());
    let call = call(client, kind, (reference, key.as_deref()), rng);
    let patience = (rng.u8(0..5) == 0).then(|| up_to(rng, 1_500));
    office.board.begins(task, reference);
    let ended = match patience {
        None => Some(call.send().await),
        Some(time) => tokio::time::timeout(time, call.send()).await.ok(),
    };
    office.board.ends(task);
    let end = match ended {
        None => {
            office.tally.add("dropped");
            End::Dropped
        }
        Some(Ok(answer)) => answered(office, (kind, reference), &answer),
        Some(Err(error)) => failed(office, manner, &error),
    };
    office.ledger.close(reference, now(), end);
}

fn call(client: &ServiceClient, kind: Kind, (reference, key): (u64, Option<&str>), rng: &mut Rng) -> Call {
    let context = CallContext::root();
    let call = match kind {
        Kind::Get => client.get(&context, PATH),
        Kind::Put => client.put(&context, PATH),
        Kind::KeyedPost => client.post(&context, PATH),
        Kind::KeylessPost => client.post(&context, PATH).no_idempotency_key(),
    };
    let priority = [Priority::Bulk, Priority::Critical, Priority::Normal][rng.usize(0..3)];
    let call = call.priority(priority);
    let call = call.header(REFERENCE, reference.to_string());
    let call = key.into_iter().fold(call, Call::idempotency_key);
    match kind {
        Kind::Get => call.query("reference", reference),
        _ => {
            let most = if rng.u8(0..20) == 0 { 50_000 } else { 400 };
            call.body("b".repeat(rng.usize(0..most)))
        }
    }
}

fn answered(office: &Office, (kind, reference): (Kind, u64), answer: &Response) -> End {
    office.tally.add("answered");
    let told: Vec<Told> = answer.attempts().iter().map(Told::of).collect();
    office.tally.add_many("retries", told.len() as u64 - 1);
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let padded = body["padding"].as_str().map(str::len);
    if body["reference"] != reference || padded != Some(padding(reference)) {
        let what = format!("call {reference} ({kind:?}) was given another's answer, or a part of its own");
        office.ledger.fault(what);
    }
    let key = body["key"].as_str().map(str::to_owned);
    if answer.idempotency_key().map(str::to_owned) != key && kind != Kind::Get {
        office.ledger.fault(format!("call {reference} tells of another key than it was answered for"));
    }
    End::Answered { told, key, commit: body["commit"].as_u64() }
}

fn failed(office: &Office, manner: Manner, error: &Error) -> End {
    let told: Vec<Told> = error.attempts().iter().map(Told::of).collect();
    office.tally.add_many("retries", (told.len() as u64).saturating_sub(1));
    let status = error.status().map(|status| format!(" {}", status.as_u16())).unwrap_or_default();
    office.tally.add_failure(format!("{:?}{status}", error.kind()), manner);
    if let Some(reason) = error.stop_reason() {
        office.tally.add_reason(reason.to_string(), manner);
    }
    End::Failed { told, may_have_committed: error.may_have_committed(), line: error.to_string() }
}

/// A call's time.
pub const TOTAL: Duration = Duration::from_secs(4);
/// Between two calls of a task, in milliseconds, at most.
const THINKING: u64 = 1_000;
