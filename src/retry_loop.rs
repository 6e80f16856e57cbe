//! The loop: sign, send, ask policy, wait.

use crate::circuit::CircuitBreaker;
use crate::edge::ambient::Ambient;
use crate::edge::exchange::Exchange;
use crate::edge::order::Order;
use crate::error::Error;
use crate::policy::attempts::{Attempts, Decision, Terms};
use crate::policy::retry_budget::{RetryBudget, RetryToken};
use crate::policy::time_budget::TimeBudget;
use crate::response::Response;
use crate::teller::Teller;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What all calls of a client share.
pub(crate) struct Gates {
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) circuit: CircuitBreaker,
    pub(crate) budget: RetryBudget,
}

impl Gates {
    /// A wait of zero is not slept: the runtime's timer would make a millisecond of it.
    async fn wait(&self, wait: Duration) {
        if !wait.is_zero() {
            self.ambient.sleep(wait).await;
        }
    }
}

/// The times that bound a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) total: Duration,
    pub(crate) deadline: Option<Instant>,
    pub(crate) min_attempt_time: Duration,
}

impl Bounds {
    fn time_budget(&self, start: Instant) -> TimeBudget {
        TimeBudget::new(start, self.total, self.deadline, self.min_attempt_time)
    }
}

/// Makes the attempts of one call until it succeeds or policy gives it up.
///
/// The order before an attempt: time left, breaker, credentials, time left again, signature, send. The order before
/// a retry's wait: does it fit, is the breaker open, is there a token. Nothing waits between signature and send.
pub(crate) async fn run<E: Exchange>(
    exchange: &E,
    gates: &Gates,
    order: &Order,
    (terms, bounds): (&Terms, Bounds),
    mut teller: Teller,
) -> Result<Response, Error> {
    let clock = || gates.ambient.now();
    let mut run = Attempts::new(terms, bounds.time_budget(teller.start().monotonic));
    let mut token = RetryToken::free();
    let reason = loop {
        let now = clock();
        if let Err(reason) = run.next(now.monotonic) {
            break reason;
        }
        let permit = match gates.circuit.admit(now) {
            Ok(permit) => permit,
            Err(come_back) => break teller.circuit_refused(come_back),
        };
        let left = run.left(now.monotonic);
        let identity =
            exchange.identity(order, left).await.map_err(|error| teller.unsigned(error, &run, clock()))?;
        let now = clock();
        if let Err(reason) = run.next(now.monotonic) {
            break reason;
        }
        std::mem::replace(&mut token, RetryToken::free()).spend();
        let (number, timeout) = run.begin(now.monotonic);
        teller.begins();
        // Boxed, so that a call that waits holds nothing of the attempt.
        let attempt = Box::pin(exchange.attempt(order, &identity, number, timeout));
        let seen = attempt.await.map_err(|error| teller.unsigned(error, &run, clock()))?;
        let now = seen.ended;
        let settle = |effect| permit.settle(effect, now, gates.ambient.draw());
        let draw = gates.ambient.draw();
        let decision = run.observe(&seen.outcome(), now.monotonic, draw, &gates.budget, settle);
        let handed_out = matches!(decision, Decision::Return);
        teller.ended(if handed_out { seen } else { exchange.cleared(seen, &identity) }, &run);
        match decision {
            Decision::Return => return Ok(teller.answer(now)),
            Decision::Recover(recovery) => {
                let left = run.left(now.monotonic);
                let recovered = exchange.recover(recovery, order, &identity, teller.last(), left).await;
                if let Err(why) = recovered {
                    break teller.cannot_recover(why);
                }
                teller.waits(Duration::ZERO);
            }
            Decision::Retry(wait, reserved) => {
                token = reserved;
                teller.waits(wait);
                gates.wait(wait).await;
            }
            Decision::Stop(reason) => break reason,
        }
    };
    Err(teller.gave_up(reason, &run, gates.circuit.retry_after(), clock()))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
