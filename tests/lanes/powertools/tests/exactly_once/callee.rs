//! The callee and its database, which run already: where they are, what they did, and when the callee may finish.

use std::io::Write;
use std::net::SocketAddr;
use std::{env, io, thread};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A running callee.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    addr: SocketAddr,
    database: SocketAddr,
}

impl Callee {
    /// The one that keeps keys; `None`, said aloud, where there is none.
    pub fn at_hand() -> Option<Callee> {
        Callee::named(CALLEE)
    }

    /// The one whose Powertools are switched off.
    pub fn switched_off() -> Option<Callee> {
        Callee::named(SWITCHED_OFF)
    }

    fn named(name: &str) -> Option<Callee> {
        let (Some(addr), Some(database)) = (address(name), address(REDIS)) else {
            let set = [CALLEE, SWITCHED_OFF, REDIS].into_iter().filter(|name| env::var_os(name).is_some());
            assert_eq!(set.count(), 0, "of {CALLEE}, {SWITCHED_OFF} and {REDIS} some are set, and not all");
            let test = thread::current().name().unwrap_or("a test").to_owned();
            // Not by a macro: what those print in a test that passes is not shown.
            let told = format!("SKIPPED {test}: there is no callee; `run` starts one\n");
            io::stderr().write_all(told.as_bytes()).unwrap();
            return None;
        };
        Some(Callee { addr, database })
    }

    /// Sends a request with this head, but for its end, and reads the answer to its end.
    pub async fn exchange(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let head = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        Answer::read(&answer)
    }

    /// Waits until the order is committed, whether or not it is answered.
    pub async fn has_committed(&self, order: &str) {
        let answer = self.exchange(&format!("GET /control/committed/{order} HTTP/1.1\r\n"), b"").await;
        assert_eq!(answer.status, 204, "{order} was not committed");
    }

    /// Lets the order's first execution go, and waits until it and its record are complete.
    pub async fn finish(&self, order: &str) {
        let answer = self.exchange(&format!("POST /control/finish/{order} HTTP/1.1\r\n"), b"").await;
        assert_eq!(answer.status, 204, "{order} was not finished");
    }

    /// The keys of the order's commits, as the database has them.
    pub async fn commits(&self, order: &str) -> Vec<String> {
        let mut stream = BufReader::new(TcpStream::connect(self.database).await.unwrap());
        stream.write_all(format!("LRANGE commits:{order} 0 -1\r\nQUIT\r\n").as_bytes()).await.unwrap();
        let mut lines = stream.lines();
        let count = lines.next_line().await.unwrap().unwrap();
        let count: usize = count.strip_prefix('*').unwrap_or_else(|| panic!("{count}")).parse().unwrap();
        let mut keys = Vec::new();
        for _ in 0..count {
            assert!(lines.next_line().await.unwrap().unwrap().starts_with('$'));
            keys.push(lines.next_line().await.unwrap().unwrap());
        }
        keys
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Whether the function threw instead of returning.
    pub threw: bool,
    pub body: String,
}

impl Answer {
    fn read(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let threw = head.to_ascii_lowercase().contains("\r\nx-amz-function-error: unhandled");
        Answer { status, threw, body: body.to_owned() }
    }
}

fn address(name: &str) -> Option<SocketAddr> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no address: {text}")))
}

const CALLEE: &str = "EASTWEST_POWERTOOLS_CALLEE";
const SWITCHED_OFF: &str = "EASTWEST_POWERTOOLS_SWITCHED_OFF";
const REDIS: &str = "EASTWEST_POWERTOOLS_REDIS";
