//! Exactly once, with parts that are not ours: AWS Lambda Powertools keeps the keys, Redis keeps the commits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bridge;
mod callee;
mod keys;
mod late;
mod letters;
mod meanwhile;
mod parents;
mod rig;
