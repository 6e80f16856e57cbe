//! A world in which everything goes wrong: many calls of one client on a clock of its own, with faults, freezes, clocks that
//! jump and callers that walk away, and what must hold checked at every step.
//!
//! A world is made of a number; the same number makes the same world. `EASTWEST_WORLD_CALLS` says how many calls are made in
//! all, `EASTWEST_WORLD` makes one world alone, as the line that a failure prints does.

mod callee;
mod clock;
mod gauge;
mod reason;
mod record;
mod scenes;

use super::*;
use crate::context::{CallContext, IdempotencyKey};
use crate::edge::base_url::BaseUrl;
use crate::edge::own_headers::OwnHeaders;
use crate::edge::path::Path;
use crate::edge::sigv4::Signer;
use crate::policy::attempts::Terms;
use crate::policy::backoff::Backoff;
use crate::policy::breaker::BreakerSettings;
use crate::policy::profile::Profile;
use crate::policy::rate_limit::RateLimit;
use crate::retry_loop::bounds::Bounds;
use crate::story::{Story, Subject};
use callee::Callee;
use clock::{Clock, Fate, run_all};
use gauge::Gauge;
use http::{HeaderMap, HeaderValue, Method};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use record::{Record, Records};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use tracing::Span;

/// Calls of one client, made in lanes beside each other.
struct World {
    clock: Clock,
    callee: Callee,
    gates: Gates,
    records: Records,
    dice: Mutex<StdRng>,
    capacity: Option<u32>,
    breaker_ends: Duration,
    /// Of the rate limit.
    burst: u32,
    lanes: usize,
    /// In flight, for a call at a time: whoever has to wait for one does so in real time.
    places: Option<u32>,
}

/// What is chosen for one call.
struct Choice {
    terms: Terms,
    bounds: Bounds,
    method: Method,
    /// How often the call is polled before its caller walks away.
    patience: Option<u32>,
    pause: Duration,
}

impl World {
    fn new(number: u64) -> World {
        let mut dice = StdRng::seed_from_u64(number);
        let clock = Clock::new(StdRng::seed_from_u64(number ^ 0x5eed));
        let ambient: Arc<dyn Ambient> = Arc::new(clock.clone());
        let capacity = dice.random_bool(0.9).then(|| dice.random_range(0..6));
        let open_for = millis(dice.random_range(1..3_000));
        let breaker = BreakerSettings::default()
            .with_failures_in_row(dice.random_range(1..20))
            .with_minimum_outcomes(dice.random_range(1..40))
            .with_probes(dice.random_range(1..4))
            .with_successes_to_close(dice.random_range(1..3))
            .with_open_for(open_for)
            .with_open_cap(open_for * 3);
        let records = Records::default();
        let lanes = if dice.random_bool(0.5) { 1 } else { dice.random_range(2..9) };
        let rate = dice
            .random_bool(0.5)
            .then(|| RateLimit::per_second(dice.random_range(1..60)).burst(dice.random_range(1..30)));
        let places = (lanes == 1 && dice.random_bool(0.7)).then_some(1);
        let circuit = CircuitBreaker::new(breaker, Arc::clone(&ambient), Arc::default());
        let gauge = Gauge::new(clock.clone(), circuit.clone(), rate.clone(), lanes == 1);
        World {
            callee: Callee::new(clock.clone(), records.clone(), dice.random_range(0..1_000), gauge),
            gates: Gates {
                circuit,
                budget: capacity.map_or_else(RetryBudget::off, RetryBudget::new),
                pace: Pace::new(rate.clone(), places, ambient.now()),
                usage: Reporter::new(None, "eu-central-1", ambient.now().monotonic),
                watch: Arc::default(),
                ambient,
            },
            breaker_ends: open_for * 4,
            burst: rate.map_or(0, |rate| rate.burst),
            lanes,
            places,
            dice: Mutex::new(dice),
            clock,
            records,
            capacity,
        }
    }

    fn choose(&self) -> Choice {
        let mut dice = self.dice.lock().unwrap();
        let method = match dice.random_range(0..10) {
            0 => Method::GET,
            1 => Method::PUT,
            _ => Method::POST,
        };
        let keyed = dice.random_bool(0.8);
        let profile =
            [Profile::interactive(), Profile::standard(), Profile::background()][dice.random_range(0..3)];
        let total = profile.total_timeout().mul_f64(dice.random_range(0.01..1.5));
        Choice {
            terms: Terms {
                max_attempts: dice.random_range(1..8),
                attempt_timeout: profile.attempt_timeout().mul_f64(dice.random_range(0.1..1.0)),
                backoff: Backoff::new(
                    millis(dice.random_range(0..400)),
                    millis(dice.random_range(0..900)),
                    millis(dice.random_range(0..3_000)),
                ),
                server_error_retries: dice.random_range(0..4),
                bad_gateway_retries: dice.random_range(0..3),
                refinements: Arc::default(),
                repeatable: keyed || crate::policy::method::is_idempotent(&method),
            },
            bounds: Bounds {
                priority: [Priority::Bulk, Priority::Critical, Priority::Normal][dice.random_range(0..3)],
                total,
                deadline: dice
                    .random_bool(0.2)
                    .then(|| self.clock.now().monotonic + total.mul_f64(dice.random_range(0.0..1.2))),
                min_attempt_time: profile.min_attempt_time(),
            },
            method,
            patience: dice.random_bool(0.15).then(|| dice.random_range(1..14)),
            pause: if dice.random_bool(0.5) { Duration::ZERO } else { millis(dice.random_range(0..2_000)) },
        }
    }

    /// Makes one call and looks at what became of it.
    async fn call(&self, number: usize) {
        let choice = self.choose();
        if !choice.pause.is_zero() {
            self.clock.sleep(choice.pause).await;
        }
        let id = format!("call-{number}");
        let key = choice.terms.repeatable.then(|| IdempotencyKey::new(format!("key-{number}")).unwrap());
        let order = Order { priority: choice.bounds.priority, ..order(&choice.method, &id, (number, key)) };
        let begun = self.clock.now();
        let before = self.gates.budget.available_tenths();
        let (admitted, _) = self.gates.pace.rests(begun);
        self.records.begin(&id, Record::new(&choice.terms, &choice.method, choice.bounds, begun));
        let fate = {
            let story = Story::of(Arc::clone(&order.subject));
            let eyes = (&self.gates.usage, &*self.gates.watch);
            let teller = Teller::new(story, choice.terms.repeatable, begun.monotonic, eyes, Span::none());
            let attempts = Attempts::new(&choice.terms, choice.bounds.time_budget(begun.monotonic));
            let mut course = Course::new(&self.callee, &self.gates, &order, attempts, teller);
            Fate::of(course.run(), choice.patience).await
        };
        let record = self.records.end(&id);
        self.callee.gauge().check();
        record.check(fate.as_ref(), self.clock.now(), self.clock.lost_since(begun.monotonic));
        if self.lanes == 1 {
            self.check_tokens(before, &record, matches!(fate, Some(Ok(_))));
            let admits = self.gates.pace.rests(self.clock.now()).0;
            assert!(record.arrived > 0 || admits >= admitted, "the rate limit counts what was not sent");
        }
        if let Some(Err(error)) = &fate {
            let now = self.clock.now().monotonic;
            reason::check(error, &record, (&self.gates, now), self.lanes == 1);
        }
    }

    /// With one call at a time the budget's arithmetic is exact.
    fn check_tokens(&self, before: Option<u64>, record: &Record, succeeded: bool) {
        let (Some(before), Some(capacity)) = (before, self.capacity) else {
            return;
        };
        let spent = u64::from(record.paid_retries) * 10;
        let kept = before.checked_sub(spent).unwrap_or_else(|| panic!("retries without a token: {record:?}"));
        let expected = (kept + u64::from(succeeded)).min(u64::from(capacity) * 10);
        assert_eq!(
            self.gates.budget.available_tenths(),
            Some(expected),
            "tokens: {before} before, {record:?}"
        );
    }

    /// Nobody is at work: nothing may still be held.
    async fn check_rest(&self) {
        // The rate limit may be closed for an hour, and is filled after that.
        self.clock.pass(self.breaker_ends + Duration::from_secs(7_200));
        // Enough successes close it, so every probe's place is free.
        for _ in 0..4 {
            let now = self.clock.now();
            let permit = self
                .gates
                .circuit
                .admit(now, Duration::ZERO)
                .await
                .unwrap_or_else(|_| panic!("a probe's place is held at rest"));
            permit.settle(crate::policy::breaker::Effect::Success, now, self.clock.draw());
        }
        assert_eq!(self.gates.circuit.state(), crate::policy::breaker::State::Closed);
        if let (Some(capacity), Some(available)) = (self.capacity, self.gates.budget.available_tenths()) {
            assert!(available <= u64::from(capacity) * 10);
            let paid = self.records.paid_in_all() * 10;
            assert!(
                available + paid >= u64::from(capacity) * 10,
                "a token was lost: {available}, {paid} spent"
            );
        }
        let (tokens, places) = self.gates.pace.rests(self.clock.now());
        assert_eq!(tokens, self.burst, "the rate limit's bucket is full at rest");
        assert_eq!(places, self.places.unwrap_or_default() as usize, "a place in flight is held at rest");
        self.records.check(&self.gates.usage.usage(self.clock.now().monotonic));
        self.callee.check_rest();
    }

    fn run(self, calls: usize) {
        // The pace asks for a timer of the runtime; it never fires, for nobody waits for a place.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let world = &self;
        let lanes = (0..self.lanes).map(|lane| async move {
            for number in (lane..calls).step_by(world.lanes) {
                world.call(number).await;
            }
        });
        run_all(&self.clock, lanes);
        runtime.block_on(self.check_rest());
    }
}

fn order(method: &Method, id: &str, (number, key): (usize, Option<IdempotencyKey>)) -> Order {
    let base = BaseUrl::parse("https://api.example.test/prod", false).unwrap();
    let body = bytes::Bytes::from(format!("{{\"number\":{number}}}"));
    Order {
        subject: Arc::new(Subject {
            method: method.clone(),
            target: base.target(&Path::from("/orders"), &[]).unwrap(),
            url_template: None,
            context: CallContext::root().with_correlation_id(id).unwrap(),
            idempotency_key: key,
        }),
        headers: OwnHeaders::default(),
        priority: Priority::Normal,
        hop: 1,
        body_hash: Signer::new("eu-central-1", "execute-api").unwrap().body_hash(&body),
        body,
        user_token: None,
        response_body_limit: 1_000,
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Makes a world, and says how to make it again where something does not hold in it.
fn survive(number: u64) {
    let outcome = catch_unwind(AssertUnwindSafe(|| World::new(number).run(CALLS_A_WORLD)));
    if let Err(panic) = outcome {
        eprintln!("again: EASTWEST_WORLD={number} cargo test --lib whatever_goes_wrong");
        resume_unwind(panic);
    }
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

const CALLS_A_WORLD: usize = 200;

#[test]
fn whatever_goes_wrong_the_promises_hold() {
    if let Some(number) = asked("EASTWEST_WORLD") {
        return survive(number);
    }
    let calls = asked("EASTWEST_WORLD_CALLS").unwrap_or(10_000);
    for number in 0..calls.div_ceil(CALLS_A_WORLD as u64) {
        survive(number);
    }
}
