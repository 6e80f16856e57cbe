//! The ids that a chain and its calls are known by.

use crate::context::text::Text;
use crate::edge::ambient::{Ambient, fresh_uuid, system};
use std::fmt;
use std::str::FromStr;

/// What a callee knows a call's repeats by: 1 to 255 visible ASCII characters, the same on every attempt.
///
/// A key names an *intent*, so it is made once, when the intent is formed, before the first attempt. A key that is
/// derived from a payload and a clock, or from an attempt number, is no key: the repeat gets another one, and the work
/// is done twice. Nor is a bare hash of the payload: two orders that look alike become one.
///
/// A key is an id and no secret: `Display` and `Debug` show it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Text);

impl IdempotencyKey {
    /// Takes a key of the caller's: the id of an order, of a queue's message, of anything that stays the same when the
    /// caller itself is run again.
    ///
    /// # Errors
    /// [`InvalidIdempotencyKey`] unless it is 1 to 255 characters, each of `!` to `~` (0x21 to 0x7E). No space, no
    /// control character; nothing is trimmed.
    pub fn new(key: impl AsRef<str>) -> Result<Self, InvalidIdempotencyKey> {
        Self::from_bytes(key.as_ref().as_bytes())
    }

    /// Makes a key that no other call has: a random UUID.
    ///
    /// It protects the attempts of one call. A caller that may itself be run again needs [`new`](Self::new) with an id
    /// that survives, or the second run is another intent.
    #[must_use]
    pub fn fresh() -> Self {
        IdempotencyKey::from_uuid(fresh_uuid(system()))
    }

    /// Derives a key from what names the intent: the same parts give the same key, in every process and version.
    ///
    /// For callers that are themselves run again: a queue's message id, an order's id and what is done with it. Parts
    /// differ by where one ends and the next begins: `["a", "bc"]` and `["ab", "c"]` are two keys. A clock, an attempt's
    /// number or a bare payload are no parts of a key.
    ///
    /// The key is a version 5 UUID (RFC 9562, 5.5) under the namespace `8f1c7a52-6d0b-4f0e-9a35-2b7d1e64c0f3`; the name is,
    /// for each part, its length in bytes as eight bytes, the highest first, and then the bytes themselves.
    ///
    /// ```
    /// use eastwest::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::derive(["order", "4711", "reserve"]);
    /// assert_eq!(key, IdempotencyKey::derive(["order", "4711", "reserve"]));
    /// assert_ne!(key, IdempotencyKey::derive(["order", "4711", "ship"]));
    /// ```
    #[must_use]
    pub fn derive<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut name = Vec::new();
        for part in parts {
            let part = part.as_ref();
            name.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            name.extend_from_slice(part);
        }
        IdempotencyKey::from_uuid(uuid::Uuid::new_v5(&NAMESPACE, &name))
    }

    /// The key that is this UUID.
    pub(crate) fn from_uuid(id: uuid::Uuid) -> Self {
        IdempotencyKey(id.into())
    }

    pub(crate) fn from_bytes(key: &[u8]) -> Result<Self, InvalidIdempotencyKey> {
        check(key, KEY_CHARACTERS, |byte| byte.is_ascii_graphic())
            .map(|key| IdempotencyKey(key.into()))
            .map_err(InvalidIdempotencyKey)
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for IdempotencyKey {
    type Err = InvalidIdempotencyKey;

    fn from_str(key: &str) -> Result<Self, Self::Err> {
        Self::new(key)
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyKey").field(&self.as_str()).finish()
    }
}

/// The id that all calls of a chain have in common: 1 to 128 characters of `[A-Za-z0-9._:-]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CorrelationId(Text);

impl CorrelationId {
    pub(crate) fn new(id: &str) -> Result<Self, InvalidCorrelationId> {
        Self::from_bytes(id.as_bytes())
    }

    pub(crate) fn from_bytes(id: &[u8]) -> Result<Self, InvalidCorrelationId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        check(id, CORRELATION_CHARACTERS, allowed)
            .map(|id| CorrelationId(id.into()))
            .map_err(InvalidCorrelationId)
    }

    pub(crate) fn fresh_in(ambient: &dyn Ambient) -> Self {
        CorrelationId(fresh_uuid(ambient).into())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The text is no idempotency key. The message says what is wrong with it, and does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key is 1 to {KEY_CHARACTERS} visible ASCII characters; this one {0}")]
pub struct InvalidIdempotencyKey(Fault);

/// The inbound request carried no idempotency key to derive others from, or the chain begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the inbound request carried no idempotency key to derive one from")]
pub struct NoInboundKey;

/// The text is no correlation id. The message says what is wrong with it, and does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a correlation id is 1 to {CORRELATION_CHARACTERS} characters of A-Z a-z 0-9 . _ : -; this one {0}")]
pub struct InvalidCorrelationId(Fault);

/// What is wrong with a text, told without the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("is empty")]
    Empty,
    #[error("has a forbidden character at byte {0}")]
    Forbidden(usize),
    #[error("has {0} bytes")]
    TooLong(usize),
}

fn check(text: &[u8], most: usize, allowed: impl Fn(u8) -> bool) -> Result<&str, Fault> {
    if text.is_empty() {
        return Err(Fault::Empty);
    }
    if text.len() > most {
        return Err(Fault::TooLong(text.len()));
    }
    if let Some(at) = text.iter().position(|byte| !allowed(*byte)) {
        return Err(Fault::Forbidden(at));
    }
    std::str::from_utf8(text).map_err(|error| Fault::Forbidden(error.valid_up_to()))
}

const KEY_CHARACTERS: usize = 255;
const CORRELATION_CHARACTERS: usize = 128;

/// What derived keys are derived under. It never changes: a key must outlive the release that made it.
const NAMESPACE: uuid::Uuid = uuid::Uuid::from_u128(0x8f1c_7a52_6d0b_4f0e_9a35_2b7d_1e64_c0f3);

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_1_to_255_visible_ascii_characters() {
        for key in ["k", "!", "~", "order/4711?x=\"1\"", &"k".repeat(255)] {
            assert_eq!(IdempotencyKey::new(key).unwrap().as_str(), key);
        }
        for key in [
            "",
            " ",
            "k ",
            " k",
            "k 1",
            "k\n1",
            "k\r\nx-evil: 1",
            "k\t",
            "k\0",
            "k\u{7f}",
            "ké",
            "٣",
            &"k".repeat(256),
        ] {
            assert!(IdempotencyKey::new(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn a_correlation_id_is_1_to_128_characters_of_a_small_alphabet() {
        for id in ["a", "A.b_c:d-9", "1-6858764a-5c96ac04102925a7698c3690", &"a".repeat(128)] {
            assert_eq!(CorrelationId::new(id).unwrap().as_str(), id);
        }
        for id in ["", "a b", "a/b", "a\r\nx-evil: 1", "{a}", "a,b", "é", "٣", &"a".repeat(129)] {
            assert!(CorrelationId::new(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_fresh_key_is_a_uuid_of_its_own() {
        let (a, b) = (IdempotencyKey::fresh(), IdempotencyKey::fresh());
        assert_ne!(a, b);
        assert_eq!(uuid::Uuid::parse_str(a.as_str()).unwrap().get_version_num(), 4);
        assert_eq!(a.as_str().parse::<IdempotencyKey>().unwrap(), a);
    }

    #[test]
    fn a_key_shows_itself() {
        let key = IdempotencyKey::new("order-1").unwrap();
        assert_eq!(format!("{key} {key:?}"), r#"order-1 IdempotencyKey("order-1")"#);
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_repeats_the_text() {
        let said = |key: &str| IdempotencyKey::new(key).unwrap_err().to_string();
        assert_eq!(said(""), "an idempotency key is 1 to 255 visible ASCII characters; this one is empty");
        assert_eq!(
            said("evil\n1"),
            "an idempotency key is 1 to 255 visible ASCII characters; this one has a forbidden character at byte 4"
        );
        assert_eq!(
            CorrelationId::new(&"e".repeat(200)).unwrap_err().to_string(),
            "a correlation id is 1 to 128 characters of A-Z a-z 0-9 . _ : -; this one has 200 bytes"
        );
    }

    proptest! {
        #[test]
        fn every_id_that_is_taken_is_a_valid_header_value(text in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = IdempotencyKey::from_bytes(&text) {
                prop_assert_eq!(HeaderValue::from_str(key.as_str()).unwrap(), &text[..]);
            }
            if let Ok(id) = CorrelationId::from_bytes(&text) {
                prop_assert_eq!(HeaderValue::from_str(id.as_str()).unwrap(), &text[..]);
            }
        }

        #[test]
        fn every_text_of_the_grammar_is_taken(key in "[!-~]{1,255}", id in "[A-Za-z0-9._:-]{1,128}") {
            prop_assert!(IdempotencyKey::new(key).is_ok());
            prop_assert!(CorrelationId::new(&id).is_ok());
        }
    }

    /// Made with another implementation of RFC 9562. A change of any of them would make every re-run a new intent.
    #[test]
    fn derived_keys_are_the_same_in_every_process_and_version() {
        let golden: [(&[&str], &str); 5] = [
            (&["order", "4711", "reserve"], "1b4a0fb2-3a54-5b48-8444-71b787788792"),
            (&[], "a1aaf158-f6c5-52da-969c-36bb4aa663a2"),
            (&[""], "92e8339e-c405-5771-8fd8-80e28776b37a"),
            (&["child", "the-key", "reserve"], "51c9f9bf-eefd-5bfb-a1d3-ae3af920ebf1"),
            (&["é"], "fc7fd3af-5eb2-5bda-bf9b-68e903731792"),
        ];
        for (parts, key) in golden {
            assert_eq!(IdempotencyKey::derive(parts).as_str(), key, "{parts:?}");
        }
    }

    #[test]
    fn where_one_part_ends_and_the_next_begins_makes_a_difference() {
        let keys = [
            IdempotencyKey::derive(["a", "bc"]),
            IdempotencyKey::derive(["ab", "c"]),
            IdempotencyKey::derive(["abc"]),
            IdempotencyKey::derive(["abc", ""]),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(keys.iter().skip(at + 1).all(|other| other != key), "{key}");
        }
    }
}
