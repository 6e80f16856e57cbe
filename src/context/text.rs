//! The text of an id: nearly always a UUID, which is kept in place.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A text that costs no allocation where it is as short as a UUID.
#[derive(Clone)]
pub(crate) enum Text {
    Short { length: u8, bytes: [u8; UUID_LENGTH] },
    Long(Box<str>),
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Short { length, bytes } => {
                let text = bytes.get(..usize::from(*length)).unwrap_or_default();
                // What was put in is text.
                str::from_utf8(text).unwrap_or_default()
            }
            Text::Long(text) => text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        let mut bytes = [0; UUID_LENGTH];
        match (u8::try_from(text.len()), bytes.get_mut(..text.len())) {
            (Ok(length), Some(place)) => {
                place.copy_from_slice(text.as_bytes());
                Text::Short { length, bytes }
            }
            _ => Text::Long(text.into()),
        }
    }
}

impl From<uuid::Uuid> for Text {
    fn from(id: uuid::Uuid) -> Text {
        Text::from(&*id.hyphenated().encode_lower(&mut [0; UUID_LENGTH]))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Text) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Text) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

const UUID_LENGTH: usize = uuid::fmt::Hyphenated::LENGTH;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::hash_map::DefaultHasher;

    fn hash(value: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    proptest! {
        #[test]
        fn a_text_is_what_it_was_made_from_however_long(one in "\\PC{0,40}", other in "\\PC{0,40}") {
            let (kept, another) = (Text::from(&*one), Text::from(&*other));
            prop_assert_eq!(kept.as_str(), &one);
            prop_assert_eq!(kept.cmp(&another), one.cmp(&other));
            prop_assert_eq!(kept == another, one == other);
            prop_assert_eq!(hash(&kept), hash(&one));
        }
    }

    #[test]
    fn a_uuid_is_kept_in_place_and_what_is_longer_is_not() {
        let id = uuid::Uuid::from_u128(0x8f1c_7a52_6d0b_4f0e_9a35_2b7d_1e64_c0f3);
        let kept = Text::from(id);
        assert_eq!(kept.as_str(), id.to_string());
        assert!(matches!(kept, Text::Short { length: 36, .. }));
        assert!(matches!(Text::from(&*"a".repeat(37)), Text::Long(_)));
        assert!(size_of::<Text>() <= 40);
    }
}
