//! *What is trusted, and what is not*: a page for whoever has to approve this crate.
#![doc = include_str!("threat_model.md")]
