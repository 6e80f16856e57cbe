//! The counters themselves, and what is counted.

use crate::policy::account_quota::{AccountBucket, Window};
use crate::sync::AtomicU64;
use crate::usage::reading::Usage;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The counters. None orders any other, so all are relaxed.
pub(super) struct Meter {
    calls: AtomicU64,
    attempted: AtomicU64,
    attempts: AtomicU64,
    retries: AtomicU64,
    tokens: AtomicU64,
    in_doubt: AtomicU64,
    throttled: AtomicU64,
    refused_by_circuit: AtomicU64,
    refused_by_hop_limit: AtomicU64,
    refused_by_rate_limit: AtomicU64,
    pub(super) window: Window,
}

impl Meter {
    pub(super) fn new(now: Instant) -> Meter {
        let zero = || AtomicU64::new(0);
        Meter {
            calls: zero(),
            attempted: zero(),
            attempts: zero(),
            retries: zero(),
            tokens: zero(),
            in_doubt: zero(),
            throttled: zero(),
            refused_by_circuit: zero(),
            refused_by_hop_limit: zero(),
            refused_by_rate_limit: zero(),
            window: Window::new(now),
        }
    }

    /// A call begins, or is refused before it does.
    pub(super) fn call(&self) {
        one_more(&self.calls);
    }

    /// A call ends with nothing sent.
    pub(super) fn refused(&self, by: RefusedBy) {
        one_more(match by {
            RefusedBy::Circuit => &self.refused_by_circuit,
            RefusedBy::HopLimit => &self.refused_by_hop_limit,
            RefusedBy::RateLimit => &self.refused_by_rate_limit,
        });
    }

    /// An attempt is over; `ended` is none where its call was dropped, for then nobody looked at the clock.
    pub(super) fn attempt(&self, attempt: Counted, ended: Option<Instant>) {
        one_more(&self.attempts);
        if attempt.first {
            one_more(&self.attempted);
        }
        if attempt.retry {
            one_more(&self.retries);
        }
        let drew = matches!(attempt.came, Came::Answer | Came::Throttle);
        if drew {
            one_more(&self.tokens);
        }
        match attempt.came {
            Came::Doubt => one_more(&self.in_doubt),
            Came::Throttle => one_more(&self.throttled),
            Came::Answer | Came::Nothing => {}
        }
        if let Some(now) = ended {
            self.window.count(now, drew, attempt.first);
        }
    }

    /// A token was drawn by what is no attempt.
    pub(super) fn token(&self, now: Instant) {
        one_more(&self.tokens);
        self.window.count_token(now);
    }

    /// A token may have been drawn by what is no attempt.
    pub(super) fn doubt(&self) {
        one_more(&self.in_doubt);
    }

    pub(super) fn read(&self, bucket: AccountBucket, now: Instant) -> Usage {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tokens_per_second = self.window.recent(now).tokens_per_second();
        Usage {
            calls: count(&self.calls),
            attempted: count(&self.attempted),
            attempts: count(&self.attempts),
            retries: count(&self.retries),
            tokens: count(&self.tokens),
            in_doubt: count(&self.in_doubt),
            throttled: count(&self.throttled),
            refused_by_circuit: count(&self.refused_by_circuit),
            refused_by_hop_limit: count(&self.refused_by_hop_limit),
            refused_by_rate_limit: count(&self.refused_by_rate_limit),
            tokens_per_second,
            share: bucket.share(tokens_per_second),
        }
    }
}

fn one_more(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// An attempt as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Of its call.
    pub(crate) first: bool,
    /// Whether it was a retry, and not a recovery.
    pub(crate) retry: bool,
    pub(crate) came: Came,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Answer,
    /// Nobody knows whether it arrived.
    Doubt,
    /// Nothing left this process.
    Nothing,
    /// An answer that said *too fast*.
    Throttle,
}

/// Who refused a call of which nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedBy {
    Circuit,
    HopLimit,
    RateLimit,
}
