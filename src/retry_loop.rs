//! The loop: sign, send, ask policy, wait.

use crate::circuit::{CircuitBreaker, Permit};
use crate::edge::Seen;
use crate::edge::ambient::Ambient;
use crate::edge::exchange::Exchange;
use crate::edge::order::Order;
use crate::error::Error;
use crate::observe::Watch;
use crate::pace::{Pace, Slot};
use crate::policy::attempts::{Attempts, Decision, StopReason};
use crate::policy::moment::Moment;
use crate::policy::rate_limit::Priority;
use crate::policy::retry_budget::{RetryBudget, RetryToken};
use crate::policy::time_budget::TimeBudget;
use crate::response::Response;
use crate::teller::{Stop, Teller};
use crate::usage::Reporter;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{Instrument, Span};

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
        teller: &Teller<'_>,
    ) -> Result<Pass<'_>, Stop> {
        let mut slot = Slot::free();
        if !self.pace.is_off() {
            if let Some(come_back) = self.circuit.retry_after() {
                return Err(Stop::circuit_open(come_back));
            }
            // Boxed, so that who sets no limit pays for none.
            let paced = Box::pin(self.pace.admit(&*self.ambient, time, priority)).await;
            slot = paced.map_err(Stop::late)?;
            let admitted = self.ambient.now();
            teller.admitted(admitted.since(&now));
            now = admitted;
        }
        let left = time.left(now.monotonic);
        let permit = self.circuit.admit(now, left).await.map_err(Stop::circuit_open)?;
        Ok(Pass { slot, permit })
    }

    /// The wait, if it is one. One of zero is not slept: the runtime's timer would make a millisecond of it.
    fn sleep(&self, wait: Duration) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        (!wait.is_zero()).then(|| self.ambient.sleep(wait))
    }

    /// Tells all gates what an attempt showed, and says what follows from it.
    fn decide(&self, attempts: &mut Attempts<'_>, seen: &Seen, pass: Pass<'_>) -> Decision {
        let (outcome, now) = (seen.outcome(), seen.ended);
        let Pass { permit, slot } = pass;
        // For the breaker's wait if it opens, for the retry's if not.
        let draw = self.ambient.draw();
        let settle = |effect| permit.settle(effect, now, draw);
        let decision = attempts.observe(&outcome, now.monotonic, draw, &self.budget, settle);
        self.pace.told(&outcome, attempts.last_class(), attempts.retry_after(), now);
        // Given back after the pace is told, so that whoever takes it knows of a 429.
        drop(slot);
        decision
    }
}

/// The right to make one attempt, of all who have a say in it. Dropped, it gives back what it holds.
struct Pass<'a> {
    slot: Slot<'a>,
    permit: Permit<'a>,
}

/// One call on its way: what it is, who has a say in it, how far it came, and who tells of it.
pub(crate) struct Course<'a, E> {
    exchange: &'a E,
    gates: &'a Gates,
    order: &'a Order,
    attempts: Attempts<'a>,
    /// Reserved for the next attempt.
    token: RetryToken,
    teller: Teller<'a>,
}

impl<'a, E: Exchange> Course<'a, E> {
    pub(crate) fn new(
        exchange: &'a E,
        gates: &'a Gates,
        order: &'a Order,
        attempts: Attempts<'a>,
        teller: Teller<'a>,
    ) -> Course<'a, E> {
        Course { exchange, gates, order, attempts, token: RetryToken::free(), teller }
    }

    /// The span of the call, where somebody traces it.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.teller.span()
    }

    /// Makes the attempts of one call until it succeeds or policy gives it up.
    ///
    /// The order before an attempt is that of [`attempt`](Course::attempt). The order before a retry's wait: does it fit, is
    /// the breaker open, is there a token.
    pub(crate) async fn run(&mut self) -> Result<Response, Error> {
        let mut now = self.gates.ambient.now();
        let stop = loop {
            // Boxed, so that a call that waits holds nothing of the attempt.
            let wait = match Box::pin(self.step(now)).await {
                Ok(Step::Answer(answer)) => return Ok(answer),
                Ok(Step::Again(wait, token)) => {
                    self.token = token;
                    wait
                }
                Err(End::Stopped(stop)) => break stop,
                Err(End::Unsigned(error)) => return Err(error),
            };
            self.teller.waits(wait);
            if let Some(slept) = self.gates.sleep(wait) {
                slept.await;
            }
            now = self.gates.ambient.now();
        };
        let Gates { ambient, circuit, .. } = self.gates;
        Err(self.teller.gave_up(stop, &self.attempts, circuit.retry_after(), ambient.now()))
    }

    /// Makes one attempt, and what can be put right after it right.
    async fn step(&mut self, now: Moment) -> Result<Step, End> {
        let (decision, identity, now) = match self.attempt(now).await? {
            Made::Answer(answer) => return Ok(Step::Answer(answer)),
            Made::Another(decision, identity, now) => (decision, identity, now),
        };
        match self.gates.circuit.consulted(decision, self.attempts.left(now)).await {
            Decision::Retry(wait, token) => Ok(Step::Again(wait, token)),
            Decision::Recover(recovery) => {
                let (last, left) = (self.teller.last(), self.attempts.left(now));
                match self.exchange.recover(recovery, self.order, &identity, last, left).await {
                    Ok(()) => Ok(Step::Again(Duration::ZERO, RetryToken::free())),
                    Err(why) => Err(End::Stopped(Stop::cannot_recover(why))),
                }
            }
            // Only an answer is a success, and that was handed out.
            Decision::Return => Err(End::Stopped(StopReason::NotRetryable.into())),
            Decision::Stop(reason) => Err(End::Stopped(reason.into())),
        }
    }

    /// Makes one attempt.
    ///
    /// The order: time left, a place in flight and the rate limit, breaker, credentials, time left again, signature, send.
    /// Nothing waits between signature and send.
    async fn attempt(&mut self, now: Moment) -> Result<Made<E::Identity>, End> {
        let (exchange, gates, order) = (self.exchange, self.gates, self.order);
        self.attempts.next(now.monotonic)?;
        let mut pass = gates.admit(now, (self.attempts.time(), order.priority), &self.teller).await?;
        let left = self.attempts.left(pass.permit.began().monotonic);
        let identity = exchange.identity(order, left).await.map_err(|error| self.unsigned(error))?;
        let now = gates.ambient.now();
        self.attempts.next(now.monotonic)?;
        std::mem::replace(&mut self.token, RetryToken::free()).spend();
        pass.slot.sends(now);
        let (number, timeout) = self.attempts.begin(now.monotonic);
        let span = self.teller.begins(&self.attempts, number, timeout);
        let made = exchange.attempt(order, &identity, (number, now), timeout);
        let seen = if span.is_disabled() {
            made.await
        } else {
            // Boxed, so that an attempt that nobody traces holds no span.
            Box::pin(made.instrument(span)).await
        };
        let seen = seen.map_err(|error| {
            pass.slot.unsent();
            self.unsigned(error)
        })?;
        let decision = gates.decide(&mut self.attempts, &seen, pass);
        self.teller.ended(&seen, &self.attempts);
        let ended = seen.ended;
        if matches!(decision, Decision::Return) {
            return Ok(Made::Answer(self.teller.answer(seen, ended)));
        }
        self.teller.keep(exchange.keep(seen, &identity));
        Ok(Made::Another(decision, identity, ended.monotonic))
    }

    fn unsigned(&mut self, error: Error) -> End {
        End::Unsigned(self.teller.unsigned(error, &self.attempts, self.gates.ambient.now()))
    }
}

/// What follows from an attempt.
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would cost every call an allocation"
)]
enum Step {
    Again(Duration, RetryToken),
    Answer(Response),
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

/// Why a call ends without an answer.
enum End {
    Stopped(Stop),
    /// No identity could be had, or nothing signed with it.
    Unsigned(Error),
}

impl From<Stop> for End {
    fn from(stop: Stop) -> End {
        End::Stopped(stop)
    }
}

impl From<StopReason> for End {
    fn from(reason: StopReason) -> End {
        End::Stopped(reason.into())
    }
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
