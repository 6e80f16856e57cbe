//! The soak's clock and its waits: real ones, as its sockets are.
#![allow(clippy::disallowed_methods, reason = "the one place of this lane that reads a clock and waits")]

use std::time::{Duration, Instant, SystemTime};

pub fn now() -> Instant {
    Instant::now()
}

pub fn wall() -> SystemTime {
    SystemTime::now()
}

pub async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A time from nothing up to so many milliseconds.
pub fn up_to(rng: &mut fastrand::Rng, millis: u64) -> Duration {
    Duration::from_millis(rng.u64(0..=millis))
}
