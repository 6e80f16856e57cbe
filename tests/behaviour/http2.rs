//! HTTP/2, for those who ask for it: every stream is an attempt, and nothing is repeated behind the loop's back.

use crate::rig::builder;
use bytes::Bytes;
use eastwest::{CallContext, Class, ErrorKind, ServiceClient};
use http::{Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server without TLS that refuses its first streams unprocessed, and counts all of them.
struct Server {
    base_url: String,
    streams: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn refusing(first: usize) -> Server {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/prod", listener.local_addr().unwrap());
        let (streams, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, accepted) = (Arc::clone(&streams), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, first, Arc::clone(&seen)));
            }
        });
        Server { base_url, streams, connections }
    }

    fn client(&self) -> ServiceClient {
        let zero = std::time::Duration::ZERO;
        let at_once = eastwest::policy::backoff::Backoff::new(zero, zero, zero);
        builder(&self.base_url).http2().backoff(at_once).build().unwrap()
    }

    fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }
}

async fn serve(stream: tokio::net::TcpStream, refused: usize, seen: Arc<AtomicUsize>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.uri().path(), "/prod/orders");
        if seen.fetch_add(1, Ordering::SeqCst) < refused {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            continue;
        }
        let response = Response::builder().status(StatusCode::OK).body(()).unwrap();
        let mut body = respond.send_response(response, false).unwrap();
        body.send_data(Bytes::from_static(b"[]"), true).unwrap();
    }
}

#[tokio::test]
async fn calls_share_one_connection() {
    let server = Server::refusing(0).await;
    let client = server.client();
    for _ in 0..3 {
        let answer = client.post(&CallContext::root(), "/orders").body("{}").send().await.unwrap();
        assert_eq!((answer.attempts().len(), answer.body().as_ref()), (1, &b"[]"[..]));
    }
    assert_eq!((server.streams(), server.connections.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test]
async fn a_refused_stream_is_one_attempt_and_is_sent_again_by_the_loop_even_without_a_key() {
    let server = Server::refusing(1).await;
    let call = server.client().post(&CallContext::root(), "/orders").no_idempotency_key().body("{}");
    let answer = call.send().await.unwrap();
    assert_eq!((server.streams(), answer.attempts().len()), (2, 2));
    assert_eq!(answer.attempts()[0].class(), Class::NeverSent);
}

#[tokio::test]
async fn nothing_is_repeated_behind_the_loop_s_back() {
    let server = Server::refusing(100).await;
    let call = server.client().post(&CallContext::root(), "/orders").max_attempts(1).body("{}");
    let error = call.send().await.unwrap_err();
    assert_eq!((server.streams(), error.attempts().len(), error.kind()), (1, 1, ErrorKind::Transport));
    assert!(!error.may_have_committed());
}
