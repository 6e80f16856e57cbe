//! The headers that a caller gives a call.

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};

/// A caller's own headers and the trace, in order: a list, for a map is mostly room for more. What nearly every call has,
/// `content-type: application/json`, comes first and takes no place in it.
#[derive(Default)]
pub(crate) struct OwnHeaders {
    says_json: bool,
    others: Box<[(HeaderName, HeaderValue)]>,
}

impl OwnHeaders {
    /// Appends a header; repeats are kept.
    pub(crate) fn push(&mut self, name: HeaderName, value: HeaderValue) {
        if name == CONTENT_TYPE && value == JSON && !self.has(&CONTENT_TYPE) {
            self.says_json = true;
            return;
        }
        let mut others = std::mem::take(&mut self.others).into_vec();
        others.reserve_exact(1);
        others.push((name, value));
        self.others = others.into();
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.says_json).saturating_add(self.others.len())
    }

    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.count(name) > 0
    }

    /// How many headers of this name there are.
    pub(crate) fn count(&self, name: &HeaderName) -> usize {
        self.iter().filter(|(own, _)| *own == name).count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let json = self.says_json.then_some((&JSON_NAME, &JSON_VALUE));
        json.into_iter().chain(self.others.iter().map(|(name, value)| (name, value)))
    }
}

pub(crate) const JSON: &str = "application/json";
static JSON_NAME: HeaderName = CONTENT_TYPE;
static JSON_VALUE: HeaderValue = HeaderValue::from_static(JSON);

#[cfg(test)]
mod tests {
    use super::*;

    fn told(headers: &OwnHeaders) -> Vec<(&str, &[u8])> {
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
    }

    #[test]
    fn repeats_are_kept_in_order_and_the_type_comes_first() {
        let mut headers = OwnHeaders::default();
        for (name, value) in [("x-a", "1"), ("x-b", "2"), ("content-type", JSON), ("x-a", "3")] {
            headers.push(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let (a, b) = (("x-a", &b"1"[..]), ("x-b", &b"2"[..]));
        assert_eq!(told(&headers), [("content-type", JSON.as_bytes()), a, b, ("x-a", &b"3"[..])]);
        assert_eq!((headers.len(), headers.count(&HeaderName::from_static("x-a"))), (4, 2));
    }

    #[test]
    fn the_usual_type_takes_no_room_and_a_second_or_another_one_is_not_lost() {
        let json = || (CONTENT_TYPE, HeaderValue::from_static(JSON));
        let other = || (CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        for (types, in_list) in [
            (vec![json()], 0),
            (vec![other()], 1),
            (vec![json(), json()], 1),
            (vec![other(), json()], 2),
            (vec![json(), other()], 1),
        ] {
            let mut headers = OwnHeaders::default();
            let count = types.len();
            types.into_iter().for_each(|(name, value)| headers.push(name, value));
            assert_eq!((headers.count(&CONTENT_TYPE), headers.others.len()), (count, in_list));
        }
    }
}
