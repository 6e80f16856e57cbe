//! The only clock, the only sleep and the only dice.

use crate::policy::moment::{Draw, Moment};
use rand::RngExt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What the crate asks of the world: the time, a wait and a throw of the dice.
///
/// A client has the process's own unless the test kit gives it one that is turned by hand.
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "the test kit's to reach"))]
pub trait Ambient: Send + Sync + 'static {
    /// Reads both clocks.
    fn now(&self) -> Moment;
    /// Throws the dice.
    fn draw(&self) -> Draw;
    /// Throws the dice for an id: 128 bits that no other id has.
    fn id_bits(&self) -> u128 {
        (u128::from(self.draw().0) << 64) | u128::from(self.draw().0)
    }
    /// Waits. Never called with zero: a wait of zero is not a wait.
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>>;
    /// Lets the time pass that an exchange in memory takes. By default it is slept.
    #[cfg(feature = "testing")]
    fn pass(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        self.sleep(time)
    }
}

impl<A: Ambient + ?Sized> Ambient for Arc<A> {
    fn now(&self) -> Moment {
        (**self).now()
    }

    fn draw(&self) -> Draw {
        (**self).draw()
    }

    fn id_bits(&self) -> u128 {
        (**self).id_bits()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        (**self).sleep(wait)
    }

    #[cfg(feature = "testing")]
    fn pass(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        (**self).pass(time)
    }
}

/// The process's own clocks and dice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System;

impl Ambient for System {
    #[allow(clippy::disallowed_methods, reason = "this is the one clock")]
    fn now(&self) -> Moment {
        // tokio's instant, so that a paused runtime pauses the budgets too.
        Moment { monotonic: tokio::time::Instant::now().into_std(), wall: SystemTime::now() }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the one dice")]
    fn draw(&self) -> Draw {
        Draw(rand::rng().random())
    }

    #[allow(clippy::disallowed_methods, reason = "this is the one dice")]
    fn id_bits(&self) -> u128 {
        rand::rng().random()
    }

    #[allow(clippy::disallowed_methods, reason = "this is the one wait")]
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// The process's own clocks and dice, for what has no client at hand.
pub(crate) fn system() -> &'static System {
    &System
}

/// The process's own clocks and dice, for a client.
pub(crate) fn shared_system() -> Arc<dyn Ambient> {
    Arc::new(System)
}

/// A fresh version 4 UUID from the given dice.
pub(crate) fn fresh_uuid(ambient: &dyn Ambient) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(ambient.id_bits().to_be_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_id_is_a_version_4_uuid_and_never_twice_the_same() {
        let (a, b) = (fresh_uuid(system()), fresh_uuid(system()));
        assert_ne!(a, b);
        assert_eq!(a.get_version_num(), 4);
        assert_eq!(a.get_variant(), uuid::Variant::RFC4122);
    }
}
