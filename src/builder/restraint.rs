//! The settings of restraint: what a client may draw, how fast, and when it lets be.

use super::ClientBuilder;
use crate::fleet::{FleetBreaker, SharedLimit};
use crate::policy::breaker::BreakerSettings;
use crate::policy::rate_limit::RateLimit;
use crate::policy::retry_budget::RetryBudget;
use crate::usage::AccountQuota;
use std::sync::Arc;

impl ClientBuilder {
    /// Sets the retry budget, its own or one shared with other clients. By default the profile's, of this client.
    pub fn retry_budget(mut self, budget: RetryBudget) -> ClientBuilder {
        self.retry_budget = Some(budget);
        self
    }

    /// Sets the breaker's thresholds and times.
    pub fn breaker(mut self, settings: BreakerSettings) -> ClientBuilder {
        self.breaker = settings;
        self
    }

    /// Draws every attempt from a limit that others draw from too, a [`SharedRateLimit`](crate::fleet::SharedRateLimit) for
    /// instance, after the client's own limits; by default from none. An attempt waits for one exchange with its store. What
    /// does not fit in the call's time ends it with [`StopReason::RateLimited`](crate::StopReason::RateLimited).
    pub fn shared_rate_limit(mut self, limit: impl SharedLimit) -> ClientBuilder {
        self.shared_limit = Some(Arc::new(limit));
        self
    }

    /// Takes part in the breaker that the whole fleet shares for this callee; by default in none. See [`fleet`](crate::fleet).
    pub fn fleet_breaker(mut self, breaker: FleetBreaker) -> ClientBuilder {
        self.fleet = Some(breaker);
        self
    }

    /// Sets how many attempts of this client and its clones may start in a second or a minute; unlimited by default.
    ///
    /// An attempt waits for its turn, the more important ones first ([`Call::priority`](crate::Call::priority)), if that fits into
    /// the call's time. If not, the call ends at once with [`ErrorKind::RateLimited`](crate::ErrorKind::RateLimited), nothing sent.
    /// A 429 empties the limit's bucket, and closes it for as long as its `Retry-After` asks for, an hour at most.
    pub fn rate_limit(mut self, limit: RateLimit) -> ClientBuilder {
        self.rate_limit = Some(limit);
        self
    }

    /// Sets how many calls of this client and its clones may be in flight at once, at least 1; unlimited by default.
    ///
    /// A call is in flight while one of its attempts is, not while it waits for the next one. A tenth of the places is kept for what
    /// is critical, a fifth more for what is not bulk; one at least is everybody's. Who finds none free waits for one within the
    /// call's time, and ends with [`ErrorKind::RateLimited`](crate::ErrorKind::RateLimited) if none became free.
    pub fn calls_in_flight(mut self, calls: u32) -> ClientBuilder {
        self.calls_in_flight = Some(calls);
        self
    }

    /// Sets the account's quota that this client reports to, to be shared by all clients of one owner's APIs. By default it has one
    /// of its own, of the Region that signatures name.
    pub fn account_quota(mut self, quota: AccountQuota) -> ClientBuilder {
        self.account_quota = Some(quota);
        self
    }
}
