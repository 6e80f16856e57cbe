//! A request as it came over the wire: its line, its header lines in order, its body, byte for byte.

use crate::testing::wire::body::{BodyReader, Framing};
use crate::testing::wire::header_line::{HeaderLine, split_at_byte, token};
use crate::testing::wire::malformed::Malformed;
use bytes::{Bytes, BytesMut};
use std::fmt;

/// A request as it came over the wire, nothing decoded and nothing reordered.
#[derive(Clone)]
pub struct RawRequest {
    method: String,
    target: Vec<u8>,
    headers: Vec<HeaderLine>,
    body: Bytes,
    http_10: bool,
}

impl RawRequest {
    /// Makes a request without headers and body, to be built up by hand.
    #[must_use]
    pub fn new(method: impl Into<String>, target: impl Into<Vec<u8>>) -> Self {
        RawRequest {
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            http_10: false,
        }
    }

    /// Reads one whole HTTP/1.1 request: head, and a body as its `content-length` or chunks say.
    ///
    /// Lines may end in CRLF or LF. A folded header line (RFC 9112 section 5.2) counts as one line. The target is taken as
    /// it stands, bytes that no URI may hold included.
    ///
    /// # Errors
    /// [`Malformed`] for anything that is not such a request, a cut-off one included.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let end = head_end(bytes).ok_or(Malformed("the head does not end"))?;
        let (head, rest) = bytes.split_at_checked(end).ok_or(Malformed("the head does not end"))?;
        let request = RawRequest::parse_head(head)?;
        let mut reader = BodyReader::new(request.framing()?, usize::MAX);
        if !reader.feed(&mut BytesMut::from(rest))? {
            return Err(Malformed("the body is cut off"));
        }
        Ok(request.with_body(reader.finish().kept))
    }

    /// Reads a request line and header lines.
    pub(crate) fn parse_head(head: &[u8]) -> Result<Self, Malformed> {
        let mut lines = head.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let (method, target, http_10) = request_line(lines.next().unwrap_or_default())?;
        let mut request = RawRequest::new(method, target);
        request.http_10 = http_10;
        for line in lines.take_while(|line| !line.is_empty()) {
            if line.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
                return Err(Malformed("a header line holds a control byte"));
            }
            match (line.first(), request.headers.last_mut()) {
                (Some(b' ' | b'\t'), Some(folded)) => folded.unfold(line),
                (Some(b' ' | b'\t'), None) => return Err(Malformed("the first header line is folded")),
                _ => request.headers.push(HeaderLine::parse(line)?),
            }
        }
        Ok(request)
    }

    /// Sets the method.
    #[must_use]
    pub fn with_method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets the target.
    #[must_use]
    pub fn with_target(mut self, target: impl Into<Vec<u8>>) -> Self {
        self.target = target.into();
        self
    }

    /// Adds a header line.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(HeaderLine::new(name, value.as_ref()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Puts one line in the place of all lines of that name: what a proxy on the way might do.
    pub fn replace_header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.retain(|line| !line.is(name));
        self.headers.push(HeaderLine::new(name, value.as_ref()));
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The request target: path and query as they stood in the request line.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        &self.target
    }

    /// The raw path; of an absolute target, as proxies get it, the part after the authority.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        split_at_byte(self.origin_form(), b'?').0
    }

    /// The raw query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        split_at_byte(self.origin_form(), b'?').1
    }

    /// The header lines as received, in order.
    pub fn header_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.headers.iter().map(|line| line.raw.as_slice())
    }

    /// The first value of a header, trimmed; `None` if it is absent or not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.raw_values(name).next().and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All values of a header that are UTF-8, trimmed, in order.
    #[must_use]
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.raw_values(name).filter_map(|value| std::str::from_utf8(value).ok()).collect()
    }

    /// The body, chunking undone.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub(crate) fn raw_values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers.iter().filter(move |line| line.is(name)).map(|line| line.value.as_slice())
    }

    pub(crate) fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|line| line.name.as_str())
    }

    /// Whether the target holds only bytes that a URI may hold (RFC 3986): everything else must be percent-encoded.
    pub(crate) fn target_is_uri(&self) -> bool {
        self.target.iter().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(b))
    }

    /// The bytes of all header lines, line ends included.
    pub(crate) fn header_bytes(&self) -> usize {
        self.headers.iter().map(|line| line.raw.len() + "\r\n".len()).sum()
    }

    /// The length of the URL that the client asked for.
    pub(crate) fn url_length(&self) -> usize {
        match self.target.first() {
            Some(b'/') => "http://".len() + self.header("host").map_or(0, str::len) + self.target.len(),
            _ => self.target.len(),
        }
    }

    /// How the body is framed (RFC 9112 section 6).
    pub(crate) fn framing(&self) -> Result<Framing, Malformed> {
        let codings: Vec<&[u8]> = self.raw_values("transfer-encoding").collect();
        let mut lengths = self.raw_values("content-length").map(content_length);
        match (codings.as_slice(), lengths.next()) {
            ([], None) => Ok(Framing::Counted(0)),
            ([], Some(length)) => {
                let length = length?;
                match lengths.all(|other| other.is_ok_and(|other| other == length)) {
                    true => Ok(Framing::Counted(length)),
                    false => Err(Malformed("two content lengths differ")),
                }
            }
            ([coding], None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            _ => Err(Malformed("the body's framing is ambiguous")),
        }
    }

    /// Whether the client means to use the connection again.
    pub(crate) fn keeps_alive(&self) -> bool {
        let says = |word: &str| {
            let options = self.header_values("connection");
            options.iter().flat_map(|v| v.split(',')).any(|option| option.trim().eq_ignore_ascii_case(word))
        };
        !says("close") && (!self.http_10 || says("keep-alive"))
    }

    /// Whether it names its host once, as HTTP/1.1 demands (RFC 9112 section 3.2).
    pub(crate) fn has_one_host(&self) -> bool {
        let hosts = self.raw_values("host").count();
        hosts == 1 || (hosts == 0 && self.http_10)
    }

    fn origin_form(&self) -> &[u8] {
        let rest = self.target.strip_prefix(b"http://").or_else(|| self.target.strip_prefix(b"https://"));
        match rest {
            None => &self.target,
            Some(rest) => match rest.iter().position(|b| *b == b'/') {
                Some(slash) => rest.get(slash..).unwrap_or_default(),
                None => b"/",
            },
        }
    }
}

/// Shows neither header values, nor query, nor body: any of them may be secret.
impl fmt::Debug for RawRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRequest")
            .field("method", &self.method)
            .field("path", &String::from_utf8_lossy(self.path()))
            .field("headers", &self.header_names().collect::<Vec<_>>())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Where the head ends: behind the first empty line that follows a line.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut line_is_empty = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if line_is_empty => return Some(at + 1),
            b'\n' => line_is_empty = true,
            b'\r' => {}
            _ => line_is_empty = false,
        }
    }
    None
}

fn request_line(line: &[u8]) -> Result<(String, &[u8], bool), Malformed> {
    let (method, rest) = split_at_byte(line, b' ');
    let rest = rest.ok_or(Malformed("the request line has no target"))?;
    let method = token(method).ok_or(Malformed("the method is not a token"))?;
    let space = rest.iter().rposition(|b| *b == b' ').ok_or(Malformed("the request line has no version"))?;
    let target = rest.get(..space).unwrap_or_default();
    let http_10 = match rest.get(space..) {
        Some(b" HTTP/1.1") => false,
        Some(b" HTTP/1.0") => true,
        _ => return Err(Malformed("the version is neither HTTP/1.1 nor HTTP/1.0")),
    };
    if target.is_empty() || target.iter().any(u8::is_ascii_control) {
        return Err(Malformed("the target is empty or holds a control byte"));
    }
    Ok((method, target, http_10))
}

fn content_length(value: &[u8]) -> Result<u64, Malformed> {
    let digits = std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|v| v.parse().ok()).ok_or(Malformed("the content length is not a number"))
}
