//! What all processes of a fleet share of one callee: the state that the store's script keeps, as plain data.

use crate::policy::breaker::State;
use crate::policy::fleet::{FleetSettings, MOST_SAID, Report, View, micros};
use std::time::Duration;

/// One callee's circuit, as a whole fleet sees it.
///
/// - *Closed*: outcomes are counted over a rolling window. A report with a failure trips the circuit where the window
///   holds enough outcomes and enough of them are failures.
/// - *Open*, for the open time: nobody calls.
/// - *Probing*, after it: whoever asks may send a probe, so many a second in all. Successes close the circuit, one
///   failure opens it again. No slot is held: a probe that is never heard of again delays nobody.
///
/// Outcomes of attempts that began before the circuit last changed are not counted: what was sent before it opened
/// says nothing of the callee now.
///
/// Time is the store's own, as the time since whenever it counts from; the processes' clocks do not matter.
/// The script of a store does the same, step for step, in whole microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedState {
    slots: [Slot; SLOTS],
    /// Until when nobody calls; none while the circuit is closed.
    open_until: Option<u64>,
    /// When the circuit last opened or closed.
    changed: Option<u64>,
    next_probe: u64,
    /// Successful probes since the circuit last opened.
    successes: u64,
    forgotten_at: u64,
}

/// A tenth of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// Which tenth since the store's time began.
    number: u64,
    failures: u64,
    successes: u64,
    demand: u64,
}

impl SharedState {
    /// Takes in what one process tells and answers it. Where there is nothing to write, nothing is changed.
    pub fn exchange(&mut self, settings: &FleetSettings, report: &Report, now: Duration) -> View {
        let now = micros(now);
        // A clock that was set back must not hold the circuit open for as long as it was set back.
        let ahead = self.changed.is_some_and(|changed| changed > now) || self.next_probe > now + SECOND;
        let forgotten = self.forgotten_at <= now || ahead;
        let mut next = if forgotten { SharedState::default() } else { self.clone() };
        let number = now / settings.slot_micros();
        if !report.is_silent() {
            next.slot(number, |slot| slot.demand += said(report.stands_for));
            let began = now.saturating_sub(micros(report.age));
            if next.changed.is_none_or(|changed| began >= changed) {
                next.count(settings, report, now, number);
            }
        }
        let turn = next.open_until.map(|open_until| open_until.max(next.next_probe));
        let probe = report.asks && turn.is_some_and(|turn| now >= turn);
        if probe {
            next.next_probe = now + settings.probe_micros();
        }
        let view = View {
            state: match next.open_until {
                None => State::Closed,
                Some(open_until) if now < open_until => State::Open,
                Some(_) => State::HalfOpen,
            },
            // Zero for whom a probe was granted: its turn has come.
            come_back: turn.map_or(Duration::ZERO, |turn| Duration::from_micros(turn.saturating_sub(now))),
            probe,
            changed: next.changed.map(|changed| Duration::from_micros(now.saturating_sub(changed))),
            demand: next.demand(now, number, settings.slot_micros()),
        };
        if probe || !report.is_silent() {
            next.forgotten_at = now + micros(settings.lifetime());
            *self = next;
        }
        view
    }

    /// Counts outcomes of attempts that began under the present state.
    fn count(&mut self, settings: &FleetSettings, report: &Report, now: u64, number: u64) {
        if self.open_until.is_some() {
            if report.probe_failures > 0 {
                self.open(settings, now);
            } else if report.probe_successes > 0 {
                self.successes += said(report.probe_successes);
                if self.successes >= u64::from(settings.successes_to_close()) {
                    self.turn(None, now);
                }
            }
            return;
        }
        self.slot(number, |slot| {
            slot.failures += said(report.failures);
            slot.successes += said(report.successes);
        });
        let (failures, all) = self.totals(number);
        if report.failures > 0
            && all >= u64::from(settings.minimum_outcomes())
            && failures * 100 >= all * u64::from(settings.failure_percent())
        {
            self.open(settings, now);
        }
    }

    fn open(&mut self, settings: &FleetSettings, now: u64) {
        self.turn(Some(now + micros(settings.open_for())), now);
    }

    /// Begins a state: nothing that was counted in another is of any use in it. How busy the fleet is stays known.
    fn turn(&mut self, open_until: Option<u64>, now: u64) {
        self.open_until = open_until;
        self.changed = Some(now);
        self.next_probe = 0;
        self.successes = 0;
        for slot in &mut self.slots {
            (slot.failures, slot.successes) = (0, 0);
        }
    }

    /// Changes the slot of this number, which is emptied first if it still holds an older one.
    fn slot(&mut self, number: u64, change: impl FnOnce(&mut Slot)) {
        let place = usize::try_from(number % SLOTS as u64).unwrap_or(0);
        if let Some(slot) = self.slots.get_mut(place) {
            if slot.number != number {
                *slot = Slot { number, ..Slot::default() };
            }
            change(slot);
        }
    }

    /// The slots that the window still holds. A clock that went back leaves out what it has not reached yet.
    fn held(&self, number: u64) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(move |slot| slot.number <= number && slot.number + SLOTS as u64 > number)
    }

    /// Failures, and all outcomes.
    fn totals(&self, number: u64) -> (u64, u64) {
        self.held(number).fold((0, 0), |(failures, all), slot| {
            (failures + slot.failures, all + slot.failures + slot.successes)
        })
    }

    /// Outcomes a second, over the time since the oldest slot that saw any: a fleet that has just begun is as busy as
    /// it will be, not a tenth of that.
    fn demand(&self, now: u64, number: u64, width: u64) -> u64 {
        let busy = || self.held(number).filter(|slot| slot.demand > 0);
        let sum: u64 = busy().map(|slot| slot.demand).sum();
        let Some(oldest) = busy().map(|slot| slot.number).min() else {
            return 0;
        };
        let span = now.saturating_sub(oldest * width).max(width);
        sum * SECOND / span
    }
}

fn said(count: u32) -> u64 {
    u64::from(count.min(MOST_SAID))
}

/// How many slots a window has.
const SLOTS: usize = 10;

/// In microseconds.
const SECOND: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn settings() -> FleetSettings {
        FleetSettings::default()
    }

    /// The shared state and the store's clock, which starts some way in.
    struct Store {
        state: SharedState,
        settings: FleetSettings,
        now: Duration,
    }

    impl Store {
        fn new(settings: FleetSettings) -> Store {
            assert_eq!(settings.check(), Ok(()));
            Store { state: SharedState::default(), settings, now: Duration::from_secs(1_790_000_000) }
        }

        fn standard() -> Store {
            Store::new(settings())
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
        }

        fn say(&mut self, report: Report) -> View {
            self.state.exchange(&self.settings, &report, self.now)
        }

        fn outcomes(&mut self, failures: u32, successes: u32) -> View {
            self.say(Report { failures, successes, stands_for: failures + successes, ..Report::default() })
        }

        fn look(&mut self) -> View {
            self.say(Report::default())
        }

        fn ask(&mut self) -> View {
            self.say(Report { asks: true, ..Report::default() })
        }

        fn probed(&mut self, success: bool) -> View {
            let (probe_successes, probe_failures) = (u32::from(success), u32::from(!success));
            self.say(Report { probe_successes, probe_failures, stands_for: 1, ..Report::default() })
        }

        fn tripped() -> Store {
            let mut store = Store::standard();
            assert!(store.outcomes(50, 0).is_tripped());
            store
        }

        fn probing() -> Store {
            let mut store = Store::tripped();
            store.pass(2_000 * MS);
            store
        }
    }

    #[test]
    fn it_trips_at_ninety_of_a_hundred_failures_and_not_at_eighty_nine() {
        let mut store = Store::standard();
        assert!(!store.outcomes(89, 11).is_tripped());
        let mut store = Store::standard();
        assert!(store.outcomes(90, 10).is_tripped());
    }

    #[test]
    fn it_trips_at_fifty_outcomes_and_not_at_forty_nine() {
        let mut store = Store::standard();
        assert!(!store.outcomes(49, 0).is_tripped());
        assert!(store.outcomes(1, 0).is_tripped());
    }

    #[test]
    fn the_reports_of_many_processes_add_up() {
        let mut store = Store::standard();
        for _ in 0..49 {
            assert!(!store.outcomes(1, 0).is_tripped());
        }
        assert!(store.outcomes(1, 0).is_tripped());
    }

    #[test]
    fn a_success_never_trips_it_even_if_it_fills_the_minimum() {
        let mut store = Store::standard();
        store.outcomes(49, 0);
        assert!(!store.outcomes(0, 1).is_tripped());
        assert!(store.outcomes(1, 0).is_tripped());
    }

    #[test]
    fn outcomes_leave_the_window_and_no_longer_count() {
        let mut store = Store::standard();
        store.outcomes(49, 0);
        store.pass(3_000 * MS);
        assert!(!store.outcomes(1, 0).is_tripped());
        let mut store = Store::standard();
        store.outcomes(49, 0);
        store.pass(2_700 * MS);
        assert!(store.outcomes(1, 0).is_tripped());
    }

    #[test]
    fn a_trickle_that_never_fills_the_window_does_not_trip_it() {
        let mut store = Store::standard();
        for _ in 0..1_000 {
            assert!(!store.outcomes(4, 0).is_tripped());
            store.pass(300 * MS);
        }
    }

    #[test]
    fn it_is_open_for_two_seconds_and_says_when_to_come_back() {
        let mut store = Store::tripped();
        let view = store.ask();
        assert_eq!((view.is_tripped(), view.probe, view.come_back), (true, false, 2_000 * MS));
        store.pass(1_999 * MS);
        assert_eq!((store.ask().probe, store.ask().come_back), (false, MS));
        store.pass(MS);
        assert!(store.ask().probe);
    }

    #[test]
    fn a_thousand_askers_a_second_get_ten_probes_a_second() {
        let mut store = Store::probing();
        let mut granted = 0;
        for _ in 0..5_000 {
            granted += u32::from(store.ask().probe);
            store.pass(MS);
        }
        assert_eq!(granted, 50);
    }

    #[test]
    fn who_is_refused_a_probe_is_told_when_the_next_one_s_turn_is() {
        let mut store = Store::probing();
        assert!(store.ask().probe);
        store.pass(30 * MS);
        assert_eq!(store.ask().come_back, 70 * MS);
        assert_eq!(store.look().come_back, 70 * MS);
        store.pass(70 * MS);
        assert_eq!(
            store.look(),
            View { changed: Some(2_100 * MS), state: State::HalfOpen, demand: 21, ..View::default() }
        );
        assert!(store.ask().probe);
    }

    #[test]
    fn a_successful_probe_closes_it() {
        let mut store = Store::probing();
        store.ask();
        let view = store.probed(true);
        assert_eq!((view.is_tripped(), view.changed), (false, Some(Duration::ZERO)));
        assert!(!store.ask().is_tripped());
    }

    #[test]
    fn it_closes_after_as_many_successful_probes_as_are_asked_for() {
        let mut store = Store::new(settings().with_successes_to_close(2));
        store.outcomes(50, 0);
        store.pass(2_000 * MS);
        assert!(store.probed(true).is_tripped());
        assert!(!store.probed(true).is_tripped());
    }

    #[test]
    fn a_failed_probe_opens_it_again_for_the_whole_open_time() {
        let mut store = Store::probing();
        store.ask();
        assert_eq!(store.probed(false).come_back, 2_000 * MS);
        assert_eq!(store.ask().come_back, 2_000 * MS);
    }

    #[test]
    fn a_probe_that_began_before_it_opened_again_changes_nothing() {
        let mut store = Store::probing();
        store.probed(false);
        store.pass(500 * MS);
        let late = Report { probe_successes: 1, stands_for: 1, age: 501 * MS, ..Report::default() };
        assert!(store.say(late).is_tripped());
        assert!(!store.say(Report { age: 500 * MS, ..late }).is_tripped());
    }

    #[test]
    fn a_probe_that_is_never_heard_of_again_delays_nobody() {
        let mut store = Store::probing();
        assert!(store.ask().probe);
        store.pass(100 * MS);
        assert!(store.ask().probe);
    }

    #[test]
    fn what_was_sent_before_it_opened_does_not_open_it_again_once_it_has_closed() {
        let mut store = Store::probing();
        store.probed(true);
        store.pass(100 * MS);
        let stragglers = Report { failures: 500, stands_for: 500, age: 4_000 * MS, ..Report::default() };
        assert!(!store.say(stragglers).is_tripped());
        assert!(store.say(Report { age: 100 * MS, ..stragglers }).is_tripped());
    }

    #[test]
    fn what_tripped_it_is_not_counted_twice() {
        let mut store = Store::tripped();
        store.pass(2_000 * MS);
        store.probed(true);
        assert!(!store.outcomes(49, 0).is_tripped());
        assert!(store.outcomes(1, 0).is_tripped());
    }

    #[test]
    fn outcomes_of_those_who_have_not_heard_neither_close_it_nor_keep_it_open() {
        let mut store = Store::tripped();
        store.pass(1_000 * MS);
        assert_eq!(store.outcomes(100, 0).come_back, 1_000 * MS);
        assert!(store.outcomes(0, 100).is_tripped());
    }

    #[test]
    fn a_tripped_circuit_that_nobody_touches_is_forgotten() {
        let mut store = Store::tripped();
        store.pass(settings().lifetime() - MS);
        assert!(store.look().is_tripped());
        store.pass(MS);
        assert_eq!(store.look(), View::default());
    }

    #[test]
    fn a_store_whose_clock_is_set_back_does_not_keep_it_open() {
        let mut store = Store::tripped();
        store.now -= Duration::from_secs(3_600);
        assert_eq!(store.ask(), View::default());
    }

    #[test]
    fn a_fleet_that_has_just_begun_is_known_to_be_as_busy_as_it_is() {
        let mut store = Store::standard();
        store.now = Duration::from_secs(3_000_000);
        let mut demand = 0;
        for _ in 0..300 {
            demand = store.say(Report { successes: 1, stands_for: 10, ..Report::default() }).demand;
            store.pass(10 * MS);
        }
        assert!((950..=1_050).contains(&demand), "{demand}");
        store.pass(3_000 * MS);
        assert_eq!(store.look().demand, 0);
    }

    #[test]
    fn a_look_changes_nothing() {
        let mut store = Store::tripped();
        let before = store.state.clone();
        store.pass(5_000 * MS);
        store.look();
        assert_eq!(store.state, before);
    }

    fn report() -> impl Strategy<Value = Report> {
        let count = || prop_oneof![Just(0u32), 0..60u32, any::<u32>()];
        (count(), count(), count(), count(), 0..10_000u32, any::<u32>(), any::<bool>()).prop_map(
            |(failures, successes, probe_failures, probe_successes, age, stands_for, asks)| Report {
                failures,
                successes,
                probe_failures,
                probe_successes,
                age: MS * age,
                stands_for,
                asks,
            },
        )
    }

    #[test]
    fn a_tripped_circuit_is_open_until_its_time_is_over_and_half_open_from_then_on() {
        let mut store = Store::tripped();
        assert_eq!(store.look().state, State::Open);
        store.pass(2_000 * MS - Duration::from_micros(1));
        assert_eq!(store.look().state, State::Open);
        store.pass(Duration::from_micros(1));
        assert_eq!(store.look().state, State::HalfOpen);
    }

    #[test]
    fn with_one_probe_a_second_the_next_one_s_turn_is_no_clock_that_was_set_back() {
        let mut store = Store::new(settings().with_probes_per_second(1));
        assert!(store.outcomes(50, 0).is_tripped());
        store.pass(2_000 * MS);
        assert!(store.ask().probe);
        let view = store.look();
        assert_eq!((view.state, view.come_back), (State::HalfOpen, 1_000 * MS));
    }

    #[test]
    fn a_fleet_that_begins_as_the_store_does_is_as_busy_as_it_says() {
        let mut store = Store { now: 1_950 * MS, ..Store::standard() };
        assert_eq!(store.outcomes(0, 30).demand, 100);
    }

    #[test]
    fn a_slot_as_old_as_the_window_tells_of_no_demand() {
        // Where a slot begins.
        let mut store = Store { now: settings().window() * 500_000_000, ..Store::standard() };
        assert!(store.outcomes(0, 30).demand > 0);
        store.pass(settings().window() - MS);
        assert!(store.look().demand > 0);
        store.pass(MS);
        assert_eq!(store.look().demand, 0);
    }

    proptest! {
        #[test]
        fn whatever_is_said_nobody_is_sent_away_for_longer_than_the_open_time(
            steps in proptest::collection::vec((report(), 0..5_000u32), 1..60),
        ) {
            let mut store = Store::standard();
            for (report, wait) in steps {
                let view = store.say(report);
                prop_assert!(view.come_back <= settings().open_for());
                prop_assert!(view.is_tripped() || (view.come_back.is_zero() && !view.probe));
                prop_assert!(!view.probe || report.asks);
                store.pass(MS * wait);
            }
        }

        #[test]
        fn no_second_holds_more_probes_than_are_allowed(waits in proptest::collection::vec(0..300u32, 1..200)) {
            let mut store = Store::probing();
            let mut granted = Vec::new();
            for wait in waits {
                if store.ask().probe {
                    granted.push(store.now);
                }
                store.pass(MS * wait);
            }
            for pair in granted.windows(2) {
                prop_assert!(pair[1] - pair[0] >= 100 * MS);
            }
        }
    }
}
