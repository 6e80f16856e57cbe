//! The circuit breaker: closed, open, half-open.

use crate::policy::backoff::{Backoff, Base};
use crate::policy::moment::{Draw, Moment};
use std::time::{Duration, Instant};

/// Keeps a client from sending to a callee that is failing, and finds out when it no longer is.
///
/// - *Closed*: attempts pass. It opens on so many failures in a row, or on a failure rate over a rolling window.
///   The rate is looked at when a failure comes: a success never opens it. Time is monotonic.
/// - *Open*: attempts are refused until the open time is over, by whichever clock moved further: a sandbox that was
///   frozen for an hour does not refuse its first call.
/// - *Half-open*: a fixed number of probes pass at a time. Successes close it, one failure opens it again.
///
/// Every [`Ticket`] that [`admit`](Self::admit) hands out must come back, by [`settle`](Self::settle) or by
/// [`give_back`](Self::give_back). Tickets carry the generation of the state that admitted them, and one of an
/// earlier state changes nothing: what was sent before the circuit opened says nothing of the callee now.
#[derive(Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    phase: Phase,
    generation: u64,
    /// Failed probes in a row, since the circuit was last closed.
    failed_probes: u32,
}

impl Breaker {
    /// Makes a closed breaker. Settings out of their ranges make a strange but not a stuck one.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, phase: Phase::closed(), generation: 0, failed_probes: 0 }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &BreakerSettings {
        &self.settings
    }

    /// Asks whether an attempt may be sent now.
    ///
    /// # Errors
    /// [`Refused`] while the circuit is open, or half-open with every probe out.
    pub fn admit(&mut self, now: Moment) -> Result<Ticket, Refused> {
        if let Some(retry_after) = self.retry_after(now) {
            return Err(Refused { retry_after });
        }
        if let Phase::Open { .. } = self.phase {
            self.enter(Phase::HalfOpen { in_flight: 0, successes: 0 });
        }
        let probe = match &mut self.phase {
            Phase::HalfOpen { in_flight, .. } => {
                *in_flight = in_flight.saturating_add(1);
                true
            }
            _ => false,
        };
        Ok(Ticket { generation: self.generation, probe })
    }

    /// Takes in what an admitted attempt came to, and tells if that opened or closed the circuit.
    pub fn settle(&mut self, ticket: Ticket, effect: Effect, now: Moment, draw: Draw) -> Option<Transition> {
        if ticket.generation != self.generation {
            return None;
        }
        match (&mut self.phase, effect) {
            (Phase::Closed { run, outcomes, .. }, Effect::Success) => {
                *run = 0;
                outcomes.record(now.monotonic, self.settings.window, false);
                None
            }
            (Phase::Closed { .. }, Effect::Failure) => {
                let cause = self.count_failure(now.monotonic)?;
                Some(self.open(State::Closed, cause, now, draw))
            }
            (Phase::HalfOpen { successes, in_flight }, Effect::Success) => {
                *in_flight = in_flight.saturating_sub(1);
                *successes = successes.saturating_add(1);
                let enough = *successes >= self.settings.successes_to_close;
                enough.then(|| self.close())
            }
            (Phase::HalfOpen { .. }, Effect::Failure) => {
                self.failed_probes = self.failed_probes.saturating_add(1);
                Some(self.open(State::HalfOpen, Cause::FailedProbe, now, draw))
            }
            (_, Effect::Neutral) => {
                self.give_back(ticket);
                None
            }
            // A forced state ignores what it is told, and an open one has admitted nobody.
            (Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. }, _) => None,
        }
    }

    /// Takes back the ticket of an attempt that came to nothing, such as that of a dropped call. Nothing is counted.
    pub fn give_back(&mut self, ticket: Ticket) {
        if let Phase::HalfOpen { in_flight, .. } = &mut self.phase
            && ticket.generation == self.generation
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// The state. An open circuit whose open time is over counts as half-open: the next attempt is a probe.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        match &self.phase {
            Phase::Closed { .. } | Phase::ForcedClosed => State::Closed,
            Phase::ForcedOpen => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::Open { .. } if self.retry_after(now).is_none() => State::HalfOpen,
            Phase::Open { .. } => State::Open,
        }
    }

    /// Whether an attempt would be refused now: the circuit is open, or half-open with every probe out.
    #[must_use]
    pub fn is_open(&self, now: Moment) -> bool {
        self.retry_after(now).is_some()
    }

    /// When to ask again, never zero; `None` if an attempt would be admitted now.
    ///
    /// With the circuit open this is what is left of the open time. While probes are out nobody knows how long they
    /// will take: then it is a tenth of the open time. A circuit forced open may stay so: then it is the longest open time.
    #[must_use]
    pub fn retry_after(&self, now: Moment) -> Option<Duration> {
        match &self.phase {
            Phase::Closed { .. } | Phase::ForcedClosed => None,
            Phase::ForcedOpen => Some(self.settings.open_cap.max(SOONEST)),
            Phase::HalfOpen { in_flight, .. } => (*in_flight >= self.settings.probes.max(1))
                .then(|| (self.settings.open_for / 10).max(SOONEST)),
            Phase::Open { since, lasts } => {
                lasts.checked_sub(now.since(since)).filter(|left| !left.is_zero())
            }
        }
    }

    /// Opens the circuit until [`reset`](Self::reset), whatever attempts come to.
    pub fn force_open(&mut self) {
        self.enter(Phase::ForcedOpen);
    }

    /// Closes the circuit until [`reset`](Self::reset), whatever attempts come to.
    pub fn force_closed(&mut self) {
        self.enter(Phase::ForcedClosed);
    }

    /// Begins anew: closed, with nothing counted and nothing forced.
    pub fn reset(&mut self) {
        self.failed_probes = 0;
        self.enter(Phase::closed());
    }

    /// Counts a failure of a closed circuit, and says if it is one too many.
    fn count_failure(&mut self, now: Instant) -> Option<Cause> {
        let Phase::Closed { run, last_failure, outcomes } = &mut self.phase else {
            return None;
        };
        let aged_out = last_failure
            .is_some_and(|last| now.saturating_duration_since(last) > self.settings.failure_memory);
        *run = if aged_out { 1 } else { run.saturating_add(1) };
        *last_failure = Some(now);
        outcomes.record(now, self.settings.window, true);
        if *run >= self.settings.failures_in_row {
            return Some(Cause::FailuresInRow);
        }
        let (failures, all) = outcomes.totals();
        let too_many = all >= u64::from(self.settings.minimum_outcomes)
            && failures * 100 >= all * u64::from(self.settings.failure_percent);
        too_many.then_some(Cause::FailureRate)
    }

    fn open(&mut self, from: State, cause: Cause, now: Moment, draw: Draw) -> Transition {
        let lasts = self.settings.open_time(self.failed_probes, draw);
        self.enter(Phase::Open { since: now, lasts });
        Transition { from, to: State::Open, cause, open_for: Some(lasts) }
    }

    fn close(&mut self) -> Transition {
        self.failed_probes = 0;
        self.enter(Phase::closed());
        Transition { from: State::HalfOpen, to: State::Closed, cause: Cause::ProbesSucceeded, open_for: None }
    }

    /// Every change of state begins a generation, so that no ticket of the old state can touch the new one.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1);
    }
}

/// What an attempt says about the health of the callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The callee is ill, or could not be reached.
    Failure,
    /// It says nothing: a request that the callee rightly refused. It neither ends nor lengthens a run of failures.
    Neutral,
    /// The callee is well.
    Success,
}

/// What the circuit lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Everything.
    Closed,
    /// A few probes.
    HalfOpen,
    /// Nothing.
    Open,
}

impl State {
    /// The state in a word: `closed`, `half-open`, `open`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Closed => "closed",
            State::HalfOpen => "half-open",
            State::Open => "open",
        }
    }
}

/// A change of state that an outcome brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// What brought it about.
    pub cause: Cause,
    /// How long the circuit stays open, where it was opened.
    pub open_for: Option<Duration>,
}

/// Why the circuit opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A probe failed.
    FailedProbe,
    /// Too large a part of the recent outcomes were failures.
    FailureRate,
    /// Too many attempts failed one after the other.
    FailuresInRow,
    /// As many probes succeeded as it takes to close.
    ProbesSucceeded,
}

/// The leave to send one attempt. It goes back to the breaker that gave it, exactly once.
#[derive(Debug)]
#[must_use = "a ticket that is not settled or given back may hold a probe's place for good"]
pub struct Ticket {
    generation: u64,
    probe: bool,
}

impl Ticket {
    /// Whether the attempt is a probe of a half-open circuit.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// The answer of a circuit that lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When to ask again; never zero.
    pub retry_after: Duration,
}

/// When a circuit opens, for how long, and what closes it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    failures_in_row: u32,
    failure_percent: u32,
    minimum_outcomes: u32,
    window: Duration,
    failure_memory: Duration,
    open_for: Duration,
    open_cap: Duration,
    growth_from: u32,
    jitter_percent: u32,
    probes: u32,
    successes_to_close: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures_in_row: 5,
            failure_percent: 50,
            minimum_outcomes: 20,
            window: Duration::from_secs(10),
            failure_memory: Duration::from_secs(60),
            open_for: Duration::from_secs(2),
            open_cap: Duration::from_secs(4),
            growth_from: u32::MAX,
            jitter_percent: 20,
            probes: 1,
            successes_to_close: 1,
        }
    }
}

settings! { BreakerSettings:
    /// The failures in a row that open the circuit; 1 or more, default 5. `u32::MAX` leaves it to the rate.
    failures_in_row, with_failures_in_row: u32;
    /// The percentage of failures in the window that opens the circuit; 1 to 100, default 50.
    failure_percent, with_failure_percent: u32;
    /// The outcomes that the window must hold before the percentage counts; 1 or more, default 20. `u32::MAX` leaves
    /// it to the failures in a row.
    minimum_outcomes, with_minimum_outcomes: u32;
    /// How far back the percentage looks; above zero, default 10 s. It rolls on in tenths.
    window, with_window: Duration;
    /// The pause after which a run of failures is forgotten; above zero, default 60 s.
    failure_memory, with_failure_memory: Duration;
    /// How long the circuit stays open, before jitter; above zero, default 2 s.
    open_for, with_open_for: Duration;
    /// The longest that growth makes the open time, before jitter; `open_for` or more, default 4 s. Equal to
    /// `open_for` there is no growth.
    open_cap, with_open_cap: Duration;
    /// The failed probe in a row from which on each one doubles the open time, up to `open_cap`; 1 or more, default
    /// `u32::MAX`: it does not grow. With growth from the third on, a simulated chain of three hops draws hardly less
    /// while its callee is down, and is itself again after 8 s instead of 4 s (`examples/retry_storm`).
    growth_from, with_growth_from: u32;
    /// How far the open time is spread, up and down, so that a fleet does not come back as one; 0 to 99 percent of
    /// it, default 20.
    jitter_percent, with_jitter_percent: u32;
    /// The probes that a half-open circuit lets out at a time; 1 or more, default 1.
    probes, with_probes: u32;
    /// The successful probes that close the circuit; 1 or more, default 1.
    successes_to_close, with_successes_to_close: u32;
}

impl BreakerSettings {
    /// Looks for a setting that makes no sense: the name of the first such, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let rules = [
            ("failures_in_row", self.failures_in_row >= 1, AT_LEAST_ONE),
            ("failure_percent", (1..=100).contains(&self.failure_percent), "must be 1 to 100"),
            ("minimum_outcomes", self.minimum_outcomes >= 1, AT_LEAST_ONE),
            ("window", !self.window.is_zero(), ABOVE_ZERO),
            ("failure_memory", !self.failure_memory.is_zero(), ABOVE_ZERO),
            ("open_for", !self.open_for.is_zero(), ABOVE_ZERO),
            ("open_cap", self.open_cap >= self.open_for, "must not be below open_for"),
            ("growth_from", self.growth_from >= 1, AT_LEAST_ONE),
            ("jitter_percent", self.jitter_percent <= 99, "must be 0 to 99"),
            ("probes", self.probes >= 1, AT_LEAST_ONE),
            ("successes_to_close", self.successes_to_close >= 1, AT_LEAST_ONE),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((name, _, reason)) => Err((name, reason)),
            None => Ok(()),
        }
    }

    /// The open time after so many failed probes in a row. Jitter comes after the cap: a cap on top of it would have
    /// half of a fleet come back at the same time.
    fn open_time(&self, failed_probes: u32, draw: Draw) -> Duration {
        let doublings = failed_probes.saturating_sub(self.growth_from.saturating_sub(1));
        let middle =
            Backoff::new(self.open_for, self.open_for, self.open_cap).ceiling(Base::Transient, doublings);
        let swing = (middle / 100).saturating_mul(self.jitter_percent);
        middle.saturating_sub(swing).saturating_add(draw.up_to(swing.saturating_mul(2)))
    }
}

#[derive(Debug, PartialEq)]
enum Phase {
    Closed {
        /// Failures in a row.
        run: u32,
        last_failure: Option<Instant>,
        outcomes: Outcomes,
    },
    ForcedClosed,
    ForcedOpen,
    HalfOpen {
        in_flight: u32,
        successes: u32,
    },
    Open {
        since: Moment,
        lasts: Duration,
    },
}

impl Phase {
    fn closed() -> Self {
        Phase::Closed { run: 0, last_failure: None, outcomes: Outcomes::default() }
    }
}

/// Recent outcomes, counted in ten slots that each stand for a tenth of the window, the newest first.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    slots: [Slot; SLOTS],
    /// When the newest slot began.
    newest: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slot {
    failures: u32,
    all: u32,
}

impl Outcomes {
    fn record(&mut self, now: Instant, window: Duration, failed: bool) {
        self.roll(now, window);
        if let Some(slot) = self.slots.first_mut() {
            slot.failures = slot.failures.saturating_add(u32::from(failed));
            slot.all = slot.all.saturating_add(1);
        }
    }

    /// Lets go of the slots that the window has left behind. A clock that went back moves nothing.
    fn roll(&mut self, now: Instant, window: Duration) {
        let newest = *self.newest.get_or_insert(now);
        let elapsed = now.saturating_duration_since(newest);
        let width = (window / SLOTS as u32).max(Duration::from_nanos(1));
        if elapsed < width {
            return;
        }
        let steps = elapsed.as_nanos() / width.as_nanos();
        match u8::try_from(steps) {
            Ok(steps) if usize::from(steps) < SLOTS => {
                self.slots.rotate_right(usize::from(steps));
                self.slots.iter_mut().take(usize::from(steps)).for_each(|slot| *slot = Slot::default());
                self.newest = newest.checked_add(width.saturating_mul(u32::from(steps)));
            }
            _ => {
                self.slots = [Slot::default(); SLOTS];
                self.newest = Some(now);
            }
        }
    }

    /// Failures, and all outcomes.
    fn totals(&self) -> (u64, u64) {
        self.slots.iter().fold((0, 0), |(failures, all), slot| {
            (failures + u64::from(slot.failures), all + u64::from(slot.all))
        })
    }
}

/// How many slots a window has.
const SLOTS: usize = 10;

/// The least that a refused caller is told to wait.
const SOONEST: Duration = Duration::from_millis(1);

const ABOVE_ZERO: &str = "must be above zero";
const AT_LEAST_ONE: &str = "must be at least 1";

#[cfg(test)]
mod tests {
    use super::Effect::{Failure, Neutral, Success};
    use super::*;
    use crate::policy::moment::some_moment;
    use proptest::prelude::*;
    use std::time::SystemTime;

    const MS: Duration = Duration::from_millis(1);
    /// The throw that leaves an open time as it is, but for a nanosecond.
    const MIDDLE: Draw = Draw(1 << 63);

    /// A breaker with both clocks at hand.
    struct Bench {
        breaker: Breaker,
        now: Moment,
    }

    impl Bench {
        fn new(settings: BreakerSettings) -> Self {
            assert_eq!(settings.check(), Ok(()));
            Self { breaker: Breaker::new(settings), now: some_moment() }
        }

        /// One that grows, to look at growth.
        fn standard() -> Self {
            Self::new(BreakerSettings::default().with_jitter_percent(0).with_growth_from(3))
        }

        fn opened() -> Self {
            let mut bench = Self::standard();
            bench.attempts(&[Failure; 5]);
            assert_eq!(bench.state(), State::Open);
            bench
        }

        fn half_open() -> Self {
            let mut bench = Self::opened();
            bench.pass(2_000 * MS);
            assert_eq!(bench.state(), State::HalfOpen);
            bench
        }

        fn pass(&mut self, time: Duration) {
            self.now.monotonic += time;
            self.now.wall += time;
        }

        fn admit(&mut self) -> Result<Ticket, Refused> {
            self.breaker.admit(self.now)
        }

        fn settle(&mut self, ticket: Ticket, effect: Effect) -> Option<Transition> {
            self.breaker.settle(ticket, effect, self.now, MIDDLE)
        }

        fn attempt(&mut self, effect: Effect) -> Option<Transition> {
            let ticket = self.admit().unwrap();
            self.settle(ticket, effect)
        }

        fn attempts(&mut self, effects: &[Effect]) {
            for effect in effects {
                self.attempt(*effect);
            }
        }

        fn state(&self) -> State {
            self.breaker.state(self.now)
        }

        fn retry_after(&self) -> Option<Duration> {
            self.breaker.retry_after(self.now)
        }
    }

    // Closed, failures in a row.

    #[test]
    fn the_fifth_failure_in_a_row_opens_and_the_fourth_does_not() {
        let mut bench = Bench::standard();
        bench.attempts(&[Failure; 4]);
        assert_eq!(bench.state(), State::Closed);
        let opening = bench.attempt(Failure).unwrap();
        assert_eq!(
            opening,
            Transition {
                from: State::Closed,
                to: State::Open,
                cause: Cause::FailuresInRow,
                open_for: Some(2_000 * MS),
            }
        );
        assert_eq!(bench.state(), State::Open);
    }

    #[test]
    fn a_success_ends_the_run() {
        let mut bench = Bench::standard();
        bench.attempts(&[Failure, Failure, Failure, Failure, Success]);
        bench.attempts(&[Failure; 4]);
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn a_neutral_outcome_neither_ends_nor_lengthens_the_run() {
        let mut bench = Bench::new(BreakerSettings::default().with_failures_in_row(3));
        bench.attempts(&[Failure, Failure, Neutral]);
        assert_eq!(bench.state(), State::Closed);
        bench.attempt(Failure);
        assert_eq!(bench.state(), State::Open);
    }

    #[test]
    fn neutral_outcomes_alone_never_open() {
        let mut bench = Bench::standard();
        bench.attempts(&[Neutral; 1_000]);
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn a_run_is_forgotten_after_a_pause_longer_than_its_memory() {
        let mut bench = Bench::standard();
        bench.attempts(&[Failure; 4]);
        bench.pass(60_001 * MS);
        bench.attempts(&[Failure; 4]);
        assert_eq!(bench.state(), State::Closed);
        bench.pass(60_000 * MS);
        bench.attempt(Failure);
        assert_eq!(bench.state(), State::Open);
    }

    #[test]
    fn a_threshold_of_one_opens_at_the_first_failure() {
        let mut bench = Bench::new(BreakerSettings::default().with_failures_in_row(1));
        assert!(bench.attempt(Failure).is_some());
    }

    // Closed, failure rate.

    #[test]
    fn half_of_twenty_outcomes_failing_opens() {
        let mut bench = Bench::standard();
        for _ in 0..9 {
            bench.attempts(&[Success, Failure]);
        }
        bench.attempt(Success);
        assert_eq!(bench.state(), State::Closed);
        assert_eq!(bench.attempt(Failure).unwrap().cause, Cause::FailureRate);
    }

    #[test]
    fn less_than_half_failing_does_not_open() {
        let mut bench = Bench::standard();
        for _ in 0..100 {
            bench.attempts(&[Success, Failure, Success, Failure, Success]);
        }
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn neutral_outcomes_are_not_part_of_the_rate() {
        let mut bench = Bench::standard();
        for _ in 0..10 {
            bench.attempts(&[Success, Neutral, Neutral, Failure]);
        }
        assert_eq!(bench.state(), State::Open);
        let mut few = Bench::standard();
        for _ in 0..9 {
            few.attempts(&[Success, Neutral, Neutral, Failure]);
        }
        assert_eq!(few.state(), State::Closed);
    }

    #[test]
    fn a_success_never_opens_even_if_it_fills_the_minimum() {
        let mut bench = Bench::standard();
        for _ in 0..5 {
            bench.attempts(&[Failure, Failure, Success]);
        }
        bench.attempts(&[Success; 5]);
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn outcomes_leave_the_window_and_no_longer_count() {
        let mut bench = Bench::standard();
        for _ in 0..9 {
            bench.attempts(&[Success, Failure]);
        }
        bench.pass(10_000 * MS);
        bench.attempts(&[Success, Failure]);
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn outcomes_within_nine_tenths_of_the_window_count() {
        let mut bench = Bench::standard();
        for _ in 0..9 {
            bench.attempts(&[Success, Failure]);
        }
        bench.pass(9_000 * MS);
        bench.attempts(&[Success, Failure]);
        assert_eq!(bench.state(), State::Open);
    }

    #[test]
    fn a_trickle_that_never_fills_the_window_does_not_open() {
        let mut bench = Bench::standard();
        for _ in 0..200 {
            bench.attempts(&[Success, Failure]);
            bench.pass(1_200 * MS);
        }
        assert_eq!(bench.state(), State::Closed);
    }

    // Open.

    #[test]
    fn an_open_circuit_refuses_and_says_when_to_come_back() {
        let mut bench = Bench::opened();
        bench.pass(500 * MS);
        assert_eq!(bench.admit().unwrap_err(), Refused { retry_after: 1_500 * MS });
        assert!(bench.breaker.is_open(bench.now));
        bench.pass(1_499 * MS);
        assert_eq!(bench.retry_after(), Some(MS));
        bench.pass(MS);
        assert_eq!(bench.retry_after(), None);
        assert!(bench.admit().unwrap().is_probe());
    }

    #[test]
    fn a_sandbox_that_was_frozen_for_an_hour_does_not_refuse_its_first_call() {
        let mut bench = Bench::opened();
        bench.now.wall += Duration::from_secs(3_600);
        assert!(bench.admit().is_ok());
    }

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_lengthen_the_open_time() {
        let mut bench = Bench::opened();
        bench.now.wall = SystemTime::UNIX_EPOCH;
        assert_eq!(bench.retry_after(), Some(2_000 * MS));
        bench.pass(2_000 * MS);
        assert!(bench.admit().is_ok());
    }

    #[test]
    fn the_open_time_is_spread_by_a_fifth_either_way() {
        let settings = BreakerSettings::default();
        assert_eq!(settings.open_time(0, Draw::LOWEST), 1_600 * MS);
        assert_eq!(settings.open_time(0, MIDDLE), 2_000 * MS);
        assert_eq!(settings.open_time(0, Draw::HIGHEST), 2_400 * MS);
        let growing = settings.with_growth_from(3);
        assert_eq!(growing.open_time(9, Draw::LOWEST), 3_200 * MS);
        assert_eq!(growing.open_time(9, Draw::HIGHEST), 4_800 * MS);
    }

    #[test]
    fn the_open_time_grows_from_the_third_failed_probe_to_its_cap() {
        let mut bench = Bench::opened();
        let mut open_times = vec![bench.retry_after().unwrap()];
        for _ in 0..4 {
            bench.pass(bench.retry_after().unwrap());
            open_times.push(bench.attempt(Failure).unwrap().open_for.unwrap());
        }
        assert_eq!(open_times, [2_000, 2_000, 2_000, 4_000, 4_000].map(|ms| ms * MS));
    }

    #[test]
    fn by_default_the_open_time_does_not_grow() {
        let settings = BreakerSettings::default();
        for failed_probes in [0, 3, 9, 1_000_000] {
            assert_eq!(settings.open_time(failed_probes, MIDDLE), 2_000 * MS);
        }
    }

    #[test]
    fn growth_doubles_up_to_a_cap_that_can_be_set() {
        let settings =
            BreakerSettings::default().with_jitter_percent(0).with_growth_from(1).with_open_cap(30_000 * MS);
        let times = [0, 1, 2, 3, 4, 5, u32::MAX].map(|failed| settings.open_time(failed, MIDDLE).as_secs());
        assert_eq!(times, [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_neutral_probe_does_not_count_towards_growth() {
        let mut bench = Bench::half_open();
        bench.attempts(&[Neutral; 5]);
        assert_eq!(bench.attempt(Failure).unwrap().open_for, Some(2_000 * MS));
    }

    #[test]
    fn closing_ends_the_growth() {
        let mut bench = Bench::opened();
        for _ in 0..3 {
            bench.pass(bench.retry_after().unwrap());
            bench.attempt(Failure);
        }
        assert_eq!(bench.retry_after(), Some(4_000 * MS));
        bench.pass(4_000 * MS);
        bench.attempt(Success);
        bench.attempts(&[Failure; 5]);
        assert_eq!(bench.retry_after(), Some(2_000 * MS));
    }

    // Half-open.

    #[test]
    fn of_fifty_callers_that_wait_for_the_open_time_to_end_one_gets_in() {
        let mut bench = Bench::half_open();
        let tickets: Vec<_> = (0..50).map(|_| bench.admit()).collect();
        assert_eq!(tickets.iter().filter(|ticket| ticket.is_ok()).count(), 1);
        assert_eq!(bench.retry_after(), Some(200 * MS));
        assert_eq!(bench.state(), State::HalfOpen);
    }

    #[test]
    fn as_many_probes_are_out_at_a_time_as_were_asked_for() {
        let mut bench = Bench::new(BreakerSettings::default().with_failures_in_row(1).with_probes(3));
        bench.attempt(Failure);
        bench.pass(3_000 * MS);
        let mut tickets: Vec<_> = (0..3).map(|_| bench.admit().unwrap()).collect();
        assert!(bench.admit().is_err());
        let answered = tickets.pop().unwrap();
        bench.settle(answered, Neutral);
        assert!(bench.admit().is_ok());
        assert!(bench.admit().is_err());
    }

    #[test]
    fn one_success_closes() {
        let mut bench = Bench::half_open();
        let closing = bench.attempt(Success).unwrap();
        assert_eq!((closing.from, closing.to), (State::HalfOpen, State::Closed));
        assert_eq!((closing.cause, closing.open_for), (Cause::ProbesSucceeded, None));
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn a_closed_circuit_starts_without_a_past() {
        let mut bench = Bench::half_open();
        bench.attempt(Success);
        bench.attempts(&[Failure; 4]);
        assert_eq!(bench.state(), State::Closed);
    }

    #[test]
    fn it_takes_as_many_successes_to_close_as_were_asked_for() {
        let mut bench =
            Bench::new(BreakerSettings::default().with_failures_in_row(1).with_successes_to_close(2));
        bench.attempt(Failure);
        bench.pass(3_000 * MS);
        assert_eq!(bench.attempt(Success), None);
        assert_eq!(bench.state(), State::HalfOpen);
        assert!(bench.attempt(Success).is_some());
    }

    #[test]
    fn a_failed_probe_opens_again() {
        let mut bench = Bench::half_open();
        let opening = bench.attempt(Failure).unwrap();
        assert_eq!((opening.from, opening.to), (State::HalfOpen, State::Open));
        assert_eq!(opening.cause, Cause::FailedProbe);
        assert!(bench.admit().is_err());
    }

    #[test]
    fn a_probe_that_is_refused_for_its_own_fault_gives_its_place_to_the_next() {
        let mut bench = Bench::half_open();
        assert_eq!(bench.attempt(Neutral), None);
        assert_eq!(bench.state(), State::HalfOpen);
        assert!(bench.admit().is_ok());
    }

    #[test]
    fn a_dropped_probe_gives_its_place_to_the_next() {
        let mut bench = Bench::half_open();
        for _ in 0..10 {
            let ticket = bench.admit().unwrap();
            bench.breaker.give_back(ticket);
        }
        assert_eq!(bench.state(), State::HalfOpen);
        assert!(bench.admit().is_ok());
    }

    // Generations.

    #[test]
    fn answers_from_before_the_opening_change_nothing() {
        for effect in [Failure, Neutral, Success] {
            let mut bench = Bench::standard();
            let late: Vec<_> = (0..3).map(|_| bench.admit().unwrap()).collect();
            bench.attempts(&[Failure; 5]);
            let mut late = late.into_iter();
            assert_eq!(bench.settle(late.next().unwrap(), effect), None);
            assert_eq!(bench.retry_after(), Some(2_000 * MS));
            bench.pass(2_000 * MS);
            let probe = bench.admit().unwrap();
            assert_eq!(bench.settle(late.next().unwrap(), effect), None);
            bench.breaker.give_back(late.next().unwrap());
            assert!(bench.admit().is_err(), "the probe still holds its place");
            assert!(bench.settle(probe, Success).is_some());
        }
    }

    #[test]
    fn a_late_probe_of_an_earlier_opening_frees_no_place_in_a_later_one() {
        let mut bench = Bench::new(BreakerSettings::default().with_failures_in_row(1).with_probes(2));
        bench.attempt(Failure);
        bench.pass(5_000 * MS);
        let (late, failing) = (bench.admit().unwrap(), bench.admit().unwrap());
        bench.settle(failing, Failure);
        bench.pass(5_000 * MS);
        let _probes = [bench.admit().unwrap(), bench.admit().unwrap()];
        assert_eq!(bench.settle(late, Success), None);
        assert_eq!(bench.state(), State::HalfOpen);
        assert!(bench.admit().is_err());
    }

    #[test]
    fn an_opening_is_told_once() {
        let mut bench = Bench::standard();
        let tickets: Vec<_> = (0..20).map(|_| bench.admit().unwrap()).collect();
        let told = tickets.into_iter().filter_map(|ticket| bench.settle(ticket, Failure)).count();
        assert_eq!(told, 1);
    }

    // By hand.

    #[test]
    fn a_circuit_forced_open_stays_open_until_it_is_reset() {
        let mut bench = Bench::standard();
        let early = bench.admit().unwrap();
        bench.breaker.force_open();
        bench.pass(Duration::from_secs(86_400));
        assert_eq!(bench.settle(early, Success), None);
        assert_eq!(bench.state(), State::Open);
        assert_eq!(bench.admit().unwrap_err().retry_after, 4_000 * MS);
        bench.breaker.reset();
        assert_eq!(bench.state(), State::Closed);
        assert!(bench.admit().is_ok());
    }

    #[test]
    fn a_circuit_forced_closed_ignores_failures_until_it_is_reset() {
        let mut bench = Bench::opened();
        bench.breaker.force_closed();
        bench.attempts(&[Failure; 50]);
        assert_eq!(bench.state(), State::Closed);
        let late: Vec<_> = (0..5).map(|_| bench.admit().unwrap()).collect();
        bench.breaker.reset();
        for ticket in late {
            assert_eq!(bench.settle(ticket, Failure), None);
        }
        bench.attempts(&[Failure; 5]);
        assert_eq!(bench.state(), State::Open);
    }

    #[test]
    fn a_reset_closes_and_forgets() {
        let mut bench = Bench::opened();
        for _ in 0..3 {
            bench.pass(bench.retry_after().unwrap());
            bench.attempt(Failure);
        }
        bench.breaker.reset();
        bench.attempts(&[Failure; 4]);
        assert_eq!(bench.state(), State::Closed);
        bench.attempt(Failure);
        assert_eq!(bench.retry_after(), Some(2_000 * MS), "no growth is left over");
        let mut probing = Bench::half_open();
        let probe = probing.admit().unwrap();
        probing.breaker.reset();
        assert_eq!(probing.settle(probe, Failure), None);
        assert_eq!(probing.state(), State::Closed);
    }

    // Settings.

    #[test]
    fn the_default_settings_are_sound() {
        let settings = BreakerSettings::default();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.failures_in_row(), 5);
        assert_eq!(settings.failure_percent(), 50);
        assert_eq!(settings.minimum_outcomes(), 20);
        assert_eq!(settings.window(), Duration::from_secs(10));
        assert_eq!(settings.failure_memory(), Duration::from_secs(60));
        assert_eq!(settings.open_for(), Duration::from_secs(2));
        assert_eq!(settings.open_cap(), Duration::from_secs(4));
        assert_eq!(settings.growth_from(), u32::MAX);
        assert_eq!(settings.jitter_percent(), 20);
        assert_eq!(settings.probes(), 1);
        assert_eq!(settings.successes_to_close(), 1);
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let good = BreakerSettings::default();
        let zero = Duration::ZERO;
        for (settings, name) in [
            (good.with_failures_in_row(0), "failures_in_row"),
            (good.with_failure_percent(0), "failure_percent"),
            (good.with_failure_percent(101), "failure_percent"),
            (good.with_minimum_outcomes(0), "minimum_outcomes"),
            (good.with_window(zero), "window"),
            (good.with_failure_memory(zero), "failure_memory"),
            (good.with_open_for(zero), "open_for"),
            (good.with_open_cap(1_999 * MS), "open_cap"),
            (good.with_growth_from(0), "growth_from"),
            (good.with_jitter_percent(100), "jitter_percent"),
            (good.with_probes(0), "probes"),
            (good.with_successes_to_close(0), "successes_to_close"),
        ] {
            assert_eq!(settings.check().unwrap_err().0, name);
        }
        for settings in
            [good.with_failure_percent(100), good.with_jitter_percent(0), good.with_open_cap(2_000 * MS)]
        {
            assert_eq!(settings.check(), Ok(()));
        }
    }

    #[test]
    fn a_breaker_is_small_enough_for_ten_thousand_of_them() {
        assert!(size_of::<Breaker>() <= 256, "{}", size_of::<Breaker>());
    }

    // Whatever happens.

    #[derive(Clone, Debug)]
    enum Step {
        Admit,
        GiveBack(usize),
        Settle(usize, Effect),
        Time { forward: u32, wall: i32 },
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let effect = prop_oneof![3 => Just(Failure), 1 => Just(Neutral), 1 => Just(Success)];
        prop_oneof![
            4 => Just(Step::Admit),
            1 => any::<usize>().prop_map(Step::GiveBack),
            3 => (any::<usize>(), effect).prop_map(|(which, effect)| Step::Settle(which, effect)),
            2 => (0..3_000_u32, -100_000..5_000_i32).prop_map(|(forward, wall)| Step::Time { forward, wall }),
            1 => (0..100_000_u32, 0..200_000_i32).prop_map(|(forward, wall)| Step::Time { forward, wall }),
        ]
    }

    fn any_settings() -> impl Strategy<Value = BreakerSettings> {
        let counts = (1..5_u32, 1..=100_u32, 1..8_u32, 1..4_u32, 1..4_u32, 1..4_u32, 0..100_u32);
        let times = (1..20_000_u32, 1..60_000_u32, 1..5_000_u32, 1..4_u32);
        (counts, times).prop_map(|(counts, times)| BreakerSettings {
            failures_in_row: counts.0,
            failure_percent: counts.1,
            minimum_outcomes: counts.2,
            window: times.0 * MS,
            failure_memory: times.1 * MS,
            open_for: times.2 * MS,
            open_cap: times.2 * times.3 * MS,
            growth_from: counts.3,
            jitter_percent: counts.6,
            probes: counts.4,
            successes_to_close: counts.5,
        })
    }

    fn senseless_settings() -> impl Strategy<Value = BreakerSettings> {
        let count = || prop_oneof![Just(0_u32), Just(1), Just(100), Just(u32::MAX)];
        let time = || prop_oneof![Just(Duration::ZERO), Just(Duration::from_nanos(1)), Just(Duration::MAX)];
        let counts = (count(), count(), count(), count(), count(), count(), count());
        (counts, time(), time()).prop_map(|(counts, window, memory)| BreakerSettings {
            failures_in_row: counts.0,
            failure_percent: counts.1,
            minimum_outcomes: counts.2,
            window,
            failure_memory: memory,
            open_for: Duration::from_secs(1),
            open_cap: Duration::ZERO,
            growth_from: counts.3,
            jitter_percent: counts.4,
            probes: counts.5,
            successes_to_close: counts.6,
        })
    }

    /// Plays the steps, holds the breaker to its promises after each, and brings every ticket back.
    fn play(settings: BreakerSettings, steps: Vec<Step>, draw: u64) -> Result<Bench, TestCaseError> {
        let mut bench = Bench { breaker: Breaker::new(settings), now: some_moment() };
        let mut out: Vec<Ticket> = Vec::new();
        for step in steps {
            match step {
                Step::Admit => {
                    let foretold = bench.retry_after();
                    prop_assert_eq!(bench.breaker.is_open(bench.now), foretold.is_some());
                    let state = bench.state();
                    match bench.admit() {
                        Ok(ticket) => {
                            prop_assert_eq!(foretold, None);
                            prop_assert_eq!(ticket.is_probe(), state == State::HalfOpen);
                            out.push(ticket);
                        }
                        Err(refused) => {
                            prop_assert_eq!(Some(refused.retry_after), foretold);
                            prop_assert!(!refused.retry_after.is_zero());
                            prop_assert_ne!(state, State::Closed);
                        }
                    }
                }
                Step::GiveBack(which) if !out.is_empty() => {
                    let state = bench.state();
                    bench.breaker.give_back(out.swap_remove(which % out.len()));
                    prop_assert_eq!(bench.state(), state);
                }
                Step::Settle(which, effect) if !out.is_empty() => {
                    let ticket = out.swap_remove(which % out.len());
                    let (state, current) = (bench.state(), ticket.generation == bench.breaker.generation);
                    let before = format!("{:?}", bench.breaker);
                    let told = bench.breaker.settle(ticket, effect, bench.now, Draw(draw));
                    match told {
                        Some(told) => {
                            prop_assert!(current && effect != Neutral);
                            prop_assert_eq!(told.from, state);
                            prop_assert_ne!(told.to, State::HalfOpen);
                            prop_assert_eq!(told.to == State::Closed, effect == Success);
                            prop_assert_eq!(told.open_for.is_some(), told.to == State::Open);
                        }
                        None => prop_assert_eq!(bench.state(), state),
                    }
                    if !current {
                        prop_assert_eq!(format!("{:?}", bench.breaker), before);
                    }
                }
                Step::GiveBack(_) | Step::Settle(..) => {}
                Step::Time { forward, wall } => {
                    bench.now.monotonic += forward * MS;
                    bench.now.wall = match wall {
                        0.. => bench.now.wall + wall.unsigned_abs() * MS,
                        _ => bench.now.wall - wall.unsigned_abs() * MS,
                    };
                }
            }
            if let Phase::HalfOpen { in_flight, .. } = bench.breaker.phase {
                let generation = bench.breaker.generation;
                let probing = out.iter().filter(|ticket| ticket.generation == generation).count();
                prop_assert_eq!(probing, in_flight as usize);
                prop_assert!(in_flight <= settings.probes.max(1));
            }
        }
        for ticket in out {
            bench.breaker.give_back(ticket);
        }
        Ok(bench)
    }

    #[test]
    fn an_outcome_that_comes_as_a_tenth_of_the_window_ends_belongs_to_the_next() {
        let (start, mut counted) = (some_moment().monotonic, Outcomes::default());
        for tenths in [0, 1, 10] {
            counted.record(start + tenths * 100 * MS, 1_000 * MS, true);
        }
        assert_eq!(counted.totals(), (2, 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_probe_is_ever_lost_or_counted_twice_and_no_breaker_stays_shut(
            settings in any_settings(), steps in proptest::collection::vec(any_step(), 0..150), draw in any::<u64>(),
        ) {
            prop_assert_eq!(settings.check(), Ok(()));
            let mut bench = play(settings, steps, draw)?;
            // Only the monotonic clock is sure to move.
            bench.now.monotonic += settings.open_cap * 2;
            for _ in 0..settings.probes {
                prop_assert!(bench.admit().is_ok());
            }
        }

        #[test]
        fn settings_without_sense_neither_panic_nor_wedge(
            settings in senseless_settings(), steps in proptest::collection::vec(any_step(), 0..60), draw in any::<u64>(),
        ) {
            let mut bench = play(settings, steps, draw)?;
            bench.now.monotonic += Duration::from_secs(3_600);
            prop_assert!(bench.admit().is_ok());
        }

        #[test]
        fn a_callee_that_is_well_again_is_found_out(
            settings in any_settings(), steps in proptest::collection::vec(any_step(), 0..150), draw in any::<u64>(),
        ) {
            let mut bench = play(settings, steps, draw)?;
            bench.now.monotonic += settings.open_cap * 2;
            for _ in 0..settings.successes_to_close {
                bench.attempt(Success);
            }
            prop_assert_eq!(bench.state(), State::Closed);
        }

        #[test]
        fn the_window_counts_all_of_its_last_nine_tenths_and_nothing_older_than_itself(
            window in 10..20_000_u32,
            outcomes in proptest::collection::vec((0..3_000_u32, any::<bool>()), 1..60),
        ) {
            let (start, mut passed) = (some_moment().monotonic, 0);
            let (mut counted, mut all) = (Outcomes::default(), Vec::new());
            let width = window / 10;
            for (pause, failed) in outcomes {
                passed += pause;
                all.push((passed, failed));
                counted.record(start + passed * MS, width * 10 * MS, failed);
                let younger = |age| {
                    let within: Vec<_> = all.iter().filter(|(then, _)| passed - then < age).collect();
                    (within.iter().filter(|(_, failed)| *failed).count() as u64, within.len() as u64)
                };
                let (failures, total) = counted.totals();
                let (least, most) = (younger(width * 9), younger(width * 10));
                prop_assert!(least.0 <= failures && failures <= most.0);
                prop_assert!(least.1 <= total && total <= most.1);
            }
        }

        #[test]
        fn a_monotonic_clock_that_seems_to_go_back_does_no_harm(pauses in proptest::collection::vec(-5_000..5_000_i32, 0..60)) {
            let mut bench = Bench::standard();
            bench.pass(Duration::from_secs(1_000));
            for pause in pauses {
                bench.now.monotonic = match pause {
                    0.. => bench.now.monotonic + pause.unsigned_abs() * MS,
                    _ => bench.now.monotonic.checked_sub(pause.unsigned_abs() * MS).unwrap_or(bench.now.monotonic),
                };
                if let Ok(ticket) = bench.admit() {
                    bench.settle(ticket, Failure);
                }
            }
            bench.now.monotonic += Duration::from_secs(1_000);
            prop_assert!(bench.admit().is_ok());
        }
    }
}
