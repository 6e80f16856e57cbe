//! Time and chance, as values that are handed in.

use std::time::{Duration, Instant, SystemTime};

/// One reading of both clocks.
///
/// The monotonic clock measures budgets; the wall clock is what signatures, dates and a frozen sandbox are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock.
    pub monotonic: Instant,
    /// The wall clock.
    pub wall: SystemTime,
}

impl Moment {
    /// The time from `earlier` to this moment by whichever clock moved further, zero if neither moved forward.
    ///
    /// A sandbox that was frozen may wake with a monotonic clock that stood still.
    #[must_use]
    pub fn since(&self, earlier: &Moment) -> Duration {
        let monotonic = self.monotonic.saturating_duration_since(earlier.monotonic);
        let wall = self.wall.duration_since(earlier.wall).unwrap_or(Duration::ZERO);
        monotonic.max(wall)
    }
}

/// One throw of the dice, uniform over all of `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(pub u64);

impl Draw {
    /// The lowest throw.
    pub const LOWEST: Draw = Draw(0);
    /// The highest throw.
    pub const HIGHEST: Draw = Draw(u64::MAX);

    /// Scales the throw to `0..=most`, uniformly, in whole nanoseconds.
    #[must_use]
    pub fn up_to(self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let span = u128::from(nanos) + 1;
        let scaled = (span * u128::from(self.0)) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// Some moment for tests to count from.
#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "an instant can only be had from the clock; no test depends on its value"
)]
pub(crate) fn some_moment() -> Moment {
    Moment { monotonic: Instant::now(), wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throw_reaches_both_ends_of_its_range_and_never_leaves_it() {
        let most = Duration::from_millis(7);
        assert_eq!(Draw::LOWEST.up_to(most), Duration::ZERO);
        assert_eq!(Draw::HIGHEST.up_to(most), most);
        assert_eq!(Draw::HIGHEST.up_to(Duration::ZERO), Duration::ZERO);
        assert_eq!(Draw::HIGHEST.up_to(Duration::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn elapsed_time_is_the_larger_of_the_two_clocks() {
        let monotonic = some_moment().monotonic;
        let start = Moment { monotonic, wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000) };
        let woken = Moment { monotonic, wall: start.wall + Duration::from_secs(3_600) };
        assert_eq!(woken.since(&start), Duration::from_secs(3_600));
        let set_back = Moment { monotonic: monotonic + Duration::from_secs(2), wall: SystemTime::UNIX_EPOCH };
        assert_eq!(set_back.since(&start), Duration::from_secs(2));
    }
}
