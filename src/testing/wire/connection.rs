//! One connection: requests read, decided on and answered, one after the other.

use crate::testing::answers::named;
use crate::testing::answers::reply::Reply;
use crate::testing::gateway::shared::Shared;
use crate::testing::wire::body::BodyReader;
use crate::testing::wire::http::{RawRequest, head_end};
use crate::testing::wire::malformed::Malformed;
use crate::testing::wire::write::{After, Stamp, outlast, perform};
use bytes::{Buf, BytesMut};
use std::io;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Serves a connection until either side ends it.
pub(crate) async fn serve(shared: &Shared, stream: TcpStream, number: usize) {
    let mut wire = Wire { stream, buffer: BytesMut::new() };
    loop {
        match exchange(shared, &mut wire, number).await {
            Ok(After::Next) => {}
            Ok(After::Reset) => {
                // With a linger of zero the drop that follows sends RST instead of FIN.
                let _ = wire.stream.set_zero_linger();
                return;
            }
            Ok(After::Close) | Err(Lost::Gone) => {
                let _ = wire.stream.shutdown().await;
                return;
            }
            Err(Lost::HeadTooLarge) => return refuse(shared, wire, Reply::headers_too_large()).await,
            Err(Lost::Malformed) => return refuse(shared, wire, named::bad_request()).await,
        }
    }
}

async fn exchange(shared: &Shared, wire: &mut Wire, number: usize) -> Result<After, Lost> {
    let Some(head) = wire.head().await? else {
        return Ok(After::Close);
    };
    let mut stamp = Stamp {
        now: shared.now(),
        number: shared.next_answer(),
        to_head: head.method() == "HEAD",
        keep_alive: head.keeps_alive(),
    };
    if let Some(reset) = shared.resets_unread(&head, number) {
        return Ok(perform(&reset, stamp, &mut wire.stream).await?);
    }
    let (request, over_limit) = wire.body(head).await?;
    let reply = shared.decide(request, over_limit, number);
    stamp.now = shared.now();
    Ok(perform(&reply, stamp, &mut wire.stream).await?)
}

/// Answers what could not be read, and waits for the client to go: closing on unread bytes would reset the
/// connection and could take the answer with it.
async fn refuse(shared: &Shared, mut wire: Wire, reply: Reply) {
    shared.malformed.fetch_add(1, Ordering::Relaxed);
    let stamp = Stamp { now: shared.now(), number: shared.next_answer(), to_head: false, keep_alive: false };
    if perform(&reply, stamp, &mut wire.stream).await.is_ok() && wire.stream.shutdown().await.is_ok() {
        outlast(&mut wire.stream).await;
    }
}

/// A connection and what has come over it, not yet used.
struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Wire {
    /// Reads a head; `None` if the client ended the connection between requests.
    async fn head(&mut self) -> Result<Option<RawRequest>, Lost> {
        loop {
            // An empty line before a request is passed over (RFC 9112 section 2.2).
            while let Some(b'\r' | b'\n') = self.buffer.first() {
                self.buffer.advance(1);
            }
            if let Some(end) = head_end(&self.buffer) {
                return Ok(Some(RawRequest::parse_head(&self.buffer.split_to(end))?));
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(Lost::HeadTooLarge);
            }
            if !self.more().await? {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(Lost::Malformed),
                };
            }
        }
    }

    /// Reads the body that belongs to a head; answers also whether it is over the limit.
    async fn body(&mut self, head: RawRequest) -> Result<(RawRequest, bool), Lost> {
        let mut reader = BodyReader::new(head.framing()?, LARGEST_BODY);
        while !reader.feed(&mut self.buffer)? {
            if !self.more().await? {
                return Err(Lost::Gone);
            }
        }
        let body = reader.finish();
        Ok((head.with_body(body.kept), body.over_limit))
    }

    async fn more(&mut self) -> Result<bool, Lost> {
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

/// Why there is no request.
enum Lost {
    Gone,
    HeadTooLarge,
    Malformed,
}

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Lost::Gone
    }
}

impl From<Malformed> for Lost {
    fn from(_: Malformed) -> Self {
        Lost::Malformed
    }
}

/// API Gateway's payload limit ("Amazon API Gateway quotas").
pub(crate) const LARGEST_BODY: usize = 10_485_760;
/// Well beyond the gateway's own limits, so that what is somewhat over them is recorded for the test to look at.
const LONGEST_HEAD: usize = 65_536;
