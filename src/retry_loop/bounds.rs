//! What bounds a call in the loop's tests.

use crate::policy::rate_limit::Priority;
use crate::policy::time_budget::TimeBudget;
use std::time::{Duration, Instant};

/// Its times, and its place among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) priority: Priority,
    pub(super) total: Duration,
    pub(super) deadline: Option<Instant>,
    pub(super) min_attempt_time: Duration,
}

impl Bounds {
    pub(super) fn time_budget(&self, start: Instant) -> TimeBudget {
        TimeBudget::new(start, self.total, self.deadline, self.min_attempt_time)
    }
}
