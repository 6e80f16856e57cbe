//! Replies, put on the wire.

use crate::edge::ambient::{self, Ambient};
use crate::testing::answers::reply::{Behaviour, Delivery, Reply, Surface};
use std::io;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What becomes of the connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It is closed.
    Close,
    /// It is read on and may bring another request.
    Next,
    /// It is reset.
    Reset,
}

/// What an answer is stamped with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// The gateway's time, for `Date`.
    pub(crate) now: SystemTime,
    /// The answer's number, of which its ids are made.
    pub(crate) number: usize,
    /// Whether the request was HEAD, whose answer has no body.
    pub(crate) to_head: bool,
    /// Whether the client wants to keep the connection.
    pub(crate) keep_alive: bool,
}

/// Does what the reply says.
pub(crate) async fn perform(reply: &Reply, stamp: Stamp, stream: &mut TcpStream) -> io::Result<After> {
    wait(reply.delay).await;
    match reply.behaviour {
        Behaviour::Answer => answer(reply, stamp, stream).await,
        // What is dynamic was settled before; should it not be, silence is the safest.
        Behaviour::Close | Behaviour::Dynamic(_) | Behaviour::Refuse => Ok(After::Close),
        Behaviour::Garbage => {
            stream.write_all(GARBAGE).await?;
            Ok(After::Close)
        }
        Behaviour::Hang => {
            outlast(stream).await;
            Ok(After::Close)
        }
        Behaviour::Reset | Behaviour::ResetBeforeReading => Ok(After::Reset),
    }
}

async fn answer(reply: &Reply, stamp: Stamp, stream: &mut TcpStream) -> io::Result<After> {
    let bodiless = stamp.to_head || has_no_body(reply.status);
    let body: &[u8] = if bodiless { b"" } else { &reply.body };
    let mut out = head(reply, stamp);
    let beginning = |bytes: usize| body.get(..bytes.min(body.len())).unwrap_or_default();
    match reply.delivery {
        Delivery::Drip { chunk, every } => {
            stream.write_all(&out).await?;
            for piece in body.chunks(chunk) {
                wait(every).await;
                stream.write_all(piece).await?;
            }
        }
        Delivery::ResetAfter(bytes) => {
            out.extend_from_slice(beginning(bytes));
            stream.write_all(&out).await?;
            return Ok(After::Reset);
        }
        Delivery::StallAfter(bytes) => {
            out.extend_from_slice(beginning(bytes));
            stream.write_all(&out).await?;
            outlast(stream).await;
            return Ok(After::Close);
        }
        Delivery::TruncateAfter(bytes) => {
            out.extend_from_slice(beginning(bytes));
            stream.write_all(&out).await?;
            return Ok(After::Close);
        }
        Delivery::Whole => {
            out.extend_from_slice(body);
            stream.write_all(&out).await?;
        }
    }
    match reply.keep_alive && stamp.keep_alive {
        true => Ok(After::Next),
        false => Ok(After::Close),
    }
}

/// Status line and headers, up to and with the empty line.
fn head(reply: &Reply, stamp: Stamp) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(reply.status).ok().and_then(|s| s.canonical_reason());
    let mut out = format!("HTTP/1.1 {:03} {}\r\n", reply.status, reason.unwrap_or_default()).into_bytes();
    for (name, value) in header_lines(reply, stamp) {
        for part in [name.as_bytes(), b": ", &value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The header lines of an answer: those that the gateway adds, and then the script's.
pub(crate) fn header_lines(reply: &Reply, stamp: Stamp) -> Vec<(String, Vec<u8>)> {
    let mut lines = Vec::new();
    for (name, value) in added_headers(reply, stamp) {
        let is_set = reply.headers.iter().any(|(set, _)| set.eq_ignore_ascii_case(name));
        let is_omitted = reply.omitted.iter().any(|omitted| omitted.eq_ignore_ascii_case(name));
        if !is_set && !is_omitted {
            lines.push((name.to_owned(), value.into_bytes()));
        }
    }
    lines.extend(reply.headers.iter().cloned());
    lines
}

fn added_headers(reply: &Reply, stamp: Stamp) -> Vec<(&'static str, String)> {
    let number = stamp.number;
    let mut added = Vec::new();
    if let Some(date) = http_date(stamp.now) {
        added.push(("Date", date));
    }
    if !has_no_body(reply.status) {
        added.push(("Content-Length", reply.body.len().to_string()));
    }
    if !(reply.keep_alive && stamp.keep_alive) {
        added.push(("Connection", "close".to_owned()));
    }
    let gateway_id = format!("AAAAAGH0IAMF{number:04}=");
    match reply.surface {
        Surface::HttpApi => added.push(("Apigw-Requestid", gateway_id)),
        Surface::Callee | Surface::RestApi => {
            added.push(("x-amzn-RequestId", format!("00000000-0000-4000-8000-{number:012x}")));
            added.push(("x-amz-apigw-id", gateway_id));
        }
    }
    if reply.surface == Surface::Callee {
        added.push(("X-Amzn-Trace-Id", format!("Root=1-68dd0000-{number:024x}")));
    }
    added
}

/// `None` for a time that HTTP dates cannot say, before 1970 or after 9999.
fn http_date(now: SystemTime) -> Option<String> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since.as_secs() <= LAST_HTTP_SECOND).then(|| httpdate::fmt_http_date(now))
}

/// Statuses whose answers end with their head (RFC 9110 sections 6.4.1 and 15).
pub(crate) fn has_no_body(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

/// Stays until the client goes; what it still sends is dropped.
pub(crate) async fn outlast(stream: &mut TcpStream) {
    let mut dropped = [0; 4_096];
    while stream.read(&mut dropped).await.is_ok_and(|read| read > 0) {}
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        ambient::system().sleep(time).await;
    }
}

const GARBAGE: &[u8] = b"\x16\x03\x01 this is no HTTP\r\n\r\n";
const LAST_HTTP_SECOND: u64 = 253_402_300_799;
