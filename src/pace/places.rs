//! The places in flight, one kind within the other.

use crate::edge::ambient::Ambient;
use crate::policy::rate_limit::{CRITICAL_PERCENT, NORMAL_PERCENT, Priority, kept_from};
use crate::policy::time_budget::TimeBudget;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The places in flight.
pub(super) struct Places {
    pub(super) all: Semaphore,
    but_critical: Semaphore,
    bulk: Semaphore,
}

/// A place of each kind that its holder needs.
pub(super) type HeldPlace<'a> = [Option<SemaphorePermit<'a>>; 3];

impl Places {
    pub(super) fn new(all: u32) -> Places {
        let of = |priority| {
            let places = all - kept_from(priority, all, CRITICAL_PERCENT, NORMAL_PERCENT);
            Semaphore::new(usize::try_from(places).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS))
        };
        Places { all: of(Priority::Critical), but_critical: of(Priority::Normal), bulk: of(Priority::Bulk) }
    }

    /// Waits for a place, no longer than the time that is left; none if none is free by then. It is a timeout and no wait of a
    /// length that is known, so it is real even where the clock is turned by hand, as an attempt's is.
    pub(super) async fn enter(
        &self,
        ambient: &dyn Ambient,
        time: TimeBudget,
        priority: Priority,
    ) -> Option<HeldPlace<'_>> {
        let left = time.left(ambient.now().monotonic);
        let entered = tokio::time::timeout(left, self.places(priority)).await;
        entered.ok().filter(|_| time.fits(Duration::ZERO, ambient.now().monotonic))
    }

    async fn places(&self, priority: Priority) -> HeldPlace<'_> {
        let bulk = if priority == Priority::Bulk { hold(&self.bulk).await } else { None };
        let critical = priority == Priority::Critical;
        let but_critical = if critical { None } else { hold(&self.but_critical).await };
        [hold(&self.all).await, but_critical, bulk]
    }
}

/// Nobody ever closes a semaphore here; were one closed, it would limit nothing.
async fn hold(places: &Semaphore) -> Option<SemaphorePermit<'_>> {
    places.acquire().await.ok()
}
