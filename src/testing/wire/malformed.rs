//! What makes bytes no HTTP/1.1 request.

use std::fmt;

/// What makes bytes no HTTP/1.1 request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed request: {}", self.0)
    }
}

impl std::error::Error for Malformed {}
