//! What a failed call was asked to do, kept with its error: what a dead letter is made of.

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::time::SystemTime;

/// The parts of a call that outlive it. They are moved here when it fails; a call that succeeds pays nothing for them.
pub(crate) struct Intent {
    /// Names the letter.
    pub(crate) id: String,
    pub(crate) failed_at: SystemTime,
    pub(crate) base_url: String,
    /// Which API stands behind an endpoint's own name.
    pub(crate) api_id: Option<String>,
    pub(crate) method: Method,
    /// The encoded path below the base URL.
    pub(crate) path: String,
    /// The encoded query, without its question mark.
    pub(crate) query: String,
    /// The caller's own headers and the trace, none of those that are the client's.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Names of headers that are not in it and were sent all the same.
    pub(crate) withheld: Vec<String>,
    pub(crate) hop: u8,
    pub(crate) repeat_safe_by_reference: bool,
    pub(crate) origin: Option<Origin>,
}

/// What a replay inherits from its letter: a letter that comes of it must not be younger or more harmless.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) id: String,
    pub(crate) created_at: SystemTime,
    pub(crate) first_attempt_at: Option<SystemTime>,
    pub(crate) last_attempt_at: Option<SystemTime>,
    pub(crate) withheld_headers: Vec<String>,
    pub(crate) may_have_committed: bool,
}
