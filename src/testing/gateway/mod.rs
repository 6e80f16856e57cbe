//! The embedded gateway: what it is made of, what its connections share, and what it keeps of each exchange.

pub(crate) mod fake;
#[cfg(test)]
mod gateway_tests;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
pub(crate) mod raw_client;
pub(crate) mod record;
pub(crate) mod shared;
