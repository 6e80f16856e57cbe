//! The rules, and nothing else: told what an attempt showed, they say what to do next.

pub mod attempts;
pub mod backoff;
pub mod breaker;
pub mod classify;
pub mod gateway;
pub mod moment;
pub mod outcome;
pub mod profile;
pub mod refine;
pub mod retry_after;
pub mod retry_budget;
pub mod time_budget;
