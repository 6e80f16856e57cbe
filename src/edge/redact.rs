//! What an error's answer must not carry on: the secrets that the request went out with.

use crate::edge::user_token::UserToken;
use crate::policy::gateway::{ErrorBody, first_sentence};
use aws_credential_types::Credentials;
use bytes::Bytes;
use http::HeaderMap;
use std::borrow::Cow;

/// The secrets of one attempt, as an answer may quote them.
pub(crate) struct Secrets<'a> {
    tokens: Vec<&'a [u8]>,
}

impl<'a> Secrets<'a> {
    /// Those of the session and of the user. A user's token counts without its scheme (`Bearer`) too.
    pub(crate) fn of(credentials: &'a Credentials, user_token: Option<&'a UserToken>) -> Secrets<'a> {
        let mut tokens: Vec<_> = credentials.session_token().map(str::as_bytes).into_iter().collect();
        if let Some(token) = user_token {
            let token = token.value().as_bytes();
            tokens.push(token);
            tokens.extend(token.rsplit(|byte| *byte == b' ').next().filter(|bare| bare.len() >= SHORTEST));
        }
        tokens.retain(|text| !text.is_empty());
        Secrets { tokens }
    }

    /// Takes out of an answer's headers the values that hold a secret. The name of a header that carries one is none: lists of
    /// names are what `Access-Control-Allow-Headers` is made of.
    pub(crate) fn clear_headers(&self, headers: &mut HeaderMap) {
        let told: Vec<_> = headers.iter().filter(|(_, value)| self.are_spelt_in(value.as_bytes())).collect();
        let names: Vec<_> = told.into_iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            headers.remove(name);
        }
    }

    /// An error's body, or no more than the first sentence of its message where it quotes a secret or the canonical request:
    /// as it is, in another spelling, or cut in the middle by the limit on what is kept.
    pub(crate) fn clear_body(&self, headers: &HeaderMap, body: Bytes) -> Bytes {
        if !self.are_told_by(&body) {
            return body;
        }
        let message = ErrorBody::read(headers, &body).message.unwrap_or_default();
        let sentence = first_sentence(&message).as_bytes();
        if self.are_told_by(sentence) {
            return Bytes::new();
        }
        Bytes::copy_from_slice(sentence)
    }

    fn are_told_by(&self, text: &[u8]) -> bool {
        QUOTATIONS.iter().any(|quotation| holds(text, quotation)) || self.are_spelt_in(text)
    }

    /// Whether a text holds a secret, or ends in the middle of one. It may be spelt as JSON does it, within JSON again, or as URLs
    /// do; whether the text is a whole document of that kind does not matter, for it may be cut or stand in another.
    fn are_spelt_in(&self, text: &[u8]) -> bool {
        let mut spelt = Cow::Borrowed(text);
        for _ in 0..=DEEPEST {
            if self.are_in(&spelt) || self.begin_at_the_end_of(&spelt) {
                return true;
            }
            match plainer(&spelt) {
                Some(plainer) => spelt = Cow::Owned(plainer),
                None => return false,
            }
        }
        // Nobody spells a message so; what it is cannot be told.
        true
    }

    fn are_in(&self, text: &[u8]) -> bool {
        self.tokens.iter().any(|secret| holds(text, secret))
    }

    /// Whether a text ends in the middle of a secret, so that the half of it would be kept.
    fn begin_at_the_end_of(&self, text: &[u8]) -> bool {
        let last = text.last();
        self.tokens.iter().any(|secret| {
            let longest = secret.len().min(text.len() + 1);
            let halves = (SHORTEST..longest).filter_map(|length| secret.get(..length));
            // All but a few end in another byte.
            halves.filter(|half| half.last() == last).any(|half| text.ends_with(half))
        })
    }
}

/// A text with one level of escapes taken away, those of JSON (RFC 8259, section 7) and those of URLs (RFC 3986, section 2.1);
/// none where there is none. What a secret cannot hold may come out as anything.
fn plainer(text: &[u8]) -> Option<Vec<u8>> {
    if !text.iter().any(|byte| matches!(byte, b'\\' | b'%')) {
        return None;
    }
    let (mut plain, mut rest, mut changed) = (Vec::with_capacity(text.len()), text, false);
    while let [byte, more @ ..] = rest {
        let hex = |digits: Option<&[u8]>| u8::from_str_radix(str::from_utf8(digits?).ok()?, 16).ok();
        let (meant, length) = match (byte, more.first()) {
            // Secrets are ASCII, whose escapes begin with two zeros.
            (b'\\', Some(b'u')) if more.get(1..3) == Some(b"00") => (hex(more.get(3..5)), 6),
            (b'\\', Some(escaped)) => (Some(*escaped), 2),
            (b'%', _) => (hex(more.get(..2)), 3),
            _ => (None, 1),
        };
        changed |= meant.is_some();
        plain.push(meant.unwrap_or(*byte));
        rest = rest.get(if meant.is_some() { length } else { 1 }..).unwrap_or_default();
    }
    changed.then_some(plain)
}

/// Whether a secret is in a text, in upper case or lower: the gateway quotes names in both.
fn holds(text: &[u8], secret: &[u8]) -> bool {
    let Some((first, more)) = secret.split_first() else { return false };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let is_next = |byte: &u8| more.first().is_none_or(|next| next.eq_ignore_ascii_case(byte));
    // All but a few places are told by the first byte, and of the rest all but a few by the second.
    let places = text.iter().enumerate().filter(|(_, byte)| **byte == lower || **byte == upper);
    places.filter_map(|(at, _)| text.get(at + 1..)).any(|rest| {
        rest.first().is_none_or(is_next)
            && rest.get(..more.len()).is_some_and(|start| start.eq_ignore_ascii_case(more))
    })
}

/// Where these stand, the gateway quotes the canonical request or the header that was refused.
const QUOTATIONS: [&[u8]; 2] = [b"x-amz-security-token", b"AWS4-HMAC-SHA256 Credential="];
/// A shorter piece of a token is no secret: it would be found in any text.
const SHORTEST: usize = 8;
/// How often a text may be spelt within a spelling.
const DEEPEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn cleared(body: &str) -> String {
        let credentials = Credentials::new("AKID", "s", Some("SESSION/TOKEN+1".to_owned()), None, "test");
        let user = UserToken::new("Bearer user+token/1").unwrap();
        let secrets = Secrets::of(&credentials, Some(&user));
        let body = secrets.clear_body(&HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()));
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn a_body_without_a_secret_stays_whole() {
        for body in ["", "{}", r#"{"message":"No. Never.","code":"E"}"#, "plain", "Bearer of bad news"] {
            assert_eq!(cleared(body), body);
        }
    }

    #[test]
    fn a_body_that_quotes_a_secret_in_any_spelling_is_cut_to_a_sentence_without_it() {
        assert_eq!(cleared("Oops. You sent SESSION/TOKEN+1"), "Oops.");
        assert_eq!(cleared(r#"{"message":"Oops. See.","code":"user+token/1"}"#), "Oops.");
        assert_eq!(cleared(r#"{"message":"Bad: user+token\/1"}"#), "");
        assert_eq!(cleared(r#"{"message":"No.","a":[{"user\u002Btoken\u002F1":1}]}"#), "No.");
        assert_eq!(cleared("canonical:\nX-Amz-Security-Token:abc"), "");
        assert_eq!(cleared("cut in the middle: SESSION/TOK"), "");
    }

    #[test]
    fn a_secret_is_found_in_what_is_no_whole_document_and_however_deep() {
        for body in [
            r#"{"echo":"SESSION\/TOKEN+1"} trailing"#,
            r#"{"echo":"SESSION\/TOKEN+1","pad":"cut he"#,
            "{\"a\":1}\n{\"b\":\"SESSION\\/TOKEN+1\"}",
            "\u{feff}{\"b\":\"SESSION\\u002fTOKEN\\u002B1\"}",
            r#"{"inner":"{\"echo\":\"SESSION\\/TOKEN+1\"}"}"#,
            "to=SESSION%2FTOKEN%2b1&x=1",
            "SESSION%252FTOKEN%2B1",
            r"ends in SESSION\/TOK",
        ] {
            assert_eq!(cleared(body), "", "{body}");
        }
        let deep = format!("{}\"SESSION\\/TOKEN+1\"{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(cleared(&deep), "");
        assert_eq!(cleared(&"\\".repeat(4_000)), "", "what cannot be told apart is not kept");
    }

    #[test]
    fn what_only_begins_like_a_quotation_and_what_is_escaped_without_a_secret_stays() {
        for body in ["only AWS4-HMAC-SHA256", r"C:\\temp\\new 100 %", r#"{"a":"\\\\","b":"50%25"}"#, r"a\"] {
            assert_eq!(cleared(body), body);
        }
    }

    #[test]
    fn a_header_that_names_a_secret_s_header_is_kept() {
        let credentials = Credentials::new("AKID", "s", Some("SESSION/TOKEN+1".to_owned()), None, "test");
        let mut headers = HeaderMap::new();
        let names = HeaderValue::from_static("Content-Type,X-Amz-Date,X-Amz-Security-Token");
        headers.insert("access-control-allow-headers", names);
        Secrets::of(&credentials, None).clear_headers(&mut headers);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn a_header_that_holds_a_secret_is_taken_out() {
        let credentials = Credentials::new("AKID", "s", Some("SESSION/TOKEN+1".to_owned()), None, "test");
        let mut headers = HeaderMap::new();
        headers.insert("x-amzn-requestid", HeaderValue::from_static("is SESSION/TOKEN+1"));
        headers.insert("x-other", HeaderValue::from_static("kept"));
        Secrets::of(&credentials, None).clear_headers(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(headers.contains_key("x-other"));
    }
}
