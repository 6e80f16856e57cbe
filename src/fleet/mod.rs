//! What the processes of a fleet share through a store: a breaker that trips for all of them, and a rate limit.
//!
//! Off unless a client is given one. The store is Valkey or Redis (feature `redis`, [`RedisStore`]), or whatever
//! implements [`FleetStore`] and [`LimitStore`].
//!
//! ```
//! # #[cfg(feature = "redis")]
//! # fn orders() -> Result<(), eastwest::Error> {
//! use eastwest::ServiceClient;
//! use eastwest::fleet::{FleetBreaker, RedisStore};
//!
//! let store = RedisStore::open("rediss://fleet.abc123.euc1.cache.amazonaws.com:6379", "prod")?;
//! let orders = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
//!     .region("eu-central-1")
//!     .environment_credentials()
//!     .fleet_breaker(FleetBreaker::new("orders", store))
//!     .build()?;
//! # let _ = orders;
//! # Ok(())
//! # }
//! ```
//!
//! # When the breaker helps, and when it harms
//!
//! It is for a callee that hangs, has no reserved concurrency, and drains the account's pool of executions whatever each
//! caller does on its own: thousands of sandboxes that see a call every few seconds each learn of it from their own
//! timeouts, and by then there is nothing left. It trips at 90 % failures of at least 50 outcomes in 3 s.
//!
//! It harms at lower thresholds. In a brown-out, in which a callee with too little capacity still serves two calls of
//! three, a fleet that trips at 50 % sends nothing for 2 s, then everything, and fewer than half succeed. Reserved
//! concurrency at the callee is the better cure; this is for where it is not to be had.
//!
//! # What it costs a call
//!
//! A healthy call: nothing but a look at memory. What it came to is told in a task of its own.
//!
//! A failed attempt: one exchange with the store, a millisecond or so, at most once in the time that a view holds (1 s),
//! and at most 50 ms. If the store is slower or gone the call goes on as if there were none, and the store is left alone
//! for 1 s, then 2 s, up to 32 s. A warning tells of it, at most one a minute.
//!
//! An attempt after the fleet's circuit has tripped and its open time is over: one exchange, which may grant it the place
//! of a probe.
//!
//! The store: one script an exchange. Outcomes are sampled so that a fleet of any size writes some 300 a second and stays
//! under a thousand while attempts triple; looks and refused probes write nothing. A kilobyte a callee, which expires.
//!
//! # When reports leave a Lambda sandbox
//!
//! Tasks stand still between invocations. The report of a success is written to the socket when the handler next waits
//! for anything, so nearly always before the sandbox freezes; if it was not, the process remembers that it owes a
//! success and tells it with its next failure, for otherwise a fleet's frozen successes would make few failures look like
//! nothing else. The report of a failure is waited for, so it has left when the call ends.
//! [`CircuitBreaker::sync_fleet`](crate::CircuitBreaker::sync_fleet) sends what waits and renews the view: at the start of
//! an invocation, beside other work, it lets a sandbox learn of an outage before its own first failure.
//! [`FleetSettings::with_ask_first`] does the same for every call, at the price of one exchange before it.
//!
//! # Before you run it
//!
//! - The store is in a VPC, so the functions are too; one node of the smallest class is plenty. Serverless caches bill by
//!   request: at 300 writes a second a few dollars a day.
//! - The user of the store needs `EVALSHA`, `SCRIPT|LOAD`, `GET`, `SET`, `TIME` and `CLIENT|SETINFO` on the keys
//!   `<prefix>:{*}:*`. No IAM permission is needed but the network's.
//! - Whoever can write to the store can switch the callers off: it is as trusted as a deployment is.
//! - A store that loses its data, by a restart or a failover, closes the circuit. Nothing need be backed up.
//! - All processes that name the same callee under the same prefix should have the same settings.

mod breaker;
pub(crate) mod gate;
mod limit;
#[cfg(feature = "redis")]
mod redis;
mod store;

pub use crate::policy::fleet::{FleetSettings, Report, View};
pub use crate::policy::shared_limit::{Priority, SharedQuota, Taken};
pub use breaker::FleetBreaker;
pub use limit::{SharedLimit, SharedRateLimit, TakeFuture};
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use store::{FleetStore, LimitStore, StoreError, StoreFuture};
