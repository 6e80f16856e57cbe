//! A clock that is turned by hand, whose waits take no time and whose dice fall as told.

use crate::edge::ambient::{Ambient, system};
use crate::policy::moment::{Draw, Moment};
use crate::testing::lock::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// Time that passes only when a call waits, or when the test says so.
///
/// A wait is written down, both clocks move on by it, and the call goes on at once. The timeout of an attempt on a
/// socket is not a wait: it stays real.
///
/// ```
/// use eastwest::testing::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let start = clock.wall();
/// clock.advance(Duration::from_secs(3_600));
/// assert_eq!(clock.wall(), start + Duration::from_secs(3_600));
/// assert!(clock.waits().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Hands>>);

#[derive(Debug)]
struct Hands {
    now: Moment,
    draw: Draw,
    extra_per_wait: Duration,
    waits: Vec<Duration>,
}

impl ManualClock {
    /// Starts at noon of 2 October 2026, with dice that always show their highest.
    #[must_use]
    pub fn new() -> ManualClock {
        ManualClock::starting_at(SystemTime::UNIX_EPOCH + Duration::from_secs(NOON))
    }

    /// Starts at the given wall time.
    #[must_use]
    pub fn starting_at(wall: SystemTime) -> ManualClock {
        let now = Moment { wall, ..system().now() };
        let hands = Hands { now, draw: Draw::HIGHEST, extra_per_wait: Duration::ZERO, waits: Vec::new() };
        ManualClock(Arc::new(Mutex::new(hands)))
    }

    /// Moves both clocks on. Past the end of time they stay there.
    pub fn advance(&self, by: Duration) {
        let mut hands = self.hands();
        hands.now = moved(hands.now, by);
    }

    /// Moves the wall clock alone, as a sandbox's freeze or an operator does.
    pub fn set_wall(&self, wall: SystemTime) {
        self.hands().now.wall = wall;
    }

    /// Lets every wait take so much longer than was asked for.
    pub fn take_longer_by(&self, extra: Duration) {
        self.hands().extra_per_wait = extra;
    }

    /// Sets how the dice fall from now on.
    pub fn set_draw(&self, draw: Draw) {
        self.hands().draw = draw;
    }

    /// The wall clock.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        self.hands().now.wall
    }

    /// All waits so far, as they were asked for.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.hands().waits.clone()
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        lock(&self.0)
    }
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock::new()
    }
}

impl Ambient for ManualClock {
    fn now(&self) -> Moment {
        self.hands().now
    }

    fn draw(&self) -> Draw {
        self.hands().draw
    }

    /// Ids stay random: dice that always fall alike would make one key of many.
    fn id_bits(&self) -> u128 {
        system().id_bits()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        let clock = self.clone();
        Box::pin(async move {
            {
                let mut hands = clock.hands();
                hands.waits.push(wait);
                let passed = wait.saturating_add(hands.extra_per_wait);
                hands.now = moved(hands.now, passed);
            }
            tokio::task::yield_now().await;
        })
    }
}

fn moved(now: Moment, by: Duration) -> Moment {
    Moment {
        monotonic: now.monotonic.checked_add(by).unwrap_or(now.monotonic),
        wall: now.wall.checked_add(by).unwrap_or(now.wall),
    }
}

/// 2026-10-02T12:00:00Z, in seconds of the epoch.
const NOON: u64 = 1_790_942_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_is_written_down_and_moves_both_clocks() {
        let clock = ManualClock::new();
        let before = clock.now();
        clock.take_longer_by(Duration::from_secs(420));
        clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(clock.waits(), [Duration::from_secs(2)]);
        assert_eq!(clock.now().wall, before.wall + Duration::from_secs(422));
        assert_eq!(clock.now().monotonic, before.monotonic + Duration::from_secs(422));
    }

    #[test]
    fn it_starts_at_noon() {
        assert_eq!(httpdate::fmt_http_date(ManualClock::new().wall()), "Fri, 02 Oct 2026 12:00:00 GMT");
    }
}
