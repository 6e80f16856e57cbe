//! How many attempts may start, and for whom: the settings of a rate limit, and the priorities.

use crate::policy::quota_headers::QuotaHeaders;
use std::time::Duration;

/// Whose attempts go first where not all may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Gives way first: a nightly run, a backfill. It never takes the reserved part of a bucket.
    Bulk,
    /// May take all: a payment, a call that a person waits for.
    Critical,
    /// What is neither. The default.
    #[default]
    Normal,
}

/// The settings of a rate limit: at most `burst` attempts at once, and so many more in every second or minute.
///
/// In any time `t` at most `burst + rate * t` attempts start, those that find no connection among them. A limit of a client is
/// this process's alone: a fleet of sandboxes makes as many times as much.
///
/// Of the bucket, 10 % are kept for [`Priority::Critical`], and 20 % more for what is not [`Priority::Bulk`]; one token at
/// least is everybody's.
///
/// ```
/// use eastwest::RateLimit;
///
/// let limit = RateLimit::per_second(50).burst(20).reserve_for_critical(25);
/// # let _ = limit;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub(crate) attempts: u32,
    pub(crate) period: Duration,
    pub(crate) burst: u32,
    critical_percent: u8,
    normal_percent: u8,
    pub(crate) quota_headers: Option<QuotaHeaders>,
}

impl RateLimit {
    /// At most so many attempts a second; the burst is as many.
    #[must_use]
    pub fn per_second(attempts: u32) -> RateLimit {
        RateLimit {
            attempts,
            period: Duration::from_secs(1),
            burst: attempts.max(1),
            critical_percent: CRITICAL_PERCENT,
            normal_percent: NORMAL_PERCENT,
            quota_headers: None,
        }
    }

    /// At most so many attempts a minute; the burst is a sixtieth of it, at least 1.
    #[must_use]
    pub fn per_minute(attempts: u32) -> RateLimit {
        let burst = attempts.div_ceil(60).max(1);
        RateLimit { period: Duration::from_secs(60), burst, ..RateLimit::per_second(attempts) }
    }

    /// Sets how many attempts may start at once after a pause; at least 1.
    #[must_use]
    pub fn burst(mut self, attempts: u32) -> RateLimit {
        self.burst = attempts;
        self
    }

    /// Sets how many percent of the bucket only [`Priority::Critical`] may take; 10 by default.
    #[must_use]
    pub fn reserve_for_critical(mut self, percent: u8) -> RateLimit {
        self.critical_percent = percent;
        self
    }

    /// Sets how many percent of the bucket, besides the critical's, [`Priority::Bulk`] may not take; 20 by default.
    #[must_use]
    pub fn reserve_for_normal(mut self, percent: u8) -> RateLimit {
        self.normal_percent = percent;
        self
    }

    /// Lets a callee's own headers lower the bucket to what they say is left. Off by default: such headers may speak of
    /// another quota, a day's or a user's.
    #[must_use]
    pub fn quota_headers(mut self, headers: QuotaHeaders) -> RateLimit {
        self.quota_headers = Some(headers);
        self
    }

    /// How many tokens of the bucket a priority leaves to those above it.
    pub(crate) fn kept_from(&self, priority: Priority) -> u32 {
        kept_from(priority, self.burst, self.critical_percent, self.normal_percent)
    }

    /// Refuses what admits nothing or keeps more than there is: the setting, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let kept = u32::from(self.critical_percent) + u32::from(self.normal_percent);
        let rules = [
            (self.attempts >= 1, "admits no attempt at all: 1 is the least"),
            (self.burst >= 1, "the burst must be at least 1"),
            (kept <= 100, "more than 100 % of the bucket are reserved"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, reason)| Err(("rate_limit", reason)))
    }
}

/// How many of `all` a priority leaves to those above it; never all.
pub(crate) fn kept_from(priority: Priority, all: u32, critical_percent: u8, normal_percent: u8) -> u32 {
    let percent = match priority {
        Priority::Bulk => u32::from(critical_percent) + u32::from(normal_percent),
        Priority::Critical => 0,
        Priority::Normal => u32::from(critical_percent),
    };
    let part = (u64::from(all) * u64::from(percent)).div_ceil(100);
    u32::try_from(part).unwrap_or(u32::MAX).min(all.saturating_sub(1))
}

/// Kept of a bucket, or of the places in flight, for what is critical.
pub const CRITICAL_PERCENT: u8 = 10;
/// Kept besides for what is not bulk.
pub const NORMAL_PERCENT: u8 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_leaves_more_than_normal_and_critical_leaves_nothing() {
        let kept = |priority| kept_from(priority, 100, CRITICAL_PERCENT, NORMAL_PERCENT);
        let kept = [Priority::Critical, Priority::Normal, Priority::Bulk].map(kept);
        assert_eq!(kept, [0, 10, 30]);
    }

    #[test]
    fn of_every_bucket_one_token_is_everybody_s() {
        for all in 1..=20 {
            assert!(kept_from(Priority::Bulk, all, 50, 50) < all, "{all}");
        }
        assert_eq!(kept_from(Priority::Bulk, 0, 50, 50), 0);
        assert_eq!(kept_from(Priority::Bulk, u32::MAX, 100, 255), u32::MAX - 1);
    }

    #[test]
    fn a_part_of_a_token_is_kept_whole() {
        assert_eq!(kept_from(Priority::Normal, 5, 10, 20), 1);
        assert_eq!(kept_from(Priority::Bulk, 5, 10, 20), 2);
    }

    #[test]
    fn a_limit_that_admits_nothing_or_keeps_more_than_there_is_is_refused() {
        let good = RateLimit::per_second(5);
        assert_eq!(good.check(), Ok(()));
        for bad in [
            RateLimit::per_second(0),
            RateLimit::per_minute(0),
            good.clone().burst(0),
            good.reserve_for_critical(90).reserve_for_normal(11),
        ] {
            assert_eq!(bad.check().map_err(|(field, _)| field), Err("rate_limit"), "{bad:?}");
        }
    }

    #[test]
    fn the_burst_is_a_second_s_worth_unless_it_is_said() {
        assert_eq!(RateLimit::per_second(50).burst, 50);
        assert_eq!(RateLimit::per_minute(600).burst, 10);
        assert_eq!(RateLimit::per_minute(7).burst, 1);
        assert_eq!(RateLimit::per_minute(7).burst(3).burst, 3);
    }
}
