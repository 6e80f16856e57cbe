//! x
pub(crate) mod ambient;
