//! The fleet-wide breaker's settings, and what a process and the shared state say to each other.

pub mod local;
pub(crate) mod rest;
pub mod shared;

use crate::policy::breaker::State;
use std::time::Duration;

/// When the whole fleet stops calling one callee, and how sparingly its processes talk about it.
///
/// The thresholds are high on purpose. This breaker is for the callee that hangs and drains the account's pool of
/// executions whatever each caller does on its own; a callee that still serves a part of its calls is better left to
/// the local breakers. At 50 % the fleet would turn a brown-out, in which two of three calls succeed, into an outage.
///
/// All processes of a fleet should have the same settings: the store goes by those of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    failure_percent: u32,
    minimum_outcomes: u32,
    window: Duration,
    open_for: Duration,
    probes_per_second: u32,
    successes_to_close: u32,
    forget_after: Duration,
    view_for: Duration,
    ask_first: bool,
    writes_per_second: u32,
    first_one_in: u32,
    store_budget: Duration,
    store_rest: Duration,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            failure_percent: 90,
            minimum_outcomes: 50,
            window: Duration::from_secs(3),
            open_for: Duration::from_secs(2),
            probes_per_second: 10,
            successes_to_close: 1,
            forget_after: Duration::from_secs(60),
            view_for: Duration::from_secs(1),
            ask_first: false,
            writes_per_second: 300,
            first_one_in: 10,
            store_budget: Duration::from_millis(50),
            store_rest: Duration::from_secs(1),
        }
    }
}

settings! { FleetSettings:
    /// The percentage of failures in the window that trips the circuit; 1 to 100, default 90.
    failure_percent, with_failure_percent: u32;
    /// The written outcomes that the window must hold before the percentage counts; 1 or more, default 50.
    minimum_outcomes, with_minimum_outcomes: u32;
    /// How far back the percentage looks; 10 ms to 1 h, default 3 s. It rolls on in tenths.
    window, with_window: Duration;
    /// How long nobody calls, once the circuit has tripped or a probe has failed; 1 ms to 1 h, default 2 s.
    open_for, with_open_for: Duration;
    /// The probes that all processes together send in a second, after the open time; 1 to 1,000, default 10.
    probes_per_second, with_probes_per_second: u32;
    /// The successful probes that close the circuit; 1 or more, default 1.
    successes_to_close, with_successes_to_close: u32;
    /// How long the store remembers the callee after the window and the open time, if nobody writes; 1 s to 1 h,
    /// default 60 s. A tripped circuit that nobody probes is then forgotten.
    forget_after, with_forget_after: Duration;
    /// How long a process goes by what it was told; up to 1 h, default 1 s. Outcomes wait so long for each other.
    view_for, with_view_for: Duration;
    /// Whether an attempt waits for the store's word when the process has none that is fresh; default false.
    ///
    /// Left off, only a process that was told of a tripped circuit asks first, and a healthy call never waits. Then a
    /// process that calls every few seconds learns of an outage by its own first failure. Turned on, it learns
    /// before, and a healthy call waits for one exchange with the store, at most once in `view_for`.
    ask_first, with_ask_first: bool;
    /// How many outcomes a second the whole fleet writes; 1 or more, default 300. Above that, processes write one in
    /// so many. The default leaves room to stay under a thousand when calls begin to fail and attempts triple, which
    /// the store learns only by their being written.
    writes_per_second, with_writes_per_second: u32;
    /// Of how many outcomes a process writes one before it was told how busy the fleet is; 1 to 1,000,000, default 10.
    first_one_in, with_first_one_in: u32;
    /// The most that an attempt waits for the store; 1 ms to 1 s, default 50 ms.
    store_budget, with_store_budget: Duration;
    /// How long a store that failed or was too slow is left alone; up to 1 h, default 1 s. It doubles with each
    /// failure in a row, to 32 times as much, and is spread by half.
    store_rest, with_store_rest: Duration;
}

impl FleetSettings {
    /// Looks for a setting that makes no sense: the name of the first such, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        let rules = [
            ("failure_percent", (1..=100).contains(&self.failure_percent), "must be 1 to 100"),
            ("minimum_outcomes", self.minimum_outcomes >= 1, AT_LEAST_ONE),
            ("window", (ms(10)..=LONGEST).contains(&self.window), "must be 10 ms to 1 h"),
            ("open_for", (ms(1)..=LONGEST).contains(&self.open_for), "must be 1 ms to 1 h"),
            ("probes_per_second", (1..=1_000).contains(&self.probes_per_second), "must be 1 to 1,000"),
            ("successes_to_close", self.successes_to_close >= 1, AT_LEAST_ONE),
            ("forget_after", (s(1)..=LONGEST).contains(&self.forget_after), "must be 1 s to 1 h"),
            ("view_for", self.view_for <= LONGEST, "must be up to 1 h"),
            ("writes_per_second", self.writes_per_second >= 1, AT_LEAST_ONE),
            ("first_one_in", (1..=MOST_SAID).contains(&self.first_one_in), "must be 1 to 1,000,000"),
            ("store_budget", (ms(1)..=s(1)).contains(&self.store_budget), "must be 1 ms to 1 s"),
            ("store_rest", self.store_rest <= LONGEST, "must be up to 1 h"),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((name, _, reason)) => Err((name, reason)),
            None => Ok(()),
        }
    }

    /// What a store's script is told of the settings, in its order; times in microseconds.
    #[doc(hidden)]
    #[must_use]
    pub fn as_numbers(&self) -> [u64; 7] {
        [
            u64::from(self.failure_percent),
            u64::from(self.minimum_outcomes),
            self.slot_micros(),
            micros(self.open_for),
            self.probe_micros(),
            u64::from(self.successes_to_close),
            micros(self.lifetime()),
        ]
    }

    /// A tenth of the window, in microseconds.
    pub(crate) fn slot_micros(&self) -> u64 {
        (micros(self.window) / 10).max(1)
    }

    /// The time from one probe to the next, in microseconds.
    pub(crate) fn probe_micros(&self) -> u64 {
        1_000_000 / u64::from(self.probes_per_second.max(1))
    }

    /// How long the store keeps the callee's state after a write: nothing of it means anything later.
    pub(crate) fn lifetime(&self) -> Duration {
        self.window.saturating_add(self.open_for).saturating_add(self.forget_after)
    }

    /// Of how many outcomes one is written in a fleet that sees so many a second.
    pub(crate) fn one_in(&self, demand: u64) -> u32 {
        let many = demand.div_ceil(u64::from(self.writes_per_second.max(1)));
        u32::try_from(many).unwrap_or(u32::MAX).clamp(1, MOST_SAID)
    }
}

/// What a process tells the shared state, and asks of it, in one exchange. The default tells nothing and asks nothing.
///
/// Clients make it; the test of a store makes its own: `Report::default().with_failures(1).with_stands_for(1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Failed attempts, probes aside.
    pub failures: u32,
    /// Successful attempts, probes aside.
    pub successes: u32,
    /// Failed probes.
    pub probe_failures: u32,
    /// Successful probes.
    pub probe_successes: u32,
    /// How long ago the first of these attempts began. A duration, so that no process's clock matters.
    pub age: Duration,
    /// How many outcomes these stand for, where one in so many is written.
    pub stands_for: u32,
    /// Whether an attempt waits for the answer: only then is a probe granted.
    pub asks: bool,
}

setters! { Report:
    failures, with_failures: u32;
    successes, with_successes: u32;
    probe_failures, with_probe_failures: u32;
    probe_successes, with_probe_successes: u32;
    age, with_age: Duration;
    stands_for, with_stands_for: u32;
    asks, with_asks: bool;
}

impl Report {
    /// Whether it tells nothing, so that the store has nothing to write.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.failures == 0
            && self.successes == 0
            && self.probe_failures == 0
            && self.probe_successes == 0
            && self.stands_for == 0
    }

    /// What a store's script is told, in its order; times in microseconds.
    #[doc(hidden)]
    #[must_use]
    pub fn as_numbers(&self) -> [u64; 7] {
        let said = |count: u32| u64::from(count.min(MOST_SAID));
        [
            said(self.failures),
            said(self.successes),
            said(self.probe_failures),
            said(self.probe_successes),
            micros(self.age),
            said(self.stands_for),
            u64::from(self.asks),
        ]
    }
}

/// What the shared state answers.
///
/// ```
/// use eastwest::CircuitState;
/// use eastwest::fleet::View;
/// use std::time::Duration;
///
/// let tripped = View::new(CircuitState::Open).with_come_back(Duration::from_secs(2)).with_demand(300);
/// assert!(tripped.is_tripped());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// What the circuit lets through: all, a probe now and then, or nothing.
    pub state: State,
    /// When it is worth asking again: what is left of the open time, or until the next probe's turn. Zero where
    /// attempts pass, and for whom a probe was granted.
    pub come_back: Duration,
    /// Whether the attempt that asked may be sent as a probe.
    pub probe: bool,
    /// How long ago the circuit tripped, opened again or closed; `None` if it is not known to have done so.
    pub changed: Option<Duration>,
    /// How many outcomes the whole fleet sees in a second.
    pub demand: u64,
}

setters! { View:
    come_back, with_come_back: Duration;
    probe, with_probe: bool;
    changed, with_changed: Option<Duration>;
    demand, with_demand: u64;
}

impl View {
    /// A view of a circuit in this state, of which nothing more is known.
    #[must_use]
    pub fn new(state: State) -> View {
        View { state, come_back: Duration::ZERO, probe: false, changed: None, demand: 0 }
    }

    /// Whether the circuit has tripped and not closed since.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        self.state != State::Closed
    }
}

impl Default for View {
    /// Nothing is known: the circuit is closed.
    fn default() -> Self {
        View::new(State::Closed)
    }
}

/// Whole microseconds, at most so many that a script can count them: its numbers are doubles, whole up to 2^53. It is
/// the year 2112 by then.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(1 << 52)
}

/// The longest of the times that may be set.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The largest count that is told at once: a bound that keeps the store's sums exact.
pub(crate) const MOST_SAID: u32 = 1_000_000;

const AT_LEAST_ONE: &str = "must be at least 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let settings = FleetSettings::default();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!((settings.failure_percent(), settings.minimum_outcomes()), (90, 50));
        assert_eq!(
            (settings.window(), settings.open_for()),
            (Duration::from_secs(3), Duration::from_secs(2))
        );
        assert_eq!((settings.probes_per_second(), settings.view_for()), (10, Duration::from_secs(1)));
        assert_eq!((settings.store_budget(), settings.ask_first()), (Duration::from_millis(50), false));
    }

    #[test]
    fn a_setting_out_of_its_range_is_refused_by_name() {
        let (d, long) = (FleetSettings::default(), Duration::from_secs(3_601));
        for (settings, name) in [
            (d.with_failure_percent(0), "failure_percent"),
            (d.with_failure_percent(101), "failure_percent"),
            (d.with_minimum_outcomes(0), "minimum_outcomes"),
            (d.with_window(Duration::from_millis(9)), "window"),
            (d.with_open_for(Duration::ZERO), "open_for"),
            (d.with_probes_per_second(0), "probes_per_second"),
            (d.with_successes_to_close(0), "successes_to_close"),
            (d.with_forget_after(Duration::ZERO), "forget_after"),
            (d.with_view_for(long), "view_for"),
            (d.with_writes_per_second(0), "writes_per_second"),
            (d.with_first_one_in(0), "first_one_in"),
            (d.with_store_budget(long), "store_budget"),
            (d.with_store_rest(long), "store_rest"),
        ] {
            assert_eq!(settings.check().map_err(|(refused, _)| refused), Err(name));
        }
    }

    #[test]
    fn what_a_store_builds_says_what_it_was_told_and_nothing_else() {
        let (ms, changed) = (Duration::from_millis(1), Some(Duration::from_secs(2)));
        let view = View::new(State::HalfOpen).with_come_back(ms).with_probe(true).with_changed(changed);
        let state = State::HalfOpen;
        assert_eq!(view.with_demand(7), View { state, come_back: ms, probe: true, changed, demand: 7 });
        let told = Report::default().with_failures(1).with_successes(2).with_probe_failures(3);
        let told = told.with_probe_successes(4).with_age(ms).with_stands_for(5).with_asks(true);
        assert_eq!(told.as_numbers(), [1, 2, 3, 4, 1_000, 5, 1]);
    }

    #[test]
    fn one_in_so_many_is_written_that_the_fleet_keeps_to_its_writes() {
        let settings = FleetSettings::default();
        assert_eq!(
            [0, 1, 300, 301, 3_000, 3_001].map(|demand| settings.one_in(demand)),
            [1, 1, 1, 2, 10, 11]
        );
        assert_eq!(settings.one_in(u64::MAX), MOST_SAID);
    }

    #[test]
    fn a_store_s_script_is_told_the_settings_in_its_order_and_in_microseconds() {
        let settings = FleetSettings::default().with_successes_to_close(4);
        let numbers = [90, 50, 300_000, 2_000_000, 100_000, 4, settings.lifetime().as_micros() as u64];
        assert_eq!(settings.as_numbers(), numbers);
    }

    #[test]
    fn a_store_s_script_is_told_a_report_in_its_order_and_in_microseconds() {
        let report = Report {
            failures: 1,
            successes: 2,
            probe_failures: 3,
            probe_successes: 4,
            age: Duration::from_millis(5),
            stands_for: 6,
            asks: true,
        };
        assert_eq!(report.as_numbers(), [1, 2, 3, 4, 5_000, 6, 1]);
    }

    #[test]
    fn a_report_is_silent_only_if_it_tells_of_no_attempt() {
        let silent = Report { asks: true, age: Duration::from_secs(1), ..Report::default() };
        assert!(silent.is_silent());
        for report in [
            Report { failures: 1, ..silent },
            Report { successes: 1, ..silent },
            Report { probe_failures: 1, ..silent },
            Report { probe_successes: 1, ..silent },
            Report { stands_for: 1, ..silent },
        ] {
            assert!(!report.is_silent(), "{report:?}");
        }
    }
}
