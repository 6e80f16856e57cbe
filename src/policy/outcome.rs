//! What one attempt showed.

use http::{HeaderMap, StatusCode};
use std::fmt;
use std::time::SystemTime;

/// What one attempt showed, before any rule is applied.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The gateway, or the callee behind it, answered.
    Answered(Answer<'a>),
    /// The request may have arrived, and no whole answer came back.
    Lost {
        /// How it was lost.
        how: Loss,
        /// Whether a sandbox that was frozen meanwhile seems to be the cause, and not the callee.
        thawed: bool,
    },
    /// Nothing of the request left this process.
    NeverSent(Unsent),
}

/// An answer, as it came off the wire.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    /// The status.
    pub status: StatusCode,
    /// All headers, names in lower case.
    pub headers: &'a HeaderMap,
    /// The body, or its beginning where a limit cut it.
    pub body: &'a [u8],
    /// Whether the body went on past the limit on what is kept.
    pub oversized: bool,
    /// Whether the body broke off before its end.
    pub broken: bool,
    /// How many seconds the gateway's clock is ahead of ours (behind, if negative), where the answer tells.
    pub clock_gap: Option<i64>,
    /// How many seconds after signing the gateway's `Date` is (before, if negative), where the answer has one and is no
    /// success: only a refusal is judged by it.
    pub signature_age: Option<i64>,
    /// The wall clock corrected by what is known of the gateway's clock, when the answer came.
    pub gateway_now: SystemTime,
}

/// Shows neither header values nor the body.
impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .field("oversized", &self.oversized)
            .field("broken", &self.broken)
            .field("clock_gap", &self.clock_gap)
            .finish_non_exhaustive()
    }
}

/// How an answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The connection ended after the request was, or may have been, written.
    Connection,
    /// What came back is not HTTP.
    Garbage,
    /// An answer came whose head is longer than is read: over a hundred header lines.
    HeadTooLarge,
    /// The attempt's time ran out.
    TimedOut,
    /// The body ended before its announced end.
    Truncated,
}

impl Loss {
    /// The loss in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Loss::Connection => "the connection ended without an answer",
            Loss::Garbage => "what came back is not HTTP",
            Loss::HeadTooLarge => "an answer came with more header lines than are read",
            Loss::TimedOut => "no whole answer in time",
            Loss::Truncated => "the body ended before its announced end",
        }
    }
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unsent {
    /// The peer's certificate is expired, of another name or of an unknown authority, or no TLS version is shared.
    Certificate,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The name did not resolve.
    Dns,
    /// The connection was cut before the request was written.
    HandshakeCut,
    /// Nobody listens, or no route to the host.
    Refused,
    /// The peer refused the HTTP/2 stream before it processed anything of it (RFC 9113, 8.7).
    StreamRefused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_is_printed_of_an_answer_is_neither_a_header_s_value_nor_the_body() {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-security-token", HeaderValue::from_static("secret"));
        let answer = Answer {
            status: StatusCode::FORBIDDEN,
            headers: &headers,
            body: b"secret",
            oversized: false,
            broken: true,
            clock_gap: Some(7),
            signature_age: None,
            gateway_now: SystemTime::UNIX_EPOCH,
        };
        let told =
            "Answer { status: 403, body_len: 6, oversized: false, broken: true, clock_gap: Some(7), .. }";
        assert_eq!(format!("{answer:?}"), told);
    }

    #[test]
    fn every_loss_has_words_of_its_own() {
        let all = [Loss::Connection, Loss::Garbage, Loss::HeadTooLarge, Loss::TimedOut, Loss::Truncated];
        let words: std::collections::HashSet<_> = all.map(Loss::as_str).into();
        assert_eq!(words.len(), all.len());
        assert!(words.contains("no whole answer in time"));
    }
}
