//! A raw client for tests of the gateway, and the gateways it talks to.

use crate::testing::answers::reply::Reply;
use crate::testing::gateway::builder::GatewayBuilder;
use crate::testing::gateway::fake::FakeGateway;
use crate::testing::gateway::shared::ANY;
use crate::testing::signature::signed::{KEY, SECRET, Signer, TOKEN, noon, to_wire};
use crate::testing::wire::http::RawRequest;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A gateway that takes unsigned requests.
pub(crate) async fn open(replies: impl IntoIterator<Item = Reply>) -> FakeGateway {
    let gateway = FakeGateway::builder().verify_signatures(false).route(ANY, "/orders", replies);
    gateway.start().await.unwrap()
}

/// A gateway that insists on signatures, at noon.
pub(crate) fn strict() -> GatewayBuilder {
    FakeGateway::builder().credentials(KEY, SECRET, Some(TOKEN)).clock(Arc::new(noon))
}

pub(crate) fn order() -> RawRequest {
    RawRequest::new("POST", "/prod/orders").with_header("host", "127.0.0.1").with_body("{}")
}

pub(crate) fn signed_order() -> RawRequest {
    Signer::new().sign(order())
}

/// A raw client that reads one answer after the other.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Client {
    pub(crate) async fn connect(gateway: &FakeGateway) -> Self {
        Client { stream: TcpStream::connect(gateway.addr()).await.unwrap(), buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, request: &RawRequest) {
        self.stream.write_all(&to_wire(request)).await.unwrap();
    }

    pub(crate) async fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.stream.read_buf(&mut self.buffer).await.unwrap() > 0, "no answer");
        }
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status = head.get(9..12).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        while self.buffer.len() < length {
            assert!(self.stream.read_buf(&mut self.buffer).await.unwrap() > 0, "cut off");
        }
        answer.body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        answer
    }

    pub(crate) async fn ask(&mut self, request: &RawRequest) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// All that still comes until the gateway closes.
    pub(crate) async fn rest(&mut self) -> std::io::Result<String> {
        let mut rest = std::mem::take(&mut self.buffer);
        self.stream.read_to_end(&mut rest).await?;
        Ok(String::from_utf8_lossy(&rest).into_owned())
    }

    /// Whether nothing has come and the connection is open.
    pub(crate) fn is_silent(&self) -> bool {
        let read = self.stream.try_read(&mut [0; 16]);
        self.buffer.is_empty() && read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

pub(crate) async fn ask(gateway: &FakeGateway, request: &RawRequest) -> Answer {
    Client::connect(gateway).await.ask(request).await
}

/// Has a whole exchange on another connection, so that the gateway had every chance to do what it should not.
pub(crate) async fn let_others_through(gateway: &FakeGateway) {
    assert_eq!(
        ask(gateway, &RawRequest::new("GET", "/prod/other").with_header("host", "h")).await.status,
        403
    );
}
