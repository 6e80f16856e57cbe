//! What the client promises, a module per promise, over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod bad_input;
mod breaker;
mod certificates;
mod chain;
mod connections;
mod dead_letter;
mod describe;
mod error;
mod fleet;
mod headers;
mod http2;
mod identity;
mod layer;
#[path = "../support/log.rs"]
mod log;
mod nearest_layer;
mod observer;
mod rate_limit;
mod refine;
mod restraint;
mod retry;
mod retry_after;
mod rig;
mod service;
mod signature;
mod targets;
mod time;
mod usage;
mod wiremock_scripts;
