//! The clients that are compared: the shipped policy, whole or with parts of it taken out, and with others' budgets.

use super::foreign::{AwsQuota, Finagle, Quota};
use eastwest::policy::attempts::Terms;
use eastwest::policy::breaker::Breaker;
use eastwest::policy::fleet::FleetSettings;
use eastwest::policy::fleet::local::LocalView;
use eastwest::{Backoff, BreakerSettings, Profile, RetryBudget};
use std::sync::Arc;
use std::time::Duration;

/// Which parts of the shipped policy a client has.
///
/// All of them run on the same shipped code. What a client has not is set to what does nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Waits,
    /// Caps of the retries on 500 and on 502.
    pub(crate) caps: bool,
    pub(crate) budget: Budget,
    /// A function answers for a failed call with `x-should-retry: false`.
    pub(crate) marker: bool,
    /// A function returns 502, 503 or 504 for a failed call. Without, it throws, and the gateway makes a 502 of that.
    pub(crate) returns: bool,
    /// `x-time-budget-ms` bounds what the callee does for an attempt, and the total timeout bounds a call.
    pub(crate) deadline: bool,
    pub(crate) breaker: bool,
    /// Of the 500s of one call, the breaker counts the first alone.
    pub(crate) counted_once: bool,
    /// All sandboxes that call one callee share what they see of it.
    pub(crate) fleet: bool,
}

/// How long a client waits before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Not at all.
    None,
    /// The whole of the ceiling, each time.
    NoJitter,
    /// Full jitter, as shipped.
    Shipped,
    /// Full jitter from 50 ms to 20 s, as the AWS SDKs of 2026 have it.
    Textbook,
}

/// What limits the retries of all calls of a process together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// The AWS SDKs' quota of 500: what a retry costs, and what one after a throttle costs.
    Aws(u32, u32),
    Finagle,
    None,
    Shipped,
}

impl Recipe {
    pub(crate) const NONE: Recipe = Recipe { name: "no retries", max_attempts: 1, ..Recipe::NAIVE };
    pub(crate) const NAIVE: Recipe = Recipe {
        name: "naive, 3 retries at each hop",
        max_attempts: 4,
        backoff: Waits::None,
        caps: false,
        budget: Budget::None,
        marker: false,
        returns: false,
        deadline: false,
        breaker: false,
        counted_once: false,
        fleet: false,
    };
    pub(crate) const JITTER: Recipe = Recipe {
        name: "full jitter alone, 5 retries",
        max_attempts: 6,
        backoff: Waits::Textbook,
        ..Recipe::NAIVE
    };
    pub(crate) const CAPS: Recipe = Recipe {
        name: "+ caps by status",
        max_attempts: 3,
        backoff: Waits::Shipped,
        caps: true,
        ..Recipe::NAIVE
    };
    pub(crate) const AWS: Recipe =
        Recipe { name: "+ AWS SDK quota 500/5", budget: Budget::Aws(5, 5), ..Recipe::CAPS };
    pub(crate) const AWS_2026: Recipe =
        Recipe { name: "+ AWS SDK 2026 quota 500/14", budget: Budget::Aws(14, 5), ..Recipe::CAPS };
    pub(crate) const FINAGLE: Recipe =
        Recipe { name: "+ Finagle/tower 20 % + 10/s", budget: Budget::Finagle, ..Recipe::CAPS };
    pub(crate) const BUDGET: Recipe =
        Recipe { name: "+ a budget of 2 per sandbox", budget: Budget::Shipped, ..Recipe::CAPS };
    pub(crate) const MARKER: Recipe = Recipe {
        name: "+ marker and attempt deadline",
        marker: true,
        returns: true,
        deadline: true,
        ..Recipe::BUDGET
    };
    pub(crate) const BREAKER: Recipe =
        Recipe { name: "+ breaker, 5 in a row", breaker: true, ..Recipe::MARKER };
    /// The shipped client with the profile `standard`.
    pub(crate) const OURS: Recipe =
        Recipe { name: "ours: a call's 500s counted once", counted_once: true, ..Recipe::BREAKER };

    /// Ours with the fleet-wide breaker, which is off by default.
    pub(crate) const FLEET: Recipe =
        Recipe { name: "ours with the fleet-wide breaker", fleet: true, ..Recipe::OURS };

    /// The clients of the main table, each with one thing more than the one above it or in another's place.
    pub(crate) const LADDER: [Recipe; 11] = [
        Recipe::NONE,
        Recipe::NAIVE,
        Recipe::JITTER,
        Recipe::CAPS,
        Recipe::AWS,
        Recipe::AWS_2026,
        Recipe::FINAGLE,
        Recipe::BUDGET,
        Recipe::MARKER,
        Recipe::BREAKER,
        Recipe::OURS,
    ];

    /// Ours, each with one part taken out.
    pub(crate) const WITHOUT: [Recipe; 6] = [
        Recipe { name: "ours without the retry budget", budget: Budget::None, ..Recipe::OURS },
        Recipe { name: "ours without the marker", marker: false, ..Recipe::OURS },
        Recipe { name: "ours without the deadline", deadline: false, ..Recipe::OURS },
        Recipe { name: "ours without the breaker", breaker: false, ..Recipe::OURS },
        Recipe { name: "ours without caps, 5 retries", caps: false, max_attempts: 6, ..Recipe::OURS },
        Recipe { name: "ours without jitter", backoff: Waits::NoJitter, ..Recipe::OURS },
    ];

    /// What the shipped decisions depend on.
    pub(crate) fn terms(&self) -> Terms {
        let profile = Profile::standard();
        let cap = |shipped| if self.caps { shipped } else { u32::MAX };
        Terms {
            max_attempts: self.max_attempts,
            attempt_timeout: profile.attempt_timeout(),
            backoff: match self.backoff {
                Waits::None => Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO),
                Waits::NoJitter | Waits::Shipped => profile.backoff(),
                Waits::Textbook => Backoff::new(
                    Duration::from_millis(50),
                    Duration::from_millis(50),
                    Duration::from_secs(20),
                ),
            },
            server_error_retries: cap(profile.server_error_retries()),
            bad_gateway_retries: cap(profile.bad_gateway_retries()),
            refinements: Arc::default(),
            repeatable: true,
        }
    }

    /// The time that a call may take in all.
    pub(crate) fn total_timeout(&self) -> Duration {
        if self.deadline { Profile::standard().total_timeout() } else { Duration::MAX }
    }
}

/// What the calls of one sandbox share: one request at a time, but one budget and one breaker for all of them.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) budget: RetryBudget,
    pub(crate) breaker: Breaker,
    pub(crate) quota: Quota,
    /// Its part in the fleet's breaker, where it has one.
    pub(crate) fleet: Option<LocalView>,
}

impl Client {
    pub(crate) fn new(recipe: &Recipe) -> Client {
        let mut breaker = Breaker::new(BreakerSettings::default());
        if !recipe.breaker {
            breaker.force_closed();
        }
        let budget = match recipe.budget {
            Budget::Shipped => RetryBudget::new(Profile::standard().retry_budget()),
            Budget::Aws(..) | Budget::Finagle | Budget::None => RetryBudget::off(),
        };
        let quota = match recipe.budget {
            Budget::Aws(cost, throttled) => Quota::Aws(AwsQuota::new(cost, throttled)),
            Budget::Finagle => Quota::Finagle(Finagle::default()),
            Budget::None | Budget::Shipped => Quota::None,
        };
        let fleet = recipe.fleet.then(|| LocalView::new(FleetSettings::default()));
        Client { budget, breaker, quota, fleet }
    }
}
