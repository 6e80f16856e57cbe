//! The test kit: a gateway that answers, refuses and fails on script.
//!
//! [`FakeGateway`] behaves like an AWS API Gateway seen from the caller's side, on a loopback port or in memory. It verifies
//! the SigV4 signature of every request with code of its own; it answers in API Gateway's words, with its headers; and it can
//! do what a mock of statuses cannot: refuse, close, reset, stall or dribble in the middle of an exchange. Every exchange is
//! kept for the test to look at.
//!
//! ```
//! use eastwest::CallContext;
//! use eastwest::testing::{FakeGateway, ManualClock, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), eastwest::Error> {
//! let gateway = FakeGateway::builder()
//!     .manual_clock(&ManualClock::new())
//!     .route("GET", "/orders/7", [Reply::throttled(), Reply::reset(), Reply::json(200, r#"{"id":7}"#)])
//!     .without_socket();
//! let client = gateway.client().build()?;
//!
//! client.get(&CallContext::root(), "/orders/7").send().await?;
//!
//! gateway.assert_attempts(3).assert_resigned();
//! # Ok(())
//! # }
//! ```
//!
//! The chapter [`guide`] shows it all at work. In order of need:
//!
//! | | |
//! |---|---|
//! | [`FakeGateway`], [`Reply`], [`GatewayResponse`] | routes and scripts, ready answers, faults on the wire |
//! | [`Story`], [`RecordedAttempt`] | what was seen, and assertions on it |
//! | [`ManualClock`] | time that passes when told to, recorded waits, dice that repeat |
//! | [`IdempotentCallee`], [`TokenBucket`], [`FakeCredentials`] | a callee that keeps keys, the account's bucket, a provider that fails |
//! | `wiremock` | matchers and responders, with the feature of that name |
//! | [`verify`], [`Verification`] | the verifier alone, for requests that were caught elsewhere |
//! | [`Network`] | the seam itself, for what the gateway is not |

mod answers;
mod client;
mod clock;
mod credentials;
mod gateway;
pub mod guide;
mod lock;
mod signature;
mod wire;
#[cfg(feature = "wiremock")]
pub mod wiremock;

pub use self::answers::callee::IdempotentCallee;
pub use self::answers::gateway_response::GatewayResponse;
pub use self::answers::reply::Reply;
pub use self::clock::ManualClock;
pub use self::credentials::FakeCredentials;
pub use self::gateway::bucket::TokenBucket;
pub use self::gateway::builder::GatewayBuilder;
pub use self::gateway::fake::FakeGateway;
pub use self::gateway::in_memory::InMemory;
pub use self::gateway::record::RecordedAttempt;
pub use self::gateway::shared::ANY;
pub use self::gateway::story::Story;
pub use self::signature::settings::{PathEncoding, VerifierSettings};
pub use self::signature::verdict::Verdict;
pub use self::signature::verification::Verification;
pub use self::signature::verifier::verify;
pub use self::wire::http::RawRequest;
pub use self::wire::malformed::Malformed;

pub use crate::edge::ambient::Ambient;
pub use crate::network::{Delivery, Network, Outgoing};
#[doc(inline)]
pub use crate::policy::{
    moment::{Draw, Moment},
    outcome::{Loss, Unsent},
};
