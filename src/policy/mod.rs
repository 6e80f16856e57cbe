//! The rules, and nothing else: told what an attempt showed, they say what to do next.

pub mod backoff;
pub mod breaker;
pub mod moment;
pub mod outcome;
pub mod retry_after;
pub mod retry_budget;
pub mod time_budget;
