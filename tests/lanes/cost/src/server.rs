//! The callee: answers 200, 503 to the first attempt on `/again`, and to each on `/unavailable` without a body.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Serves on threads of its own, for as long as the process lives; says where.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(&stream));
        }
    });
    Ok(address)
}

/// One kept connection, request after request.
fn converse(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let (mut length, mut again, mut first, mut unavailable) = (0, false, false, false);
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let text = line.trim_end();
            again |= text.starts_with("POST /again ");
            first |= text == "x-attempt-count: 1";
            unavailable |= text.starts_with("POST /unavailable ");
            if let Some(number) = text.strip_prefix("content-length: ") {
                length = number.parse().unwrap_or(0);
            }
            if text.is_empty() {
                break;
            }
        }
        io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
        let answer = match (unavailable, again && first) {
            (true, _) => answer(UNAVAILABLE, 0),
            (_, true) => answer(UNAVAILABLE, crate::ANSWER),
            _ => answer("200 OK", crate::ANSWER),
        };
        writer.write_all(&answer)?;
    }
}

/// An answer with the headers that an API Gateway sends, except the `Date`: what a client makes of that depends on the time.
fn answer(status: &str, length: usize) -> Vec<u8> {
    let body = vec![b'a'; length];
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         x-amzn-RequestId: 8b1a7c60-5a3e-4c55-9a0e-1c9df1b6f6a1\r\nx-amz-apigw-id: AbCdEfGhIjKlMnO=\r\n\
         X-Amzn-Trace-Id: Root=1-6858764a-5c96ac04102925a7698c3690\r\n\r\n",
        body.len()
    )
    .into_bytes();
    text.extend_from_slice(&body);
    text
}

const UNAVAILABLE: &str = "503 Service Unavailable";
