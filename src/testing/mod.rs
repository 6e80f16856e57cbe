//! The test kit: a gateway that answers, refuses and fails on script.
//!
//! [`FakeGateway`] listens on a loopback port and behaves like an AWS API Gateway seen from the caller's side. It
//! verifies the SigV4 signature of every request with code of its own, on the bytes as they came over the wire; it
//! answers in API Gateway's words, with its headers; and it can do what a mock of statuses cannot: close, reset, stall
//! or dribble in the middle of an exchange. Every exchange is kept for the test to look at.
//!
//! ```
//! use eastwest::testing::{FakeGateway, Reply};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let gateway = FakeGateway::builder()
//!     .verify_signatures(false) // this example does not sign
//!     .route("GET", "/orders/7", [Reply::throttled(), Reply::json(200, r#"{"id":7}"#)])
//!     .start()
//!     .await?;
//!
//! let mut stream = tokio::net::TcpStream::connect(gateway.addr()).await?;
//! stream.write_all(b"GET /prod/orders/7 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer).await?;
//!
//! assert!(answer.starts_with("HTTP/1.1 429 "));
//! assert!(answer.contains("x-amzn-ErrorType: TooManyRequestsException"));
//! assert_eq!(gateway.attempts()[0].status(), Some(429));
//! gateway.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The verifier also stands alone, for requests that were caught elsewhere: [`verify`].

mod answers;
mod clock;
mod gateway;
mod lock;
mod signature;
mod wire;

pub use self::answers::reply::Reply;
pub use self::clock::ManualClock;
pub use self::gateway::fake::{FakeGateway, GatewayBuilder};
pub use self::gateway::record::RecordedAttempt;
pub use self::gateway::shared::ANY;
pub use self::signature::settings::{PathEncoding, VerifierSettings};
pub use self::signature::verdict::Verdict;
pub use self::signature::verification::Verification;
pub use self::signature::verifier::verify;
pub use self::wire::http::RawRequest;
pub use self::wire::malformed::Malformed;

pub use crate::edge::ambient::Ambient;
