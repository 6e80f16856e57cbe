//! All that touches a socket, a clock or dice.

pub(crate) mod ambient;
