//! The headers of one request as they are put together, and their size.

use crate::edge::pool;
use crate::target::Target;
use http::header::{ACCEPT, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Sets a header in place of all of its name. Not inlined: it is needed a dozen times for each attempt, and the code of one
/// place stays in the processor's cache.
#[inline(never)]
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    headers.insert(name, value);
}

/// Adds a header to those of its name. Not inlined, as [`set`] is not.
#[inline(never)]
pub(crate) fn add(headers: &mut HeaderMap, (name, value): (&HeaderName, &HeaderValue)) {
    headers.append(name.clone(), value.clone());
}

/// Whether the head of a request, signature and all, is larger than the limit in bytes, as the gateway sees it: what is given,
/// and what the transport adds. If so, how large it is.
pub(crate) fn size_over(limit: usize, headers: &HeaderMap, target: &Target) -> Option<usize> {
    let given = headers.iter().map(|(name, value)| line(name.as_str().len(), value.len())).sum::<usize>();
    // With all that may be added nearly every head is within it, and what is there already need not be looked up.
    let most = given + ADDED.iter().map(|(name, length)| line(name.as_str().len(), *length)).sum::<usize>();
    if most + line(HOST.as_str().len(), target.host_header().len()) <= limit {
        return None;
    }
    let host = (HOST, target.host_header().len());
    let missing = ADDED.into_iter().chain([host]).filter(|(name, _)| !headers.contains_key(name));
    let size = given + missing.map(|(name, length)| line(name.as_str().len(), length)).sum::<usize>();
    (size > limit).then_some(size)
}

fn line(name: usize, value: usize) -> usize {
    name + value + ": \r\n".len()
}

/// What the transport adds unless it is there, with its length, beside the host.
const ADDED: [(HeaderName, usize); 3] =
    [(USER_AGENT, pool::USER_AGENT.len()), (ACCEPT, "*/*".len()), (CONTENT_LENGTH, "10485760".len())];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::base_url::BaseUrl;

    fn target() -> Target {
        BaseUrl::parse("https://h.test", false).unwrap().target(&"/".into(), &[]).unwrap()
    }

    #[test]
    fn the_size_is_that_of_all_lines_and_of_those_that_are_added() {
        let mut headers = HeaderMap::new();
        // host: h.test, user-agent: eastwest/0.1.0, accept: */*, content-length: 10485760, and \r\n for each.
        let added = 14 + 12 + pool::USER_AGENT.len() + 2 + 13 + 26;
        for least in [0, added - 1] {
            assert_eq!(size_over(least, &headers, &target()), Some(added), "{least}");
        }
        assert_eq!(size_over(added, &headers, &target()), None);
        headers.append("x-a", HeaderValue::from_static("12345"));
        headers.append("x-a", HeaderValue::from_static(""));
        assert_eq!(size_over(0, &headers, &target()), Some(added + 12 + 7));
    }

    #[test]
    fn what_is_there_already_is_not_added_again() {
        let mut headers = HeaderMap::new();
        let names = [HOST, USER_AGENT, ACCEPT, CONTENT_LENGTH];
        for name in names.clone() {
            set(&mut headers, name, HeaderValue::from_static("1"));
        }
        let size = names.iter().map(|name| name.as_str().len() + 5).sum();
        assert_eq!(size_over(size - 1, &headers, &target()), Some(size));
        assert_eq!(size_over(size, &headers, &target()), None);
    }
}
