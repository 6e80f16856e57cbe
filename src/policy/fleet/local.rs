//! What one process keeps of the fleet's breaker: the view it was last told, and the outcomes that it has yet to tell.

use crate::policy::breaker::{Effect, State};
use crate::policy::fleet::rest::Rest;
use crate::policy::fleet::{FleetSettings, MOST_SAID, Report, View};
use crate::policy::moment::{Draw, Moment};
use std::time::Duration;

/// One process's part in the fleet's breaker of one callee.
///
/// The order of use: [`admit`](Self::admit) before an attempt, and where it says [`Ask`](Admission::Ask), an exchange
/// of [`ask`](Self::ask) with the shared state whose answer goes to [`answered`](Self::answered). After the attempt,
/// [`settle`](Self::settle), and where it says that something is to be told, an exchange of [`report`](Self::report)
/// whose answer goes to [`learn`](Self::learn). Whenever an exchange comes to nothing: [`failed`](Self::failed).
///
/// A process admits attempts whenever it does not know better: it fails open.
#[derive(Clone, Debug)]
pub struct LocalView {
    settings: FleetSettings,
    told: Option<Told>,
    waiting: Waiting,
    one_in: u32,
    rest: Rest,
}

/// What an attempt may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Be sent.
    Admit,
    /// Wait for the shared state's word.
    Ask,
    /// Be sent as a probe.
    Probe,
    /// Not be sent; come back in so long, which is never zero.
    Refuse(Duration),
}

/// When what an attempt came to is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Beside whatever is done next: nobody waits for it.
    Aside,
    /// Before the call goes on, within the store's budget: the attempt failed, and the answer may end the call.
    AtOnce,
    /// Not now.
    Nothing,
}

/// What the store last said, and when.
#[derive(Clone, Copy, Debug)]
struct Told {
    view: View,
    at: Moment,
}

/// Outcomes that wait to be told.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    counts: Report,
    /// When the first of these attempts began, and when it ended.
    oldest: Option<(Moment, Moment)>,
    /// Whether there were successes that nobody was told of in time.
    untold_success: bool,
}

impl LocalView {
    /// Begins with no view, so that all is admitted.
    #[must_use]
    pub fn new(settings: FleetSettings) -> Self {
        Self {
            settings,
            told: None,
            waiting: Waiting::default(),
            one_in: settings.first_one_in().clamp(1, MOST_SAID),
            rest: Rest::default(),
        }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &FleetSettings {
        &self.settings
    }

    /// Says from memory whether an attempt may be sent.
    ///
    /// A circuit known to be open refuses for as long as it was said to be open, and one that others probe for a part
    /// of the time that a view holds. After that the shared state is to be asked, until it has surely forgotten.
    #[must_use]
    pub fn admit(&self, now: Moment) -> Admission {
        if let Some(left) = self.refused_for(now) {
            return Admission::Refuse(left);
        }
        let asks = self.is_tripped(now) || (self.settings.ask_first() && self.is_stale(now));
        if asks && !self.rests(now) { Admission::Ask } else { Admission::Admit }
    }

    /// How long attempts are refused from memory; `None` if none is.
    #[must_use]
    pub fn refused_for(&self, now: Moment) -> Option<Duration> {
        let told = self.told?;
        told.view.come_back.checked_sub(now.since(&told.at)).filter(|left| !left.is_zero())
    }

    /// Whether the view that was last told, if any, is of a tripped circuit and not yet forgotten.
    #[must_use]
    pub fn is_tripped(&self, now: Moment) -> bool {
        self.told.is_some_and(|told| told.view.is_tripped() && now.since(&told.at) < self.settings.lifetime())
    }

    /// Makes the report of an attempt that waits for the answer, with what waits to be told.
    #[must_use]
    pub fn ask(&mut self, now: Moment) -> Report {
        Report { asks: true, ..self.report(now) }
    }

    /// Takes in the answer to [`ask`](Self::ask): whether the attempt that asked may be sent.
    pub fn answered(&mut self, view: View, now: Moment, draw: Draw) -> Admission {
        self.learn(view, now, draw);
        match view {
            View { state: State::Closed, .. } => Admission::Admit,
            View { probe: true, .. } => Admission::Probe,
            View { come_back, .. } => {
                Admission::Refuse(self.refused_for(now).unwrap_or(come_back).max(SOONEST))
            }
        }
    }

    /// Takes in what the shared state answered.
    pub fn learn(&mut self, mut view: View, now: Moment, draw: Draw) {
        if view.state == State::HalfOpen && !view.probe {
            // Not for every turn of a probe is asked, and not by the whole fleet at the same time.
            let spread = self.settings.view_for().saturating_sub(view.come_back);
            view.come_back = view.come_back.saturating_add(draw.up_to(spread));
        }
        self.told = Some(Told { view, at: now });
        self.one_in = self.settings.one_in(view.demand);
        self.rest.ended();
    }

    /// Takes in what an attempt came to that began then, and says when that is to be told. `probe` is whether it was
    /// admitted as one; `draw` decides whether an outcome of another is among those that are written.
    pub fn settle(&mut self, began: Moment, probe: bool, effect: Effect, now: Moment, draw: Draw) -> Telling {
        if effect == Effect::Neutral {
            return Telling::Nothing;
        }
        let failed = effect == Effect::Failure;
        if probe {
            self.waiting = Waiting::default();
            self.waiting.add((began, now), 1, |counts| {
                let (failures, successes) = (u32::from(failed), u32::from(!failed));
                (counts.probe_failures, counts.probe_successes) = (failures, successes);
            });
        } else if !self.is_straggler(began) && self.is_written(draw) {
            self.waiting.age(now, self.settings.window());
            self.waiting.add((began, now), self.one_in, |counts| {
                let count = if failed { &mut counts.failures } else { &mut counts.successes };
                *count = count.saturating_add(1);
            });
        }
        let due = probe || self.is_stale(now);
        match (failed, due && !self.rests(now)) {
            (_, false) => Telling::Nothing,
            (true, true) => Telling::AtOnce,
            (false, true) if self.waiting.counts.is_silent() => Telling::Nothing,
            (false, true) => Telling::Aside,
        }
    }

    /// Takes what waits to be told. With nothing waiting it is a mere look.
    #[must_use]
    pub fn report(&mut self, now: Moment) -> Report {
        self.waiting.age(now, self.settings.window());
        let Waiting { mut counts, oldest, untold_success } = std::mem::take(&mut self.waiting);
        counts.age = oldest.map_or(Duration::ZERO, |(began, _)| now.since(&began));
        if untold_success && !counts.is_silent() {
            counts.successes = counts.successes.saturating_add(1);
        }
        self.waiting.untold_success = untold_success && counts.is_silent();
        counts
    }

    /// Takes back a report that did not arrive, or is not known to have, and leaves the store alone for a while.
    pub fn failed(&mut self, report: &Report, now: Moment, draw: Draw) {
        self.dropped(report);
        self.rest.begin(self.settings.store_rest(), now, draw);
    }

    /// Takes back a report whose exchange was given up by the process itself, as a dropped call's is.
    pub fn dropped(&mut self, report: &Report) {
        self.waiting.untold_success |= report.successes > 0;
    }

    /// Whether the store is left alone, after it failed.
    #[must_use]
    pub fn rests(&self, now: Moment) -> bool {
        self.rest.left(now).is_some()
    }

    /// Of how many outcomes one is written.
    #[must_use]
    pub fn one_in(&self) -> u32 {
        self.one_in
    }

    /// Whether there is no view, or one that is older than a view holds.
    fn is_stale(&self, now: Moment) -> bool {
        self.told.is_none_or(|told| now.since(&told.at) >= self.settings.view_for())
    }

    /// Whether an attempt began before the circuit last changed, as far as this process knows.
    fn is_straggler(&self, began: Moment) -> bool {
        self.told.is_some_and(|told| told.view.changed.is_some_and(|ago| told.at.since(&began) > ago))
    }

    fn is_written(&self, draw: Draw) -> bool {
        (u128::from(draw.0) * u128::from(self.one_in)) >> 64 == 0
    }
}

impl Waiting {
    fn add(&mut self, attempt: (Moment, Moment), stands_for: u32, count: impl FnOnce(&mut Report)) {
        self.oldest.get_or_insert(attempt);
        self.counts.stands_for = self.counts.stands_for.saturating_add(stands_for);
        count(&mut self.counts);
    }

    /// Lets go of outcomes that are too old to say anything of now. Of successes it keeps that there were some: a
    /// sandbox that is frozen before its report leaves would otherwise tell of its failures alone, and a healthy
    /// fleet with few failures would look like one with nothing else.
    fn age(&mut self, now: Moment, window: Duration) {
        if self.oldest.is_some_and(|(_, ended)| now.since(&ended) > window) {
            let untold_success = self.untold_success || self.counts.successes > 0;
            *self = Waiting { untold_success, ..Waiting::default() };
        }
    }
}

/// The least that a refused caller is told to wait.
const SOONEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::Effect::{Failure, Neutral, Success};
    use super::*;
    use crate::policy::fleet::shared::SharedState;
    use crate::policy::moment::some_moment;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    /// The throw under which an outcome is always written, and one under which it never is of several.
    const WRITTEN: Draw = Draw::LOWEST;
    const LEFT_OUT: Draw = Draw::HIGHEST;

    struct Process {
        local: LocalView,
        now: Moment,
    }

    impl Process {
        fn new(settings: FleetSettings) -> Process {
            assert_eq!(settings.check(), Ok(()));
            Process { local: LocalView::new(settings), now: some_moment() }
        }

        /// One that writes all.
        fn standard() -> Process {
            Process::new(FleetSettings::default().with_first_one_in(1))
        }

        fn told(view: View) -> Process {
            let mut process = Process::standard();
            process.learn(view);
            process
        }

        fn pass(&mut self, time: Duration) {
            self.now.monotonic += time;
            self.now.wall += time;
        }

        fn admit(&self) -> Admission {
            self.local.admit(self.now)
        }

        fn learn(&mut self, view: View) {
            self.local.learn(view, self.now, Draw::HIGHEST);
        }

        fn settle(&mut self, effect: Effect) -> Telling {
            self.local.settle(self.now, false, effect, self.now, WRITTEN)
        }

        fn report(&mut self) -> Report {
            self.local.report(self.now)
        }
    }

    fn open(come_back: Duration) -> View {
        View { state: State::Open, come_back, ..View::default() }
    }

    fn said(failures: u32, successes: u32) -> Report {
        Report { failures, successes, stands_for: failures + successes, ..Report::default() }
    }

    // Admitting.

    #[test]
    fn a_process_that_knows_nothing_admits_without_asking() {
        let mut process = Process::standard();
        assert_eq!(process.admit(), Admission::Admit);
        process.learn(View::default());
        process.pass(Duration::from_secs(3_000));
        assert_eq!(process.admit(), Admission::Admit);
    }

    #[test]
    fn an_open_circuit_is_refused_from_memory_until_its_time_is_over_and_then_asked_for() {
        let mut process = Process::told(open(2_000 * MS));
        process.pass(1_500 * MS);
        assert_eq!(process.admit(), Admission::Refuse(500 * MS));
        process.pass(500 * MS);
        assert_eq!(process.admit(), Admission::Ask);
    }

    #[test]
    fn a_view_that_the_store_has_surely_forgotten_too_admits() {
        let mut process = Process::told(open(2_000 * MS));
        process.pass(FleetSettings::default().lifetime() - MS);
        assert_eq!(process.admit(), Admission::Ask);
        process.pass(MS);
        assert_eq!(process.admit(), Admission::Admit);
    }

    #[test]
    fn a_sandbox_that_was_frozen_does_not_refuse_its_first_call() {
        let mut process = Process::told(open(2_000 * MS));
        process.now.wall += Duration::from_secs(3_600);
        assert_eq!(process.admit(), Admission::Admit);
    }

    #[test]
    fn the_answer_decides_about_the_attempt_that_asked() {
        let mut process = Process::standard();
        let (now, draw) = (process.now, Draw::LOWEST);
        let half_open = View { state: State::HalfOpen, come_back: 70 * MS, ..View::default() };
        assert_eq!(process.local.answered(View::default(), now, draw), Admission::Admit);
        assert_eq!(process.local.answered(open(MS), now, draw), Admission::Refuse(MS));
        assert_eq!(process.local.answered(half_open, now, draw), Admission::Refuse(70 * MS));
        let granted = View { state: State::HalfOpen, probe: true, ..View::default() };
        assert_eq!(process.local.answered(granted, now, draw), Admission::Probe);
        assert_eq!(process.admit(), Admission::Ask);
    }

    #[test]
    fn who_is_refused_a_probe_asks_again_within_the_time_of_a_view_and_not_as_one_with_all_others() {
        let half_open = View { state: State::HalfOpen, come_back: 70 * MS, ..View::default() };
        for (draw, refused) in [(Draw::LOWEST, 70 * MS), (Draw::HIGHEST, 1_000 * MS)] {
            let mut process = Process::standard();
            let now = process.now;
            assert_eq!(process.local.answered(half_open, now, draw), Admission::Refuse(refused));
            process.pass(refused);
            assert_eq!(process.admit(), Admission::Ask);
        }
    }

    #[test]
    fn only_where_it_is_asked_for_does_a_healthy_call_ask_first() {
        let mut process = Process::new(FleetSettings::default().with_ask_first(true));
        assert_eq!(process.admit(), Admission::Ask);
        process.learn(View::default());
        assert_eq!(process.admit(), Admission::Admit);
        process.pass(1_000 * MS);
        assert_eq!(process.admit(), Admission::Ask);
    }

    // Telling.

    #[test]
    fn a_failure_is_told_at_once_a_success_aside_and_a_neutral_outcome_never() {
        assert_eq!(Process::standard().settle(Failure), Telling::AtOnce);
        assert_eq!(Process::standard().settle(Success), Telling::Aside);
        let mut process = Process::standard();
        assert_eq!(process.settle(Neutral), Telling::Nothing);
        assert!(process.report().is_silent());
    }

    #[test]
    fn outcomes_wait_for_each_other_while_the_view_is_fresh() {
        let mut process = Process::told(View::default());
        assert_eq!([Failure, Success, Failure].map(|effect| process.settle(effect)), [Telling::Nothing; 3]);
        process.pass(1_000 * MS);
        assert_eq!(process.settle(Failure), Telling::AtOnce);
        assert_eq!(process.report(), Report { age: 1_000 * MS, ..said(3, 1) });
        assert!(process.report().is_silent());
    }

    #[test]
    fn an_outcome_that_is_not_written_is_not_told_but_a_failure_looks_at_the_state_of_the_fleet() {
        let mut process = Process::new(FleetSettings::default());
        let (now, one_in) = (process.now, process.local.one_in());
        assert_eq!(one_in, 10);
        assert_eq!(process.local.settle(now, false, Success, now, LEFT_OUT), Telling::Nothing);
        assert_eq!(process.local.settle(now, false, Failure, now, LEFT_OUT), Telling::AtOnce);
        assert!(process.report().is_silent());
        process.settle(Success);
        assert_eq!(process.report(), Report { stands_for: 10, ..said(0, 1) });
    }

    #[test]
    fn the_busier_the_fleet_the_fewer_outcomes_are_written() {
        let process = Process::told(View { demand: 30_000, ..View::default() });
        assert_eq!(process.local.one_in(), 100);
        let tenth = u64::MAX / 100;
        assert!(process.local.is_written(Draw(tenth - 1)) && !process.local.is_written(Draw(tenth + 1)));
    }

    #[test]
    fn a_probe_s_outcome_is_always_told_and_alone() {
        let mut process = Process::told(View::default());
        process.settle(Failure);
        let began = process.now;
        process.pass(100 * MS);
        assert_eq!(process.local.settle(began, true, Failure, process.now, LEFT_OUT), Telling::AtOnce);
        let told = Report { probe_failures: 1, stands_for: 1, age: 100 * MS, ..Report::default() };
        assert_eq!(process.report(), told);
        assert_eq!(process.local.settle(began, true, Success, process.now, LEFT_OUT), Telling::Aside);
        assert_eq!(process.report(), Report { probe_failures: 0, probe_successes: 1, ..told });
        assert_eq!(process.local.settle(began, true, Neutral, process.now, LEFT_OUT), Telling::Nothing);
    }

    #[test]
    fn what_began_before_the_circuit_last_changed_is_not_told() {
        let mut process = Process::standard();
        let early = process.now;
        process.pass(1_000 * MS);
        let late = process.now;
        process.pass(500 * MS);
        process.learn(View { changed: Some(700 * MS), ..View::default() });
        let now = process.now;
        process.local.settle(early, false, Failure, now, WRITTEN);
        assert!(process.report().is_silent());
        process.local.settle(late, false, Failure, now, WRITTEN);
        assert_eq!(process.report(), Report { age: 500 * MS, ..said(1, 0) });
    }

    #[test]
    fn outcomes_too_old_to_count_are_let_go() {
        let mut process = Process::told(View::default());
        process.settle(Failure);
        process.pass(3_001 * MS);
        assert!(process.report().is_silent());
    }

    #[test]
    fn a_sandbox_frozen_before_its_successes_were_told_does_not_tell_of_its_failures_alone() {
        let mut process = Process::standard();
        for _ in 0..20 {
            assert_eq!(process.settle(Success), Telling::Aside);
            process.now.wall += Duration::from_secs(60);
        }
        process.settle(Failure);
        assert_eq!(process.report(), Report { stands_for: 1, ..said(1, 1) });
        process.settle(Failure);
        assert_eq!(process.report(), said(1, 0));
    }

    #[test]
    fn a_success_whose_report_was_lost_is_told_with_the_next_failure() {
        let mut process = Process::standard();
        process.settle(Success);
        let lost = process.report();
        process.local.dropped(&lost);
        assert!(process.report().is_silent());
        process.settle(Failure);
        assert_eq!(process.report().successes, 1);
    }

    // A store in trouble.

    #[test]
    fn a_store_that_failed_is_left_alone_for_longer_each_time_and_nobody_asks_it_meanwhile() {
        let mut process = Process::told(open(MS));
        for rest in [1, 2, 4, 8, 16, 32, 32] {
            process.learn_nothing(Draw::HIGHEST);
            process.pass(Duration::from_secs(rest) - MS);
            assert_eq!(process.admit(), Admission::Admit);
            assert_eq!(process.settle(Failure), Telling::Nothing);
            process.pass(MS);
            assert_eq!(process.settle(Failure), Telling::AtOnce);
        }
        process.learn(View::default());
        process.learn_nothing(Draw::LOWEST);
        process.pass(499 * MS);
        assert!(process.local.rests(process.now));
        process.pass(MS);
        assert!(!process.local.rests(process.now));
    }

    impl Process {
        fn learn_nothing(&mut self, draw: Draw) {
            let report = self.report();
            self.local.failed(&report, self.now, draw);
        }
    }

    // The fleet.

    /// A generator of throws that needs no dice (Vigna's SplitMix64).
    struct Throws(u64);

    impl Throws {
        fn next(&mut self) -> Draw {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            Draw(z ^ (z >> 31))
        }

        fn chance(&mut self, one_in: u64) -> bool {
            self.next().0 % one_in == 0
        }
    }

    /// Ten thousand sandboxes that each call every three seconds, a third of a second apart from their three attempts
    /// where calls fail. Answers the writes of each second.
    fn writes_of_ten_thousand(seconds: u64, fails: impl Fn(u64) -> bool) -> Vec<u32> {
        const STEP: u64 = 10;
        let settings = FleetSettings::default();
        let start = some_moment();
        let mut throws = Throws(7);
        let mut shared = SharedState::default();
        let mut sandboxes: Vec<_> = (0..10_000).map(|_| (LocalView::new(settings), 0u32)).collect();
        let mut writes = vec![0; usize::try_from(seconds).unwrap()];
        for step in 0..seconds * 1_000 / STEP {
            let passed = MS * u32::try_from(step * STEP).unwrap();
            let now = Moment { monotonic: start.monotonic + passed, wall: start.wall + passed };
            let second = step * STEP / 1_000;
            for (sandbox, retries) in &mut sandboxes {
                // One call in 3 s, and while it has retries left one attempt in a third of a second.
                if !throws.chance(if *retries > 0 { 33 } else { 300 }) {
                    continue;
                }
                let mut exchange = |sandbox: &mut LocalView, report: Report| {
                    let view = shared.exchange(&settings, &report, passed);
                    writes[usize::try_from(second).unwrap()] += u32::from(!report.is_silent() || view.probe);
                    let draw = throws.next();
                    sandbox.answered(view, now, draw)
                };
                let admission = match sandbox.admit(now) {
                    Admission::Ask => {
                        let report = sandbox.ask(now);
                        exchange(sandbox, report)
                    }
                    known => known,
                };
                if let Admission::Refuse(_) = admission {
                    *retries = 0;
                    continue;
                }
                let failed = fails(second);
                *retries = if !failed {
                    0
                } else if *retries == 0 {
                    2
                } else {
                    *retries - 1
                };
                let effect = if failed { Failure } else { Success };
                let probe = admission == Admission::Probe;
                if sandbox.settle(now, probe, effect, now, throws.next()) != Telling::Nothing {
                    let report = sandbox.report(now);
                    let view = shared.exchange(&settings, &report, passed);
                    writes[usize::try_from(second).unwrap()] += u32::from(!report.is_silent());
                    sandbox.learn(view, now, throws.next());
                }
            }
        }
        writes
    }

    #[test]
    fn ten_thousand_sandboxes_stay_under_a_thousand_writes_a_second() {
        let healthy = writes_of_ten_thousand(8, |_| false);
        assert!(healthy.iter().all(|writes| (100..1_000).contains(writes)), "{healthy:?}");
        let from_the_start = writes_of_ten_thousand(8, |_| true);
        assert!(from_the_start.iter().all(|writes| *writes < 1_000), "{from_the_start:?}");
        let outage = writes_of_ten_thousand(16, |second| (4..10).contains(&second));
        assert!(outage.iter().all(|writes| *writes < 1_000), "{outage:?}");
    }

    proptest! {
        #[test]
        fn nothing_makes_a_process_refuse_for_longer_than_it_was_told(
            come_back in 0..5_000u32, pause in 0..10_000u32, draw in any::<u64>(), half_open in any::<bool>(),
        ) {
            let mut process = Process::standard();
            let state = if half_open { State::HalfOpen } else { State::Open };
            let view = View { state, come_back: MS * come_back, ..View::default() };
            process.local.learn(view, process.now, Draw(draw));
            process.pass(MS * pause);
            if let Admission::Refuse(left) = process.admit() {
                let longest = (MS * come_back).max(if half_open { 1_000 * MS } else { Duration::ZERO });
                prop_assert!(!left.is_zero() && left + MS * pause <= longest);
            }
        }
    }
}
