//! The rules, and nothing else: told what an attempt showed, they say what to do next.
//!
//! This is the engine, public so that what ships can be simulated, measured and fuzzed. A version promises only those of its
//! types that the crate's root, [`fleet`](crate::fleet) and `testing` re-export, and of their methods those that name no other
//! type of the engine. All else here may change with any release.

#[macro_use]
mod settings;

pub mod account_quota;
pub mod attempts;
pub mod backoff;
pub mod breaker;
pub(crate) mod bucket;
pub mod classify;
pub mod fleet;
pub mod gateway;
pub(crate) mod line;
pub(crate) mod method;
pub mod moment;
pub mod outcome;
pub mod profile;
pub mod quota_headers;
pub mod rate_limit;
pub mod refine;
pub mod retry_after;
pub mod retry_budget;
pub mod shared_limit;
pub mod time_budget;
