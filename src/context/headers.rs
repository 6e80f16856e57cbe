//! The names of the headers that ride along, and which names a caller may not set by hand.

use http::{HeaderName, HeaderValue};

/// Where a call is in its chain.
pub(crate) const HOP_COUNT: HeaderName = HeaderName::from_static("x-hop-count");
/// What all calls of a chain have in common.
pub(crate) const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
/// What a callee knows repeats by; a client may be told another name.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
/// The whole milliseconds that an attempt will still be waited for.
pub(crate) const TIME_BUDGET_MS: HeaderName = HeaderName::from_static("x-time-budget-ms");
/// The number of the attempt, from 1.
pub(crate) const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-attempt-count");
/// The end user's token; a client may be told another name.
pub(crate) const USER_TOKEN: HeaderName = HeaderName::from_static("x-user-token");
/// On an answer: `false` forbids a retry.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Which API is meant, where the host is an endpoint's own.
pub(crate) const API_ID: HeaderName = HeaderName::from_static("x-apigw-api-id");
/// The X-Ray trace.
pub(crate) const X_AMZN_TRACE_ID: HeaderName = HeaderName::from_static("x-amzn-trace-id");
/// The W3C trace.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What vendors add to the W3C trace.
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A count as a value; that of nearly every call is not written anew.
pub(crate) fn count(number: u32) -> HeaderValue {
    match number {
        1 => HeaderValue::from_static("1"),
        more => HeaderValue::from(more),
    }
}

/// Whether a header is the client's or the connection's, so that a caller who sets it by hand gets an error.
///
/// `idempotency_key` and `user_token` are the names that the client uses for these two. The trace headers and
/// `x-apigw-api-id` are not reserved.
pub(crate) fn is_reserved(name: &HeaderName, idempotency_key: &HeaderName, user_token: &HeaderName) -> bool {
    let is_ours = [HOP_COUNT, CORRELATION_ID, IDEMPOTENCY_KEY, TIME_BUDGET_MS, ATTEMPT_COUNT].contains(name);
    let name_in_use = name == idempotency_key || name == user_token;
    let text = name.as_str();
    is_ours
        || name_in_use
        || RESERVED.contains(&text)
        || RESERVED_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// Whether a name that an owner chose for the header called `default` by itself means something else already: to this
/// client, to the connection, or to those that a request passes.
pub(crate) fn has_another_meaning(name: &HeaderName, default: &HeaderName) -> bool {
    let text = name.as_str();
    let taken = is_reserved(name, &IDEMPOTENCY_KEY, &USER_TOKEN)
        || MEANINGFUL.contains(&text)
        || text.starts_with("content-")
        || text.starts_with("x-forwarded-")
        || text.starts_with("accept");
    taken && name != default
}

/// What the signature, the message's framing or the connection owns (RFC 9110, sections 7.2, 7.6.1, 8.6 and 10.1.1),
/// and a header that would make another method of the one that the retry rules saw.
const RESERVED: [&str; 11] = [
    "authorization",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-http-method-override",
];

/// `x-amz-` is the signature's; `x-amzn-trace-id` does not begin with it.
const RESERVED_PREFIXES: [&str; 2] = ["proxy-", "x-amz-"];

/// Names that gateways, proxies, tracers or callees act upon, besides those that no caller may set.
const MEANINGFUL: [&str; 18] = [
    "age",
    "cookie",
    "date",
    "forwarded",
    "origin",
    "range",
    "referer",
    "set-cookie",
    "traceparent",
    "tracestate",
    "user-agent",
    "via",
    "x-amzn-requestid",
    "x-amzn-trace-id",
    "x-api-key",
    "x-apigw-api-id",
    "x-should-retry",
    "x-real-ip",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(name: &str) -> bool {
        is_reserved(&HeaderName::try_from(name).unwrap(), &IDEMPOTENCY_KEY, &USER_TOKEN)
    }

    #[test]
    fn what_is_the_clients_or_the_connections_cannot_be_set_by_hand() {
        let names = "X-Hop-Count x-correlation-id x-idempotency-key x-time-budget-ms x-attempt-count \
                     Authorization host Content-Length x-amz-date X-Amz-Security-Token x-amz-content-sha256 x-amz-anything \
                     connection te trailer transfer-encoding upgrade keep-alive expect \
                     proxy-authorization proxy-connection x-http-method-override x-user-token";
        for name in names.split_ascii_whitespace() {
            assert!(reserved(name), "{name}");
        }
    }

    #[test]
    fn what_is_the_callers_can_be_set_by_hand() {
        let names = "x-amzn-trace-id traceparent tracestate x-apigw-api-id x-api-key content-type accept user-agent \
                     x-amzn-requestid x-should-retry if-match cookie tenant x-hop-counts idempotency-key";
        for name in names.split_ascii_whitespace() {
            assert!(!reserved(name), "{name}");
        }
    }

    #[test]
    fn the_names_that_a_client_was_told_are_reserved_too() {
        let (key, token) =
            (HeaderName::from_static("idempotency-key"), HeaderName::from_static("x-end-user"));
        for name in ["idempotency-key", "x-idempotency-key", "x-end-user"] {
            assert!(is_reserved(&HeaderName::from_static(name), &key, &token), "{name}");
        }
        assert!(!is_reserved(&USER_TOKEN, &key, &token));
    }
}
