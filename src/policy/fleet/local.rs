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
    /// When outcomes were last sent off.
    reported: Option<Moment>,
    /// Whether it is not known that successes get through: a sandbox may be frozen before their report leaves.
    muted: bool,
    /// Whether the report that is on its way tells of successes.
    telling_success: bool,
    /// Whether the last outcome, written or not, was a success.
    last_succeeded: bool,
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
}

impl LocalView {
    /// Begins with no view, so that all is admitted.
    #[must_use]
    pub fn new(settings: FleetSettings) -> Self {
        Self {
            settings,
            told: None,
            waiting: Waiting::default(),
            reported: None,
            muted: true,
            telling_success: false,
            last_succeeded: false,
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
        Report { asks: true, ..self.take(now) }
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
        // Nothing that it says holds for longer than it remembers: one that says *never* switches nobody off for good.
        view.come_back = view.come_back.min(self.settings.lifetime());
        if view.state == State::HalfOpen && !view.probe {
            // Not for every turn of a probe is asked, and not by the whole fleet at the same time.
            let spread = self.settings.view_for().saturating_sub(view.come_back);
            view.come_back = view.come_back.saturating_add(draw.up_to(spread));
        }
        self.told = Some(Told { view, at: now });
        let one_in = self.settings.one_in(view.demand);
        // A fleet that is kept from calling looks idle, and comes back as one.
        let idles = view.is_tripped() || view.changed.is_some_and(|ago| ago < self.settings.window());
        self.one_in = if idles { one_in.max(self.one_in) } else { one_in };
        self.rest.ended();
        self.muted &= !std::mem::take(&mut self.telling_success);
    }

    /// Takes in what an attempt came to that began then, and says when that is to be told. `probe` is whether it was
    /// admitted as one; `draw` decides whether an outcome of another is among those that are written.
    ///
    /// In a process whose successes are not known to get through, a failure that follows a success is told together with
    /// one. Sandboxes that are frozen before the reports of successes leave would otherwise tell of failures alone, and a
    /// fleet with few would look like one with nothing else. In an outage failures follow failures, so it delays nothing.
    pub fn settle(&mut self, began: Moment, probe: bool, effect: Effect, now: Moment, draw: Draw) -> Telling {
        if effect == Effect::Neutral {
            return Telling::Nothing;
        }
        let failed = effect == Effect::Failure;
        let follows_success = std::mem::replace(&mut self.last_succeeded, !failed);
        if probe {
            self.waiting = Waiting::default();
            self.waiting.add((began, now), 1, |counts| {
                let (failures, successes) = (u32::from(failed), u32::from(!failed));
                (counts.probe_failures, counts.probe_successes) = (failures, successes);
            });
        } else if !self.is_straggler(began) && self.is_written(draw) {
            self.age(now);
            let with_success = failed && follows_success && self.muted;
            self.waiting.add((began, now), self.one_in, |counts| {
                counts.failures = counts.failures.saturating_add(u32::from(failed));
                counts.successes = counts.successes.saturating_add(u32::from(!failed || with_success));
            });
        }
        let due = probe || self.reported.is_none_or(|last| now.since(&last) >= self.settings.view_for());
        let tells = due && !self.waiting.counts.is_silent();
        match failed {
            _ if self.rests(now) => Telling::Nothing,
            true if tells || self.is_stale(now) => Telling::AtOnce,
            false if tells => Telling::Aside,
            _ => Telling::Nothing,
        }
    }

    /// Takes what waits to be told. With nothing waiting it is a mere look.
    #[must_use]
    pub fn report(&mut self, now: Moment) -> Report {
        self.reported = Some(now);
        self.take(now)
    }

    /// Takes back a report that did not arrive, or is not known to have, and leaves the store alone for a while.
    pub fn failed(&mut self, report: &Report, now: Moment, draw: Draw) {
        self.dropped(report);
        self.rest.begin(self.settings.store_rest(), now, draw);
    }

    /// Takes back a report whose exchange was given up by the process itself, as a dropped call's is.
    pub fn dropped(&mut self, report: &Report) {
        self.telling_success = false;
        self.muted |= report.successes > 0;
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

    fn take(&mut self, now: Moment) -> Report {
        self.age(now);
        let Waiting { mut counts, oldest } = std::mem::take(&mut self.waiting);
        counts.age = oldest.map_or(Duration::ZERO, |(began, _)| now.since(&began));
        // A success that goes along with a failure does not show that others get through.
        self.telling_success = counts.successes > 0 && counts.failures == 0;
        counts
    }

    /// Lets go of outcomes that are too old to say anything of now.
    fn age(&mut self, now: Moment) {
        if self.waiting.oldest.is_some_and(|(_, ended)| now.since(&ended) > self.settings.window()) {
            self.muted |= self.waiting.counts.successes > 0;
            self.waiting = Waiting::default();
        }
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
            let _ = process.report();
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
    fn a_store_that_says_never_is_believed_for_no_longer_than_it_remembers() {
        for state in [State::Closed, State::HalfOpen, State::Open] {
            let mut process = Process::told(View { state, come_back: Duration::MAX, ..View::default() });
            let lifetime = process.local.settings().lifetime();
            assert!(process.local.refused_for(process.now).is_none_or(|left| left <= lifetime), "{state:?}");
            process.pass(lifetime);
            assert_eq!(process.admit(), Admission::Admit, "{state:?}");
        }
    }

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
        assert_eq!([Failure, Failure, Failure].map(|effect| process.settle(effect)), [Telling::Nothing; 3]);
        process.pass(1_000 * MS);
        assert_eq!(process.settle(Failure), Telling::AtOnce);
        assert_eq!(process.report(), Report { age: 1_000 * MS, ..said(4, 0) });
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
    fn a_fleet_that_is_kept_from_calling_is_not_taken_for_an_idle_one() {
        let mut process = Process::told(View { demand: 9_000, ..View::default() });
        process.learn(open(MS));
        process.learn(View { changed: Some(2_999 * MS), ..View::default() });
        assert_eq!(process.local.one_in(), 30);
        process.learn(View { changed: Some(3_000 * MS), ..View::default() });
        assert_eq!(process.local.one_in(), 1);
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
    fn a_sandbox_frozen_before_its_successes_are_told_does_not_tell_of_its_failures_alone() {
        let mut process = Process::standard();
        for _ in 0..20 {
            assert_eq!(process.settle(Success), Telling::Aside);
            process.now.wall += Duration::from_secs(60);
        }
        process.settle(Failure);
        assert_eq!(process.report(), Report { stands_for: 1, ..said(1, 1) });
        // In an outage failures follow failures.
        process.settle(Failure);
        process.settle(Failure);
        assert_eq!(process.report(), said(2, 0));
    }

    #[test]
    fn where_successes_get_through_a_failure_is_told_alone() {
        let mut process = Process::standard();
        process.settle(Success);
        assert_eq!(process.report(), said(0, 1));
        process.learn(View::default());
        process.settle(Failure);
        assert_eq!(process.report(), said(1, 0));
    }

    #[test]
    fn a_success_whose_report_was_lost_is_told_with_the_failure_that_follows() {
        let mut process = Process::standard();
        process.settle(Success);
        process.learn(View::default());
        process.settle(Success);
        let lost = process.report();
        process.local.dropped(&lost);
        assert!(process.report().is_silent());
        process.settle(Failure);
        assert_eq!(process.report(), Report { stands_for: 1, ..said(1, 1) });
    }

    #[test]
    fn an_ask_is_no_report_so_that_what_the_attempt_came_to_is_told_all_the_same() {
        let mut process = Process::new(FleetSettings::default().with_first_one_in(1).with_ask_first(true));
        let _ = process.local.ask(process.now);
        process.learn(View::default());
        assert_eq!(process.settle(Success), Telling::Aside);
        let _ = process.report();
        assert_eq!(process.settle(Failure), Telling::Nothing);
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
            self.next().0.is_multiple_of(one_in)
        }
    }

    /// What a fleet does in one second.
    #[derive(Clone, Copy, Debug, Default)]
    struct Second {
        writes: u32,
        exchanges: u32,
        attempts: u32,
    }

    /// Ten thousand sandboxes that each call every three seconds, and send a call up to three times, a third of a second
    /// apart. Of each second's attempts so many percent fail. Where sandboxes are frozen too early, nothing that is told
    /// aside arrives. Answers what each second saw.
    fn ten_thousand(
        (settings, frozen): (FleetSettings, bool),
        seconds: u32,
        failing: impl Fn(u32) -> u64,
    ) -> Vec<Second> {
        const STEP: u32 = 10;
        let start = some_moment();
        let mut throws = Throws(7);
        let mut shared = SharedState::default();
        let mut sandboxes: Vec<_> = (0..10_000).map(|_| (LocalView::new(settings), 0u32)).collect();
        let mut seen = Vec::new();
        for second in 0..seconds {
            let mut counts = Second::default();
            for step in 0..1_000 / STEP {
                let passed = MS * (second * 1_000 + step * STEP);
                let now = Moment { monotonic: start.monotonic + passed, wall: start.wall + passed };
                for (sandbox, retries) in &mut sandboxes {
                    // One call in 3 s, and while it has retries left one attempt in a third of a second.
                    if !throws.chance(if *retries > 0 { 33 } else { 300 }) {
                        continue;
                    }
                    let mut exchange = |report: Report| {
                        let view = shared.exchange(&settings, &report, passed);
                        counts.exchanges += 1;
                        counts.writes += u32::from(!report.is_silent() || view.probe);
                        view
                    };
                    let mut admission = sandbox.admit(now);
                    if admission == Admission::Ask {
                        let view = exchange(sandbox.ask(now));
                        admission = sandbox.answered(view, now, throws.next());
                    }
                    if let Admission::Refuse(_) = admission {
                        *retries = 0;
                        continue;
                    }
                    let effect = if throws.next().0 % 100 < failing(second) { Failure } else { Success };
                    let probe = admission == Admission::Probe;
                    let telling = sandbox.settle(now, probe, effect, now, throws.next());
                    let arrives =
                        if frozen { telling == Telling::AtOnce } else { telling != Telling::Nothing };
                    if arrives {
                        let view = exchange(sandbox.report(now));
                        sandbox.learn(view, now, throws.next());
                    }
                    counts.attempts += 1;
                    *retries = match (effect, *retries) {
                        (Failure, 0) => 2,
                        (Failure, left) => left - 1,
                        _ => 0,
                    };
                }
            }
            seen.push(counts);
        }
        seen
    }

    #[test]
    fn ten_thousand_sandboxes_stay_under_a_thousand_writes_a_second() {
        let d = FleetSettings::default();
        let healthy = ten_thousand((d, false), 8, |_| 0);
        assert!(healthy.iter().all(|second| (100..1_000).contains(&second.writes)), "{healthy:?}");
        let from_the_start = ten_thousand((d, false), 8, |_| 100);
        assert!(from_the_start.iter().all(|second| second.writes < 1_000), "{from_the_start:?}");
        let outage = ten_thousand((d, false), 16, |second| if (4..10).contains(&second) { 100 } else { 0 });
        assert!(outage.iter().all(|second| second.writes < 1_000), "{outage:?}");
        // And with a breaker that never trips, so that each call is sent three times.
        let storm = ten_thousand((d.with_minimum_outcomes(u32::MAX), false), 8, |_| 100);
        assert!(storm.iter().all(|second| second.writes < 1_000 && second.attempts > 5_000), "{storm:?}");
    }

    #[test]
    fn in_an_outage_a_fleet_stops_sending_and_comes_back_when_it_ends() {
        let d = FleetSettings::default();
        let outage = |second| if (4..30).contains(&second) { 100 } else { 0 };
        for ask_first in [false, true] {
            let seen = ten_thousand((d.with_ask_first(ask_first), false), 36, outage);
            let attempts: Vec<_> = seen.iter().map(|second| second.attempts).collect();
            assert!(seen.iter().all(|second| second.writes < 1_000), "{seen:?}");
            // A fleet this young does not know that its successes get through, and takes some seconds to trip. Then
            // whoever has not heard sends one attempt, unless it asks first.
            let heard = if ask_first { 12 } else { 20 };
            assert!(attempts[heard..30].iter().all(|attempts| *attempts < 100), "{attempts:?}");
            assert!(attempts[33..].iter().all(|attempts| *attempts > 3_000), "{attempts:?}");
        }
    }

    #[test]
    fn a_fleet_whose_successes_never_get_through_trips_in_an_outage_and_not_at_few_failures() {
        let d = FleetSettings::default();
        for (percent, trips) in [(5, false), (50, false), (80, false), (100, true)] {
            let failing = |second| if second < 6 { 0 } else { percent };
            let seen = ten_thousand((d, true), 22, failing);
            let attempts: Vec<_> = seen.iter().map(|second| second.attempts).collect();
            assert_eq!(
                attempts[18..].iter().all(|attempts| *attempts < 2_000),
                trips,
                "{percent}: {attempts:?}"
            );
        }
    }

    // Whether successes get through.

    /// One whose successes are known to get through.
    fn heard() -> Process {
        let mut process = Process::standard();
        process.settle(Success);
        let _ = process.report();
        process.learn(View::default());
        assert_eq!(successes_beside_a_failure(&mut process), 0);
        process
    }

    /// How many successes are told with a failure that follows a success.
    fn successes_beside_a_failure(process: &mut Process) -> u32 {
        process.settle(Success);
        let _ = process.report();
        process.settle(Failure);
        process.local.take(process.now).successes
    }

    #[test]
    fn a_success_whose_report_was_dropped_makes_the_next_failure_tell_one_again() {
        let mut process = heard();
        process.settle(Success);
        let report = process.report();
        process.local.dropped(&report);
        assert_eq!(successes_beside_a_failure(&mut process), 1);
    }

    #[test]
    fn a_dropped_report_of_failures_alone_says_nothing_of_successes() {
        let mut process = heard();
        process.settle(Failure);
        let report = process.report();
        assert_eq!((report.failures, report.successes), (1, 0));
        process.local.dropped(&report);
        assert_eq!(successes_beside_a_failure(&mut process), 0);
    }

    #[test]
    fn neither_a_look_nor_a_failure_told_with_a_success_shows_that_successes_get_through() {
        let mut looks = Process::standard();
        let _ = looks.report();
        looks.learn(View::default());
        assert_eq!(successes_beside_a_failure(&mut looks), 1);
        let mut mixed = Process::standard();
        mixed.settle(Success);
        mixed.settle(Failure);
        let _ = mixed.report();
        mixed.learn(View::default());
        assert_eq!(successes_beside_a_failure(&mut mixed), 1);
    }

    #[test]
    fn successes_that_grew_too_old_to_be_told_did_not_get_through_and_failures_say_nothing() {
        for (old, told) in [(Success, 1), (Failure, 0)] {
            let mut process = heard();
            process.settle(old);
            process.pass(process.local.settings().window() + MS);
            let _ = process.report();
            assert_eq!(successes_beside_a_failure(&mut process), told, "{old:?}");
        }
    }

    #[test]
    fn an_outcome_as_old_as_the_window_is_still_told() {
        let mut process = Process::standard();
        process.settle(Failure);
        process.pass(process.local.settings().window());
        assert_eq!(process.report().failures, 1);
    }

    #[test]
    fn an_attempt_that_began_as_the_circuit_changed_is_no_straggler() {
        let mut process = Process::told(View { changed: Some(100 * MS), ..View::default() });
        let began = |process: &Process, ago| Moment {
            monotonic: process.now.monotonic - ago,
            wall: process.now.wall - ago,
        };
        for (ago, told) in [(101 * MS, 0), (100 * MS, 1)] {
            let then = began(&process, ago);
            process.local.settle(then, false, Failure, process.now, WRITTEN);
            assert_eq!(process.report().failures, told, "{ago:?}");
        }
    }

    #[test]
    fn a_view_keeps_the_settings_it_was_made_with() {
        let settings = FleetSettings::default().with_minimum_outcomes(7);
        assert_eq!(*LocalView::new(settings).settings(), settings);
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
