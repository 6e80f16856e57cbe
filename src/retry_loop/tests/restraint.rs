//! Pace and counters in the loop: what is asked in which order, and what goes back.

use super::*;
use crate::policy::rate_limit::RateLimit;

const MILLI: Duration = Duration::from_millis(1);

fn paced(script: impl IntoIterator<Item = Step>, rate: RateLimit, in_flight: u32) -> Rig {
    let mut rig = Rig::new(script);
    rig.gates.pace = Pace::new(Some(rate), Some(in_flight), Runtime.now());
    rig
}

fn one_a_second() -> RateLimit {
    RateLimit::per_second(1)
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_is_asked_before_every_attempt_and_after_the_wait_of_a_retry() {
    let rig = paced([UNAVAILABLE, OK], one_a_second(), 1);
    rig.call().await.unwrap();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![100, 900]));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_admitted_by_the_priority_of_its_call() {
    for (priority, waits) in [(Priority::Critical, vec![]), (Priority::Bulk, vec![100])] {
        let mut rig = paced([OK], RateLimit::per_second(10), 1);
        rig.bounds.priority = Priority::Critical;
        for _ in 0..6 {
            rig.call().await.unwrap();
        }
        rig.bounds.priority = priority;
        for _ in 0..2 {
            rig.call().await.unwrap();
        }
        assert_eq!(rig.waits(), waits, "{priority:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_admitted_too_late_sends_nothing_and_says_when_to_come_back() {
    let mut rig = paced([OK], one_a_second(), 1);
    rig.call().await.unwrap();
    rig.bounds.total = Duration::from_millis(500);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), rig.waits()), (1, vec![]));
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::RateLimited, Some(StopReason::RateLimited)));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert!(error.to_string().contains("nothing was sent") && !error.may_have_committed(), "{error}");
    let usage = rig.gates.usage.usage(Runtime.now().monotonic);
    assert_eq!((usage.calls, usage.attempts, usage.refused_by_rate_limit), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_admitted_too_late_ends_the_call_with_its_last_outcome() {
    let mut rig = paced([UNAVAILABLE], one_a_second(), 1);
    rig.bounds.total = Duration::from_millis(500);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.stop_reason()), (1, Some(StopReason::RateLimited)));
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (ErrorKind::Unavailable, 503));
    assert_eq!(rig.gates.usage.usage(Runtime.now().monotonic).refused_by_rate_limit, 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_not_waited_for_at_the_rate_limit() {
    let rig = paced([OK], one_a_second(), 1);
    rig.call().await.unwrap();
    rig.gates.circuit.force_open();
    assert!(rig.call().await.unwrap_err().is_circuit_open());
    assert_eq!((rig.sent(), rig.waits()), (1, vec![]));
    assert_eq!(rig.gates.usage.usage(Runtime.now().monotonic).refused_by_circuit, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_breaker_refuses_after_the_wait_gives_token_and_place_back() {
    let rig = paced([OK], one_a_second(), 1);
    rig.call().await.unwrap();
    let opened = async {
        Runtime.sleep(500 * MILLI).await;
        rig.gates.circuit.force_open();
    };
    let (call, ()) = tokio::join!(rig.call(), opened);
    assert!(call.unwrap_err().is_circuit_open());
    assert_eq!((rig.sent(), rig.waits()), (1, vec![1_000]));
    assert_eq!(rig.gates.pace.rests(Runtime.now()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn without_credentials_or_time_token_and_place_go_back() {
    let mut rig = paced([OK], one_a_second(), 1);
    rig.fake.no_identity = true;
    assert_eq!(rig.call().await.unwrap_err().kind(), ErrorKind::Credentials);
    assert_eq!(rig.gates.pace.rests(Runtime.now()), (1, 1));
    rig.fake.no_identity = false;
    rig.fake.identity_takes = 980 * MILLI;
    rig.bounds.total = Duration::from_secs(1);
    assert_eq!(rig.call().await.unwrap_err().stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert_eq!((rig.sent(), rig.gates.pace.rests(Runtime.now())), (0, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_next_attempt_holds_no_place() {
    let rig = paced([UNAVAILABLE, OK], RateLimit::per_second(100), 1);
    let start = Runtime.now().monotonic;
    let second = async {
        Runtime.sleep(50 * MILLI).await;
        rig.call().await.unwrap();
        Runtime.now().monotonic - start
    };
    let (first, second) = tokio::join!(rig.call(), second);
    first.unwrap();
    assert_eq!((rig.sent(), second), (3, 50 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_time_gives_back_all_that_it_held() {
    let mut dropped = 0;
    for millis in (1..460).step_by(3) {
        let script = [UNAVAILABLE, Step::Answer(429, &[]), Step::Lose, OK];
        let mut rig = paced(script, RateLimit::per_second(10).burst(2), 1);
        rig.gates.budget = RetryBudget::new(5);
        (rig.fake.identity_takes, rig.fake.takes) = (17 * MILLI, 23 * MILLI);
        dropped += u32::from(tokio::time::timeout(millis * MILLI, rig.call()).await.is_err());
        let usage = rig.gates.usage.usage(Runtime.now().monotonic);
        let sent = u64::try_from(rig.sent()).unwrap();
        assert!(usage.tokens <= sent && sent <= usage.tokens + usage.in_doubt, "{millis} ms: {usage:?}");
        assert_eq!(usage.attempts, sent, "{millis} ms");
        let spent = 10 * usage.retries;
        assert_eq!(rig.gates.budget.available_tenths(), Some(50 - spent), "{millis} ms");
        Runtime.sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.gates.pace.rests(Runtime.now()), (2, 1), "{millis} ms");
    }
    assert!(dropped > 100, "{dropped}");
}

#[tokio::test(start_paused = true)]
async fn a_429_makes_the_others_wait_as_long_as_it_asks() {
    let mut rig = paced([Step::Answer(429, &[("retry-after", "3")]), OK], RateLimit::per_second(10), 5);
    rig.terms.max_attempts = 1;
    rig.call().await.unwrap_err();
    rig.call().await.unwrap();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![3_200]));
}

#[tokio::test(start_paused = true)]
async fn a_recovery_is_an_attempt_and_a_token_and_no_retry() {
    let expired = Step::Answer(403, &[("x-amzn-errortype", "ExpiredTokenException")]);
    let rig = Rig::new([expired, UNAVAILABLE, Step::Refuse, OK]);
    rig.call().await.unwrap();
    let usage = rig.gates.usage.usage(Runtime.now().monotonic);
    assert_eq!((usage.calls, usage.attempted, usage.attempts, usage.retries), (1, 1, 4, 2));
    assert_eq!((usage.tokens, usage.in_doubt), (3, 0));
}
