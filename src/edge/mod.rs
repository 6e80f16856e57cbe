//! All that touches a socket, a clock or dice.
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
pub(crate) mod sigv4;
pub(crate) mod sort;
pub(crate) mod target;
pub(crate) mod tls;
pub(crate) mod transport;
