//! All that touches a socket, a clock or dice.
//!
//! To read in order: `target` (with `path`), the one URL; `sigv4` (with `canonical`), its signature; `credentials` (with
//! `credential_state`, and `environment`, a provider), whose it is; `clock_skew`, when it is made; `transport` (with
//! `pool`, `tls`, `body`, and `sort`, for what goes wrong), how it is sent. `lent` gives the same HTTP client to the AWS
//! credential chain, `fault` says what is wrong with a setting, and `ambient` is the ground: the one clock and the dice.
#![allow(dead_code, reason = "wired in by the call and its loop")]

pub(crate) mod ambient;
pub(crate) mod body;
pub(crate) mod canonical;
pub(crate) mod clock_skew;
pub(crate) mod credential_state;
pub(crate) mod credentials;
pub(crate) mod environment;
pub(crate) mod fault;
#[cfg(test)]
pub(crate) mod hand;
#[cfg(feature = "aws-config")]
pub(crate) mod lent;
pub(crate) mod path;
#[cfg(test)]
pub(crate) mod peer;
pub(crate) mod pool;
#[cfg(test)]
pub(crate) mod seen;
pub(crate) mod sigv4;
pub(crate) mod sort;
pub(crate) mod target;
pub(crate) mod tls;
pub(crate) mod transport;
