//! What is kept of an attempt that was no success, for as long as its call goes on: little, and in memory of its own.

use crate::edge::{Seen, Shown};
use crate::error::Cause;
use crate::policy::outcome::Loss;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// What an attempt showed, for the error that may come of it.
pub(crate) enum Kept {
    /// An answer.
    Answered(KeptAnswer),
    /// The request may have arrived, and no whole answer came back.
    Lost { how: Loss, cause: Cause },
    /// Nothing of the request left this process: why not, and the error beneath.
    NeverSent(Box<(String, Cause)>),
}

/// An answer, written out: a waiting call holds neither a header map, which is mostly room for more, nor the buffer of the
/// connection, of which values and body are parts.
pub(crate) struct KeptAnswer {
    status: StatusCode,
    /// The header lines, then the body.
    text: Box<[u8]>,
    /// How much of it is header lines.
    head: u32,
    raw_gap: Option<i32>,
}

impl Kept {
    pub(crate) fn of(seen: Seen) -> Kept {
        let raw_gap = seen.raw_gap();
        match seen.shown {
            Shown::Answered { status, headers, body, .. } => {
                Kept::Answered(KeptAnswer::of(status, &headers, &body, raw_gap))
            }
            Shown::Lost { how, cause, .. } => Kept::Lost { how, cause },
            Shown::NeverSent { reason, cause, .. } => Kept::NeverSent(Box::new((reason, cause))),
        }
    }

    /// How many seconds the gateway's clock is ahead of ours, uncorrected, where the answer tells.
    pub(crate) fn raw_gap(&self) -> Option<i64> {
        match self {
            Kept::Answered(answer) => answer.raw_gap.map(i64::from),
            Kept::Lost { .. } | Kept::NeverSent(_) => None,
        }
    }
}

impl KeptAnswer {
    fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], raw_gap: Option<i64>) -> KeptAnswer {
        let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 2;
        let head: usize = headers.iter().map(line).sum();
        let mut text = Vec::with_capacity(head + body.len());
        for (name, value) in headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.push(b':');
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
        text.extend_from_slice(body);
        // More is cut off long before, and a clock that is further off is not put right.
        let head = u32::try_from(head).unwrap_or(u32::MAX);
        let raw_gap =
            raw_gap.map(|gap| i32::try_from(gap).unwrap_or(if gap < 0 { i32::MIN } else { i32::MAX }));
        KeptAnswer { status, text: text.into(), head, raw_gap }
    }

    /// The answer as it was.
    pub(crate) fn into_parts(self) -> (StatusCode, HeaderMap, Bytes) {
        let mut lines = Bytes::from(self.text);
        let head = usize::try_from(self.head).unwrap_or(usize::MAX);
        let body = lines.split_off(head.min(lines.len()));
        let mut headers = HeaderMap::new();
        // Neither a name nor a value holds what ends it here (RFC 9110, sections 5.1 and 5.5).
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let mut line = lines.split_to(end + 1);
            line.truncate(end);
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                let value = line.split_off(colon + 1);
                let name = HeaderName::from_bytes(line.strip_suffix(b":").unwrap_or(&line));
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) {
                    let _ = headers.try_append(name, value);
                }
            }
        }
        (self.status, headers, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_answer_is_the_same_after_it_was_kept(
            lines in prop::collection::vec(("[a-z][a-z0-9!#$%&'*+.^_`|~-]{0,8}", prop::collection::vec(any::<u8>(), 0..12)), 0..8),
            body in prop::collection::vec(any::<u8>(), 0..40),
            status in 100_u16..1_000,
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in &lines {
                if let Ok(value) = HeaderValue::from_bytes(value) {
                    headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
                }
            }
            let status = StatusCode::from_u16(status).unwrap();
            let kept = KeptAnswer::of(status, &headers, &body, None);
            prop_assert_eq!(kept.into_parts(), (status, headers, Bytes::from(body)));
        }
    }

    #[test]
    fn what_is_kept_is_no_part_of_the_buffer_that_it_came_in() {
        let buffer = Bytes::from_static(b"one two three");
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_maybe_shared(buffer.slice(0..3)).unwrap());
        let kept = KeptAnswer::of(StatusCode::OK, &headers, &buffer.slice(4..), None);
        let (_, headers, body) = kept.into_parts();
        let within = buffer.as_ptr_range();
        for part in [&body[..], headers["x-a"].as_bytes()] {
            assert!(!within.contains(&part.as_ptr()), "{part:?}");
        }
        assert_eq!((&headers["x-a"], &body[..]), (&"one".parse().unwrap(), &b"two three"[..]));
    }
}
