//! A request's body, counted or chunked, taken off the wire as it comes.

use crate::testing::wire::malformed::Malformed;
use bytes::{Buf, Bytes, BytesMut};

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// In chunks (RFC 9112 section 7.1).
    Chunked,
    /// By its length.
    Counted(u64),
}

/// Takes a body off the wire, whatever the pieces it comes in.
#[derive(Debug)]
pub(crate) struct BodyReader {
    state: State,
    kept: Vec<u8>,
    seen: u64,
    limit: usize,
}

/// A body that was read to its end.
#[derive(Debug)]
pub(crate) struct Body {
    /// The body, or its beginning if it is over the limit.
    pub(crate) kept: Bytes,
    /// Whether it is over the limit.
    pub(crate) over_limit: bool,
}

impl BodyReader {
    /// Keeps at most `limit` bytes; what is beyond is read and dropped, so that the client can be told.
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        let state = match framing {
            Framing::Chunked => State::ChunkSize,
            Framing::Counted(0) => State::Done,
            Framing::Counted(left) => State::Counted(left),
        };
        BodyReader { state, kept: Vec::new(), seen: 0, limit }
    }

    /// Takes what it can use of the input; answers whether the body is complete.
    pub(crate) fn feed(&mut self, input: &mut BytesMut) -> Result<bool, Malformed> {
        loop {
            let before = (input.len(), self.state);
            self.state = match self.state {
                State::ChunkData(0) => match take_line(input)? {
                    Some(line) if line.is_empty() => State::ChunkSize,
                    Some(_) => return Err(Malformed("a chunk is longer than it says")),
                    None => State::ChunkData(0),
                },
                State::ChunkData(left) => State::ChunkData(self.take(input, left)?),
                State::ChunkSize => match take_line(input)? {
                    Some(line) => chunk_size(&line)?,
                    None => State::ChunkSize,
                },
                State::Counted(left) => match self.take(input, left)? {
                    0 => State::Done,
                    left => State::Counted(left),
                },
                State::Done => return Ok(true),
                State::Trailers => match take_line(input)? {
                    Some(line) if line.is_empty() => State::Done,
                    _ => State::Trailers,
                },
            };
            if before == (input.len(), self.state) {
                return Ok(false);
            }
        }
    }

    /// Gives the body up.
    pub(crate) fn finish(self) -> Body {
        let over_limit = self.seen > u64::try_from(self.limit).unwrap_or(u64::MAX);
        Body { kept: Bytes::from(self.kept), over_limit }
    }

    fn take(&mut self, input: &mut BytesMut, left: u64) -> Result<u64, Malformed> {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let piece = input.split_to(wanted);
        let room = self.limit.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(piece.get(..room.min(wanted)).unwrap_or_default());
        let taken = u64::try_from(wanted).unwrap_or(u64::MAX);
        self.seen = self.seen.saturating_add(taken);
        let most = u64::try_from(self.limit).unwrap_or(u64::MAX).saturating_mul(DRAINED_LIMITS);
        if self.seen > most {
            return Err(Malformed("the body does not end"));
        }
        Ok(left.saturating_sub(taken))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes of a chunk are missing; with none, its line end is.
    ChunkData(u64),
    ChunkSize,
    /// So many bytes are missing.
    Counted(u64),
    Done,
    Trailers,
}

/// Takes a line off the input, without its end; `None` if there is no whole one yet.
fn take_line(input: &mut BytesMut) -> Result<Option<BytesMut>, Malformed> {
    match input.iter().position(|b| *b == b'\n') {
        Some(end) if end <= LONGEST_LINE => {
            let mut line = input.split_to(end);
            input.advance(1);
            if line.last() == Some(&b'\r') {
                line.truncate(end - 1);
            }
            Ok(Some(line))
        }
        None if input.len() <= LONGEST_LINE => Ok(None),
        _ => Err(Malformed("a line of a chunked body does not end")),
    }
}

fn chunk_size(line: &[u8]) -> Result<State, Malformed> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex);
    match text.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        None => Err(Malformed("a chunk's size is not a number")),
        Some(0) => Ok(State::Trailers),
        Some(size) => Ok(State::ChunkData(size)),
    }
}

/// A body is read up to so many times the limit, then given up.
const DRAINED_LIMITS: u64 = 8;
/// A line of a chunked body is at most so long.
const LONGEST_LINE: usize = 4_096;
