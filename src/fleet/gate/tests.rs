//! The gate over fake stores on paused time: no socket, no real wait.

use super::*;
use crate::circuit::CircuitBreaker;
use crate::edge::ambient::System;
use crate::fleet::store::{StoreError, StoreFuture};
use crate::policy::attempts::{Decision, StopReason};
use crate::policy::breaker::BreakerSettings;
use crate::policy::fleet::shared::SharedState;
use crate::policy::moment::Draw;
use crate::policy::retry_budget::RetryToken;
use std::future::pending;
use std::pin::Pin;
use std::time::SystemTime;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(10);

/// Tokio's clock, which stands still unless it is waited for, and dice that always show their lowest: all is written.
struct World;

impl Ambient for World {
    fn now(&self) -> Moment {
        Moment { wall: SystemTime::UNIX_EPOCH, ..System.now() }
    }

    fn draw(&self) -> Draw {
        Draw::LOWEST
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        System.sleep(wait)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Fails,
    Hangs,
    Panics,
    Works,
}

/// The pure state behind a lock, as a store of one process.
struct Fake {
    mood: Mutex<Mood>,
    state: Mutex<SharedState>,
    reports: Mutex<Vec<Report>>,
    start: Moment,
}

impl Fake {
    fn new(mood: Mood) -> Arc<Fake> {
        let state = Mutex::default();
        Arc::new(Fake { mood: Mutex::new(mood), state, reports: Mutex::default(), start: World.now() })
    }

    fn turns(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn seen(&self) -> usize {
        self.reports.lock().unwrap().len()
    }

    fn say(&self, report: Report) -> View {
        let since = World.now().monotonic.saturating_duration_since(self.start.monotonic);
        self.state.lock().unwrap().exchange(&settings(), &report, LONG * 100 + since)
    }

    /// Trips the circuit in another process's name.
    fn trip(&self) {
        assert!(self.say(Report { failures: 50, stands_for: 50, ..Report::default() }).is_tripped());
    }
}

impl FleetStore for Fake {
    fn exchange<'a>(&'a self, _: &'a str, _: &'a FleetSettings, report: &'a Report) -> StoreFuture<'a, View> {
        self.reports.lock().unwrap().push(*report);
        let mood = *self.mood.lock().unwrap();
        Box::pin(async move {
            match mood {
                Mood::Fails => Err(StoreError::new("it is gone")),
                Mood::Hangs => pending().await,
                Mood::Panics => panic!("no store"),
                Mood::Works => Ok(self.say(*report)),
            }
        })
    }
}

fn settings() -> FleetSettings {
    FleetSettings::default().with_first_one_in(1)
}

fn gate_of(store: &Arc<Fake>) -> Gate {
    Gate::new("orders".to_owned(), Arc::<Fake>::clone(store), settings(), Arc::new(World))
}

fn circuit_of(store: &Arc<Fake>) -> CircuitBreaker {
    CircuitBreaker::new(BreakerSettings::default(), Arc::new(World), Arc::default())
        .with_fleet(Some(gate_of(store)))
}

/// How much of tokio's time a future takes.
async fn takes<T>(future: impl Future<Output = T>) -> (Duration, T) {
    let start = World.now();
    let done = future.await;
    (World.now().monotonic - start.monotonic, done)
}

async fn attempt(gate: &Gate, effect: Effect) {
    let now = World.now();
    gate.settle(now, false, effect, now);
    gate.tell(LONG).await;
}

async fn let_tasks_run() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn retry() -> Decision {
    Decision::Retry(MS, RetryToken::free())
}

#[tokio::test(start_paused = true)]
async fn a_healthy_call_waits_for_no_store_however_it_hangs() {
    let store = Fake::new(Mood::Hangs);
    let gate = gate_of(&store);
    let (time, admission) = takes(gate.admit(World.now(), LONG)).await;
    assert_eq!((time, admission), (Duration::ZERO, Admission::Admit));
    let (time, ()) = takes(attempt(&gate, Effect::Success)).await;
    assert_eq!((time, store.seen()), (Duration::ZERO, 0));
    let_tasks_run().await;
    assert_eq!(store.seen(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_store_costs_a_failed_attempt_50_ms_once_and_is_then_left_alone() {
    let store = Fake::new(Mood::Hangs);
    let gate = gate_of(&store);
    assert_eq!(takes(attempt(&gate, Effect::Failure)).await.0, 50 * MS);
    for _ in 0..10 {
        assert_eq!(takes(attempt(&gate, Effect::Failure)).await.0, Duration::ZERO);
    }
    assert_eq!(store.seen(), 1);
    System.sleep(1_000 * MS).await;
    assert_eq!(takes(attempt(&gate, Effect::Failure)).await.0, 50 * MS);
    assert_eq!(gate.admit(World.now(), LONG).await, Admission::Admit);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_calls_that_fail_at_once_wait_for_one_exchange_between_them() {
    let store = Fake::new(Mood::Hangs);
    let gate = Arc::new(gate_of(&store));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let gate = Arc::clone(&gate);
        calls.spawn(async move { attempt(&gate, Effect::Failure).await });
    }
    let (time, _) = takes(calls.join_all()).await;
    assert_eq!((time, store.seen()), (50 * MS, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_call_s_time_bounds_the_wait_too() {
    let gate = gate_of(&Fake::new(Mood::Hangs));
    let now = World.now();
    gate.settle(now, false, Effect::Failure, now);
    assert_eq!(takes(gate.tell(7 * MS)).await.0, 7 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_gone_lets_everything_pass() {
    let store = Fake::new(Mood::Works);
    let gate = gate_of(&store);
    store.trip();
    attempt(&gate, Effect::Failure).await;
    assert_eq!(gate.state(World.now()), State::Open);
    store.turns(Mood::Fails);
    System.sleep(2_000 * MS).await;
    assert_eq!(gate.admit(World.now(), LONG).await, Admission::Admit);
    for _ in 0..100 {
        attempt(&gate, Effect::Failure).await;
        assert_eq!(gate.admit(World.now(), LONG).await, Admission::Admit);
    }
    assert_eq!(store.seen(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_tells_a_process_that_the_fleet_has_tripped_and_ends_its_retries() {
    let store = Fake::new(Mood::Works);
    store.trip();
    let circuit = circuit_of(&store);
    let now = World.now();
    let permit = circuit.admit(now, LONG).await.ok().unwrap();
    assert!(!permit.settle(Effect::Failure, now, Draw::LOWEST));
    let decision = circuit.consulted(retry(), LONG).await;
    assert!(matches!(decision, Decision::Stop(StopReason::CircuitOpen)));
    assert_eq!((circuit.state(), circuit.retry_after()), (State::Open, Some(2_000 * MS)));
    assert_eq!(circuit.admit(now, LONG).await.err(), Some(2_000 * MS));
}

#[tokio::test(start_paused = true)]
async fn of_many_processes_one_gets_the_probe_and_its_success_closes_the_circuit() {
    let store = Fake::new(Mood::Works);
    store.trip();
    let gates: Vec<_> = (0..20).map(|_| gate_of(&store)).collect();
    for gate in &gates {
        gate.sync(LONG).await;
    }
    System.sleep(2_000 * MS).await;
    let mut admissions = Vec::new();
    for gate in &gates {
        admissions.push(gate.admit(World.now(), LONG).await);
    }
    assert_eq!(admissions.iter().filter(|admission| **admission == Admission::Probe).count(), 1);
    assert!(admissions.iter().all(|one| matches!(one, Admission::Probe | Admission::Refuse(_))));
    assert_eq!((gates[0].state(World.now()), gates[1].state(World.now())), (State::HalfOpen, State::Open));
    let now = World.now();
    gates[0].settle(now, true, Effect::Success, now);
    let_tasks_run().await;
    System.sleep(1_000 * MS).await;
    assert_eq!(gates[1].admit(World.now(), LONG).await, Admission::Admit);
    assert_eq!(gates[1].state(World.now()), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_asks_harms_nothing() {
    let store = Fake::new(Mood::Works);
    store.trip();
    let circuit = circuit_of(&store);
    circuit.sync_fleet().await;
    System.sleep(2_000 * MS).await;
    store.turns(Mood::Hangs);
    let dropped = tokio::time::timeout(MS, circuit.admit(World.now(), LONG)).await;
    assert!(dropped.is_err());
    // The exchange goes on by itself and frees its place when its time is over.
    assert_eq!(circuit.admit(World.now(), LONG).await.err(), Some(50 * MS));
    System.sleep(50 * MS).await;
    assert!(circuit.admit(World.now(), LONG).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_dropped_is_told_of_to_nobody() {
    let store = Fake::new(Mood::Works);
    let circuit = circuit_of(&store);
    drop(circuit.admit(World.now(), LONG).await);
    circuit.sync_fleet().await;
    assert!(store.reports.lock().unwrap().iter().all(Report::is_silent));
}

#[tokio::test(start_paused = true)]
async fn a_circuit_held_closed_by_hand_asks_nobody() {
    let store = Fake::new(Mood::Works);
    store.trip();
    let circuit = circuit_of(&store);
    circuit.sync_fleet().await;
    assert_eq!(circuit.state(), State::Open);
    circuit.force_closed();
    assert_eq!((circuit.state(), circuit.retry_after()), (State::Closed, None));
    assert!(circuit.admit(World.now(), LONG).await.is_ok());
    circuit.reset();
    assert_eq!(circuit.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn the_local_breaker_is_asked_first() {
    let store = Fake::new(Mood::Works);
    let circuit = circuit_of(&store);
    circuit.force_open();
    assert!(circuit.admit(World.now(), LONG).await.is_err());
    assert_eq!(store.seen(), 0);
}

#[test]
fn without_a_runtime_there_are_no_exchanges_and_all_is_admitted() {
    let store = Fake::new(Mood::Works);
    let gate = gate_of(&store);
    let now = World.now();
    gate.settle(now, false, Effect::Success, now);
    assert_eq!(store.seen(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_sandbox_was_frozen_over_is_not_held_against_the_store() {
    let store = Fake::new(Mood::Hangs);
    let gate = gate_of(&store);
    let now = World.now();
    gate.settle(now, false, Effect::Success, now);
    let_tasks_run().await;
    // Longer than any exchange: the task wakes to a clock that ran on without it.
    tokio::time::advance(LONG).await;
    let_tasks_run().await;
    store.turns(Mood::Works);
    attempt(&gate, Effect::Failure).await;
    let told = store.reports.lock().unwrap().last().copied().unwrap();
    assert_eq!((told.failures, told.successes), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_left_alone_like_one_that_fails() {
    let store = Fake::new(Mood::Panics);
    let gate = gate_of(&store);
    for _ in 0..10 {
        attempt(&gate, Effect::Failure).await;
        assert_eq!(gate.admit(World.now(), LONG).await, Admission::Admit);
    }
    assert_eq!(store.seen(), 1);
    store.turns(Mood::Works);
    tokio::time::advance(LONG).await;
    attempt(&gate, Effect::Failure).await;
    assert_eq!(store.seen(), 2);
}
