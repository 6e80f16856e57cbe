//! The client against a real nginx that stands before the embedded gateway: a module per kind of harm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod connections;
mod failures;
mod limits;
mod nginx;
mod rewriting;
mod rig;
