//! The share of the account's throttle bucket that calls draw.

use crate::sync::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The token bucket out of which API Gateway serves all APIs of one account in one Region (*Amazon API Gateway quotas*).
///
/// It is a target, not a ceiling: AWS may let more through, or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountBucket {
    rate: u32,
    burst: u32,
}

impl AccountBucket {
    /// What a Region's accounts begin with: 10,000 requests a second and a burst of 5,000, in the Regions of
    /// [`SMALL_REGIONS`] 2,500 and 1,250.
    #[must_use]
    pub fn of_region(region: &str) -> AccountBucket {
        if SMALL_REGIONS.contains(&region) {
            AccountBucket { rate: 2_500, burst: 1_250 }
        } else {
            AccountBucket { rate: 10_000, burst: 5_000 }
        }
    }

    /// Replaces the rate, which AWS raises on request, and lowers for an integration timeout over 29 s. The burst follows from
    /// what AWS decides and is not the customer's to change.
    #[must_use]
    pub fn with_rate(self, requests_a_second: u32) -> AccountBucket {
        AccountBucket { rate: requests_a_second, ..self }
    }

    /// Requests a second.
    #[must_use]
    pub fn rate(self) -> u32 {
        self.rate
    }

    /// Requests at once.
    #[must_use]
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// What so many tokens a second are of the rate: 1.0 is all of it.
    #[must_use]
    pub fn share(self, tokens_per_second: f64) -> f64 {
        tokens_per_second / f64::from(self.rate.max(1))
    }
}

/// How much is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    /// Of the bucket's rate, 1.0 being all of it.
    pub share: f64,
    /// Attempts a call.
    pub amplification: f64,
}

impl Marks {
    /// Whether either is passed. The amplification of a few calls says nothing: of fewer than [`FEWEST_CALLS`] it is not
    /// judged.
    #[must_use]
    pub(crate) fn are_passed(&self, recent: Recent, bucket: AccountBucket) -> bool {
        let judged = recent.calls >= FEWEST_CALLS;
        bucket.share(recent.tokens_per_second()) > self.share
            || (judged && recent.amplification() > self.amplification)
    }
}

impl Default for Marks {
    /// Half of the bucket, and one and a half attempts a call.
    fn default() -> Marks {
        Marks { share: 0.5, amplification: 1.5 }
    }
}

/// What was counted in the last ten seconds, to within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recent {
    /// Tokens drawn.
    pub(crate) tokens: u64,
    /// Attempts that ended.
    pub(crate) attempts: u64,
    /// Calls whose first attempt ended.
    pub(crate) calls: u64,
}

impl Recent {
    /// Tokens a second, over ten seconds.
    #[must_use]
    pub(crate) fn tokens_per_second(self) -> f64 {
        // Exact below 2^53.
        self.tokens as f64 / SECONDS as f64
    }

    /// Attempts a call; 1.0 where there was none.
    #[must_use]
    pub(crate) fn amplification(self) -> f64 {
        if self.calls == 0 { 1.0 } else { self.attempts as f64 / self.calls as f64 }
    }
}

/// The last ten seconds, and when a warning was given last.
#[derive(Debug)]
pub(crate) struct Window {
    began: Instant,
    tokens: Ring,
    attempts: Ring,
    calls: Ring,
    /// The second from which on a warning may be given again.
    quiet_until: AtomicU64,
}

impl Window {
    /// A window in which nothing was counted.
    #[must_use]
    pub(crate) fn new(began: Instant) -> Window {
        Window {
            began,
            tokens: Ring::default(),
            attempts: Ring::default(),
            calls: Ring::default(),
            quiet_until: AtomicU64::new(0),
        }
    }

    /// Counts an attempt that ended now: whether it drew a token, and whether it was its call's first.
    pub(crate) fn count(&self, now: Instant, drew: bool, first: bool) {
        let second = self.second(now);
        self.attempts.add(second);
        if drew {
            self.tokens.add(second);
        }
        if first {
            self.calls.add(second);
        }
    }

    /// Counts a token that no attempt drew.
    pub(crate) fn count_token(&self, now: Instant) {
        self.tokens.add(self.second(now));
    }

    /// What was counted in the last ten seconds.
    #[must_use]
    pub(crate) fn recent(&self, now: Instant) -> Recent {
        let second = self.second(now);
        Recent {
            tokens: self.tokens.sum(second),
            attempts: self.attempts.sum(second),
            calls: self.calls.sum(second),
        }
    }

    /// Whether a warning may be given now, which then is the only one for a minute.
    pub(crate) fn may_warn(&self, now: Instant) -> bool {
        let second = self.second(now);
        let quiet = |until: u64| (second >= until).then(|| second.saturating_add(BETWEEN_WARNINGS.as_secs()));
        self.quiet_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, quiet).is_ok()
    }

    /// Counted from one, as zero is the stamp of a slot that was never used.
    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_secs().saturating_add(1)
    }
}

/// A count a second, each with the second that it belongs to: the upper half of a slot is the second, the lower the count.
/// One atomic a slot, so nothing is locked, and an old second is forgotten in the moment in which its slot is used again.
#[derive(Debug, Default)]
struct Ring([AtomicU64; SECONDS as usize]);

impl Ring {
    fn add(&self, second: u64) {
        let Some(slot) = usize::try_from(second % SECONDS).ok().and_then(|at| self.0.get(at)) else {
            return;
        };
        let counted = |old: u64| match (old >> HALF).cmp(&second) {
            std::cmp::Ordering::Equal if old & LOWER == LOWER => None,
            std::cmp::Ordering::Equal => Some(old + 1),
            std::cmp::Ordering::Less => Some((second << HALF) | 1),
            // The reading is older than all that this slot remembers.
            std::cmp::Ordering::Greater => None,
        };
        // Refused is only what there is no place for.
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
    }

    /// Not inlined: three sums are taken after each attempt, and the code of one stays in the processor's cache.
    #[inline(never)]
    fn sum(&self, second: u64) -> u64 {
        let slots = self.0.iter().map(|slot| slot.load(Ordering::Relaxed));
        // Ahead of this reading is what another thread counted meanwhile.
        slots.filter(|slot| (slot >> HALF).saturating_add(SECONDS) > second).map(|slot| slot & LOWER).sum()
    }
}

/// The Regions whose accounts begin with 2,500 requests a second (*Amazon API Gateway quotas*).
pub const SMALL_REGIONS: &[&str] = &[
    "af-south-1",
    "ap-south-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-7",
    "ca-west-1",
    "eu-central-2",
    "eu-south-1",
    "eu-south-2",
    "il-central-1",
    "me-central-1",
    "mx-central-1",
];
/// Of fewer calls in ten seconds the amplification is not judged: one call that is sent three times is no storm.
pub const FEWEST_CALLS: u64 = 10;
/// A log full of repeats hides the line that matters.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);
const SECONDS: u64 = 10;
const HALF: u32 = 32;
const LOWER: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;
    use proptest::prelude::*;

    #[test]
    fn thirteen_regions_have_a_quarter_of_the_others_bucket() {
        let bucket =
            |region| (AccountBucket::of_region(region).rate(), AccountBucket::of_region(region).burst());
        for region in SMALL_REGIONS {
            assert_eq!(bucket(region), (2_500, 1_250), "{region}");
        }
        for region in ["eu-central-1", "us-east-1", "ap-southeast-2", "a-region-to-come"] {
            assert_eq!(bucket(region), (10_000, 5_000), "{region}");
        }
    }

    #[test]
    fn the_rate_can_be_set_both_ways_and_the_burst_stays() {
        let bucket = AccountBucket::of_region("eu-central-1");
        assert_eq!((bucket.with_rate(20_000).rate(), bucket.with_rate(20_000).burst()), (20_000, 5_000));
        assert!((bucket.with_rate(4_000).share(1_000.0) - 0.25).abs() < 1e-9);
        assert!(bucket.with_rate(0).share(1.0).is_finite());
    }

    #[test]
    fn ten_seconds_are_remembered_and_not_eleven() {
        let start = some_moment().monotonic;
        let at = |seconds| start + Duration::from_secs(seconds);
        let window = Window::new(start);
        window.count(at(0), true, true);
        window.count(at(9), true, false);
        assert_eq!(window.recent(at(9)), Recent { tokens: 2, attempts: 2, calls: 1 });
        assert_eq!(window.recent(at(10)), Recent { tokens: 1, attempts: 1, calls: 0 });
        assert_eq!(window.recent(at(19)), Recent::default());
    }

    #[test]
    fn a_second_s_slot_forgets_the_second_of_ten_seconds_before() {
        let start = some_moment().monotonic;
        let window = Window::new(start);
        for _ in 0..5 {
            window.count(start, true, false);
        }
        let later = start + Duration::from_secs(10);
        window.count(later, true, false);
        assert_eq!(window.recent(later).tokens, 1);
        window.count(start, true, false);
        assert_eq!(window.recent(later).tokens, 1, "what is over stays over");
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_counts_all_the_same() {
        let start = some_moment().monotonic;
        let window = Window::new(start + Duration::from_secs(5));
        window.count(start, true, true);
        window.count(start, false, false);
        assert_eq!(window.recent(start), Recent { tokens: 1, attempts: 2, calls: 1 });
    }

    #[test]
    fn a_warning_is_given_once_a_minute() {
        let start = some_moment().monotonic;
        let window = Window::new(start);
        assert!(window.may_warn(start));
        assert!(!window.may_warn(start));
        assert!(!window.may_warn(start + Duration::from_secs(59)));
        assert!(window.may_warn(start + Duration::from_secs(60)));
    }

    #[test]
    fn of_threads_that_race_to_warn_one_does() {
        let start = some_moment().monotonic;
        let window = Window::new(start);
        let warned: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| window.may_warn(start))).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!(warned, 1);
    }

    #[test]
    fn either_mark_is_passed_by_itself_and_a_few_calls_are_no_storm() {
        let marks = Marks { share: 0.5, amplification: 1.5 };
        let bucket = AccountBucket::of_region("eu-central-1").with_rate(100);
        let passed = |tokens, attempts, calls| marks.are_passed(Recent { tokens, attempts, calls }, bucket);
        assert!(!passed(500, 500, 500));
        assert!(passed(501, 501, 501));
        assert!(!passed(15, 15, 10));
        assert!(passed(16, 16, 10));
        assert!(!passed(27, 27, 9));
    }

    #[test]
    fn threads_lose_no_count() {
        let start = some_moment().monotonic;
        let window = Window::new(start);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5_000).for_each(|_| window.count(start, true, false)));
            }
        });
        assert_eq!(window.recent(start).tokens, 20_000);
    }

    #[test]
    fn a_second_that_is_full_counts_no_further_and_stays_itself() {
        let ring = Ring::default();
        ring.add(7);
        ring.0[7].store((7 << HALF) | LOWER, Ordering::Relaxed);
        ring.add(7);
        assert_eq!(ring.0[7].load(Ordering::Relaxed), (7 << HALF) | LOWER);
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_list_of_times(times in proptest::collection::vec(0..60_000_u64, 0..80)) {
            let start = some_moment().monotonic;
            let (window, mut times) = (Window::new(start), times);
            times.sort_unstable();
            for (index, time) in times.iter().enumerate() {
                let now = start + Duration::from_millis(*time);
                window.count_token(now);
                let second = time / 1_000;
                let recent = times.iter().take(index + 1).filter(|t| *t / 1_000 + 10 > second).count();
                prop_assert_eq!(window.recent(now).tokens, recent as u64);
            }
        }
    }
}
