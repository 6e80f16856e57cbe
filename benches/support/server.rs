//! The callee of the benches: answers every request with the same 200, as fast as it can.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves on a thread of its own, for as long as the process lives; says where.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio::spawn(converse(stream));
            }
            #[allow(unreachable_code, reason = "it names the error of the block")]
            Ok::<(), io::Error>(())
        })
    });
    Ok(address)
}

/// One kept connection, request after request.
async fn converse(mut stream: TcpStream) -> io::Result<()> {
    let (mut received, mut answer) = (Vec::with_capacity(16 * 1024), Answer::new());
    while stream.read_buf(&mut received).await? > 0 {
        if is_whole(&received) {
            received.clear();
            stream.write_all(answer.bytes()).await?;
        }
    }
    Ok(())
}

/// Whether all of a request is there. Every body has the same length and nobody sends a second request before the first
/// is answered: to look at one place is enough, and costs the same however long the head is.
fn is_whole(received: &[u8]) -> bool {
    let head = received.len().checked_sub(BODY).and_then(|end| received.get(..end));
    head.is_some_and(|head| head.ends_with(b"\r\n\r\n"))
}

/// The one answer, with the headers that an API Gateway sends. Its `Date` is true: a client that compares clocks finds
/// nothing to correct.
struct Answer {
    text: Vec<u8>,
    written: Instant,
}

impl Answer {
    fn new() -> Answer {
        Answer { text: Answer::text(), written: Instant::now() }
    }

    fn bytes(&mut self) -> &[u8] {
        if self.written.elapsed() > Duration::from_secs(1) {
            *self = Answer::new();
        }
        &self.text
    }

    fn text() -> Vec<u8> {
        let body = json(BODY);
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut text = format!(
            "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             x-amzn-RequestId: 8b1a7c60-5a3e-4c55-9a0e-1c9df1b6f6a1\r\nx-amz-apigw-id: AbCdEfGhIjKlMnO=\r\n\
             X-Amzn-Trace-Id: Root=1-6858764a-5c96ac04102925a7698c3690\r\n\r\n",
            body.len()
        )
        .into_bytes();
        text.extend_from_slice(&body);
        text
    }
}

/// A JSON text of exactly so many bytes, at least 16.
pub(crate) fn json(bytes: usize) -> Vec<u8> {
    let filler = bytes.saturating_sub(r#"{"text":""}"#.len());
    format!(r#"{{"text":"{}"}}"#, "a".repeat(filler)).into_bytes()
}

/// The length of every body, request's and answer's.
pub(crate) const BODY: usize = 1024;
