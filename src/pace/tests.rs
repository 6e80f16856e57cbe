//! The pace on paused time: who waits for how long, and what a dropped future gives back.

use super::*;
use crate::edge::hand::Runtime;
use crate::policy::moment::some_moment;
use std::sync::Arc;
use tokio::task::{JoinHandle, JoinSet, yield_now};

const SECOND: Duration = Duration::from_secs(1);

fn budget(total: Duration) -> TimeBudget {
    TimeBudget::new(Runtime.now().monotonic, total, None, Duration::ZERO)
}

fn pace(rate: Option<RateLimit>, in_flight: Option<u32>) -> Arc<Pace> {
    Arc::new(Pace::new(rate, in_flight, Runtime.now()))
}

async fn admit(pace: &Pace, total: Duration, priority: Priority) -> Result<Slot<'_>, Late> {
    pace.admit(&Runtime, budget(total), priority).await
}

/// Sends one attempt, which takes so long, and answers when it began.
fn attempt(pace: &Arc<Pace>, priority: Priority, takes: Duration) -> JoinHandle<Moment> {
    let pace = Arc::clone(pace);
    tokio::spawn(async move {
        let mut slot = admit(&pace, SECOND * 600, priority).await.unwrap_or_else(|late| panic!("{late:?}"));
        slot.sends(Runtime.now());
        let began = Runtime.now();
        Runtime.sleep(takes).await;
        drop(slot);
        began
    })
}

fn available(pace: &Pace) -> u32 {
    pace.rests(Runtime.now()).0
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fits_is_waited_and_one_that_does_not_ends_at_once() {
    let pace = pace(Some(RateLimit::per_second(1)), None);
    let start = Runtime.now();
    admit(&pace, SECOND, Priority::Normal)
        .await
        .unwrap_or_else(|late| panic!("{late:?}"))
        .sends(Runtime.now());
    let late = admit(&pace, SECOND / 2, Priority::Normal).await.err();
    assert_eq!((late, Runtime.now().monotonic), (Some(Late::Rate(SECOND)), start.monotonic));
    admit(&pace, SECOND * 2, Priority::Normal)
        .await
        .unwrap_or_else(|late| panic!("{late:?}"))
        .sends(Runtime.now());
    assert_eq!(Runtime.now().monotonic - start.monotonic, SECOND);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_start_one_by_one_and_the_more_important_first() {
    let pace = pace(Some(RateLimit::per_second(1)), None);
    let start = Runtime.now();
    let mut calls = Vec::new();
    for priority in [Priority::Critical, Priority::Bulk, Priority::Bulk, Priority::Normal, Priority::Critical]
    {
        calls.push(attempt(&pace, priority, Duration::ZERO));
        yield_now().await;
    }
    let mut began = Vec::new();
    for call in calls {
        began.push((call.await.unwrap().monotonic - start.monotonic).as_secs());
    }
    assert_eq!(began, [0, 3, 4, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiting_calls_start_at_the_rate_and_none_is_forgotten() {
    let pace = pace(Some(RateLimit::per_second(100).burst(1)), None);
    let start = Runtime.now();
    let mut calls = JoinSet::new();
    for number in 0..1_000 {
        let pace = Arc::clone(&pace);
        let priority = [Priority::Bulk, Priority::Normal, Priority::Critical][number % 3];
        calls.spawn(async move {
            let mut slot =
                admit(&pace, SECOND * 60, priority).await.unwrap_or_else(|late| panic!("{late:?}"));
            slot.sends(Runtime.now());
            Runtime.now().monotonic
        });
    }
    let mut began = calls.join_all().await;
    began.sort_unstable();
    let took = *began.last().unwrap() - start.monotonic;
    assert!(took >= SECOND * 999 / 100 && took <= SECOND * 13, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_while_it_waits_leaves_the_line_and_takes_nothing() {
    let pace = pace(Some(RateLimit::per_second(1)), None);
    attempt(&pace, Priority::Normal, Duration::ZERO).await.unwrap();
    let waiting = attempt(&pace, Priority::Critical, Duration::ZERO);
    yield_now().await;
    assert_eq!(pace.rate.as_ref().unwrap().lock().wait(Runtime.now(), Priority::Bulk), SECOND * 2);
    waiting.abort();
    waiting.await.unwrap_err();
    assert_eq!(pace.rate.as_ref().unwrap().lock().wait(Runtime.now(), Priority::Bulk), SECOND);
}

#[tokio::test(start_paused = true)]
async fn who_stood_behind_those_that_left_waits_no_longer_than_without_them() {
    let pace = pace(Some(RateLimit::per_second(1)), None);
    attempt(&pace, Priority::Normal, Duration::ZERO).await.unwrap();
    let start = Runtime.now();
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(attempt(&pace, Priority::Normal, Duration::ZERO));
        yield_now().await;
    }
    let last = calls.pop().unwrap();
    for call in calls {
        call.abort();
        call.await.unwrap_err();
    }
    assert_eq!(last.await.unwrap().monotonic - start.monotonic, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_what_was_not_sent_goes_back_and_one_of_what_was_does_not() {
    let pace = pace(Some(RateLimit::per_second(4).reserve_for_critical(0)), Some(1));
    let slot =
        || async { admit(&pace, SECOND, Priority::Normal).await.unwrap_or_else(|late| panic!("{late:?}")) };
    drop(slot().await);
    assert_eq!(available(&pace), 4);
    let mut unsigned = slot().await;
    unsigned.sends(Runtime.now());
    unsigned.unsent();
    drop(unsigned);
    assert_eq!(available(&pace), 4);
    let mut sent = slot().await;
    sent.sends(Runtime.now());
    drop(sent);
    assert_eq!(available(&pace), 3);
    let mut never_sent = slot().await;
    never_sent.unsent();
    drop(never_sent);
    assert_eq!(available(&pace), 3, "what was never on its way goes back once");
}

#[tokio::test(start_paused = true)]
async fn as_many_as_may_be_are_in_flight_and_the_next_waits_for_a_place() {
    let pace = pace(None, Some(2));
    let start = Runtime.now();
    let calls: Vec<_> = (0..4).map(|_| attempt(&pace, Priority::Critical, SECOND)).collect();
    let mut began = Vec::new();
    for call in calls {
        began.push((call.await.unwrap().monotonic - start.monotonic).as_secs());
    }
    assert_eq!(began, [0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_does_not_become_free_is_waited_for_no_longer_than_there_is_time() {
    let pace = pace(Some(RateLimit::per_second(10)), Some(1));
    let held = attempt(&pace, Priority::Normal, SECOND * 100);
    yield_now().await;
    let start = Runtime.now();
    assert_eq!(admit(&pace, SECOND * 3, Priority::Critical).await.err(), Some(Late::InFlight));
    assert_eq!((Runtime.now().monotonic - start.monotonic).as_secs(), 3);
    assert_eq!(available(&pace), 10, "who waits for a place holds no token");
    held.abort();
    held.await.unwrap_err();
    admit(&pace, SECOND, Priority::Critical).await.unwrap_or_else(|late| panic!("{late:?}"));
}

#[tokio::test(start_paused = true)]
async fn however_much_bulk_waits_what_is_critical_finds_a_place() {
    let pace = pace(None, Some(10));
    let bulk: Vec<_> = (0..100).map(|_| attempt(&pace, Priority::Bulk, SECOND * 10)).collect();
    yield_now().await;
    let start = Runtime.now();
    let normal: Vec<_> = (0..100).map(|_| attempt(&pace, Priority::Normal, SECOND * 10)).collect();
    yield_now().await;
    let critical = attempt(&pace, Priority::Critical, SECOND);
    assert_eq!(critical.await.unwrap().monotonic, start.monotonic);
    for call in bulk.into_iter().chain(normal) {
        call.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_single_place_critical_is_the_next_holder_whoever_else_waits() {
    let pace = pace(None, Some(1));
    let start = Runtime.now();
    let mut calls = Vec::new();
    for priority in [Priority::Bulk, Priority::Bulk, Priority::Normal, Priority::Critical] {
        calls.push(attempt(&pace, priority, SECOND));
        yield_now().await;
    }
    let critical = calls.pop().unwrap().await.unwrap();
    assert_eq!((critical.monotonic - start.monotonic).as_secs(), 1);
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_gives_its_place_back_at_every_point() {
    let pace = pace(Some(RateLimit::per_second(2).reserve_for_critical(0)), Some(1));
    let held = attempt(&pace, Priority::Bulk, SECOND * 100);
    yield_now().await;
    for priority in [Priority::Bulk, Priority::Normal, Priority::Critical] {
        let waiting = attempt(&pace, priority, SECOND);
        yield_now().await;
        waiting.abort();
        waiting.await.unwrap_err();
    }
    held.abort();
    held.await.unwrap_err();
    for priority in [Priority::Bulk, Priority::Normal, Priority::Critical] {
        attempt(&pace, priority, Duration::ZERO).await.unwrap();
    }
}

#[test]
fn without_a_limit_there_is_nothing_to_ask() {
    let now = some_moment();
    assert!(Pace::new(None, None, now).is_off());
    assert!(!Pace::new(None, Some(1), now).is_off());
    assert!(!Pace::new(Some(RateLimit::per_second(1)), None, now).is_off());
}
