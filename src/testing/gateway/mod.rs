//! The embedded gateway: what it is made of, what its connections share, and what it keeps of each exchange.

pub(crate) mod bucket;
pub(crate) mod builder;
pub(crate) mod fake;
#[cfg(test)]
mod gateway_tests;
pub(crate) mod in_memory;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
pub(crate) mod raw_client;
pub(crate) mod record;
pub(crate) mod shared;
pub(crate) mod story;
