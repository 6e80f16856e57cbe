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
//! (The example takes the feature `testing`; a real client has a real URL, and credentials of its own.)
//!
//! # Where to begin
//!
//! | to | begin with |
//! |---|---|
//! | call a service | [`ServiceClient::builder`], [`CallContext`], and [`Error`] for what a call can come to |
//! | serve those who call | [`callee`]: the guard, of headers, of a Lambda's event, or as a layer |
//! | bound what calls may take | [`Profile`], [`RetryBudget`], [`BreakerSettings`], [`RateLimit`], and [`fleet`] for what many processes share |
//! | keep calls that were given up | [`dead_letter`], [`ServiceClient::replay`] |
//! | look at a running client | [`Observer`], [`ServiceClient::usage`], [`ServiceClient::describe`] |
//! | test an SDK | `testing::guide`, the chapter *Testing your SDK* (feature `testing`) |
//! | grant a caller what it needs | `iam` (feature `iam`) |
//! | know what is trusted, and what is not | [`threat_model`] |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `aws-config` (default) | Region and credentials from the AWS configuration, over this crate's HTTP client |
//! | `aws-lc-rs` | TLS by AWS-LC instead of ring |
//! | `http2` | HTTP/2, for clients that ask for it |
//! | `iam` | a caller's policies from a service's routes, and how near they are to IAM's limits |
//! | `metrics` | calls as counters and histograms of the `metrics` facade, version 0.24 |
//! | `redis` | Valkey or Redis as the store of what a fleet shares |
//! | `testing` | the test kit: a gateway that fails on script, over sockets or in memory, and a clock turned by hand |
//! | `tower` | the callee's guard as a layer |
//! | `wiremock` | matchers and responders for wiremock, version 0.6; it brings `testing` |
//!
//! What a version promises is what stands here at the root and in the modules above. [`policy`] holds the rules themselves, public so
//! that they can be simulated; of it only what is re-exported here is promised.
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
mod target;
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
