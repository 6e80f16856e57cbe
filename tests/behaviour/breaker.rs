//! The breaker looks at every attempt, of every clone, and lets no slot get lost.

use crate::rig::{Rig, SHORT, builder};
use eastwest::policy::breaker::{BreakerSettings, State};
use eastwest::testing::Reply;
use eastwest::{CallContext, ErrorKind, ServiceClient, StopReason};
use std::time::Duration;
use tokio::task::JoinSet;

fn after(failures: u32) -> BreakerSettings {
    BreakerSettings::default().with_failures_in_row(failures)
}

/// A client whose breaker one failure has opened and whose open time is over.
async fn ready_to_probe(rig: &Rig) -> ServiceClient {
    let client = rig.builder().breaker(after(1)).max_attempts(1).build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!(client.breaker().state(), State::Open);
    rig.clock.advance(Duration::from_secs(4));
    client
}

#[tokio::test]
async fn a_probe_that_counts_for_nothing_gives_its_slot_back() {
    let oversized = Reply::json(200, "x".repeat(100));
    let probes = [Reply::json(404, "{}"), Reply::throttled(), Reply::no_such_route(), oversized];
    for probe in probes {
        let rig = Rig::answering([Reply::unavailable(), probe, Reply::ok()]).await;
        let client = ready_to_probe(&rig).await;
        let probe = client.post(&CallContext::root(), "/orders").response_body_limit(50).send().await;
        assert!(!probe.unwrap_err().is_circuit_open());
        client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!((rig.seen(), client.breaker().state()), (3, State::Closed));
    }
}

#[tokio::test]
async fn a_probe_that_could_not_be_signed_or_is_too_large_gives_its_slot_back() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    let client = ready_to_probe(&rig).await;
    let large = client.post(&CallContext::root(), "/orders").header("x-big", "x".repeat(10_240)).send().await;
    assert_eq!(large.unwrap_err().kind(), ErrorKind::TooLarge);
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!((rig.seen(), client.breaker().state()), (2, State::Closed));
}

#[tokio::test]
async fn a_probe_whose_body_does_not_decode_is_a_success_for_the_breaker() {
    let rig = Rig::answering([Reply::unavailable(), Reply::json(200, "<html>")]).await;
    let client = ready_to_probe(&rig).await;
    let answer = client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(answer.json::<Vec<u8>>().unwrap_err().kind(), ErrorKind::Decode);
    assert_eq!(client.breaker().state(), State::Closed);
}

#[tokio::test]
async fn a_probe_that_is_dropped_gives_its_slot_back() {
    let rig = Rig::answering([Reply::unavailable(), Reply::hang(), Reply::ok()]).await;
    let client = ready_to_probe(&rig).await;
    let dropped = client.post(&CallContext::root(), "/orders").send();
    let probe = tokio::spawn(dropped);
    rig.gateway.wait_for_attempts(2).await;
    probe.abort();
    assert!(probe.await.unwrap_err().is_cancelled());
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
}

#[tokio::test]
async fn when_the_open_time_ends_one_of_fifty_callers_probes() {
    let rig = Rig::answering([Reply::unavailable(), Reply::hang()]).await;
    let client = ready_to_probe(&rig).await;
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let call = client.post(&CallContext::root(), "/orders").attempt_timeout(SHORT);
        calls.spawn(async move { call.send().await.unwrap_err().is_circuit_open() });
    }
    let refused = calls.join_all().await.into_iter().filter(|refused| *refused).count();
    assert_eq!((rig.seen(), refused), (2, 49));
}

#[tokio::test]
async fn refusals_do_not_open_it_and_do_not_end_a_run_of_failures() {
    let rig = Rig::answering([Reply::json(400, "{}")]).await;
    let client = rig.builder().breaker(after(3)).max_attempts(1).build().unwrap();
    for _ in 0..10 {
        client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    }
    assert_eq!(client.breaker().state(), State::Closed);
    let bad = Reply::unavailable;
    let rig = Rig::answering([bad(), bad(), Reply::json(400, "{}"), bad()]).await;
    let client = rig.builder().breaker(after(3)).max_attempts(1).build().unwrap();
    for _ in 0..4 {
        client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    }
    assert_eq!(client.breaker().state(), State::Open);
}

#[tokio::test]
async fn an_open_breaker_ends_the_call_with_the_earlier_error_and_is_not_waited_for() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let client = rig.builder().breaker(after(5)).build().unwrap();
    let send = || client.post(&CallContext::root(), "/orders").send();
    let first = send().await.unwrap_err();
    assert_eq!((rig.seen(), first.stop_reason()), (4, Some(StopReason::AttemptsExhausted)));
    let waits = rig.waits().len();
    let second = send().await.unwrap_err();
    assert_eq!((rig.seen(), second.stop_reason()), (5, Some(StopReason::CircuitOpen)));
    assert_eq!((second.kind(), second.status().unwrap().as_u16()), (ErrorKind::Unavailable, 503));
    assert_eq!(rig.waits().len(), waits);
    let third = send().await.unwrap_err();
    assert_eq!((rig.seen(), third.kind()), (5, ErrorKind::CircuitOpen));
    assert!(third.retry_after().is_some_and(|wait| wait <= Duration::from_millis(2_400)));
}

#[tokio::test]
async fn clones_share_it_and_a_client_of_another_callee_does_not() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let one = rig.builder().breaker(after(1)).build().unwrap();
    let clone = one.clone();
    one.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!(clone.breaker().state(), State::Open);
    assert!(clone.post(&CallContext::root(), "/orders").send().await.unwrap_err().is_circuit_open());
    let other = builder(format!("{}/v2", rig.gateway.base_url())).breaker(after(1)).build().unwrap();
    assert_eq!(other.breaker().state(), State::Closed);
}

#[tokio::test]
async fn two_records_that_get_500_each_time_do_not_open_it_and_an_outage_does() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let client = rig.builder().breaker(BreakerSettings::default()).max_attempts(3).build().unwrap();
    let send = || client.post(&CallContext::root(), "/orders").send();
    send().await.unwrap_err();
    send().await.unwrap_err();
    assert_eq!((rig.seen(), client.breaker().state()), (6, State::Closed));
    for _ in 0..3 {
        send().await.unwrap_err();
    }
    assert_eq!(client.breaker().state(), State::Open);
}

#[tokio::test]
async fn it_can_be_held_open_or_closed_by_hand() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    client.breaker().force_open();
    assert!(client.get(&CallContext::root(), "/orders").send().await.unwrap_err().is_circuit_open());
    client.breaker().reset();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(rig.seen(), 1);
}
