//! What the processes of a fleet share through a store: a breaker that trips for all of them, and a rate limit.
//!
//! Off unless a client is given one. The store is Valkey or Redis (feature `redis`, `RedisStore`), or whatever
//! implements [`FleetStore`] and [`LimitStore`].
//!
//! ```
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
//! under a thousand while attempts triple. Looks and refused probes write nothing, but are exchanges: in an outage there is
//! about one for each call that would have been made. A kilobyte a callee, which expires.
//!
//! # When reports leave a Lambda sandbox
//!
//! Tasks stand still between invocations. The report of a success is written to the socket when the handler next waits
//! for anything, so nearly always before the sandbox freezes. Where that is not known to work, a failure that follows a
//! success is told together with one: a fleet whose successes are frozen would otherwise make few failures look like
//! nothing else. The report of a failure is waited for, so it has left when the call ends.
//! [`CircuitBreaker::sync_fleet`](crate::CircuitBreaker::sync_fleet) sends what waits and renews the view: at the start of
//! an invocation, beside other work, it lets a sandbox learn of an outage before its own first failure.
//! [`FleetSettings::with_ask_first`] does the same for every call, at the price of one exchange before it.
//! [`ServiceClient::warm_up`](crate::ServiceClient::warm_up) connects, which may take longer than an exchange may.
//!
//! # Before you run it
//!
//! - The store is in a VPC, so the functions are too, and security groups must let them reach it; no IAM permission is
//!   needed. One node of the smallest class is plenty. A serverless cache bills by request and by a script's time: 300 writes
//!   a second are 26 million a day.
//! - The store's user needs `EVALSHA`, `SCRIPT|LOAD`, `GET`, `SET` and `TIME` on the keys `<prefix>:{*}:*`, and no more.
//! - A cluster's redirections are not followed: a node that does not hold the key counts as a store that is gone.
//! - Whoever can write to the store can switch the callers off: it is as trusted as a deployment is.
//! - A store that loses its data, by a restart or a failover, closes the circuit. Nothing need be backed up.
//! - All processes that name the same callee under the same prefix should have the same settings.

mod breaker;
pub(crate) mod gate;
mod limit;
#[cfg(feature = "redis")]
mod line;
#[cfg(feature = "redis")]
mod redis;
mod store;

#[doc(inline)]
pub use crate::policy::{
    fleet::shared::SharedState,
    fleet::{FleetSettings, Report, View},
    rate_limit::Priority,
    shared_limit::{SharedBucket, SharedQuota, Taken},
};
pub use breaker::FleetBreaker;
pub use limit::{SharedLimit, SharedRateLimit, TakeFuture};
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use store::{FleetStore, LimitStore, StoreError, StoreFuture};
