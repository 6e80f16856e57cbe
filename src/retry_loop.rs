//! The loop: sign, send, ask policy, wait.

use crate::circuit::{CircuitBreaker, Permit};
use crate::edge::Seen;
use crate::edge::ambient::Ambient;
use crate::edge::exchange::Exchange;
use crate::edge::order::Order;
use crate::error::Error;
use crate::observe::Watch;
use crate::pace::{Pace, Slot};
use crate::policy::attempts::{Attempts, Decision, StopReason, Terms};
use crate::policy::moment::Moment;
use crate::policy::rate_limit::Priority;
use crate::policy::retry_budget::{RetryBudget, RetryToken};
use crate::policy::time_budget::TimeBudget;
use crate::response::Response;
use crate::teller::Teller;
use crate::usage::Reporter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument;

/// What all calls of a client share.
pub(crate) struct Gates {
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) circuit: CircuitBreaker,
    pub(crate) budget: RetryBudget,
    pub(crate) pace: Pace,
    pub(crate) usage: Reporter,
    pub(crate) watch: Arc<Watch>,
}

impl Gates {
    /// Waits for the pace, and asks the breaker after that. A breaker that refuses now is not waited for.
    async fn admit(
        &self,
        mut now: Moment,
        (time, priority): (TimeBudget, Priority),
        teller: &mut Teller<'_>,
    ) -> Result<Pass<'_>, StopReason> {
        let mut slot = Slot::free();
        if !self.pace.is_off() {
            if let Some(come_back) = self.circuit.retry_after() {
                return Err(teller.circuit_refused(come_back));
            }
            // Boxed, so that who sets no limit pays for none.
            let paced = Box::pin(self.pace.admit(&*self.ambient, time, priority)).await;
            slot = paced.map_err(|late| teller.late(late))?;
            let admitted = self.ambient.now();
            teller.admitted(admitted.since(&now));
            now = admitted;
        }
        let left = time.left(now.monotonic);
        let permit =
            self.circuit.admit(now, left).await.map_err(|come_back| teller.circuit_refused(come_back))?;
        Ok(Pass { slot, permit })
    }

    /// Tells all gates what an attempt showed, and says what follows from it.
    fn decide(&self, run: &mut Attempts<'_>, seen: &Seen, pass: Pass<'_>) -> Decision {
        let (outcome, now) = (seen.outcome(), seen.ended);
        let Pass { permit, slot } = pass;
        let settle = |effect| permit.settle(effect, now, self.ambient.draw());
        let draw = self.ambient.draw();
        let decision = run.observe(&outcome, now.monotonic, draw, &self.budget, settle);
        self.pace.told(&outcome, run.last_class(), run.retry_after(), now);
        // Given back after the pace is told, so that whoever takes it knows of a 429.
        drop(slot);
        decision
    }

    /// A wait of zero is not slept: the runtime's timer would make a millisecond of it.
    async fn wait(&self, wait: Duration) {
        if !wait.is_zero() {
            self.ambient.sleep(wait).await;
        }
    }
}

/// The right to make one attempt, of all who have a say in it. Dropped, it gives back what it holds.
struct Pass<'a> {
    slot: Slot<'a>,
    permit: Permit<'a>,
}

/// What bounds a call: its times, and its place among others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) priority: Priority,
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
/// The order before an attempt is that of [`attempt`]. The order before a retry's wait: does it fit, is the breaker open, is
/// there a token.
pub(crate) async fn run<E: Exchange>(
    exchange: &E,
    gates: &Gates,
    order: &Order,
    (terms, bounds): (&Terms, &Bounds),
    teller: &mut Teller<'_>,
) -> Result<Response, Error> {
    let mut run = Attempts::new(terms, bounds.time_budget(teller.start().monotonic));
    let mut token = RetryToken::free();
    let reason = loop {
        let what = (order, bounds.priority);
        // Boxed, so that a call that waits holds nothing of the attempt.
        let (decision, identity, now) =
            match Box::pin(attempt(exchange, gates, what, &mut run, &mut token, teller)).await {
                Ok(Made::Answer(answer)) => return Ok(answer),
                Ok(Made::Another(decision, identity, now)) => (decision, identity, now),
                Err(Unmade::Stopped(reason)) => break reason,
                Err(Unmade::Unsigned(error)) => return Err(error),
            };
        match gates.circuit.consulted(decision, run.left(now)).await {
            // Only an answer is a success, and that was handed out.
            Decision::Return => break StopReason::NotRetryable,
            Decision::Recover(recovery) => {
                let left = run.left(now);
                let recovered =
                    Box::pin(exchange.recover(recovery, order, &identity, teller.last(), left)).await;
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
    Err(teller.gave_up(reason, &run, gates.circuit.retry_after(), gates.ambient.now()))
}

/// What became of an attempt that was made.
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would cost every call an allocation"
)]
enum Made<I> {
    /// It succeeded.
    Answer(Response),
    /// What follows from it, who signed it, and when it ended.
    Another(Decision, I, Instant),
}

/// Why an attempt was not made.
enum Unmade {
    Stopped(StopReason),
    /// No identity could be had, or nothing signed with it.
    Unsigned(Error),
}

/// Makes one attempt.
///
/// The order: time left, a place in flight and the rate limit, breaker, credentials, time left again, signature, send. Nothing
/// waits between signature and send.
async fn attempt<E: Exchange>(
    exchange: &E,
    gates: &Gates,
    (order, priority): (&Order, Priority),
    run: &mut Attempts<'_>,
    token: &mut RetryToken,
    teller: &mut Teller<'_>,
) -> Result<Made<E::Identity>, Unmade> {
    let clock = || gates.ambient.now();
    let now = clock();
    run.next(now.monotonic).map_err(Unmade::Stopped)?;
    let mut pass = gates.admit(now, (run.time(), priority), teller).await.map_err(Unmade::Stopped)?;
    let left = run.left(pass.permit.began().monotonic);
    let identity = exchange.identity(order, left).await;
    let identity = identity.map_err(|error| Unmade::Unsigned(teller.unsigned(error, run, clock())))?;
    let now = clock();
    run.next(now.monotonic).map_err(Unmade::Stopped)?;
    std::mem::replace(token, RetryToken::free()).spend();
    pass.slot.sends(now);
    let (number, timeout) = run.begin(now.monotonic);
    let span = teller.begins(run, number, timeout);
    let seen = exchange.attempt(order, &identity, number, timeout).instrument(span).await;
    let seen = seen.map_err(|error| {
        pass.slot.unsent();
        Unmade::Unsigned(teller.unsigned(error, run, clock()))
    })?;
    let now = seen.ended;
    let decision = gates.decide(run, &seen, pass);
    teller.ended(&seen, run);
    if matches!(decision, Decision::Return) {
        return Ok(Made::Answer(teller.answer(seen, now)));
    }
    teller.keep(exchange.keep(seen, &identity));
    Ok(Made::Another(decision, identity, now.monotonic))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
