//! One header line as received, and the tokens that names are made of (RFC 9110 section 5.6.2).

use crate::testing::wire::malformed::Malformed;

/// One header line.
#[derive(Clone)]
pub(crate) struct HeaderLine {
    pub(crate) name: String,
    pub(crate) value: Vec<u8>,
    pub(crate) raw: Vec<u8>,
}

impl HeaderLine {
    pub(crate) fn new(name: &str, value: &[u8]) -> Self {
        let raw = [name.as_bytes(), b": ", value].concat();
        HeaderLine { name: name.to_owned(), value: value.trim_ascii().to_vec(), raw }
    }

    pub(crate) fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let (name, value) = split_at_byte(line, b':');
        let value = value.ok_or(Malformed("a header line has no colon"))?;
        let name = token(name).ok_or(Malformed("a header name is not a token"))?;
        Ok(HeaderLine { name, value: value.trim_ascii().to_vec(), raw: line.to_vec() })
    }

    /// Takes in a continuation line.
    pub(crate) fn unfold(&mut self, line: &[u8]) {
        for part in [&mut self.value, &mut self.raw] {
            part.push(b' ');
            part.extend_from_slice(line.trim_ascii());
        }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

pub(crate) fn token(bytes: &[u8]) -> Option<String> {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    let fits = !bytes.is_empty() && bytes.iter().all(is_token);
    fits.then(|| String::from_utf8_lossy(bytes).into_owned())
}

pub(crate) fn split_at_byte(bytes: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    let mut parts = bytes.splitn(2, |b| *b == at);
    (parts.next().unwrap_or_default(), parts.next())
}
