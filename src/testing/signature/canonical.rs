//! The canonical request and the string to sign of SigV4, made from the bytes as received.
//!
//! The rules are those of the IAM user guide, "Create a signed AWS API request". Nothing is taken from a parsed URL:
//! what a parser puts right, a gateway would not.

use crate::testing::signature::settings::PathEncoding;
use crate::testing::wire::header_line::split_at_byte;
use crate::testing::wire::http::RawRequest;
use sha2::{Digest, Sha256};

/// How a canonical request is made and for whose eyes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) path_encoding: PathEncoding,
    pub(crate) normalize_path: bool,
    /// Whether values that may be secret are shown; a signature needs them, a reader does not.
    pub(crate) secrets: Secrets,
}

/// Whether values that may be secret are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    Hidden,
    Shown,
}

/// Makes the canonical request over the headers named, in the order named.
pub(crate) fn canonical_request(
    request: &RawRequest,
    signed_headers: &[String],
    body_hash: &str,
    rules: Rules,
) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(request.method().as_bytes());
    out.push(b'\n');
    out.extend_from_slice(canonical_path(request.path(), rules).as_bytes());
    out.push(b'\n');
    out.extend_from_slice(canonical_query(request.query().unwrap_or_default(), rules.secrets).as_bytes());
    out.push(b'\n');
    for name in signed_headers {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        match rules.secrets {
            Secrets::Hidden if may_be_secret(name) => out.extend_from_slice(HIDDEN.as_bytes()),
            _ => out.extend_from_slice(&canonical_value(request, name)),
        }
        out.push(b'\n');
    }
    out.push(b'\n');
    out.extend_from_slice(signed_headers.join(";").as_bytes());
    out.push(b'\n');
    out.extend_from_slice(body_hash.as_bytes());
    out
}

/// Makes the string to sign.
pub(crate) fn string_to_sign(amz_date: &str, scope: &str, canonical_request: &[u8]) -> String {
    format!("{ALGORITHM}\n{amz_date}\n{scope}\n{}", sha256_hex(canonical_request))
}

/// The SHA-256 of the bytes, in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The only algorithm there is.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

fn canonical_path(path: &[u8], rules: Rules) -> String {
    let normalized;
    let path = if rules.normalize_path {
        normalized = normalize(path);
        &normalized
    } else {
        path
    };
    let path = if path.is_empty() { b"/" } else { path };
    match rules.path_encoding {
        PathEncoding::Double => encode(path, b"/"),
        PathEncoding::Single => encode_once(path),
    }
}

/// Takes out empty and dot segments, as RFC 3986 section 6 describes; a trailing slash stays.
fn normalize(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_with_slash = false;
    for segment in path.split(|b| *b == b'/') {
        ends_with_slash = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut out = b"/".to_vec();
    out.extend_from_slice(&kept.join(&b'/'));
    if ends_with_slash && !kept.is_empty() {
        out.push(b'/');
    }
    out
}

fn canonical_query(query: &[u8], secrets: Secrets) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split(|b| *b == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = split_at_byte(pair, b'=');
            let name = decode(name);
            let hide = secrets == Secrets::Hidden && may_be_secret(&String::from_utf8_lossy(&name));
            let value = match hide {
                true => HIDDEN.to_owned(),
                false => encode(&decode(value.unwrap_or_default()), b""),
            };
            (encode(&name, b""), value)
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Ends trimmed, runs of spaces folded into one, repeats joined by a comma.
fn canonical_value(request: &RawRequest, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, value) in request.raw_values(name).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut after_space = false;
        for byte in value.trim_ascii() {
            if *byte != b' ' || !after_space {
                out.push(*byte);
            }
            after_space = *byte == b' ';
        }
    }
    out
}

/// Percent-encodes all but the unreserved characters of RFC 3986 and those to keep.
fn encode(bytes: &[u8], keep: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        push_encoded(&mut out, *byte, keep);
    }
    out
}

/// As [`encode`] for a path, but an escape that stands there already stays as it is.
fn encode_once(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match escape_value(*byte, after) {
            Some(_) => out.push('%'),
            None => push_encoded(&mut out, *byte, b"/"),
        }
    }
    out
}

/// Undoes percent-encoding; a plus stays a plus, a stray percent sign stays one.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        match escape_value(*byte, after) {
            Some(decoded) => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

/// The byte that an escape stands for, if these bytes begin one.
fn escape_value(byte: u8, after: &[u8]) -> Option<u8> {
    match (byte, after) {
        (b'%', [high, low, ..]) => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    }
}

fn push_encoded(out: &mut String, byte: u8, keep: &[u8]) {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
        out.push(char::from(byte));
    } else {
        out.push('%');
        out.push(hex_char(byte >> 4).to_ascii_uppercase());
        out.push(hex_char(byte & 15).to_ascii_uppercase());
    }
}

/// Lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|b| [hex_char(b >> 4), hex_char(b & 15)]).collect()
}

fn hex_char(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

pub(crate) fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Session tokens, user tokens, API keys, cookies.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "secret", "cookie", "api-key", "password"].iter().any(|part| name.contains(part))
}

pub(crate) const HIDDEN: &str = "(hidden)";
/// What stands in the place of the body's hash where the body is not signed.
pub(crate) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { path_encoding: PathEncoding::Double, normalize_path: false, secrets: Secrets::Shown };

    fn path(wire: &str, path_encoding: PathEncoding) -> String {
        canonical_path(wire.as_bytes(), Rules { path_encoding, ..RULES })
    }

    fn query(wire: &str) -> String {
        canonical_query(wire.as_bytes(), Secrets::Shown)
    }

    #[test]
    fn a_path_is_encoded_once_more_exactly_as_it_stands_on_the_wire() {
        assert_eq!(path("/prod/a%20b/caf%C3%A9", PathEncoding::Double), "/prod/a%2520b/caf%25C3%25A9");
        assert_eq!(path("/a%2fb//c/./../", PathEncoding::Double), "/a%252fb//c/./../");
        assert_eq!(path("/@:$+*", PathEncoding::Double), "/%40%3A%24%2B%2A");
        assert_eq!(path("", PathEncoding::Double), "/");
    }

    #[test]
    fn a_service_that_encodes_once_gets_the_escapes_as_they_are() {
        assert_eq!(path("/a%20b/%2f/x y@%zz", PathEncoding::Single), "/a%20b/%2f/x%20y%40%25zz");
    }

    #[test]
    fn a_literal_plus_in_a_query_stays_a_plus() {
        assert_eq!(query("q=a+b"), "q=a%2Bb");
        assert_eq!(query("q=a%2Bb"), "q=a%2Bb");
        assert_eq!(query("q=a%20b"), "q=a%20b");
    }

    #[test]
    fn a_query_is_sorted_by_encoded_name_and_then_by_value() {
        assert_eq!(query("id=2&id=1&flag=&b&%C3%A9=1&a=3"), "%C3%A9=1&a=3&b=&flag=&id=1&id=2");
        assert_eq!(query("&&x=1&"), "x=1");
        assert_eq!(query("a=b=c&d=%"), "a=b%3Dc&d=%25");
    }

    #[test]
    fn bytes_that_are_no_text_survive() {
        assert_eq!(query("q=%ff%00"), "q=%FF%00");
    }

    #[test]
    fn header_values_are_trimmed_folded_and_joined_in_order() {
        let request = RawRequest::new("GET", "/")
            .with_header("X-A", "  b   a  ")
            .with_header("x-b", "other")
            .with_header("x-a", "c\td");
        assert_eq!(canonical_value(&request, "x-a"), b"b a,c\td");
    }

    #[test]
    fn what_may_be_secret_is_hidden_from_a_reader_and_not_from_the_signature() {
        let request = RawRequest::new("GET", "/?X-Amz-Security-Token=TTT&a=1")
            .with_header("x-amz-security-token", "SSS")
            .with_header("x-user-token", "UUU");
        let signed = ["x-amz-security-token".to_owned(), "x-user-token".to_owned()];
        let shown = canonical_request(&request, &signed, "hash", RULES);
        let hidden =
            canonical_request(&request, &signed, "hash", Rules { secrets: Secrets::Hidden, ..RULES });
        let (shown, hidden) = (String::from_utf8(shown).unwrap(), String::from_utf8(hidden).unwrap());
        for secret in ["TTT", "SSS", "UUU"] {
            assert!(shown.contains(secret));
            assert!(!hidden.contains(secret), "{hidden}");
        }
    }
}
