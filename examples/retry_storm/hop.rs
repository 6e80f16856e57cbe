//! One hop: an execution makes its call as the shipped loop does, with the shipped decisions.

use super::client::{Recipe, Waits};
use super::dice::nanos;
use super::fleet;
use super::function::{Call, Execution};
use super::queue::{Attempted, Event, From, Sent, Slot};
use super::scenario::WORK;
use super::wire::{Own, Reply};
use super::world::World;
use eastwest::policy::attempts::{Attempts, Decision, StopReason};
use eastwest::policy::breaker::Effect;
use eastwest::policy::fleet::local::Admission;
use eastwest::policy::moment::Draw;
use eastwest::policy::outcome::{Loss, Outcome};
use eastwest::policy::retry_budget::RetryToken;
use eastwest::policy::time_budget::TimeBudget;
use eastwest::{Class, ErrorKind, Profile};
use std::time::Duration;

impl<'t> World<'t> {
    /// A request reaches a function that has a call of its own to make.
    pub(crate) fn begin(&mut self, sent: Sent) {
        let left = sent.time_budget_ms.map(|ms| Duration::from_millis(ms.into()).saturating_sub(WAY_BACK));
        if left.is_some_and(|left| left.is_zero()) {
            return self.reply(sent.from, Reply::Own(Own::no_time_left(self.recipe.marker)));
        }
        let fresh = self.fresh_client();
        let Some(sandbox) = self.functions.take(sent.layer, self.now, || fresh) else {
            return self.reply(sent.from, Reply::ServerError);
        };
        let slot = self.functions.begin(Execution {
            request: sent.request,
            layer: sent.layer,
            sandbox,
            from: sent.from,
            began: self.now,
            deadline: left.map(|left| self.now + nanos(left)),
            call: None,
        });
        let work = self.work_dice.about(WORK);
        self.plan(work, Event::Ready(slot));
    }

    /// The order before an attempt is that of the shipped loop: time left, breaker, token, timeout, send.
    pub(crate) fn attempt(&mut self, slot: Slot) {
        let (now, moment) = (self.now, self.moment());
        let (total, deadline) = (self.recipe.total_timeout(), self.recipe.deadline);
        let terms = self.terms;
        let origin = self.instant(0);
        let Some((execution, client)) = self.functions.at(slot) else { return };
        let bound = execution.deadline.map(|at| origin + Duration::from_nanos(at));
        let call = execution.call.get_or_insert_with(|| {
            client.quota.begins(now);
            let least = Profile::standard().min_attempt_time();
            let time = TimeBudget::new(moment.monotonic, total, bound, least);
            Call {
                attempts: Attempts::new(terms, time),
                token: RetryToken::free(),
                ticket: None,
                sent: moment,
                fleet_probe: false,
            }
        });
        if let Err(reason) = call.attempts.next(moment.monotonic) {
            return self.give_up(slot, reason, None);
        }
        match client.breaker.admit(moment) {
            Ok(ticket) => call.ticket = Some(ticket),
            Err(refused) => return self.give_up(slot, StopReason::CircuitOpen, Some(refused.retry_after)),
        }
        if let Some(local) = &mut client.fleet {
            let store = &mut self.shared[execution.layer as usize];
            let jitter = Draw(self.policy_dice.throw());
            match fleet::admit(local, store, (now, moment), jitter) {
                Admission::Refuse(come_back) => {
                    call.ticket.take().into_iter().for_each(|ticket| client.breaker.give_back(ticket));
                    return self.give_up(slot, StopReason::CircuitOpen, Some(come_back));
                }
                admission => call.fleet_probe = admission == Admission::Probe,
            }
        }
        call.sent = moment;
        std::mem::replace(&mut call.token, RetryToken::free()).spend();
        let (number, timeout) = call.attempts.begin(moment.monotonic);
        let attempted = Attempted { slot, number };
        let time_budget_ms = deadline.then(|| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
        let (request, layer) = (execution.request, execution.layer + 1);
        self.plan(nanos(timeout), Event::TimesOut(attempted));
        self.send(Sent { request, layer, from: From::Function(attempted), time_budget_ms });
    }

    pub(crate) fn timed_out(&mut self, attempted: Attempted) {
        self.observe(attempted, Outcome::Lost { how: Loss::TimedOut, thawed: false });
    }

    /// Takes in what an attempt showed. What comes after its timeout, or twice, is nobody's.
    pub(crate) fn observe(&mut self, attempted: Attempted, outcome: Outcome<'t>) {
        let Attempted { slot, number } = attempted;
        let (now, moment, recipe) = (self.now, self.moment(), self.recipe);
        let Some((execution, client)) = self.functions.at(slot) else { return };
        let Some(call) = execution.call.as_mut().filter(|call| call.attempts.begun() == number) else {
            return;
        };
        let Some(ticket) = call.ticket.take() else { return };
        let (breaker, local) = (&mut client.breaker, &mut client.fleet);
        let store = &mut self.shared[execution.layer as usize];
        let (jitter, written) = (Draw(self.policy_dice.throw()), Draw(self.policy_dice.throw()));
        let settle = |effect| {
            let counts = effect == Effect::Neutral && !recipe.counted_once && is_server_error(&outcome);
            let effect = if counts { Effect::Failure } else { effect };
            breaker.settle(ticket, effect, moment, jitter);
            let attempt = (call.sent, call.fleet_probe);
            let stopped = local
                .as_mut()
                .is_some_and(|local| fleet::settle(local, store, attempt, effect, (now, moment), written));
            stopped || breaker.is_open(moment)
        };
        let draw = draw(recipe, self.policy_dice.throw());
        let decision = call.attempts.observe(&outcome, moment.monotonic, draw, &client.budget, settle);
        match decision {
            Decision::Return => {
                client.quota.succeeded(number > 1);
                self.end(slot, Reply::Success);
            }
            Decision::Retry(wait, token) => {
                let throttled = call.attempts.last_class() == Some(Class::Throttled);
                if client.quota.pay(now, throttled) {
                    call.token = token;
                    self.plan(nanos(wait), Event::Ready(slot));
                } else {
                    self.give_up(slot, StopReason::RetryBudgetExhausted, None);
                }
            }
            Decision::Stop(reason) => {
                let shared = client.fleet.as_ref().and_then(|local| local.refused_for(moment));
                let come_back = client.breaker.retry_after(moment).max(shared);
                let come_back = come_back.filter(|_| reason == StopReason::CircuitOpen);
                self.give_up(slot, reason, come_back);
            }
            // No answer of this stage asks for a recovery, and what is not known ends the call.
            _ => self.give_up(slot, StopReason::NotRetryable, None),
        }
    }

    /// The function answers its own caller for the failed call.
    fn give_up(&mut self, slot: Slot, reason: StopReason, come_back: Option<Duration>) {
        let Some((execution, _)) = self.functions.at(slot) else { return };
        let Some(call) = &execution.call else { return };
        let reply = if self.recipe.returns {
            let kind = match (reason, call.attempts.last_class()) {
                (StopReason::CircuitOpen, None) => ErrorKind::CircuitOpen,
                (_, Some(class)) => ErrorKind::of_class(class),
                (_, None) => ErrorKind::Timeout,
            };
            Reply::Own(Own::of(kind, come_back.max(call.attempts.retry_after()), self.recipe.marker))
        } else {
            Reply::BadGateway
        };
        self.end(slot, reply);
    }

    fn end(&mut self, slot: Slot, reply: Reply) {
        if let Some(ended) = self.functions.end(slot) {
            self.charge(&ended);
            self.reply(ended.from, reply);
        }
    }
}

fn draw(recipe: &Recipe, throw: u64) -> Draw {
    if recipe.backoff == Waits::NoJitter { Draw::HIGHEST } else { Draw(throw) }
}

fn is_server_error(outcome: &Outcome<'_>) -> bool {
    matches!(outcome, Outcome::Answered(answer) if answer.status == 500)
}

/// What the callee's guard takes off the caller's time for the answer's way back.
pub(crate) const WAY_BACK: Duration = Duration::from_millis(30);
