//! The total time that one call may take.

use std::time::{Duration, Instant};

/// The time that one call may take: waits, attempts, bodies and all.
///
/// It runs on the monotonic clock and ends for good; nothing extends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBudget {
    /// `None` where the end is past what the clock can say: then it never comes.
    end: Option<Instant>,
    min_attempt_time: Duration,
}

impl TimeBudget {
    /// Starts the budget: it ends at `start + total` or at `deadline`, whichever comes first.
    ///
    /// `min_attempt_time` is the least time worth an attempt; with less left, none begins. Zero means any time at all.
    #[must_use]
    pub fn new(
        start: Instant,
        total: Duration,
        deadline: Option<Instant>,
        min_attempt_time: Duration,
    ) -> Self {
        let end = match (start.checked_add(total), deadline) {
            (Some(end), Some(deadline)) => Some(end.min(deadline)),
            (end, deadline) => end.or(deadline),
        };
        Self {
            end,
            // An attempt with no time at all cannot be made, whatever was asked for.
            min_attempt_time: min_attempt_time.max(Duration::from_nanos(1)),
        }
    }

    /// The time left, zero once it is over.
    #[must_use]
    pub fn left(&self, now: Instant) -> Duration {
        self.end.map_or(Duration::MAX, |end| end.saturating_duration_since(now))
    }

    /// Whether too little is left for an attempt to begin.
    #[must_use]
    pub fn is_spent(&self, now: Instant) -> bool {
        self.left(now) < self.min_attempt_time
    }

    /// Whether an attempt could still begin after `wait`. A wait that does not fit is not begun.
    #[must_use]
    pub fn fits(&self, wait: Duration, now: Instant) -> bool {
        wait.checked_add(self.min_attempt_time).is_some_and(|needed| needed <= self.left(now))
    }

    /// The longest wait after which an attempt could still begin.
    pub(crate) fn longest_wait(&self, now: Instant) -> Duration {
        self.left(now).saturating_sub(self.min_attempt_time)
    }

    /// The timeout of an attempt that begins now: the configured one, or what is left if that is less.
    #[must_use]
    pub fn attempt_timeout(&self, configured: Duration, now: Instant) -> Duration {
        configured.min(self.left(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        some_moment().monotonic
    }

    #[test]
    fn what_is_left_shrinks_to_zero_and_stays_there() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, 50 * MS);
        assert_eq!(budget.left(start), 1_000 * MS);
        assert_eq!(budget.left(start + 300 * MS), 700 * MS);
        assert_eq!(budget.left(start + 1_000 * MS), Duration::ZERO);
        assert_eq!(budget.left(start + 9_000 * MS), Duration::ZERO);
    }

    #[test]
    fn an_earlier_deadline_ends_the_budget_and_a_later_one_does_not_extend_it() {
        let start = start();
        let with = |deadline| TimeBudget::new(start, 1_000 * MS, Some(deadline), 50 * MS);
        assert_eq!(with(start + 400 * MS).left(start), 400 * MS);
        assert_eq!(with(start + 4_000 * MS).left(start), 1_000 * MS);
        let past = TimeBudget::new(start + MS, 1_000 * MS, Some(start), 50 * MS);
        assert_eq!(past.left(start + MS), Duration::ZERO);
        assert!(past.is_spent(start + MS));
    }

    #[test]
    fn no_attempt_begins_with_less_than_the_least_time_left() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, 50 * MS);
        assert!(!budget.is_spent(start + 950 * MS));
        assert!(budget.is_spent(start + 951 * MS));
    }

    #[test]
    fn a_least_time_of_zero_still_refuses_an_attempt_with_nothing_left() {
        let start = start();
        let budget = TimeBudget::new(start, 10 * MS, None, Duration::ZERO);
        assert!(!budget.is_spent(start + 9 * MS));
        assert!(budget.is_spent(start + 10 * MS));
        assert!(!budget.fits(10 * MS, start));
    }

    #[test]
    fn a_wait_fits_only_if_an_attempt_fits_after_it() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, 50 * MS);
        assert!(budget.fits(950 * MS, start));
        assert!(!budget.fits(951 * MS, start));
        assert!(!budget.fits(Duration::ZERO, start + 960 * MS));
        assert!(!budget.fits(Duration::MAX, start));
    }

    #[test]
    fn an_attempt_gets_its_own_timeout_or_what_is_left() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, 50 * MS);
        assert_eq!(budget.attempt_timeout(800 * MS, start), 800 * MS);
        assert_eq!(budget.attempt_timeout(800 * MS, start + 800 * MS), 200 * MS);
    }

    #[test]
    fn a_total_past_the_end_of_the_clock_never_ends_and_never_panics() {
        let start = start();
        let endless = TimeBudget::new(start, Duration::MAX, None, 50 * MS);
        assert_eq!(endless.left(start), Duration::MAX);
        assert!(endless.fits(Duration::from_secs(1 << 40), start));
        assert!(!endless.fits(Duration::MAX, start));
        let bounded = TimeBudget::new(start, Duration::MAX, Some(start + MS), 50 * MS);
        assert_eq!(bounded.left(start), MS);
    }

    #[test]
    fn a_least_time_past_the_end_of_the_clock_refuses_every_attempt() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, Duration::MAX);
        assert!(budget.is_spent(start));
        assert!(!budget.fits(Duration::ZERO, start));
    }

    #[test]
    fn the_longest_wait_leaves_the_least_time_of_an_attempt() {
        let start = start();
        let budget = TimeBudget::new(start, 1_000 * MS, None, 50 * MS);
        assert_eq!(budget.longest_wait(start + 300 * MS), 650 * MS);
        assert!(budget.fits(budget.longest_wait(start), start));
        assert_eq!(budget.longest_wait(start + 980 * MS), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn after_every_wait_that_fits_an_attempt_may_begin_and_ends_in_time(
            total in 0..5_000_u32, deadline in proptest::option::of(0..5_000_u32), least in 0..300_u32,
            passed in 0..6_000_u32, wait in 0..6_000_u32, configured in 0..6_000_u32,
        ) {
            let start = start();
            let budget = TimeBudget::new(start, total * MS, deadline.map(|ms| start + ms * MS), least * MS);
            let now = start + passed * MS;
            let after = now + wait * MS;
            prop_assert_eq!(budget.fits(wait * MS, now), !budget.is_spent(after));
            let ends = after + budget.attempt_timeout(configured * MS, after);
            prop_assert!(budget.is_spent(after) || ends <= start + total * MS);
        }
    }
}
