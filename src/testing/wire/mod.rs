//! HTTP/1.1 as bytes: requests as they came, and replies as they go out, whole or broken.

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod header_line;
pub(crate) mod http;
#[cfg(test)]
mod http_tests;
pub(crate) mod malformed;
#[cfg(test)]
mod wire_tests;
pub(crate) mod write;
