//! The rules, and nothing else: told what an attempt showed, they say what to do next.

#[macro_use]
mod settings;

pub mod account_quota;
pub mod attempts;
pub mod backoff;
pub mod breaker;
pub mod bucket;
pub mod classify;
pub mod fleet;
pub mod gateway;
pub mod line;
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
