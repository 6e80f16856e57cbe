//! One call as the wire will see it, before any signature: the template that every attempt starts from.

use crate::edge::own_headers::OwnHeaders;
use crate::edge::sigv4::BodyHash;
use crate::edge::user_token::UserToken;
use crate::policy::rate_limit::Priority;
use crate::story::Subject;
use bytes::Bytes;
use std::sync::Arc;

/// The unsigned template of a call. Nothing of an attempt's signature ever enters it.
pub(crate) struct Order {
    pub(crate) subject: Arc<Subject>,
    pub(crate) headers: OwnHeaders,
    pub(crate) priority: Priority,
    /// Which hop of its chain the call is.
    pub(crate) hop: u8,
    pub(crate) body: Bytes,
    /// Taken once a call: a retry of a large body signs as fast as one of an empty body.
    pub(crate) body_hash: BodyHash,
    /// The call's own user token, in place of the client's. Boxed, for few calls have one.
    pub(crate) user_token: Option<Box<UserToken>>,
    pub(crate) response_body_limit: usize,
}
