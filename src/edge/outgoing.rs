//! A request in memory, with all that the HTTP client would add on a wire.

use crate::edge::pool::USER_AGENT;
use crate::network::Outgoing;
use crate::target::Target;
use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderMap, HeaderValue};

/// Makes the request that would go over the wire.
pub(crate) fn outgoing(method: &Method, target: &Target, mut headers: HeaderMap, body: Bytes) -> Outgoing {
    headers.entry(header::HOST).or_insert_with(|| target.host_value().clone());
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    // A length is expected with these (RFC 9110, section 8.6).
    if !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(method) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let url = target.url();
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Outgoing::new(method.clone(), format!("{}{query}", url.path()), headers, body)
}
