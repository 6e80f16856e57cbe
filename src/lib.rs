//! A client for calling another team's service through an AWS API Gateway.

pub mod callee;
pub mod context;
mod edge;
pub mod policy;
#[cfg(feature = "testing")]
pub mod testing;
