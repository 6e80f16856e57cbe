//! A breaker that a fleet shares: what one client learns, another heeds, and nobody depends on the store.

use crate::rig::{Rig, SHORT, out_of_reach};
use eastwest::fleet::{FleetBreaker, FleetSettings, FleetStore, Report, StoreError, StoreFuture, View};
use eastwest::policy::fleet::shared::SharedState;
use eastwest::testing::{ManualClock, Reply};
use eastwest::{CallContext, CircuitState, ErrorKind, ServiceClient, StopReason};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// What a store keeps, by the clock of the test.
struct Memory {
    clock: ManualClock,
    state: Mutex<SharedState>,
    reports: Mutex<Vec<Report>>,
}

impl Memory {
    fn new(rig: &Rig) -> Arc<Memory> {
        let clock = rig.clock.clone();
        Arc::new(Memory { clock, state: Mutex::default(), reports: Mutex::default() })
    }

    fn exchanges(&self) -> usize {
        self.reports.lock().unwrap().len()
    }
}

impl FleetStore for Memory {
    fn exchange<'a>(
        &'a self,
        _: &'a str,
        with: &'a FleetSettings,
        report: &'a Report,
    ) -> StoreFuture<'a, View> {
        Box::pin(async move {
            self.reports.lock().unwrap().push(*report);
            let now = self.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            Ok(self.state.lock().unwrap().exchange(with, report, now))
        })
    }
}

struct Broken {
    hangs: bool,
}

impl FleetStore for Broken {
    fn exchange<'a>(&'a self, _: &'a str, _: &'a FleetSettings, _: &'a Report) -> StoreFuture<'a, View> {
        let hangs = self.hangs;
        Box::pin(async move { if hangs { pending().await } else { Err(StoreError::new("gone")) } })
    }
}

/// A client that stands for a sandbox of its own and writes every outcome.
fn sandbox(rig: &Rig, store: impl FleetStore) -> ServiceClient {
    let settings = FleetSettings::default().with_first_one_in(1);
    rig.builder()
        .max_attempts(3)
        .fleet_breaker(FleetBreaker::new("orders", store).settings(settings))
        .build()
        .unwrap()
}

async fn post(client: &ServiceClient) -> Result<eastwest::Response, eastwest::Error> {
    client.post(&CallContext::root(), "/orders").send().await
}

/// Lets one sandbox's calls fail, sixty of them within a second, so that the fleet's circuit trips.
async fn trip(rig: &Rig, store: &Arc<Memory>) {
    let sandbox = sandbox(rig, Arc::clone(store));
    let fail = || sandbox.post(&CallContext::root(), "/orders").max_attempts(1).send();
    for _ in 0..60 {
        fail().await.unwrap_err();
    }
    rig.clock.advance(Duration::from_secs(1));
    fail().await.unwrap_err();
    assert_eq!(sandbox.breaker().state(), CircuitState::Open);
}

#[tokio::test]
async fn what_one_sandbox_s_failures_tripped_ends_another_s_retries_and_refuses_its_next_call() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let store = Memory::new(&rig);
    trip(&rig, &store).await;
    let seen = rig.seen();
    let other = sandbox(&rig, Arc::clone(&store));
    let first = post(&other).await.unwrap_err();
    assert_eq!((first.kind(), first.stop_reason()), (ErrorKind::Unavailable, Some(StopReason::CircuitOpen)));
    assert_eq!(rig.seen(), seen + 1);
    let second = post(&other).await.unwrap_err();
    assert_eq!(
        (second.kind(), second.stop_reason()),
        (ErrorKind::CircuitOpen, Some(StopReason::CircuitOpen))
    );
    assert!(second.is_circuit_open());
    assert!(second.retry_after().is_some_and(|wait| wait <= Duration::from_secs(2) && !wait.is_zero()));
    assert_eq!((rig.seen(), other.breaker().state()), (seen + 1, CircuitState::Open));
}

#[tokio::test]
async fn a_sandbox_that_looks_at_the_start_of_an_invocation_learns_before_its_own_first_failure() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let store = Memory::new(&rig);
    trip(&rig, &store).await;
    let seen = rig.seen();
    let other = sandbox(&rig, Arc::clone(&store));
    other.breaker().sync_fleet().await;
    assert!(post(&other).await.unwrap_err().is_circuit_open());
    assert_eq!(rig.seen(), seen);
}

#[tokio::test]
async fn after_the_open_time_one_probe_goes_out_and_its_success_lets_all_pass() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let store = Memory::new(&rig);
    trip(&rig, &store).await;
    let others = [(); 3].map(|()| sandbox(&rig, Arc::clone(&store)));
    for other in &others {
        other.breaker().sync_fleet().await;
    }
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    rig.clock.advance(Duration::from_secs(2));
    let seen = rig.seen();
    post(&others[0]).await.unwrap();
    // The probe's success is told in a task of its own.
    while others[0].breaker().state() != CircuitState::Closed {
        tokio::task::yield_now().await;
    }
    for other in &others {
        post(other).await.unwrap();
    }
    assert_eq!(rig.seen(), seen + 4);
}

#[tokio::test]
async fn a_failed_probe_keeps_the_whole_fleet_away_for_another_open_time() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let store = Memory::new(&rig);
    trip(&rig, &store).await;
    let others = [(); 2].map(|()| sandbox(&rig, Arc::clone(&store)));
    for other in &others {
        other.breaker().sync_fleet().await;
    }
    rig.clock.advance(Duration::from_secs(2));
    let seen = rig.seen();
    assert_eq!(post(&others[0]).await.unwrap_err().stop_reason(), Some(StopReason::CircuitOpen));
    assert!(post(&others[1]).await.unwrap_err().is_circuit_open());
    assert_eq!(rig.seen(), seen + 1);
}

#[tokio::test]
async fn a_store_that_is_gone_or_hangs_changes_nothing_for_a_call() {
    for hangs in [false, true] {
        let rig = Rig::answering([Reply::unavailable(), Reply::unavailable(), Reply::ok()]).await;
        let client = sandbox(&rig, Broken { hangs });
        let answer = post(&client).await.unwrap();
        assert_eq!((answer.attempts().len(), client.breaker().state()), (3, CircuitState::Closed));
        post(&client).await.unwrap();
    }
}

#[tokio::test]
async fn healthy_calls_and_those_that_are_rightly_refused_are_no_failures_of_the_fleet() {
    let rig = Rig::answering([Reply::ok(), Reply::json(404, "{}"), Reply::throttled(), Reply::ok()]).await;
    let store = Memory::new(&rig);
    let client = sandbox(&rig, Arc::clone(&store));
    for _ in 0..3 {
        let _ = post(&client).await;
    }
    client.breaker().sync_fleet().await;
    assert!(store.exchanges() >= 1);
    let reports = store.reports.lock().unwrap();
    assert!(reports.iter().all(|report| report.failures == 0), "{reports:?}");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_its_callee_hangs_is_told_of_to_nobody() {
    let rig = Rig::answering([Reply::hang()]).await;
    let store = Memory::new(&rig);
    let client = sandbox(&rig, Arc::clone(&store));
    let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
    rig.gateway.wait_for_attempts(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    client.breaker().sync_fleet().await;
    assert!(store.reports.lock().unwrap().iter().all(Report::is_silent));
    let hung =
        client.post(&CallContext::root(), "/orders").attempt_timeout(SHORT).max_attempts(1).send().await;
    assert_eq!(hung.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_setting_or_a_name_that_makes_no_sense_is_refused_when_the_client_is_built() {
    let rig = Rig::answering([Reply::ok()]).await;
    let store = Memory::new(&rig);
    let field =
        |breaker| rig.builder().breaker(out_of_reach()).fleet_breaker(breaker).build().unwrap_err().field();
    assert_eq!(field(FleetBreaker::new("or{ders", Arc::clone(&store))), Some("fleet_breaker"));
    let settings = FleetSettings::default().with_failure_percent(0);
    assert_eq!(field(FleetBreaker::new("orders", store).settings(settings)), Some("failure_percent"));
}
