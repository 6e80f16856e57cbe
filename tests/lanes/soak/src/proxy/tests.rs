//! What the proxy does to an exchange is what the fault's name says.

use super::*;
use crate::fault::{Course, Pace, Silence, Then};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Witness for Seen {
    fn arrived(&self, exchange: &Passage) {
        self.0.lock().unwrap().push(format!("{}.{} arrived", exchange.reference, exchange.attempt));
    }
    fn answering(&self, exchange: &Passage, status: u16) {
        self.0.lock().unwrap().push(format!("{}.{} {status}", exchange.reference, exchange.attempt));
    }
    fn delivered(&self, exchange: &Passage) {
        self.0.lock().unwrap().push(format!("{}.{} delivered", exchange.reference, exchange.attempt));
    }
}

/// A gateway that answers each request with its whole length.
async fn gateway() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = crate::message::Buffer::default();
                while let Ok(Some(mut request)) = buffer.head(&mut stream).await {
                    buffer.body(&mut stream, &mut request).await;
                    if !request.whole {
                        return;
                    }
                    let body = "x".repeat(100);
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    addr
}

const REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nX-Reference: 7\r\nx-attempt-count: 2\r\ncontent-length: 3\r\n\r\nabc";

/// Sends a request on a course of its own, and tells what came back, how it ended and what was seen.
async fn on(course: Course) -> (String, Option<io::ErrorKind>, Vec<String>) {
    let seen = Arc::new(Seen::default());
    let shared = Shared {
        witness: Arc::clone(&seen) as Arc<dyn Witness>,
        upstream: Mutex::new(gateway().await),
        percent: AtomicU32::new(0),
        rng: Mutex::new(Rng::with_seed(1)),
        connections: AtomicU64::new(0),
        faults: Mutex::default(),
        greetings: AtomicU64::new(0),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let carried = tokio::spawn(async move { crate::exchange::carry_on(&shared, server, course).await });
    client.write_all(REQUEST).await.unwrap();
    let mut got = Vec::new();
    if course.then == Then::Keep && course.cut.is_none() && course.instead_of_answer.is_none() {
        // The connection stays: the client closes its half.
        client.shutdown().await.unwrap();
    }
    let end = client.read_to_end(&mut got).await;
    drop(client);
    carried.await.unwrap();
    let seen = seen.0.lock().unwrap().clone();
    (String::from_utf8(got).unwrap(), end.err().map(|error| error.kind()), seen)
}

const WHOLE: usize = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n".len() + 100;

#[tokio::test]
async fn an_exchange_that_is_passed_or_slowed_brings_the_whole_answer() {
    let slow = Pace { bytes: 50, every: Duration::from_millis(1) };
    let courses = [
        Course::default(),
        Course { answer_pace: Some(slow), request_pace: Some(slow), ..Course::default() },
        Course { half_close_upstream: true, ..Course::default() },
        Course { then: Then::Close, ..Course::default() },
    ];
    for course in courses {
        let (got, end, seen) = on(course).await;
        assert_eq!((got.len(), end), (WHOLE, None), "{course:?}");
        assert_eq!(seen, ["7.2 arrived", "7.2 200", "7.2 delivered"]);
    }
}

#[tokio::test]
async fn a_reset_is_a_reset_and_brings_nothing() {
    let courses = [
        Course { reset_before: true, ..Course::default() },
        Course { reset_within: true, ..Course::default() },
        Course { instead_of_answer: Some(Silence::Reset), ..Course::default() },
    ];
    for course in courses {
        let (got, end, seen) = on(Course { then: Then::Reset, ..course }).await;
        assert_eq!((got.as_str(), end), ("", Some(io::ErrorKind::ConnectionReset)), "{course:?}");
        assert_eq!(seen, ["7.2 arrived"]);
    }
}

#[tokio::test]
async fn a_half_close_is_an_end_without_an_answer() {
    let (got, end, seen) = on(Course { instead_of_answer: Some(Silence::Close), ..Course::default() }).await;
    assert_eq!((got.as_str(), end), ("", None));
    assert_eq!(seen, ["7.2 arrived"]);
}

#[tokio::test]
async fn a_cut_answer_has_its_head_and_a_part_of_its_body_and_is_not_delivered() {
    let (got, end, seen) = on(Course { cut: Some((250, false)), ..Course::default() }).await;
    assert_eq!((got.len(), end), (WHOLE - 75, None));
    assert_eq!(seen, ["7.2 arrived", "7.2 200"]);
}

#[tokio::test]
async fn a_port_that_was_refused_for_a_while_accepts_again() {
    let proxy = Proxy::start(gateway().await, Arc::new(Seen::default()), 3).await.unwrap();
    let addr = proxy.addr();
    proxy.refuse(Duration::from_millis(50));
    let mut refused = false;
    let mut stream = loop {
        match TcpStream::connect(addr).await {
            Ok(stream) if refused => break stream,
            Ok(_) => tokio::task::yield_now().await,
            // Those that nobody had accepted when the port was closed are reset.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
                refused = true;
            }
        }
    };
    stream.write_all(REQUEST).await.unwrap();
    let mut got = vec![0; WHOLE];
    stream.read_exact(&mut got).await.unwrap();
    assert!(proxy.connections() > 0);
    proxy.shutdown().await;
    assert!(TcpStream::connect(addr).await.is_err());
}
