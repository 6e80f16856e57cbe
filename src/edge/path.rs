//! A path as callers give it, and as it goes into a URL.

use crate::edge::fault::Fault;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// A path below a base URL: URL path text, segments of data, or segments appended to text.
///
/// The empty path is the base itself; `/` is the base with a trailing slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    text: String,
    segments: Vec<String>,
    trailing_slash: bool,
}

impl Path {
    /// Appends one segment of data: every byte that is not unreserved (RFC 3986, section 2.3) is percent-encoded.
    #[must_use]
    pub(crate) fn segment(mut self, segment: impl Into<String>) -> Path {
        self.segments.push(segment.into());
        self
    }

    /// Ends the path with a slash.
    #[must_use]
    pub(crate) fn trailing_slash(mut self) -> Path {
        self.trailing_slash = true;
        self
    }

    /// Appends the encoded path to a URL that has none yet, or a base path without a trailing slash.
    ///
    /// # Errors
    /// A path that would not arrive as it was meant.
    pub(crate) fn write_to(&self, url: &mut String) -> Result<(), Fault> {
        if !self.text.is_empty() {
            url.push('/');
            url.push_str(&encode_text(PATH, &self.text)?);
        }
        for (at, segment) in self.segments.iter().enumerate() {
            match segment.as_str() {
                "" => return Err(Fault::new(PATH, "holds an empty segment")),
                "." | ".." => return Err(Fault::new(PATH, "holds a segment of dots")),
                _ if at == 0 && !self.text.is_empty() && url.ends_with('/') => {}
                _ => url.push('/'),
            }
            url.extend(utf8_percent_encode(segment, RESERVED));
        }
        if self.trailing_slash && !(url.ends_with('/') && !self.text.is_empty() && self.segments.is_empty()) {
            url.push('/');
        }
        Ok(())
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Path {
        Path::from(text.to_owned())
    }
}

impl From<String> for Path {
    fn from(text: String) -> Path {
        Path { text, ..Path::default() }
    }
}

/// Encodes URL path text, without its leading slash: escapes are kept, with upper-case digits, and every other byte
/// that a path may not hold is percent-encoded.
///
/// # Errors
/// A stray `%`, a query, a fragment, a control character, an empty segment, and `.` or `..` in any spelling.
pub(crate) fn encode_text<'a>(field: &'static str, text: &'a str) -> Result<Cow<'a, str>, Fault> {
    if is_plain(text) {
        return Ok(Cow::Borrowed(text.strip_prefix('/').unwrap_or(text)));
    }
    if text.contains(char::is_control) {
        return Err(Fault::new(field, "holds a control character"));
    }
    if text.contains("://") {
        return Err(Fault::new(field, "is a whole URL; give what follows the base"));
    }
    if text.contains(['?', '#']) {
        return Err(Fault::new(field, "holds a query or a fragment; a query is given by itself"));
    }
    let text = text.strip_prefix('/').unwrap_or(text);
    let mut encoded = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let escape = [bytes.next(), bytes.next()];
            let [Some(high), Some(low)] = escape.map(|digit| digit.filter(u8::is_ascii_hexdigit)) else {
                return Err(Fault::new(field, "holds a % that begins no escape; write %25"));
            };
            encoded.extend(['%', high.to_ascii_uppercase().into(), low.to_ascii_uppercase().into()]);
        } else if byte == b'/' || is_pchar(byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
    check_segments(field, &encoded)?;
    Ok(Cow::Owned(encoded))
}

/// Whether the text is, as nearly every path is, what it would be after all that follows: letters, digits, `-` and `_` between
/// single slashes.
fn is_plain(text: &str) -> bool {
    let mut slash = false;
    text.bytes().all(|byte| {
        let double = byte == b'/' && slash;
        slash = byte == b'/';
        !double && (slash || byte == b'-' || byte == b'_' || byte.is_ascii_alphanumeric())
    })
}

fn check_segments(field: &'static str, encoded: &str) -> Result<(), Fault> {
    let whole = encoded.strip_suffix('/').unwrap_or(encoded);
    if encoded.is_empty() {
        return Ok(());
    }
    for segment in whole.split('/') {
        if segment.is_empty() {
            return Err(Fault::new(field, "holds an empty segment"));
        }
        // A server may decode before it resolves dots, so the encoded forms are dots too.
        if matches!(segment, "." | ".." | "%2E" | ".%2E" | "%2E." | "%2E%2E") {
            return Err(Fault::new(field, "holds a segment of dots"));
        }
    }
    Ok(())
}

/// Whether a path segment may hold the byte as it is: `pchar` of RFC 3986, section 3.3.
fn is_pchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// All but the unreserved characters of RFC 3986, section 2.3: the one encoding on which all signers agree.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The argument that faults of a path name.
pub(crate) const PATH: &str = "path";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_that_was_encoded_stays_as_it_is(text in "[a-z0-9é/%. ~:@|-]{0,16}") {
            if let Ok(once) = encode_text(PATH, &text) {
                prop_assert!(once.bytes().all(|byte| byte == b'/' || byte == b'%' || is_pchar(byte)));
                let again = format!("/{once}");
                prop_assert_eq!(encode_text(PATH, &again).unwrap(), once);
            }
        }

        #[test]
        fn a_plain_text_is_taken_as_what_is_not_plain_would_be(text in "[a-zA-Z0-9/_.%~-]{0,8}") {
            // No text that begins with a tilde is plain.
            let rest = text.strip_prefix('/').unwrap_or(&text);
            let with_tilde = format!("~/{rest}");
            let slowly = encode_text(PATH, &with_tilde).ok();
            prop_assert_eq!(encode_text(PATH, &text).ok().map(|plain| format!("~/{plain}")), slowly.map(Cow::into_owned));
        }

        #[test]
        fn no_text_that_is_taken_holds_a_segment_of_dots_once_it_is_decoded(text in "[./%2eEa]{0,10}") {
            if let Ok(encoded) = encode_text(PATH, &text) {
                let decoded = percent_encoding::percent_decode_str(&encoded).decode_utf8_lossy().into_owned();
                let dots = encoded.split('/').zip(decoded.split('/')).any(|(_, part)| part == "." || part == "..");
                prop_assert!(!dots, "{}", decoded);
            }
        }
    }
}
