//! A client for calling another team's service through an AWS API Gateway.

pub mod callee;
mod context;
mod edge;
mod error;
pub mod policy;
#[cfg(feature = "testing")]
pub mod testing;
