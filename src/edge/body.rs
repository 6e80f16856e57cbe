//! Reading the body of an answer, up to a limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// How much of a body is read, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyLimits {
    /// Of a 2xx: 10 MiB, the gateway's own limit on a payload.
    pub(crate) success: usize,
    /// Of any other answer: 64 KiB. What comes after is not read.
    pub(crate) error: usize,
}

impl Default for BodyLimits {
    fn default() -> BodyLimits {
        BodyLimits { success: 10 * 1024 * 1024, error: 64 * 1024 }
    }
}

/// How the reading of a body ended.
pub(crate) enum Ended {
    /// It broke off.
    Broken(reqwest::Error),
    /// It passed its limit.
    Over,
    /// With its last byte.
    Whole,
}

/// Reads a body up to its limit; of one that goes on the beginning is kept, and its connection is given up.
pub(crate) async fn read(response: &mut Response, limits: BodyLimits) -> (Bytes, Ended) {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    let whole = if response.status().is_success() { limits.success } else { limits.error };
    // What is announced as too long need not be read to be known as such.
    let limit = if announced.is_some_and(|length| length > whole) { whole.min(limits.error) } else { whole };
    let mut body = Body::default();
    let ended = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                if !body.push(chunk, limit) {
                    break Ended::Over;
                }
            }
            Ok(None) => break Ended::Whole,
            Err(error) => break Ended::Broken(error),
        }
    };
    let mut body = body.into_bytes();
    if matches!(ended, Ended::Over) {
        body.truncate(limits.error);
    }
    (body, ended)
}

/// Cuts a body that is all there as [`read`] would, and says whether it passed its limit.
#[cfg(feature = "testing")]
pub(crate) fn cut(mut body: Bytes, is_success: bool, limits: BodyLimits) -> (Bytes, bool) {
    let over = body.len() > if is_success { limits.success } else { limits.error };
    if over {
        body.truncate(limits.error);
    }
    (body, over)
}

/// A body as it comes; one that comes in one piece is not copied.
#[derive(Default)]
struct Body {
    first: Bytes,
    whole: BytesMut,
}

impl Body {
    /// Appends a piece, and says whether all of it was within the limit.
    fn push(&mut self, mut piece: Bytes, limit: usize) -> bool {
        let room = limit.saturating_sub(self.first.len().max(self.whole.len()));
        let fits = piece.len() <= room;
        piece.truncate(room);
        if self.first.is_empty() {
            self.first = piece;
        } else {
            if self.whole.is_empty() {
                self.whole.extend_from_slice(&self.first);
            }
            self.whole.extend_from_slice(&piece);
        }
        fits
    }

    fn into_bytes(self) -> Bytes {
        if self.whole.is_empty() { self.first } else { self.whole.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_comes_in_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"whole");
        let mut body = Body::default();
        assert!(body.push(piece.clone(), 5));
        assert_eq!(body.into_bytes().as_ptr(), piece.as_ptr());
    }

    #[test]
    fn pieces_are_joined_up_to_the_limit_and_the_first_byte_beyond_is_told() {
        let mut body = Body::default();
        for (piece, fits) in [("ab", true), ("", true), ("cd", true), ("ef", false), ("g", false)] {
            assert_eq!(body.push(Bytes::from_static(piece.as_bytes()), 5), fits, "{piece}");
        }
        assert_eq!(body.into_bytes(), "abcde");
    }
}
