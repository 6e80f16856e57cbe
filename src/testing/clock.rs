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
/// socket is not a wait: it stays real. In memory ([`FakeGateway::in_memory`](crate::testing::FakeGateway::in_memory)) an
/// attempt takes no time either: the clock moves on by what it would have taken.
///
/// There is one clock and nobody waits beside another: of calls that are made at once, each takes its waits when it comes to
/// them, and the clock moves on by all of these. What is awaited of others (a provider of credentials that hangs, a source of
/// user tokens, a limit that is shared) takes real time.
///
/// The dice show their highest unless they are told otherwise, so that a wait is the longest that it may be; with
/// [`seed`](ManualClock::seed) they fall at random, each time in the same way.
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
    /// The state of dice that fall at random, and the same way each time.
    seeded: Option<u64>,
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
        let (draw, extra_per_wait) = (Draw::HIGHEST, Duration::ZERO);
        let hands = Hands { now, draw, seeded: None, extra_per_wait, waits: Vec::new() };
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
        let mut hands = self.hands();
        (hands.draw, hands.seeded) = (draw, None);
    }

    /// Lets the dice fall at random from now on, and for the same seed each time in the same way: waits and ids repeat from
    /// run to run. Two clocks of one seed make the same ids.
    ///
    /// ```
    /// use eastwest::testing::{Ambient, ManualClock};
    ///
    /// let (one, other) = (ManualClock::new(), ManualClock::new());
    /// one.seed(7);
    /// other.seed(7);
    /// assert_eq!([one.draw(), one.draw()], [other.draw(), other.draw()]);
    /// assert_ne!(one.draw(), one.draw());
    /// ```
    pub fn seed(&self, seed: u64) {
        self.hands().seeded = Some(seed);
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
        let mut hands = self.hands();
        match &mut hands.seeded {
            Some(state) => Draw(split_mix(state)),
            None => hands.draw,
        }
    }

    /// Ids stay random unless there is a seed: dice that always fall alike would make one key of many.
    fn id_bits(&self) -> u128 {
        match &mut self.hands().seeded {
            Some(state) => (u128::from(split_mix(state)) << 64) | u128::from(split_mix(state)),
            None => system().id_bits(),
        }
    }

    fn pass(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        self.advance(time);
        Box::pin(tokio::task::yield_now())
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

/// SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014): small, and it visits every
/// state once before it repeats.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
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

    #[tokio::test]
    async fn time_that_passes_is_no_wait() {
        let clock = ManualClock::new();
        let before = clock.now();
        clock.pass(Duration::from_secs(4)).await;
        assert_eq!(clock.now().since(&before), Duration::from_secs(4));
        assert!(clock.waits().is_empty());
    }

    #[test]
    fn seeded_dice_fall_as_published_and_leave_no_id_twice() {
        // The first values of SplitMix64 from seed 0, as its authors' reference code gives them.
        let clock = ManualClock::new();
        clock.seed(0);
        assert_eq!(clock.draw(), Draw(0xe220_a839_7b1d_cdaf));
        assert_eq!(clock.draw(), Draw(0x6e78_9e6a_a1b9_65f4));
        assert_ne!(clock.id_bits(), clock.id_bits());
        clock.set_draw(Draw::LOWEST);
        assert_eq!(clock.draw(), Draw::LOWEST);
    }

    #[test]
    fn it_starts_at_noon() {
        assert_eq!(httpdate::fmt_http_date(ManualClock::new().wall()), "Fri, 02 Oct 2026 12:00:00 GMT");
    }
}
