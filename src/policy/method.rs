//! What a method promises, by a list of this crate's own: that of a dependency may grow, and retries with it.

use http::Method;

/// Whether a method only reads (RFC 9110, section 9.2.1): GET, HEAD, OPTIONS and TRACE. Calls of any other carry an idempotency
/// key, QUERY among them: whoever serves it may not know yet that it only reads.
pub(crate) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
}

/// Whether a request may be sent again without a key (RFC 9110, section 9.2.2): those that only read, PUT and DELETE.
pub(crate) fn is_idempotent(method: &Method) -> bool {
    is_safe(method) || [Method::PUT, Method::DELETE].contains(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_method_promises_does_not_depend_on_what_else_knows_it() {
        for (name, safe, idempotent) in [
            ("GET", true, true),
            ("HEAD", true, true),
            ("OPTIONS", true, true),
            ("TRACE", true, true),
            ("PUT", false, true),
            ("DELETE", false, true),
            ("POST", false, false),
            ("PATCH", false, false),
            ("QUERY", false, false),
            ("PROPFIND", false, false),
            ("get", false, false),
        ] {
            let method = Method::from_bytes(name.as_bytes()).unwrap();
            assert_eq!((is_safe(&method), is_idempotent(&method)), (safe, idempotent), "{name}");
        }
    }
}
