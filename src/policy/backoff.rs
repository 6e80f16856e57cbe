//! How long to wait before a retry when the callee did not say.

use crate::policy::moment::Draw;
use std::time::Duration;

/// Full jitter: a wait drawn uniformly from nothing up to a ceiling that doubles with every retry, to a cap.
///
/// Full jitter spreads a crowd of callers over the whole of the wait, where a fixed or a half-random wait makes
/// them come back together ("Exponential Backoff And Jitter", AWS Architecture Blog).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    transient_base: Duration,
    throttled_base: Duration,
    cap: Duration,
}

impl Backoff {
    /// Sets the two bases and the cap of one wait. Any value is workable; a base of zero asks for no wait.
    #[must_use]
    pub fn new(transient_base: Duration, throttled_base: Duration, cap: Duration) -> Self {
        Self { transient_base, throttled_base, cap }
    }

    /// The ceiling of the first wait after a passing fault.
    #[must_use]
    pub fn transient_base(&self) -> Duration {
        self.transient_base
    }

    /// The ceiling of the first wait after a sign of overload.
    #[must_use]
    pub fn throttled_base(&self) -> Duration {
        self.throttled_base
    }

    /// The longest ceiling that doubling can reach.
    #[must_use]
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// The longest wait before a retry: `min(cap, base * 2^n)`, where `n` is 0 for the first retry.
    ///
    /// The cap is inside the power, so nothing overflows and the ceiling never falls as `n` grows.
    pub(crate) fn ceiling(&self, base: Base, retry_index: u32) -> Duration {
        let base = match base {
            Base::Throttled => self.throttled_base,
            Base::Transient => self.transient_base,
        };
        if base.is_zero() {
            return Duration::ZERO;
        }
        // A base of one nanosecond or more, doubled 128 times or more, is past every cap.
        let doubled = 1_u128.checked_shl(retry_index).and_then(|factor| base.as_nanos().checked_mul(factor));
        match doubled {
            Some(nanos) if nanos < self.cap.as_nanos() => Duration::from_nanos_u128(nanos),
            _ => self.cap,
        }
    }

    /// Draws the wait before a retry: uniform over `0..=ceiling`.
    pub(crate) fn wait(&self, base: Base, retry_index: u32, draw: Draw) -> Duration {
        draw.up_to(self.ceiling(base, retry_index))
    }

    /// Draws from the upper half of the throttled ceiling, for a callee that asked for a wait in words that say nothing.
    ///
    /// It did ask, so the wait is never zero unless the ceiling itself is.
    pub(crate) fn upper_half(&self, retry_index: u32, draw: Draw) -> Duration {
        let ceiling = self.ceiling(Base::Throttled, retry_index);
        let half = ceiling / 2;
        ceiling.saturating_sub(half).saturating_add(draw.up_to(half))
    }
}

/// Which of the two first ceilings a retry begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The callee, or the gateway before it, has too much to do: wait longer.
    Throttled,
    /// Something broke in passing and says nothing about load.
    Transient,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STANDARD: Backoff = Backoff {
        transient_base: Duration::from_millis(200),
        throttled_base: Duration::from_millis(500),
        cap: Duration::from_secs(2),
    };

    fn any_duration() -> impl Strategy<Value = Duration> {
        prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::from_nanos(1)),
            Just(Duration::MAX),
            (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
            (0..100_000_u64).prop_map(Duration::from_millis),
        ]
    }

    #[test]
    fn the_ceiling_doubles_from_its_base_and_stops_at_the_cap() {
        let ceilings = |base| [0, 1, 2, 3, 4].map(|n| STANDARD.ceiling(base, n).as_millis());
        assert_eq!(ceilings(Base::Transient), [200, 400, 800, 1_600, 2_000]);
        assert_eq!(ceilings(Base::Throttled), [500, 1_000, 2_000, 2_000, 2_000]);
    }

    #[test]
    fn a_cap_below_the_base_holds_from_the_first_retry() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(1), Duration::from_millis(10));
        assert_eq!(backoff.ceiling(Base::Transient, 0), Duration::from_millis(10));
    }

    #[test]
    fn the_ceiling_is_exact_where_a_32_bit_factor_would_be_too_small() {
        let backoff = Backoff::new(Duration::from_nanos(1), Duration::ZERO, Duration::MAX);
        assert_eq!(backoff.ceiling(Base::Transient, 40), Duration::from_nanos(1 << 40));
    }

    #[test]
    fn no_retry_index_and_no_base_makes_the_ceiling_overflow() {
        for base in [Duration::from_millis(1), Duration::from_secs(1), Duration::MAX] {
            for cap in [Duration::from_secs(2), Duration::MAX] {
                let backoff = Backoff::new(base, base, cap);
                let mut last = Duration::ZERO;
                for n in [0, 1, 5, 31, 32, 63, 64, 93, 94, 127, 128, u32::MAX] {
                    let ceiling = backoff.ceiling(Base::Transient, n);
                    assert!(last <= ceiling && ceiling <= cap, "{base:?} {cap:?} {n}");
                    last = ceiling;
                }
                assert_eq!(last, cap);
            }
        }
    }

    #[test]
    fn a_wait_reaches_both_ends_of_full_jitter() {
        assert_eq!(STANDARD.wait(Base::Throttled, 1, Draw::LOWEST), Duration::ZERO);
        assert_eq!(STANDARD.wait(Base::Throttled, 1, Draw::HIGHEST), Duration::from_secs(1));
        assert_eq!(STANDARD.wait(Base::Transient, 0, Draw(1 << 63)), Duration::from_millis(100));
    }

    #[test]
    fn the_upper_half_reaches_from_the_middle_to_the_throttled_ceiling() {
        assert_eq!(STANDARD.upper_half(0, Draw::LOWEST), Duration::from_millis(250));
        assert_eq!(STANDARD.upper_half(0, Draw::HIGHEST), Duration::from_millis(500));
    }

    #[test]
    fn the_upper_half_of_the_smallest_ceiling_is_not_zero() {
        let least = Duration::from_nanos(1);
        let backoff = Backoff::new(least, least, least);
        assert_eq!(backoff.upper_half(0, Draw::LOWEST), least);
        assert_eq!(backoff.upper_half(0, Draw::HIGHEST), least);
    }

    proptest! {
        #[test]
        fn every_wait_stays_under_a_ceiling_that_never_falls(
            transient in any_duration(), throttled in any_duration(), cap in any_duration(),
            n in prop_oneof![0..200_u32, any::<u32>()], draw in any::<u64>(),
        ) {
            let backoff = Backoff::new(transient, throttled, cap);
            for base in [Base::Throttled, Base::Transient] {
                let ceiling = backoff.ceiling(base, n);
                prop_assert!(ceiling <= cap);
                prop_assert!(backoff.ceiling(base, n.saturating_add(1)) >= ceiling);
                prop_assert!(backoff.wait(base, n, Draw(draw)) <= ceiling);
            }
            let ceiling = backoff.ceiling(Base::Throttled, n);
            let wait = backoff.upper_half(n, Draw(draw));
            prop_assert!(ceiling / 2 <= wait && wait <= ceiling);
            prop_assert_eq!(wait.is_zero(), ceiling.is_zero());
        }
    }
}
