//! Clocks and dice that are turned by hand, for the tests of this layer.

use crate::edge::ambient::Ambient;
use crate::policy::moment::{Draw, Moment, some_moment};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
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
