//! One HTTP/1.1 message as the proxy reads it: a head, and a body of an announced length.

use std::io::{self, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt};

/// A message, whole or as far as it came.
pub struct Message {
    pub bytes: Vec<u8>,
    pub head_length: usize,
    pub whole: bool,
}

impl Message {
    /// The first line, without its end.
    pub fn first_line(&self) -> &str {
        self.head().lines().next().unwrap_or_default()
    }

    /// The value of a header, trimmed.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head().lines().skip(1).find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The status of an answer.
    pub fn status(&self) -> Option<u16> {
        self.first_line().split(' ').nth(1)?.parse().ok()
    }

    /// Whether the sender means to close after it.
    pub fn closes(&self) -> bool {
        !self.whole || self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn head(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.head_length]).unwrap_or_default()
    }

    fn announced(&self) -> usize {
        self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default()
    }
}

/// A stream's bytes that were read and not used yet.
#[derive(Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// Reads a head; `None` where the peer ended the connection between messages.
    pub async fn head(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
        loop {
            if let Some(end) = self.0.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = self.0.split_off(end + 4);
                let bytes = std::mem::replace(&mut self.0, rest);
                return Ok(Some(Message { head_length: bytes.len(), bytes, whole: false }));
            }
            if stream.read_buf(&mut self.0).await? == 0 {
                return match self.0.is_empty() {
                    true => Ok(None),
                    false => Err(ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Reads the body that belongs to a head; of one that breaks off, what came of it.
    pub async fn body(&mut self, stream: &mut (impl AsyncRead + Unpin), message: &mut Message) {
        let length = message.announced();
        while self.0.len() < length {
            if !stream.read_buf(&mut self.0).await.is_ok_and(|read| read > 0) {
                break;
            }
        }
        message.whole = self.0.len() >= length;
        let rest = self.0.split_off(length.min(self.0.len()));
        message.bytes.append(&mut std::mem::replace(&mut self.0, rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_that_come_together_are_told_apart_and_one_that_breaks_off_is_not_whole() {
        let mut stream: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET /x HTTP/1.1\r\n\r\n\
            HTTP/1.1 201 Created\r\ncontent-length:5\r\nConnection: close\r\n\r\nxy";
        let mut buffer = Buffer::default();
        let mut seen = Vec::new();
        while let Some(mut message) = buffer.head(&mut stream).await.unwrap() {
            buffer.body(&mut stream, &mut message).await;
            let body = message.bytes[message.head_length..].to_vec();
            seen.push((message.first_line().to_owned(), message.status(), message.closes(), body));
        }
        assert_eq!(seen[0], ("POST / HTTP/1.1".into(), None, false, b"ab".to_vec()));
        assert_eq!(seen[1], ("GET /x HTTP/1.1".into(), None, false, Vec::new()));
        assert_eq!(seen[2], ("HTTP/1.1 201 Created".into(), Some(201), true, b"xy".to_vec()));
    }
}
