//! What is simulated: how many sandboxes, how long a chain, which bucket, how much load, which fault.

use std::fmt;
use std::time::Duration;

/// One setting of the stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// The sandboxes of all functions that call another, spread evenly over the hops. One request at a time each.
    pub(crate) sandboxes: u64,
    /// The calls of a chain, one inside the other: a request draws a token at the front door and one at each hop.
    pub(crate) hops: u64,
    pub(crate) bucket: BucketSize,
    /// The tokens a second that the fleet draws in health. Unrelated public traffic draws as many.
    pub(crate) fleet_tokens: f64,
    pub(crate) fault: Fault,
    pub(crate) fault_lasts: Duration,
    /// After so long a sandbox is replaced by a fresh one. It never is, if there is none.
    pub(crate) sandbox_lives: Option<Duration>,
}

/// The account's token bucket in one Region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketSize {
    pub(crate) rate: u64,
    pub(crate) burst: u64,
}

impl BucketSize {
    pub(crate) const USUAL: BucketSize = BucketSize { rate: 10_000, burst: 5_000 };
    pub(crate) const SMALL: BucketSize = BucketSize { rate: 2_500, burst: 1_250 };
    /// Nobody's, and soon played through: with a tenth of the fleet all proportions are the usual ones.
    pub(crate) const TENTH: BucketSize = BucketSize { rate: 1_000, burst: 500 };
}

/// What becomes of the last callee of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// So many percent of its attempts fail with 500, without a pattern.
    Independent(u64),
    /// It has so many percent of the concurrency that the load needs; what is over that gets a 500 and does not run.
    BrownOut(u64),
    /// It runs so long and then fails. The gateway waits 29 s for it.
    Hang(Duration),
    /// The gateway answers 500 at once: the callee is throttled to nothing.
    Refuses,
    /// It runs and fails: 502.
    Throws,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Independent(percent) => write!(f, "{percent} % independent 500"),
            Fault::BrownOut(percent) => write!(f, "brown-out to {percent} %"),
            Fault::Hang(time) => write!(f, "hang of {} s", time.as_secs()),
            Fault::Refuses => f.write_str("all 500"),
            Fault::Throws => f.write_str("all 502"),
        }
    }
}

impl Scenario {
    /// 10,000 sandboxes, three hops, 75 % load on the usual bucket, 30 s of nothing but 500.
    pub(crate) fn standard() -> Scenario {
        Scenario {
            sandboxes: 10_000,
            hops: 3,
            bucket: BucketSize::USUAL,
            fleet_tokens: 3_750.0,
            fault: Fault::Refuses,
            fault_lasts: Duration::from_secs(30),
            sandbox_lives: None,
        }
    }

    /// So many percent of the bucket's rate are drawn in health, half of it by the fleet.
    pub(crate) fn load(self, percent: u32) -> Scenario {
        let fleet_tokens = self.bucket.rate as f64 * f64::from(percent) / 200.0;
        Scenario { fleet_tokens, ..self }
    }

    /// Another bucket at 75 % load, with as many sandboxes for its rate as the usual one has.
    pub(crate) fn bucket(self, bucket: BucketSize) -> Scenario {
        Scenario { bucket, sandboxes: bucket.rate, ..self }.load(75)
    }

    pub(crate) fn fault(self, fault: Fault) -> Scenario {
        Scenario { fault, ..self }
    }

    pub(crate) fn lasting(self, seconds: u64) -> Scenario {
        Scenario { fault_lasts: Duration::from_secs(seconds), ..self }
    }

    pub(crate) fn hops(self, hops: u64) -> Scenario {
        Scenario { hops, ..self }
    }

    /// A fleet of another size in the same bucket. Each sandbox is as busy as before, so a smaller fleet draws less.
    pub(crate) fn fleet_of(self, sandboxes: u64) -> Scenario {
        let fleet_tokens = self.fleet_tokens * sandboxes as f64 / self.sandboxes as f64;
        Scenario { sandboxes, fleet_tokens, ..self }
    }

    /// Requests a second at the front door.
    pub(crate) fn requests(&self) -> f64 {
        self.fleet_tokens / (self.hops + 1) as f64
    }

    /// Mean seconds between two calls of one sandbox.
    pub(crate) fn seconds_between_calls(&self) -> f64 {
        self.sandboxes as f64 / (self.hops as f64 * self.requests())
    }

    /// The callee's executions at a time in health.
    pub(crate) fn callee_need(&self) -> f64 {
        self.requests() * WORK.as_secs_f64()
    }

    pub(crate) fn fault_begins(&self) -> Duration {
        WARM_UP
    }

    pub(crate) fn fault_ends(&self) -> Duration {
        WARM_UP + self.fault_lasts
    }

    pub(crate) fn arrivals_end(&self) -> Duration {
        self.fault_ends() + AFTERWARDS
    }
}

/// The time that a function works for itself, on the mean.
pub(crate) const WORK: Duration = Duration::from_millis(40);
/// The way through the network and the gateway, one way. With [`WORK`] a healthy request of three hops costs 0.44
/// sandbox-seconds.
pub(crate) const WAY: Duration = Duration::from_micros(6_667);
/// The time that an unrelated public request works, on the mean.
pub(crate) const PUBLIC_WORK: Duration = Duration::from_millis(100);
/// So long the gateway waits for a function (*Amazon API Gateway quotas*, integration timeout).
pub(crate) const GATEWAY_WAITS: Duration = Duration::from_secs(29);

const WARM_UP: Duration = Duration::from_secs(5);
const AFTERWARDS: Duration = Duration::from_secs(15);
