//! The store dies, hangs and comes back while calls run.

use crate::calls::{Rig, post, settings, trip};
use crate::server::{Server, pause};
use eastwest::fleet::{FleetSettings, FleetStore, Report};
use eastwest::testing::Reply;
use eastwest::{CallContext, CircuitState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Calls of several sandboxes, half of whose attempts fail, for as long as `meanwhile` takes. Every one of them must
/// come to what its callee answers.
async fn calls_run<T>(rig: &Rig, server: &Server, meanwhile: impl Future<Output = T>) -> T {
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (client, clock) = (rig.sandbox(server), rig.clock.clone());
        let (over, done) = (Arc::clone(&over), Arc::clone(&done));
        callers.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                client.post(&CallContext::root(), "/orders").max_attempts(20).send().await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
                clock.advance(Duration::from_millis(400));
            }
        });
    }
    has_done(&done, 40).await;
    let result = meanwhile.await;
    let before = done.load(Ordering::Relaxed);
    has_done(&done, before + 40).await;
    over.store(true, Ordering::Relaxed);
    callers.join_all().await;
    result
}

async fn has_done(done: &AtomicUsize, calls: usize) {
    while done.load(Ordering::Relaxed) < calls {
        pause(Duration::from_millis(1)).await;
    }
}

/// Half of all attempts fail: never enough to trip.
fn flaky() -> Vec<Reply> {
    (0..4_000)
        .map(|number| if number % 2 == 0 { Reply::unavailable() } else { Reply::ok() })
        .chain([Reply::ok()])
        .collect()
}

#[tokio::test]
async fn a_store_that_is_killed_and_started_again_while_calls_run_fails_none_of_them() {
    let server = Server::start().await;
    let rig = Rig::answering(flaky()).await;
    calls_run(&rig, &server, async { server.kill() }).await;
    calls_run(&rig, &server, server.restart()).await;
}

#[tokio::test]
async fn a_store_that_hangs_while_calls_run_fails_none_of_them() {
    let server = Server::start().await;
    let rig = Rig::answering(flaky()).await;
    calls_run(&rig, &server, async { server.pause() }).await;
    calls_run(&rig, &server, async { server.resume() }).await;
}

#[tokio::test]
async fn a_fleet_that_was_refused_calls_again_when_the_store_is_gone() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::unavailable()]).await;
    let sandbox = rig.sandbox(&server);
    trip(&rig, &sandbox).await;
    assert!(post(&sandbox).await.unwrap_err().is_circuit_open());
    server.kill();
    rig.clock.advance(Duration::from_secs(2));
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    post(&sandbox).await.unwrap();
    post(&sandbox).await.unwrap();
}

#[tokio::test]
async fn a_fleet_that_was_refused_calls_again_when_the_store_hangs() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::unavailable()]).await;
    let sandbox = rig.sandbox(&server);
    trip(&rig, &sandbox).await;
    server.pause();
    rig.clock.advance(Duration::from_secs(2));
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    post(&sandbox).await.unwrap();
    post(&sandbox).await.unwrap();
}

#[tokio::test]
async fn a_store_that_comes_back_is_used_again_and_trips_again() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::unavailable()]).await;
    let (one, other) = (rig.sandbox(&server), rig.sandbox(&server));
    post(&one).await.unwrap_err();
    server.kill();
    rig.clock.advance(Duration::from_secs(2));
    post(&one).await.unwrap_err();
    server.restart().await;
    // Past the longest that a store is left alone.
    rig.clock.advance(Duration::from_secs(60));
    trip(&rig, &one).await;
    other.breaker().sync_fleet().await;
    assert_eq!(other.breaker().state(), CircuitState::Open);
}

#[tokio::test]
async fn a_connection_that_died_while_nobody_looked_is_made_anew_within_the_exchange() {
    let server = Server::start().await;
    let (store, report) = (server.store(), Report::default().with_failures(1).with_stands_for(1));
    let d = FleetSettings::default();
    store.exchange("orders", &d, &report).await.unwrap();
    server.kill();
    server.restart().await;
    store.exchange("orders", &d, &report).await.unwrap();
}

#[tokio::test]
async fn an_exchange_that_is_given_up_leaves_no_connection_behind_that_hangs() {
    let server = Server::start().await;
    let (store, d, look) = (server.store(), FleetSettings::default(), Report::default());
    store.exchange("orders", &d, &look).await.unwrap();
    server.pause();
    let given_up = tokio::time::timeout(Duration::from_millis(20), store.exchange("orders", &d, &look));
    assert!(given_up.await.is_err());
    server.resume();
    store.exchange("orders", &d, &look).await.unwrap();
}

#[tokio::test]
async fn a_call_dropped_while_it_waits_for_the_store_harms_nothing() {
    let server = Server::start().await;
    let rig = Rig::answering([Reply::unavailable()]).await;
    let sandbox = rig.sandbox(&server);
    post(&sandbox).await.unwrap_err();
    rig.clock.advance(Duration::from_secs(2));
    server.pause();
    let seen = rig.seen();
    let call = tokio::spawn(sandbox.post(&CallContext::root(), "/orders").max_attempts(1).send());
    rig.gateway.wait_for_attempts(seen + 1).await;
    pause(settings().store_budget() / 20).await;
    call.abort();
    let _ = call.await;
    server.resume();
    rig.clock.advance(Duration::from_secs(60));
    trip(&rig, &sandbox).await;
}
