//! Every order in which threads can meet at the shared state, in cases that are small enough to try them all.
//!
//! `cargo rustc --lib --profile test -- --cfg interleavings` builds this and nothing else that can be run: the model checker's
//! locks and atomics work inside of a model alone.

mod credentials;
pub(crate) mod task;
pub(crate) mod watch;

use crate::circuit::{CircuitBreaker, Permit};
use crate::edge::ambient::Ambient;
use crate::observe::Watch;
use crate::pace::Pace;
use crate::policy::account_quota::Window;
use crate::policy::breaker::{BreakerSettings, Effect, State};
use crate::policy::moment::{Draw, Moment, some_moment};
use crate::policy::rate_limit::{Priority, RateLimit};
use crate::policy::retry_budget::RetryBudget;
use crate::policy::time_budget::TimeBudget;
use loom::thread;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A world in which no time passes.
struct Still(Moment);

impl Ambient for Still {
    fn now(&self) -> Moment {
        self.0
    }

    fn draw(&self) -> Draw {
        Draw::LOWEST
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(std::future::pending())
    }
}

/// What the future comes to at its first poll; none if it waits.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn the_last_retry_token_is_spent_by_one_thread_and_comes_back_if_it_is_not() {
    loom::model(|| {
        let budget = RetryBudget::new(1);
        let other = budget.clone();
        let there = thread::spawn(move || {
            other.reserve().map(crate::policy::retry_budget::RetryToken::spend).is_some()
        });
        // Here it is given back: so the other may get it before or after.
        let here = budget.reserve().is_some();
        let there = there.join().unwrap();
        assert!(here || there, "one of the two has it");
        assert_eq!(budget.available_tenths(), Some(if there { 0 } else { 10 }));
    });
}

#[test]
fn what_is_earned_while_a_token_is_out_never_fills_the_budget_past_its_brim() {
    loom::model(|| {
        let budget = RetryBudget::new(1);
        let token = budget.reserve().unwrap();
        let other = budget.clone();
        let there = thread::spawn(move || other.earn());
        drop(token);
        there.join().unwrap();
        assert_eq!(budget.available_tenths(), Some(10));
    });
}

#[test]
fn no_count_of_the_window_is_lost_where_a_new_second_meets_the_old_one() {
    loom::model(|| {
        let began = some_moment().monotonic;
        let window = Arc::new(Window::new(began));
        let other = Arc::clone(&window);
        // The slot of the first second is that of the eleventh too.
        let there = thread::spawn(move || other.count(began + Duration::from_secs(10), true, false));
        window.count(began + Duration::from_secs(10), true, false);
        there.join().unwrap();
        assert_eq!(window.recent(began + Duration::from_secs(10)).tokens, 2);
    });
}

#[test]
fn one_warning_a_minute_is_given_by_one_thread() {
    loom::model(|| {
        let began = some_moment().monotonic;
        let window = Arc::new(Window::new(began));
        let other = Arc::clone(&window);
        let there = thread::spawn(move || other.may_warn(began));
        let here = window.may_warn(began);
        assert!(here != there.join().unwrap());
    });
}

fn half_open() -> (CircuitBreaker, Moment) {
    let now = some_moment();
    let settings = BreakerSettings::default()
        .with_failures_in_row(1)
        .with_jitter_percent(0)
        .with_open_for(Duration::from_millis(1))
        .with_open_cap(Duration::from_millis(1));
    let later =
        Moment { monotonic: now.monotonic + Duration::from_secs(1), wall: now.wall + Duration::from_secs(1) };
    let circuit = CircuitBreaker::new(settings, Arc::new(Still(later)), Arc::new(Watch::default()));
    admitted(&circuit, now).unwrap().settle(Effect::Failure, now, Draw::LOWEST);
    (circuit, later)
}

fn admitted(circuit: &CircuitBreaker, now: Moment) -> Option<Permit<'_>> {
    at_once(circuit.admit(now, Duration::from_secs(1))).unwrap().ok()
}

#[test]
fn of_two_threads_at_a_half_open_circuit_one_is_the_probe_and_a_dropped_probe_s_place_is_free_again() {
    loom::model(|| {
        let (circuit, now) = half_open();
        let other = circuit.clone();
        let there = thread::spawn(move || admitted(&other, now).is_some());
        // Held until after the other has asked, or dropped before: both orders are tried.
        let here = admitted(&circuit, now);
        let had = here.is_some();
        drop(here);
        let there = there.join().unwrap();
        assert!(had || there);
        assert!(admitted(&circuit, now).is_some(), "the place is free");
    });
}

#[test]
fn a_probe_s_failure_and_a_dropped_one_leave_no_place_held() {
    loom::model(|| {
        let (circuit, now) = half_open();
        let other = circuit.clone();
        let there = thread::spawn(move || {
            if let Some(permit) = admitted(&other, now) {
                permit.settle(Effect::Success, now, Draw::LOWEST);
            }
        });
        if let Some(permit) = admitted(&circuit, now) {
            permit.settle(Effect::Failure, now, Draw::LOWEST);
        }
        there.join().unwrap();
        let long_after = Moment { monotonic: now.monotonic + Duration::from_secs(60), wall: now.wall };
        assert!(admitted(&circuit, long_after).is_some());
        assert_ne!(circuit.state(), State::Open);
    });
}

#[test]
fn the_last_token_of_the_rate_limit_is_one_thread_s_and_is_given_back() {
    loom::model(|| {
        let now = some_moment();
        let ambient = Arc::new(Still(now));
        let pace = Arc::new(Pace::new(Some(RateLimit::per_minute(60).burst(1)), None, now));
        let time = TimeBudget::new(now.monotonic, Duration::from_millis(10), None, Duration::ZERO);
        let (other, world) = (Arc::clone(&pace), Arc::clone(&ambient));
        let there = thread::spawn(move || {
            at_once(other.admit(&*world, time, Priority::Critical)).is_some_and(|slot| slot.is_ok())
        });
        let here = at_once(pace.admit(&*ambient, time, Priority::Critical)).is_some_and(|slot| slot.is_ok());
        let there = there.join().unwrap();
        assert!(here || there);
        assert_eq!(pace.rests(now).0, 1, "neither was sent, so both are back");
    });
}
