//! What an error's answer must not carry on: the secrets that the request went out with.

use crate::edge::user_token::UserToken;
use crate::policy::gateway::{ErrorBody, first_sentence};
use aws_credential_types::Credentials;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// The secrets of one attempt, as an answer may quote them.
pub(crate) struct Secrets<'a> {
    texts: Vec<&'a [u8]>,
}

impl<'a> Secrets<'a> {
    /// Those of the session and of the user. A user's token counts without its scheme (`Bearer`) too.
    pub(crate) fn of(credentials: &'a Credentials, user_token: Option<&'a UserToken>) -> Secrets<'a> {
        // The name of the header: where it stands, the gateway is quoting the canonical request.
        let mut texts = vec![&b"x-amz-security-token"[..], &b"AWS4-HMAC-SHA256 Credential="[..]];
        texts.extend(credentials.session_token().map(str::as_bytes));
        if let Some(token) = user_token {
            let token = token.value().as_bytes();
            texts.push(token);
            texts.extend(token.rsplit(|byte| *byte == b' ').next().filter(|bare| bare.len() >= SHORTEST));
        }
        texts.retain(|text| !text.is_empty());
        Secrets { texts }
    }

    /// Takes out of an answer's headers the values that hold a secret.
    pub(crate) fn clear_headers(&self, headers: &mut HeaderMap) {
        let told: Vec<_> = headers.iter().filter(|(_, value)| self.are_in(value.as_bytes())).collect();
        let names: Vec<_> = told.into_iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            headers.remove(name);
        }
    }

    /// An error's body, or no more than the first sentence of its message where it quotes a secret: as it is, in the
    /// strings that it is JSON of, or cut in the middle by the limit on what is kept.
    pub(crate) fn clear_body(&self, headers: &HeaderMap, body: Bytes) -> Bytes {
        if !self.are_in(&body) && !self.begin_at_the_end_of(&body) && !self.are_in_json(&body) {
            return body;
        }
        let message = ErrorBody::read(headers, &body).message.unwrap_or_default();
        let sentence = first_sentence(&message).as_bytes();
        if self.are_in(sentence) || self.begin_at_the_end_of(sentence) {
            return Bytes::new();
        }
        Bytes::copy_from_slice(sentence)
    }

    fn are_in(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|secret| holds(text, secret))
    }

    /// Whether a text ends in the middle of a secret, so that the half of it would be kept.
    fn begin_at_the_end_of(&self, text: &[u8]) -> bool {
        let last = text.last();
        self.texts.iter().any(|secret| {
            let halves = (SHORTEST..secret.len()).filter_map(|length| secret.get(..length));
            // All but a few end in another byte.
            halves.filter(|half| half.last() == last).any(|half| text.ends_with(half))
        })
    }

    /// JSON spells one text in many ways: what counts is what its strings mean. Without a backslash they mean what they say.
    fn are_in_json(&self, body: &[u8]) -> bool {
        body.contains(&b'\\')
            && serde_json::from_slice::<Value>(body).is_ok_and(|value| self.are_in_value(&value))
    }

    /// The depth is bounded by the parser's own limit.
    fn are_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.are_in(text.as_bytes()),
            Value::Array(items) => items.iter().any(|item| self.are_in_value(item)),
            Value::Object(fields) => {
                fields.iter().any(|(name, value)| self.are_in(name.as_bytes()) || self.are_in_value(value))
            }
            Value::Bool(_) | Value::Null | Value::Number(_) => false,
        }
    }
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

/// A shorter piece of a token is no secret: it would be found in any text.
const SHORTEST: usize = 8;

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
