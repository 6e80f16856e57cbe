//! Clocks and dice that are turned by hand, for the tests of this layer.

use crate::edge::ambient::{Ambient, System};
use crate::policy::moment::{Draw, Moment, some_moment};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// Time that stands still until it is moved.
pub(crate) struct Hand(Mutex<(Moment, Draw, Duration)>);

impl Hand {
    /// Stands at [`some_moment`], with the lowest throw.
    pub(crate) fn new() -> Arc<Hand> {
        Arc::new(Hand(Mutex::new((some_moment(), Draw::LOWEST, Duration::ZERO))))
    }

    /// Moves both clocks.
    pub(crate) fn advance(&self, time: Duration) {
        let mut hand = self.0.lock().unwrap();
        hand.0.monotonic += time;
        hand.0.wall += time;
    }

    /// Moves the wall clock alone, as it is found after a freeze.
    pub(crate) fn thaw_after(&self, time: Duration) {
        self.0.lock().unwrap().0.wall += time;
    }

    /// Moves the wall clock by this much after each look at it.
    pub(crate) fn moving(&self, step: Duration) {
        self.0.lock().unwrap().2 = step;
    }

    /// Sets the throw.
    pub(crate) fn throw(&self, draw: Draw) {
        self.0.lock().unwrap().1 = draw;
    }
}

impl Ambient for Hand {
    fn now(&self) -> Moment {
        let mut hand = self.0.lock().unwrap();
        let (now, step) = (hand.0, hand.2);
        hand.0.wall += step;
        now
    }

    fn draw(&self) -> Draw {
        self.0.lock().unwrap().1
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// The runtime's own time, which a test may have paused, and a wall clock that goes with it: the process's own would run on
/// meanwhile, and limits go by whichever clock is ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime;

impl Ambient for Runtime {
    fn now(&self) -> Moment {
        static ORIGIN: LazyLock<Moment> = LazyLock::new(some_moment);
        let monotonic = System.now().monotonic;
        let wall = match monotonic.checked_duration_since(ORIGIN.monotonic) {
            Some(after) => ORIGIN.wall + after,
            None => ORIGIN.wall - ORIGIN.monotonic.duration_since(monotonic),
        };
        Moment { monotonic, wall }
    }

    fn draw(&self) -> Draw {
        System.draw()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        System.sleep(wait)
    }
}
