//! Rate limit and breaker, gauged once more: how many attempts arrived and how many of them failed, without a word to the gates.

use super::record::{Came, Ended};
use super::*;
use crate::policy::breaker::State;
use crate::policy::bucket::LONGEST_CLOSED;

/// What arrived in a world.
pub(super) struct Gauge {
    clock: Clock,
    circuit: CircuitBreaker,
    rate: Option<RateLimit>,
    /// Whether one call is made at a time. Then an attempt ends before the next begins, and more can be said.
    alone: bool,
    /// What the rate limit may still admit at most, in the nanoseconds of its period for each attempt.
    level: u128,
    at: Duration,
    /// Failures in a row.
    run: u32,
    last_failure: Option<Instant>,
}

impl Gauge {
    pub(super) fn new(clock: Clock, circuit: CircuitBreaker, rate: Option<RateLimit>, alone: bool) -> Gauge {
        let level = rate.as_ref().map_or(0, most);
        Gauge { at: clock.at_most(), clock, circuit, rate, alone, level, run: 0, last_failure: None }
    }

    /// An attempt arrives: may it?
    pub(super) fn arrives(&mut self) {
        if self.alone {
            assert_ne!(self.circuit.state(), State::Open, "an attempt passed an open breaker");
        }
        let Some(rate) = &self.rate else { return };
        let now = self.clock.at_most();
        let earned = now.saturating_sub(self.at).as_nanos() * u128::from(rate.attempts);
        let level = (self.level + earned).min(most(rate)).checked_sub(rate.period.as_nanos());
        self.level = level.expect("more attempts than burst and rate allow");
        self.at = self.at.max(now);
    }

    /// An attempt has ended, the call's others before it.
    pub(super) fn ended(&mut self, ended: &Ended, before: &[Ended]) {
        if !self.alone {
            return;
        }
        if ended.code() == Some(429) && !ended.never_again {
            // What the callee asks for is not earned.
            self.level = 0;
            let asked = ended.hint.unwrap_or_default().min(LONGEST_CLOSED);
            self.at = self.clock.at_most() + asked;
        }
        let settings = self.circuit.settings();
        match Health::of(ended, before) {
            Health::Well => self.run = 0,
            Health::Untold => {}
            Health::Ill => {
                let forgotten = self
                    .last_failure
                    .is_some_and(|last| ended.at.duration_since(last) > settings.failure_memory());
                self.run = if forgotten { 1 } else { self.run + 1 };
                self.last_failure = Some(ended.at);
            }
        }
    }

    /// Between two calls.
    pub(super) fn check(&self) {
        if self.alone && self.run >= self.circuit.settings().failures_in_row() {
            assert_ne!(self.circuit.state(), State::Closed, "{} failures in a row opened nothing", self.run);
        }
    }
}

/// What an attempt says of the callee, by the README's status table.
enum Health {
    Ill,
    Untold,
    Well,
}

impl Health {
    fn of(ended: &Ended, before: &[Ended]) -> Health {
        let is_server_error = |ended: &Ended| matches!(ended.code(), Some(500 | 599));
        match (ended.came, ended.code()) {
            (Came::Answer, Some(200..=299)) => Health::Well,
            // Of a call only the first 500 counts: it may be that record's fault.
            (Came::Answer, Some(500 | 599)) if before.iter().any(is_server_error) => Health::Untold,
            // A 409 says that the first attempt is at work.
            (Came::Answer, Some(code)) if ended.in_doubt && code != 409 => Health::Ill,
            (Came::Answer, _) => Health::Untold,
            // More than is read came from a callee that is well; a certificate is a setting.
            (Came::Loss, _) if ended.never_again => Health::Well,
            (Came::Nothing, _) if ended.never_again => Health::Untold,
            (Came::Loss | Came::Nothing, _) => Health::Ill,
        }
    }
}

fn most(rate: &RateLimit) -> u128 {
    u128::from(rate.burst) * rate.period.as_nanos()
}
