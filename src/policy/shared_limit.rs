//! A rate limit that many processes share: one number in a store, and what each priority may take of it.

use crate::policy::rate_limit::{CRITICAL_PERCENT, NORMAL_PERCENT, Priority, kept_from};
use std::time::Duration;

/// What all processes of a fleet may start together: so many attempts a second or minute, `burst` of them at once.
///
/// In any time `t` at most `burst + rate * t` attempts start, whichever process asks. Of the bucket, 10 % are kept for
/// [`Priority::Critical`], and 20 % more for what is not [`Priority::Bulk`]; one attempt at least is everybody's. So a
/// nightly sync that drinks as fast as it can leaves the morning's orders three tenths of the bucket.
///
/// The time between two attempts is rounded up to a whole microsecond, so that the rate is never exceeded; at the
/// highest rate it falls short by at most one in a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedQuota {
    attempts: u32,
    period: Duration,
    burst: u32,
    critical_percent: u8,
    normal_percent: u8,
}

impl SharedQuota {
    /// At most so many attempts a second, 1 to 10,000; the burst is as many.
    #[must_use]
    pub fn per_second(attempts: u32) -> SharedQuota {
        SharedQuota {
            attempts,
            period: Duration::from_secs(1),
            burst: attempts.max(1),
            critical_percent: CRITICAL_PERCENT,
            normal_percent: NORMAL_PERCENT,
        }
    }

    /// At most so many attempts a minute, 1 to 600,000; the burst is a sixtieth of it, at least 1.
    #[must_use]
    pub fn per_minute(attempts: u32) -> SharedQuota {
        let burst = attempts.div_ceil(60).max(1);
        SharedQuota { period: Duration::from_secs(60), burst, ..SharedQuota::per_second(attempts) }
    }

    /// Sets how many attempts may start at once after a pause; 1 to 1,000,000.
    #[must_use]
    pub fn burst(mut self, attempts: u32) -> SharedQuota {
        self.burst = attempts;
        self
    }

    /// Sets how many percent of the bucket only [`Priority::Critical`] may take; 10 by default.
    #[must_use]
    pub fn reserve_for_critical(mut self, percent: u8) -> SharedQuota {
        self.critical_percent = percent;
        self
    }

    /// Sets how many percent of the bucket, besides the critical's, [`Priority::Bulk`] may not take; 20 by default.
    #[must_use]
    pub fn reserve_for_normal(mut self, percent: u8) -> SharedQuota {
        self.normal_percent = percent;
        self
    }

    /// Refuses what admits nothing, keeps more than there is, or is too fast for a store to count: the setting, and what is
    /// wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let kept = u32::from(self.critical_percent) + u32::from(self.normal_percent);
        let most = self.period.as_secs().saturating_mul(10_000);
        let rules = [
            (self.attempts >= 1, "admits no attempt at all: 1 is the least"),
            (u64::from(self.attempts) <= most, "10,000 attempts a second are the most"),
            ((1..=1_000_000).contains(&self.burst), "the burst must be 1 to 1,000,000"),
            (kept <= 100, "more than 100 % of the bucket are reserved"),
        ];
        rules
            .into_iter()
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, reason)| Err(("shared_quota", reason)))
    }

    /// The time between two attempts at the full rate, for who writes a store: whole microseconds.
    #[must_use]
    pub fn emission_interval(&self) -> Duration {
        Duration::from_micros(self.every_micros())
    }

    fn every_micros(&self) -> u64 {
        let period = u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX);
        period.div_ceil(u64::from(self.attempts.max(1))).max(1)
    }

    /// What a store's script is told, in its order; times in microseconds.
    #[doc(hidden)]
    #[must_use]
    pub fn as_numbers(&self, priority: Priority) -> [u64; 3] {
        [self.every_micros(), u64::from(self.burst.max(1)), u64::from(self.allowance(priority))]
    }

    /// How many attempts of the bucket a priority may take, for who writes a store: all but what it leaves to those above
    /// it, at least 1. [`Priority::Critical`] may take the whole bucket.
    #[must_use]
    pub fn allowance(&self, priority: Priority) -> u32 {
        let kept = kept_from(priority, self.burst, self.critical_percent, self.normal_percent);
        self.burst.saturating_sub(kept).max(1)
    }
}

/// The shared bucket: the generic cell rate algorithm, the state of which is one number.
///
/// That number is the time at which the bucket will be full again. Time is the store's own, as the time since whenever
/// it counts from. The script of a store does the same, step for step, in whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBucket {
    full_at: u64,
}

impl SharedBucket {
    /// Takes one attempt for a priority, or says how long until there will be one for it; zero means taken.
    ///
    /// Nothing is reserved by who has to wait: a queue of bulk attempts would eat into what is kept for others.
    pub fn take(&mut self, quota: &SharedQuota, priority: Priority, now: Duration) -> Duration {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).min(FARTHEST);
        let every = quota.every_micros();
        // A clock that was set back leaves an empty bucket, not one that is empty for as long as it was set back.
        let most = now + every * u64::from(quota.burst.max(1));
        let full_at = self.full_at.clamp(now, most) + every;
        let wait = full_at.saturating_sub(now + every * u64::from(quota.allowance(priority)));
        if wait == 0 {
            self.full_at = full_at;
        }
        Duration::from_micros(wait)
    }
}

/// What the shared bucket says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Taken {
    /// It may start.
    Admitted,
    /// There will be none for it within the time that it has; in so long there may be.
    Refused(Duration),
    /// Wait so long, and ask again: others may have been faster.
    Wait(Duration),
}

impl Taken {
    /// What a wait comes to for an attempt that has so much time.
    pub(crate) fn of(wait: Duration, within: Duration) -> Taken {
        match wait {
            Duration::ZERO => Taken::Admitted,
            wait if wait <= within => Taken::Wait(wait),
            wait => Taken::Refused(wait),
        }
    }
}

/// The largest time, in microseconds: a script's numbers are doubles, whole up to 2^53. It is in the year 2112.
const FARTHEST: u64 = 1 << 52;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rate_limit::Priority::{Bulk, Critical, Normal};
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    struct Bench {
        bucket: SharedBucket,
        quota: SharedQuota,
        now: Duration,
    }

    impl Bench {
        fn new(quota: SharedQuota) -> Bench {
            assert_eq!(quota.check(), Ok(()));
            Bench { bucket: SharedBucket::default(), quota, now: Duration::from_secs(1_790_000_000) }
        }

        fn take(&mut self, priority: Priority) -> Duration {
            self.bucket.take(&self.quota, priority, self.now)
        }

        /// How many it may take at once.
        fn drain(&mut self, priority: Priority) -> usize {
            (0..).take_while(|_| self.take(priority).is_zero()).count()
        }
    }

    #[test]
    fn a_full_bucket_holds_its_burst_and_then_admits_at_the_rate() {
        let mut bench = Bench::new(SharedQuota::per_second(10).burst(20));
        assert_eq!(bench.drain(Critical), 20);
        assert_eq!(bench.take(Critical), 100 * MS);
        bench.now += 99 * MS;
        assert_eq!(bench.take(Critical), MS);
        bench.now += MS;
        assert_eq!(bench.take(Critical), Duration::ZERO);
        assert_eq!(bench.take(Critical), 100 * MS);
    }

    #[test]
    fn bulk_leaves_three_tenths_and_normal_one_tenth_to_those_above() {
        let mut bench = Bench::new(SharedQuota::per_second(100));
        assert_eq!(bench.drain(Bulk), 70);
        assert_eq!(bench.drain(Normal), 20);
        assert_eq!(bench.drain(Critical), 10);
        // One for bulk is there again when the reserve is full.
        assert_eq!(bench.take(Bulk), 310 * MS);
    }

    #[test]
    fn a_nightly_sync_that_asks_without_end_leaves_the_morning_s_orders_their_part() {
        let mut bench = Bench::new(SharedQuota::per_second(100));
        for _ in 0..60_000 {
            bench.take(Bulk);
            bench.now += MS;
        }
        assert!(bench.drain(Critical) >= 30);
    }

    #[test]
    fn who_waits_reserves_nothing() {
        let mut bench = Bench::new(SharedQuota::per_second(10));
        bench.drain(Bulk);
        let before = bench.bucket;
        for _ in 0..1_000 {
            bench.take(Bulk);
        }
        assert_eq!(bench.bucket, before);
    }

    #[test]
    fn of_every_bucket_one_attempt_is_everybody_s() {
        let quota = SharedQuota::per_second(1).reserve_for_critical(50).reserve_for_normal(50);
        for burst in 1..20 {
            assert_eq!(quota.burst(burst).allowance(Bulk), 1);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_empties_the_bucket_and_no_more() {
        let mut bench = Bench::new(SharedQuota::per_second(10));
        bench.take(Critical);
        bench.now -= Duration::from_secs(3_600);
        assert_eq!(bench.take(Critical), 100 * MS);
    }

    #[test]
    fn a_quota_that_makes_no_sense_is_refused() {
        let good = SharedQuota::per_second(5);
        assert_eq!((good.check(), SharedQuota::per_minute(600_000).check()), (Ok(()), Ok(())));
        for bad in [
            SharedQuota::per_second(0),
            SharedQuota::per_second(10_001),
            SharedQuota::per_minute(600_001),
            good.burst(0),
            good.burst(1_000_001),
            good.reserve_for_critical(90).reserve_for_normal(11),
        ] {
            assert_eq!(bad.check().map_err(|(field, _)| field), Err("shared_quota"), "{bad:?}");
        }
    }

    #[test]
    fn a_store_learns_of_a_quota_its_interval_in_whole_microseconds_and_its_bucket_by_the_highest_priority() {
        let quota = SharedQuota::per_second(3).burst(10);
        assert_eq!(quota.emission_interval(), Duration::from_micros(333_334));
        assert_eq!([Critical, Normal, Bulk].map(|priority| quota.allowance(priority)), [10, 9, 7]);
    }

    #[test]
    fn a_wait_that_does_not_fit_is_a_refusal() {
        assert_eq!(Taken::of(Duration::ZERO, Duration::ZERO), Taken::Admitted);
        assert_eq!(Taken::of(MS, MS), Taken::Wait(MS));
        assert_eq!(Taken::of(2 * MS, MS), Taken::Refused(2 * MS));
    }

    fn priority() -> impl Strategy<Value = Priority> {
        prop_oneof![Just(Bulk), Just(Critical), Just(Normal)]
    }

    #[test]
    fn a_quota_a_minute_has_a_sixtieth_of_it_as_its_burst() {
        assert_eq!(Bench::new(SharedQuota::per_minute(600)).drain(Critical), 10);
        assert_eq!(Bench::new(SharedQuota::per_minute(1)).drain(Critical), 1);
    }

    #[test]
    fn a_store_s_script_is_told_the_quota_in_its_order_and_in_microseconds() {
        let quota = SharedQuota::per_second(100).burst(40);
        assert_eq!(quota.as_numbers(Bulk), [10_000, 40, 28]);
        assert_eq!(quota.as_numbers(Critical), [10_000, 40, 40]);
    }

    proptest! {
        #[test]
        fn no_time_sees_more_than_the_burst_and_the_rate_allow(
            attempts in 1..10_000u32, burst in 1..50u32,
            steps in proptest::collection::vec((priority(), 0..300_000u64), 1..300),
        ) {
            let mut bench = Bench::new(SharedQuota::per_second(attempts).burst(burst));
            let start = bench.now;
            let mut taken = 0u32;
            for (priority, wait) in steps {
                taken += u32::from(bench.take(priority).is_zero());
                let allowed = f64::from(burst) + f64::from(attempts) * (bench.now - start).as_secs_f64();
                prop_assert!(f64::from(taken) <= allowed + 1e-6);
                bench.now += Duration::from_micros(wait);
            }
        }

        #[test]
        fn after_the_wait_that_was_told_there_is_one_unless_another_was_faster(
            attempts in 1..10_000u32, burst in 1..50u32, drained in 0..60usize, first in priority(), second in priority(),
        ) {
            let mut bench = Bench::new(SharedQuota::per_second(attempts).burst(burst));
            for _ in 0..drained {
                bench.take(first);
            }
            let wait = bench.take(second);
            if !wait.is_zero() {
                bench.now += wait;
                prop_assert_eq!(bench.take(second), Duration::ZERO);
            }
        }
    }
}
