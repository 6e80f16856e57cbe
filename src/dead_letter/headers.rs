//! Which of the caller's headers a letter may hold.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// The caller's headers, sorted by whether a letter may hold them. The content type has a field of its own.
pub(super) struct Sorted {
    /// Those that may, in order.
    pub(super) kept: Vec<(String, String)>,
    /// The names of those that may not.
    pub(super) withheld: Vec<String>,
    /// The values of those that may not, as far as they are long enough to be recognised elsewhere.
    pub(super) secrets: Vec<String>,
}

/// Sorts the caller's headers.
pub(super) fn sorted_out(headers: &HeaderMap) -> Sorted {
    let mut sorted = Sorted { kept: Vec::new(), withheld: Vec::new(), secrets: Vec::new() };
    for (name, value) in headers.iter().filter(|(name, _)| **name != CONTENT_TYPE) {
        match plain(value).filter(|value| !is_secret(name.as_str(), value)) {
            Some(value) => sorted.kept.push((name.as_str().to_owned(), value.to_owned())),
            None => {
                sorted.withheld.push(name.as_str().to_owned());
                sorted.secrets.extend(plain(value).filter(|value| value.len() >= 8).map(str::to_owned));
            }
        }
    }
    sorted.withheld.dedup();
    sorted
}

/// The body's type.
pub(super) fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).and_then(plain).map(str::to_owned)
}

/// Text that a call may be given again.
fn plain(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok().filter(|text| !text.contains(char::is_control))
}

/// Whether a header looks like a secret, by its name or by the scheme that its value begins with.
fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim_start();
    let scheme = value.split(' ').next().filter(|scheme| scheme.len() < value.len()).unwrap_or_default();
    SECRET_NAMES.iter().any(|part| name.contains(part))
        // A JSON Web Token begins with the base64 of an opening brace and a quotation mark.
        || value.starts_with("eyJ")
        || SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Parts of names, in lower case as header names are. Rather one header too many is left out than one too few.
const SECRET_NAMES: [&str; 19] = [
    "-key",
    "api-key",
    "api_key",
    "apikey",
    "assertion",
    "auth",
    "bearer",
    "cookie",
    "credential",
    "csrf",
    "jwt",
    "oidc",
    "passw",
    "saml",
    "secret",
    "session",
    "signature",
    "token",
    "xsrf",
];

/// Schemes of credentials (RFC 9110, section 11.1).
const SCHEMES: [&str; 8] =
    ["apikey", "aws4-hmac-sha256", "basic", "bearer", "digest", "negotiate", "ntlm", "token"];

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn kept(name: &str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers
            .append(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        let Sorted { kept, withheld, .. } = sorted_out(&headers);
        assert_eq!(kept.is_empty(), withheld == [name.to_ascii_lowercase()]);
        !kept.is_empty()
    }

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_named() {
        for name in
            "Cookie x-api-key X-Auth-Token proxy-authorization x-my-secret x-password x-amz-security-token \
                     x-session-id x-signature x-jwt x-apikey"
                .split_ascii_whitespace()
        {
            assert!(!kept(name, "v"), "{name}");
        }
        assert!(!kept("x-forwarded-identity", "Bearer abc"));
        assert!(!kept("x-forwarded-identity", "basic abc"));
    }

    #[test]
    fn what_is_the_callers_business_is_kept_with_its_repeats() {
        for name in "tenant if-match accept traceparent x-amzn-trace-id x-apigw-api-id prefer"
            .split_ascii_whitespace()
        {
            assert!(kept(name, "one two"), "{name}");
        }
        let mut headers = HeaderMap::new();
        headers.append("tenant", HeaderValue::from_static("b"));
        headers.append("tenant", HeaderValue::from_static("a"));
        headers.append("content-type", HeaderValue::from_static("text/plain"));
        let Sorted { kept, withheld, .. } = sorted_out(&headers);
        assert_eq!(kept, [("tenant", "b"), ("tenant", "a")].map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(withheld.is_empty());
        assert_eq!(content_type(&headers).as_deref(), Some("text/plain"));
    }

    #[test]
    fn what_is_no_plain_text_is_left_out() {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes(b"\xff").unwrap());
        headers.append("x-b", HeaderValue::from_bytes(b"a\tb").unwrap());
        assert_eq!(sorted_out(&headers).withheld, ["x-a", "x-b"]);
    }
}
