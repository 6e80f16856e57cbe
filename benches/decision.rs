//! What policy costs a call, apart from all I/O: a decision, the breaker's word, the retry budget's.
//!
//! `README.md` beside this file has the figures.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a bench reads the clock and may panic"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use eastwest::Profile;
use eastwest::policy::attempts::{Attempts, Decision, Terms};
use eastwest::policy::breaker::{Breaker, BreakerSettings, Effect};
use eastwest::policy::moment::{Draw, Moment};
use eastwest::policy::outcome::{Answer, Outcome};
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::policy::time_budget::TimeBudget;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

criterion_group!(benches, decisions, breaker, retry_budget);
criterion_main!(benches);

/// One attempt of a call, from "may it begin" to "what follows".
fn decisions(criterion: &mut Criterion) {
    let profile = Profile::standard();
    let terms = Terms {
        max_attempts: profile.max_attempts(),
        attempt_timeout: profile.attempt_timeout(),
        backoff: profile.backoff(),
        server_error_retries: profile.server_error_retries(),
        bad_gateway_retries: profile.bad_gateway_retries(),
        refinements: Arc::default(),
        repeatable: true,
    };
    let now = now();
    let time = TimeBudget::new(now.monotonic, profile.total_timeout(), None, profile.min_attempt_time());
    // A budget that never empties, whatever the number of runs: a token that is dropped goes back.
    let budget = RetryBudget::new(2);
    let headers = gateway_headers();
    let mut decide = |name: &str, status: StatusCode, body: &[u8]| {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let outcome = Outcome::Answered(Answer {
                    status: black_box(status),
                    headers: &headers,
                    body,
                    oversized: false,
                    broken: false,
                    clock_gap: Some(0),
                    signature_age: Some(0),
                    gateway_now: now.wall,
                });
                let mut run = Attempts::new(&terms, time);
                run.next(now.monotonic).expect("there is time");
                run.begin(now.monotonic);
                let decision = run.observe(&outcome, now.monotonic, Draw(1 << 63), &budget, |_| false);
                assert!(matches!(decision, Decision::Return | Decision::Retry { .. }));
                decision
            });
        });
    };
    decide("decision, 200", StatusCode::OK, br#"{"id":"o-1"}"#);
    decide("decision, 503", StatusCode::SERVICE_UNAVAILABLE, br#"{"message":"Service Unavailable"}"#);
}

/// Asked before an attempt and told after it, closed all the while.
fn breaker(criterion: &mut Criterion) {
    let now = now();
    for (name, effect) in [
        ("breaker, admit and settle, success", Effect::Success),
        ("breaker, admit and settle, failure", Effect::Failure),
    ] {
        let settings =
            BreakerSettings::default().with_failures_in_row(u32::MAX).with_minimum_outcomes(u32::MAX);
        let mut breaker = Breaker::new(settings);
        let mut later = now;
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                later.monotonic += Duration::from_micros(100);
                let ticket = breaker.admit(later).expect("it is closed");
                breaker.settle(ticket, black_box(effect), later, Draw::LOWEST)
            });
        });
    }
}

/// A token set aside and given back; and the tenth that a success earns.
fn retry_budget(criterion: &mut Criterion) {
    let budget = RetryBudget::new(2);
    criterion.bench_function("retry budget, reserve and give back", |bencher| {
        bencher.iter(|| budget.reserve().expect("it is full"));
    });
    criterion.bench_function("retry budget, reserve and spend, then earn it", |bencher| {
        bencher.iter(|| {
            budget.reserve().expect("it is full").spend();
            for _ in 0..10 {
                budget.earn();
            }
        });
    });
}

/// What an API Gateway sends with every answer.
fn gateway_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("content-type", "application/json"),
        ("content-length", "12"),
        ("x-amzn-requestid", "8b1a7c60-5a3e-4c55-9a0e-1c9df1b6f6a1"),
        ("x-amz-apigw-id", "AbCdEfGhIjKlMnO="),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

fn now() -> Moment {
    Moment { monotonic: Instant::now(), wall: SystemTime::now() }
}
