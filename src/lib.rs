//! A client for calling another team's service through an AWS API Gateway.
//!
//! Where services call each other through a private API Gateway with IAM authorization, the gateway takes away what a
//! direct invoke gave for nothing: it never retries, it answers in its own few words, it takes every internal call
//! out of the account's one token bucket, and Lambda's loop detector no longer sees the path. [`ServiceClient`] does
//! that work for the caller: it signs every attempt anew, sends the same hop count, correlation id and idempotency
//! key with each, and drives a retry loop that knows what the gateway's answers mean.
//!
//! ```
//! use eastwest::{CallContext, ErrorKind, ServiceClient};
//! use eastwest::testing::{FakeGateway, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = FakeGateway::builder()
//!     .credentials("AKIDEXAMPLE", "secret", None)
//!     .region("eu-central-1")
//!     .route("POST", "/orders", [Reply::unavailable(), Reply::json(201, r#"{"id":"o-1"}"#)])
//!     .start()
//!     .await?;
//! let orders = ServiceClient::builder(gateway.base_url())
//!     .region("eu-central-1")
//!     .static_credentials("AKIDEXAMPLE", "secret", None)
//!     .build()?;
//!
//! let answer = orders.post(&CallContext::root(), "/orders").json(&["A-7"]).send().await?;
//! assert_eq!(answer.status(), 201);
//! assert_eq!(answer.attempts().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | layer | module | what it is for |
//! |---|---|---|
//! | the face | `builder`, `client`, `call`, `template` | from settings to one intent, from intent to answer |
//! | | `describe` | the settings that hold, as data |
//! | | `response`, `error`, `error_kind`, `reply`, `story`, `json` | what comes back, what became of each attempt, and what to answer one's own caller |
//! | | [`dead_letter`], `replay`, `intent` | what is kept of a call that was given up, and how it is sent again |
//! | the loop | `retry_loop`, `teller` | sign, send, ask policy, wait; and keep the story meanwhile |
//! | | `shared`, `circuit`, `pace`, `settings` | what clones share; the breaker and the rate limit behind their locks; which value holds |
//! | | `observe`, `usage` | what an operator sees, and what is counted |
//! | pure | [`context`], [`callee`] | what rides along a chain, and what the receiving side checks |
//! | | [`policy`] | every decision, without I/O, clock, dice or lock; promised is what is re-exported |
//! | | [`fleet`] | what a fleet shares through a store: a breaker and a rate limit |
//! | the edge | `edge` | all that touches a socket, a clock or dice |
//! | feature | `iam` | a caller's policies from a service's routes, and how near they are to IAM's limits |
//! | | `tower` | the callee's guard as a layer: [`callee`] |
//! | | `testing` | the test kit: a gateway that fails on script, over sockets or in memory, and a clock turned by hand |
//! | | `network` | the seam at which the kit answers in memory |
//! | a page | [`threat_model`] | what is trusted, what is not, and the tests that show it |
//!
//! Arrows point down only, and a test holds them there.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod call;
pub mod callee;
mod circuit;
mod client;
pub mod context;
pub mod dead_letter;
mod describe;
mod edge;
mod error;
mod error_kind;
pub mod fleet;
#[cfg(feature = "iam")]
pub mod iam;
mod intent;
#[cfg(all(test, interleavings))]
mod interleavings;
mod json;
#[cfg(feature = "metrics")]
mod metrics_observer;
#[cfg(feature = "testing")]
mod network;
mod observe;
mod observer;
mod pace;
pub mod policy;
mod replay;
mod reply;
mod response;
mod retry_loop;
mod settings;
mod shared;
pub mod story;
mod sync;
mod teller;
mod template;
#[cfg(feature = "testing")]
pub mod testing;
pub mod threat_model;
mod usage;

/// The crate whose `ConfigLoader` and `SdkConfig` the AWS chain speaks.
#[cfg(feature = "aws-config")]
pub use aws_config;
/// The crate whose [`ProvideCredentials`](aws_credential_types::provider::ProvideCredentials) a provider implements.
pub use aws_credential_types;
pub use builder::ClientBuilder;
/// The crate whose [`Bytes`](bytes::Bytes) bodies are made of.
pub use bytes;
pub use call::Call;
pub use circuit::CircuitBreaker;
pub use client::ServiceClient;
pub use context::{CallContext, IdempotencyKey, MAX_HOPS};
pub use dead_letter::{DeadLetter, DeadLetterSink};
pub use describe::Description;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use edge::attempt_signer::AttemptSigner;
#[cfg(feature = "aws-config")]
pub use edge::lent::{load_aws_config, load_aws_config_with};
pub use edge::user_token::{InvalidUserToken, UserToken, UserTokenFuture, UserTokenSource};
pub use error::Error;
pub use error_kind::ErrorKind;
/// The crate whose methods, status codes and header maps are spoken here.
pub use http;
#[cfg(feature = "metrics")]
pub use metrics_observer::MetricsObserver;
pub use observer::{CallView, Event, Observer};
#[doc(inline)]
pub use policy::{
    account_quota::AccountBucket,
    attempts::StopReason,
    backoff::Backoff,
    breaker::{BreakerSettings, Cause as CircuitCause, State as CircuitState},
    classify::Class,
    gateway::GatewayError,
    profile::Profile,
    quota_headers::{QuotaHeaders, Reset},
    rate_limit::{Priority, RateLimit},
    refine::{Sighting, Verdict},
    retry_budget::RetryBudget,
};
pub use response::Response;
pub use story::Attempt;
pub use usage::{AccountQuota, Usage};

/// Compiles and runs what the README shows.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
