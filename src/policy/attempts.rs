//! Told what an attempt showed, says what to do next: the whole of a call's decisions.

use crate::policy::backoff::{Backoff, Base};
use crate::policy::breaker::Effect;
use crate::policy::classify::{Class, Recovery, Retried, signed_at_another_time};
use crate::policy::moment::Draw;
use crate::policy::outcome::{Answer, Outcome};
use crate::policy::refine::{Judgement, Refinements};
use crate::policy::retry_after::{self, Hint};
use crate::policy::retry_budget::{RetryBudget, RetryToken};
use crate::policy::time_budget::TimeBudget;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The settings that one call's decisions depend on.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How often the call may be sent in all, the first time included; at least 1.
    pub max_attempts: u32,
    /// The longest that one attempt may take.
    pub attempt_timeout: Duration,
    /// How long to wait before a retry.
    pub backoff: Backoff,
    /// How many retries a call may make on a 500 (and on unnamed 5xx).
    pub server_error_retries: u32,
    /// How many retries a call may make on a 502.
    pub bad_gateway_retries: u32,
    /// What the owner of the client knows better than the table.
    pub refinements: Arc<Refinements>,
    /// Whether the call may be sent again where the first sending may have been carried out.
    pub repeatable: bool,
}

/// What to do after an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Decision {
    /// Put something right and send anew at once.
    Recover(Recovery),
    /// Wait so long (zero is no wait), then send anew. The token is reserved: it is to be spent when the attempt
    /// begins, and gives itself back where it is dropped.
    Retry(Duration, RetryToken),
    /// The call succeeded.
    Return,
    /// The call is given up.
    Stop(StopReason),
}

/// Why no further attempt was made. Where several reasons hold, the first of this list that holds is told, down to
/// [`StopReason::TimeBudgetExhausted`]; the others stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The row of the outcome, or a refinement, allows no retry.
    NotRetryable,
    /// The answer carried `x-should-retry: false`: the layer nearest to the failure has retried already.
    CalleeForbids,
    /// The work may have been done, and the call carries no idempotency key.
    NoIdempotencyKey,
    /// `max_attempts` is reached.
    AttemptsExhausted,
    /// The row's own cap of retries a call is reached (500, 502).
    StatusCapReached,
    /// The breaker is open.
    CircuitOpen,
    /// The retry budget holds no token.
    RetryBudgetExhausted,
    /// The wait, or the attempt after it, does not fit into what is left of the time budget.
    TimeBudgetExhausted,
    /// The next hop would be one that every callee must refuse.
    HopLimit,
    /// The rate limit, or the limit on calls in flight, does not admit an attempt within the call's time.
    RateLimited,
    /// The one recovery that this answer allows is used up, or changed nothing.
    RecoveryUsed,
}

impl StopReason {
    /// The reason in words, as the error's line gives it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::NotRetryable => "not retryable",
            StopReason::CalleeForbids => "the callee forbids a retry",
            StopReason::NoIdempotencyKey => "no idempotency key",
            StopReason::AttemptsExhausted => "attempts exhausted",
            StopReason::StatusCapReached => "the status's retries are used up",
            StopReason::CircuitOpen => "circuit open",
            StopReason::RetryBudgetExhausted => "retry budget exhausted",
            StopReason::TimeBudgetExhausted => "time budget exhausted",
            StopReason::HopLimit => "hop limit",
            StopReason::RateLimited => "rate limited",
            StopReason::RecoveryUsed => "the recovery is used up",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The attempts of one call.
///
/// [`next`](Attempts::next) says whether an attempt may begin, [`observe`](Attempts::observe) what follows from it.
/// Time and chance are handed in, so the same inputs always give the same decisions.
#[derive(Debug)]
pub struct Attempts<'a> {
    terms: &'a Terms,
    time: TimeBudget,
    begun: u32,
    retries: u32,
    server_errors: u32,
    bad_gateways: u32,
    recoveries: [Option<Recovery>; MAX_RECOVERIES],
    thaws: u32,
    may_have_committed: bool,
    last: Option<Judgement>,
    hint: Option<Duration>,
}

impl<'a> Attempts<'a> {
    /// Begins a call.
    #[must_use]
    pub fn new(terms: &'a Terms, time: TimeBudget) -> Attempts<'a> {
        Attempts {
            terms,
            time,
            begun: 0,
            retries: 0,
            server_errors: 0,
            bad_gateways: 0,
            recoveries: [None; MAX_RECOVERIES],
            thaws: 0,
            may_have_committed: false,
            last: None,
            hint: None,
        }
    }

    /// Says whether an attempt may begin now, and counts it once [`begin`](Attempts::begin) follows.
    ///
    /// # Errors
    /// [`StopReason::TimeBudgetExhausted`] if less than the least time of an attempt is left.
    pub fn next(&self, now: Instant) -> Result<(), StopReason> {
        if self.time.is_spent(now) { Err(StopReason::TimeBudgetExhausted) } else { Ok(()) }
    }

    /// Counts an attempt as begun and gives its number, from 1, and how long it may take from `now` on.
    pub fn begin(&mut self, now: Instant) -> (u32, Duration) {
        self.begun = self.begun.saturating_add(1);
        (self.begun, self.time.attempt_timeout(self.terms.attempt_timeout, now))
    }

    /// What is left of the call's time.
    #[must_use]
    pub fn left(&self, now: Instant) -> Duration {
        self.time.left(now)
    }

    /// The call's time, for those who decide whether a wait of theirs fits into it.
    #[must_use]
    pub fn time(&self) -> TimeBudget {
        self.time
    }

    /// Takes in what an attempt showed and decides what follows.
    ///
    /// `settle` tells the breaker what the attempt showed and answers whether it refuses attempts from now on.
    pub fn observe(
        &mut self,
        outcome: &Outcome<'_>,
        now: Instant,
        draw: Draw,
        budget: &RetryBudget,
        settle: impl FnOnce(Effect) -> bool,
    ) -> Decision {
        let judged = self.terms.refinements.judge(outcome);
        let was_ambiguous = self.may_have_committed;
        let hint = self.note(judged, outcome);
        let circuit_open = settle(self.effect(judged.class));
        if judged.class == Class::Success && !judged.is_stopped() {
            budget.earn();
            return Decision::Return;
        }
        if let Some(reason) = self.refusal(judged, outcome) {
            return Decision::Stop(reason);
        }
        let rule = judged.class.rule();
        if let Retried::After(recovery) = rule.retried {
            if let Some(free) = self.recoveries.iter_mut().find(|used| used.is_none()) {
                *free = Some(recovery);
            }
            return Decision::Recover(recovery);
        }
        let base = match rule.base {
            // The first run may still hold the key: give it the longer wait.
            Some(_) if judged.class == Class::BadGateway && was_ambiguous => Base::Throttled,
            Some(base) => base,
            None => Base::Transient,
        };
        let wait = match hint {
            Hint::Absent => self.terms.backoff.wait(base, self.retries, draw),
            Hint::After(least) => retry_after::wait(least, draw),
            Hint::Unusable => self.terms.backoff.upper_half(self.retries, draw),
        };
        let free = matches!(outcome, Outcome::Lost { thawed: true, .. }) && self.thaws == 0;
        self.reserve(wait, now, circuit_open, (!free).then_some(budget))
    }

    /// Whether the callee may have done the work on any attempt so far.
    #[must_use]
    pub fn may_have_committed(&self) -> bool {
        self.may_have_committed
    }

    /// How long the last answer asked to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.hint
    }

    /// The row of the last outcome.
    #[must_use]
    pub fn last_class(&self) -> Option<Class> {
        self.last.map(|judged| judged.class)
    }

    /// How many retries were decided on; not recoveries.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// How many attempts have begun.
    #[must_use]
    pub fn begun(&self) -> u32 {
        self.begun
    }

    fn note(&mut self, judged: Judgement, outcome: &Outcome<'_>) -> Hint {
        self.last = Some(judged);
        self.may_have_committed |= judged.may_have_committed();
        let hint = match outcome {
            Outcome::Answered(answer) if judged.class.rule().effect != Effect::Success => {
                retry_after::read(answer.headers, answer.gateway_now)
            }
            _ => Hint::Absent,
        };
        self.hint = hint.duration();
        hint
    }

    /// A record that gets 500 each time is that record's fault: within a call, only its first 500 counts.
    fn effect(&mut self, class: Class) -> Effect {
        if class == Class::ServerError {
            self.server_errors = self.server_errors.saturating_add(1);
            if self.server_errors > 1 {
                return Effect::Neutral;
            }
        }
        if class == Class::BadGateway {
            self.bad_gateways = self.bad_gateways.saturating_add(1);
        }
        class.rule().effect
    }

    /// The first reason, in the order of [`StopReason`], that the outcome itself gives against a further attempt.
    fn refusal(&self, judged: Judgement, outcome: &Outcome<'_>) -> Option<StopReason> {
        let answer = match outcome {
            Outcome::Answered(answer) => Some(answer),
            Outcome::Lost { .. } | Outcome::NeverSent(_) => None,
        };
        let retried = judged.class.rule().retried;
        let blind =
            judged.class == Class::ForbiddenUnexplained && !answer.is_some_and(signed_at_another_time);
        if retried == Retried::Never || judged.is_stopped() || blind {
            return Some(StopReason::NotRetryable);
        }
        if answer.is_some_and(forbids_retry) {
            return Some(StopReason::CalleeForbids);
        }
        let used_up = |recovery| {
            self.recoveries.contains(&Some(recovery)) || self.recoveries.iter().all(Option::is_some)
        };
        if matches!(retried, Retried::After(recovery) if used_up(recovery)) {
            return Some(StopReason::RecoveryUsed);
        }
        if judged.needs_key() && !self.terms.repeatable {
            return Some(StopReason::NoIdempotencyKey);
        }
        if self.begun >= self.terms.max_attempts {
            return Some(StopReason::AttemptsExhausted);
        }
        let capped = match retried {
            Retried::CappedAsServerError => self.server_errors > self.terms.server_error_retries,
            Retried::CappedAsBadGateway => self.bad_gateways > self.terms.bad_gateway_retries,
            Retried::After(_) | Retried::Never | Retried::Yes => false,
        };
        capped.then_some(StopReason::StatusCapReached)
    }

    /// Reserves a retry. Without a budget it is the first after a thaw: the callee did nothing, so it costs nothing.
    fn reserve(
        &mut self,
        wait: Duration,
        now: Instant,
        circuit_open: bool,
        budget: Option<&RetryBudget>,
    ) -> Decision {
        if circuit_open {
            return Decision::Stop(StopReason::CircuitOpen);
        }
        let Some(token) = budget.map_or_else(|| Some(RetryToken::free()), RetryBudget::reserve) else {
            return Decision::Stop(StopReason::RetryBudgetExhausted);
        };
        if !self.time.fits(wait, now) {
            return Decision::Stop(StopReason::TimeBudgetExhausted);
        }
        if budget.is_none() {
            self.thaws = self.thaws.saturating_add(1);
        }
        self.retries = self.retries.saturating_add(1);
        Decision::Retry(wait, token)
    }
}

/// `x-should-retry: false`, in any case, on any of its lines. Nothing else changes the table.
fn forbids_retry(answer: &Answer<'_>) -> bool {
    let mut values = answer.headers.get_all("x-should-retry").iter();
    values.any(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"false"))
}

/// Recoveries of any kind a call.
const MAX_RECOVERIES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;
    use crate::policy::outcome::{Loss, Unsent};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use proptest::prelude::*;
    use std::time::SystemTime;

    /// One call on a clock that stands still unless told otherwise.
    struct Rig {
        terms: Terms,
        budget: RetryBudget,
        total: Duration,
        draw: Draw,
    }

    impl Rig {
        fn keyed() -> Rig {
            let backoff =
                Backoff::new(Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(2));
            Rig {
                terms: Terms {
                    max_attempts: 4,
                    attempt_timeout: Duration::from_secs(4),
                    backoff,
                    server_error_retries: 2,
                    bad_gateway_retries: 1,
                    refinements: Arc::default(),
                    repeatable: true,
                },
                budget: RetryBudget::off(),
                total: Duration::from_secs(10),
                draw: Draw::HIGHEST,
            }
        }

        fn unkeyed() -> Rig {
            let mut rig = Rig::keyed();
            rig.terms.repeatable = false;
            rig
        }

        fn begin(&self) -> Attempts<'_> {
            let start = some_moment().monotonic;
            Attempts::new(&self.terms, TimeBudget::new(start, self.total, None, Duration::from_millis(50)))
        }
    }

    /// An answer with headers, for tests.
    #[derive(Clone)]
    struct Reply(u16, HeaderMap, &'static str);

    impl Reply {
        fn of(status: u16) -> Reply {
            Reply(status, HeaderMap::new(), "")
        }

        fn with(mut self, name: &'static str, value: &str) -> Reply {
            self.1.append(name, HeaderValue::from_str(value).unwrap());
            self
        }

        fn typed(status: u16, error: &str, body: &'static str) -> Reply {
            let mut reply = Reply::of(status).with("x-amzn-errortype", error);
            reply.2 = body;
            reply
        }

        fn outcome(&self, clock_gap: Option<i64>) -> Outcome<'_> {
            Outcome::Answered(Answer {
                status: StatusCode::from_u16(self.0).unwrap(),
                headers: &self.1,
                body: self.2.as_bytes(),
                oversized: false,
                broken: false,
                clock_gap,
                signature_age: clock_gap,
                gateway_now: SystemTime::UNIX_EPOCH,
            })
        }
    }

    fn step(rig: &Rig, run: &mut Attempts<'_>, outcome: &Outcome<'_>) -> Decision {
        let now = run_now(run);
        run.begin(now);
        run.observe(outcome, now, rig.draw, &rig.budget, |_| false)
    }

    /// The start of the call: nothing in these tests takes time.
    fn run_now(_: &Attempts<'_>) -> Instant {
        some_moment().monotonic
    }

    fn wait(decision: Decision) -> Duration {
        match decision {
            Decision::Retry(wait, token) => {
                token.spend();
                wait
            }
            other => panic!("{other:?}"),
        }
    }

    fn stop(decision: Decision) -> StopReason {
        match decision {
            Decision::Stop(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn answer(rig: &Rig, run: &mut Attempts<'_>, reply: &Reply) -> Decision {
        step(rig, run, &reply.outcome(None))
    }

    #[test]
    fn max_attempts_counts_the_first() {
        let rig = Rig::keyed();
        let mut run = rig.begin();
        for _ in 1..4 {
            wait(answer(&rig, &mut run, &Reply::of(503)));
        }
        assert_eq!(stop(answer(&rig, &mut run, &Reply::of(503))), StopReason::AttemptsExhausted);
        assert_eq!(run.begun(), 4);
    }

    #[test]
    fn a_500_is_retried_twice_a_call_and_a_502_once() {
        let rig = Rig::keyed();
        let mut run = rig.begin();
        wait(answer(&rig, &mut run, &Reply::of(500)));
        wait(answer(&rig, &mut run, &Reply::of(500)));
        assert_eq!(stop(answer(&rig, &mut run, &Reply::of(500))), StopReason::StatusCapReached);
        let mut run = rig.begin();
        wait(answer(&rig, &mut run, &Reply::of(502)));
        assert_eq!(stop(answer(&rig, &mut run, &Reply::of(502))), StopReason::StatusCapReached);
    }

    #[test]
    fn without_a_key_an_ambiguous_outcome_is_never_sent_again_and_a_harmless_one_is() {
        for status in [408, 500, 502, 503, 504] {
            let rig = Rig::unkeyed();
            assert_eq!(
                stop(answer(&rig, &mut rig.begin(), &Reply::of(status))),
                StopReason::NoIdempotencyKey,
                "{status}"
            );
        }
        for loss in [Loss::Connection, Loss::Garbage, Loss::TimedOut, Loss::Truncated] {
            let rig = Rig::unkeyed();
            let reason = stop(step(&rig, &mut rig.begin(), &Outcome::Lost { how: loss, thawed: false }));
            assert_eq!(reason, StopReason::NoIdempotencyKey);
        }
        let rig = Rig::unkeyed();
        wait(answer(&rig, &mut rig.begin(), &Reply::of(429)));
        for unsent in [Unsent::ConnectTimeout, Unsent::Dns, Unsent::HandshakeCut, Unsent::Refused] {
            wait(step(&rig, &mut rig.begin(), &Outcome::NeverSent(unsent)));
        }
        let reason = stop(step(&rig, &mut rig.begin(), &Outcome::NeverSent(Unsent::Certificate)));
        assert_eq!(reason, StopReason::NotRetryable);
    }

    #[test]
    fn a_doubt_once_had_stays() {
        let rig = Rig::keyed();
        let mut run = rig.begin();
        wait(answer(&rig, &mut run, &Reply::of(429)));
        assert!(!run.may_have_committed());
        wait(answer(&rig, &mut run, &Reply::of(504)));
        wait(answer(&rig, &mut run, &Reply::of(429)));
        assert!(run.may_have_committed());
    }

    #[test]
    fn the_callee_s_marker_forbids_a_retry_of_any_status_and_true_changes_nothing() {
        for status in [429, 500, 503, 504] {
            let rig = Rig::keyed();
            let reply = Reply::of(status).with("x-should-retry", "False");
            assert_eq!(stop(answer(&rig, &mut rig.begin(), &reply)), StopReason::CalleeForbids);
        }
        let rig = Rig::keyed();
        let expired = Reply::typed(403, "ExpiredTokenException", "").with("x-should-retry", "false");
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &expired)), StopReason::CalleeForbids);
        let plain = Reply::of(400).with("x-should-retry", "true");
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &plain)), StopReason::NotRetryable);
    }

    #[test]
    fn the_first_reason_that_holds_is_told() {
        let mut rig = Rig::unkeyed();
        rig.terms.max_attempts = 1;
        rig.terms.server_error_retries = 0;
        rig.budget = RetryBudget::new(0);
        rig.total = Duration::from_millis(60);
        let marked = Reply::of(500).with("x-should-retry", "false");
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &marked)), StopReason::CalleeForbids);
        let open = |rig: &Rig| {
            let (mut run, reply) = (rig.begin(), Reply::of(500));
            let now = run_now(&run);
            run.begin(now);
            stop(run.observe(&reply.outcome(None), now, rig.draw, &rig.budget, |_| true))
        };
        assert_eq!(open(&rig), StopReason::NoIdempotencyKey);
        rig.terms.repeatable = true;
        assert_eq!(open(&rig), StopReason::AttemptsExhausted);
        rig.terms.max_attempts = 3;
        assert_eq!(open(&rig), StopReason::StatusCapReached);
        rig.terms.server_error_retries = 2;
        assert_eq!(open(&rig), StopReason::CircuitOpen);
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &Reply::of(500))), StopReason::RetryBudgetExhausted);
        rig.budget = RetryBudget::new(1);
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &Reply::of(500))), StopReason::TimeBudgetExhausted);
        assert_eq!(rig.budget.available_tenths(), Some(10), "a token that was not used is given back");
    }

    #[test]
    fn a_wait_grows_from_the_base_of_its_row() {
        let rig = Rig::keyed();
        let mut run = rig.begin();
        assert_eq!(wait(answer(&rig, &mut run, &Reply::of(504))), Duration::from_millis(200));
        assert_eq!(wait(answer(&rig, &mut run, &Reply::of(503))), Duration::from_secs(1));
        assert_eq!(
            wait(answer(&rig, &mut run, &Reply::of(429))),
            Duration::from_secs(2),
            "the cap is inside"
        );
    }

    #[test]
    fn a_502_after_a_doubt_waits_as_if_throttled() {
        let rig = Rig::keyed();
        assert_eq!(wait(answer(&rig, &mut rig.begin(), &Reply::of(502))), Duration::from_millis(200));
        let mut run = rig.begin();
        wait(answer(&rig, &mut run, &Reply::of(504)));
        assert_eq!(wait(answer(&rig, &mut run, &Reply::of(502))), Duration::from_secs(1));
    }

    #[test]
    fn a_hint_is_a_floor_and_one_that_does_not_fit_ends_the_call_with_the_hint() {
        let mut rig = Rig::keyed();
        rig.draw = Draw::LOWEST;
        let reply = Reply::of(429).with("retry-after", "3");
        assert_eq!(wait(answer(&rig, &mut rig.begin(), &reply)), Duration::from_secs(3));
        let mut run = rig.begin();
        let long = Reply::of(429).with("retry-after", "60");
        assert_eq!(stop(answer(&rig, &mut run, &long)), StopReason::TimeBudgetExhausted);
        assert_eq!(run.retry_after(), Some(Duration::from_secs(60)));
        let junk = Reply::of(429).with("retry-after", "soon");
        assert_eq!(
            wait(answer(&rig, &mut rig.begin(), &junk)),
            Duration::from_millis(250),
            "never from zero"
        );
    }

    #[test]
    fn each_recovery_happens_once_and_two_in_all() {
        let rig = Rig::keyed();
        let expired =
            Reply::typed(403, "InvalidSignatureException", r#"{"message":"Signature expired: a b"}"#);
        let token = Reply::typed(403, "ExpiredTokenException", "");
        let mismatch = Reply::typed(403, "InvalidSignatureException", r#"{"message":"does not match"}"#);
        let recovered = |decision| match decision {
            Decision::Recover(recovery) => recovery,
            other => panic!("{other:?}"),
        };
        let mut run = rig.begin();
        assert_eq!(recovered(answer(&rig, &mut run, &expired)), Recovery::Clock);
        assert_eq!(
            stop(step(&rig, &mut run, &expired.outcome(Some(1_800)))),
            StopReason::RecoveryUsed,
            "the two time-worded rows share one"
        );
        let mut run = rig.begin();
        assert_eq!(recovered(answer(&rig, &mut run, &token)), Recovery::Credentials);
        assert_eq!(recovered(answer(&rig, &mut run, &mismatch)), Recovery::Signature);
        assert_eq!(stop(answer(&rig, &mut run, &Reply::of(401))), StopReason::RecoveryUsed);
        let mut run = rig.begin();
        assert_eq!(recovered(answer(&rig, &mut run, &Reply::of(401))), Recovery::Identity);
    }

    #[test]
    fn the_first_retry_after_a_thaw_costs_no_token_and_the_second_does() {
        let mut rig = Rig::keyed();
        rig.budget = RetryBudget::new(0);
        let mut run = rig.begin();
        let thawed = Outcome::Lost { how: Loss::Connection, thawed: true };
        wait(step(&rig, &mut run, &thawed));
        assert_eq!(stop(step(&rig, &mut run, &thawed)), StopReason::RetryBudgetExhausted);
    }

    #[test]
    fn a_recovery_needs_no_retry_token_but_an_attempt() {
        let mut rig = Rig::keyed();
        rig.budget = RetryBudget::new(0);
        let token = Reply::typed(403, "ExpiredTokenException", "");
        assert!(matches!(answer(&rig, &mut rig.begin(), &token), Decision::Recover(_)));
        rig.terms.max_attempts = 1;
        assert_eq!(stop(answer(&rig, &mut rig.begin(), &token)), StopReason::AttemptsExhausted);
    }

    #[test]
    fn an_unexplained_forbidden_is_sent_again_only_if_it_was_signed_at_another_time() {
        let rig = Rig::keyed();
        let mut reply = Reply::of(403).with("apigw-requestid", "A");
        reply.2 = r#"{"message":"Forbidden"}"#;
        for (gap, again) in [(None, false), (Some(240), false), (Some(241), true), (Some(-241), true)] {
            let decision = step(&rig, &mut rig.begin(), &reply.outcome(gap));
            assert_eq!(matches!(decision, Decision::Recover(Recovery::Clock)), again, "{gap:?}");
        }
    }

    #[test]
    fn a_record_that_gets_500_each_time_counts_once_for_the_breaker() {
        let rig = Rig::keyed();
        let (mut run, reply, mut effects) = (rig.begin(), Reply::of(500), Vec::new());
        for _ in 0..3 {
            let now = run_now(&run);
            run.begin(now);
            let _ = run.observe(&reply.outcome(None), now, rig.draw, &rig.budget, |effect| {
                effects.push(effect);
                false
            });
        }
        assert_eq!(effects, [Effect::Failure, Effect::Neutral, Effect::Neutral]);
    }

    #[test]
    fn a_success_earns_a_tenth_and_a_refusal_nothing() {
        let mut rig = Rig::keyed();
        rig.budget = RetryBudget::new(2);
        let spend = |rig: &Rig| rig.budget.reserve().unwrap().spend();
        spend(&rig);
        assert!(matches!(answer(&rig, &mut rig.begin(), &Reply::of(201)), Decision::Return));
        assert_eq!(rig.budget.available_tenths(), Some(11));
        stop(answer(&rig, &mut rig.begin(), &Reply::of(404)));
        assert_eq!(rig.budget.available_tenths(), Some(11));
    }

    #[test]
    fn an_attempt_is_not_begun_with_less_than_its_least_time() {
        let rig = Rig::keyed();
        let start = some_moment().monotonic;
        let run =
            Attempts::new(&rig.terms, TimeBudget::new(start, rig.total, None, Duration::from_millis(50)));
        assert_eq!(run.next(start + Duration::from_millis(9_950)), Ok(()));
        assert_eq!(run.next(start + Duration::from_millis(9_951)), Err(StopReason::TimeBudgetExhausted));
    }

    #[test]
    fn an_attempt_is_cut_to_what_is_left() {
        let rig = Rig::keyed();
        let start = some_moment().monotonic;
        let mut run = Attempts::new(&rig.terms, TimeBudget::new(start, rig.total, None, Duration::ZERO));
        assert_eq!(run.begin(start), (1, Duration::from_secs(4)));
        assert_eq!(run.begin(start + Duration::from_secs(7)), (2, Duration::from_secs(3)));
    }

    #[test]
    fn a_success_that_is_too_large_asks_for_no_wait_whatever_it_says() {
        let (rig, now) = (Rig::keyed(), some_moment().monotonic);
        let mut run = rig.begin();
        let reply = Reply::of(200).with("retry-after", "7");
        let large = match reply.outcome(None) {
            Outcome::Answered(answer) => Outcome::Answered(Answer { oversized: true, ..answer }),
            other => other,
        };
        let decision = run.observe(&large, now, rig.draw, &rig.budget, |_| false);
        assert!(matches!(decision, Decision::Stop(StopReason::NotRetryable)));
        assert_eq!((run.last_class(), run.retry_after()), (Some(Class::BodyTooLarge), None));
    }

    #[test]
    fn the_wait_that_the_last_answer_asked_for_is_told_and_no_earlier_one() {
        let (rig, now) = (Rig::keyed(), some_moment().monotonic);
        let mut run = rig.begin();
        let asks = Reply::of(503).with("retry-after", "7");
        let _ = run.observe(&asks.outcome(None), now, rig.draw, &rig.budget, |_| false);
        assert_eq!(run.retry_after(), Some(Duration::from_secs(7)));
        let _ = run.observe(&Reply::of(503).outcome(None), now, rig.draw, &rig.budget, |_| false);
        assert_eq!(run.retry_after(), None);
    }

    proptest! {
        #[test]
        fn no_series_of_answers_breaks_a_bound(
            statuses in proptest::collection::vec(prop_oneof![Just(0u16), 200u16..600], 1..20),
            max_attempts in 1u32..8,
            repeatable: bool,
            hint in proptest::option::of(0u64..100),
            draw: u64,
        ) {
            let mut rig = Rig::keyed();
            rig.terms.max_attempts = max_attempts;
            rig.terms.repeatable = repeatable;
            rig.draw = Draw(draw);
            let mut run = rig.begin();
            for status in statuses {
                let mut reply = Reply::of(status.max(200));
                if let Some(hint) = hint {
                    reply = reply.with("retry-after", &hint.to_string());
                }
                let outcome = if status == 0 { Outcome::Lost { how: Loss::TimedOut, thawed: false } } else { reply.outcome(None) };
                match step(&rig, &mut run, &outcome) {
                    Decision::Retry(wait, token) => {
                        token.spend();
                        prop_assert!(run.begun() < max_attempts);
                        prop_assert!(repeatable || !run.may_have_committed());
                        prop_assert!(wait <= rig.total);
                        if let Some(hint) = hint.filter(|h| *h > 0 && status != 0) {
                            prop_assert!(wait >= Duration::from_secs(hint));
                        }
                    }
                    Decision::Recover(_) => prop_assert!(run.begun() < max_attempts),
                    Decision::Return | Decision::Stop(_) => break,
                }
            }
            prop_assert!(run.begun() <= max_attempts);
        }
    }
}
