//! What the receiving side checks before it works.
//!
//! A function that other services call begins with a [`Guard`], as values or as a layer (`layer`, feature `tower`). It
//! reads the headers that ride along a chain of calls and answers with the [`CallContext`] to make one's own calls
//! with, or with a [`Refusal`] to return at once, before any work is done:
//!
//! | the request | refused with |
//! |---|---|
//! | has no `x-hop-count` (at a front door it begins a chain) | 400 [`MissingHopCount`](RefusalKind::MissingHopCount) |
//! | has one that is not `[1-9][0-9]?`, or two, equal ones too | 400 [`InvalidHopCount`](RefusalKind::InvalidHopCount) |
//! | is at hop 8 or beyond ([`MAX_HOPS`](crate::MAX_HOPS)) | 508 [`HopBudgetExhausted`](RefusalKind::HopBudgetExhausted) |
//! | is a POST or PATCH without `x-idempotency-key` | 400 [`MissingIdempotencyKey`](RefusalKind::MissingIdempotencyKey) |
//! | has one that is not 1 to 255 visible ASCII characters, or two | 400 [`InvalidIdempotencyKey`](RefusalKind::InvalidIdempotencyKey) |
//! | has an `x-time-budget-ms` of 30 or less: the answer would be too late | 503 [`NoTimeLeft`](RefusalKind::NoTimeLeft) |
//!
//! Where several hold, the first is told. A missing or unusable `x-correlation-id` is replaced by a fresh one, an
//! unusable `x-time-budget-ms` or trace header counts as absent. [`accept`] and [`accept_front_door`] are the guard for
//! who has headers and no method; without one they demand no key.
//!
//! | where | what to write |
//! |---|---|
//! | axum, `lambda_http`, tower | `.layer(callee::layer(Guard::new()))` |
//! | a Lambda that takes the event as JSON | [`Guard::accept_event`], and return [`Refusal::to_proxy_reply`] |
//! | `http::Request` | [`Guard::accept`] of method and headers, and return [`Refusal::to_response`] |
//!
//! Every refusal is a `tracing` event and counted, by kind, for the whole process: [`refusals`].
//!
//! A failed call of one's own is answered in the same way, by [`Error::to_response`](crate::Error::to_response).
//!
//! **Return a refusal, never throw it.** What a handler throws, the gateway turns into a bare 502, which callers send
//! again, once at each level: through a chain of seven that is 2^7 calls. [`Refusal::to_response`] carries
//! `x-should-retry: false`, which stops them all.
//!
//! # What the key is for
//!
//! A key is demanded so that the callee can know a repeat. To know it, the callee must remember keys:
//!
//! - **Python or TypeScript, with Powertools for AWS Lambda.** Let its idempotency utility take the key by the JMESPath
//!   `headers."x-idempotency-key"`: names in the event are case-sensitive there, and this crate's client writes
//!   lower case. Set `throwOnNoIdempotencyKey` (`raise_on_no_idempotency_key`), or a request without a key is simply
//!   done again. Register the Lambda context (`registerLambdaContext`, `register_lambda_context`), so that the record of a
//!   run that was cut off ends with the time that run had; without it the key stays *in progress*.
//! - **What it throws and what it keeps.** In progress, another payload under the key, a missing key: all of them are
//!   *thrown* there, and what is thrown leaves Lambda as a failed function, for which the gateway has but one
//!   answer, 502. So after a 504 a 502 often means that the first run is still at work. Catch them outside of the idempotent
//!   function and return 409, 422 and 400: what is returned passes the gateway as it is. Inside of it the reverse
//!   holds: a returned answer is kept under the key whatever its status, so a 503 would be given out until it expires,
//!   and a throw deletes the record. Throw inside, return outside.
//! - **The window.** Such a record lives 3,600 s by default. No call of this crate's client is sent again for so long (its
//!   `total_timeout` is 60 s at most by default), but what is put aside and sent again later can be: after the window the
//!   same key is done a second time. Compare [`Error::first_attempt_at`](crate::Error::first_attempt_at) with the callee's
//!   window before a replay, or have the window made longer.
//! - **Rust.** Insert the key with a condition, *only if it is not there*, before the work, and store the answer
//!   under it after, or delete the key where the work failed and may be tried again. Where the insert fails and there is no answer yet, return 409 with the JSON `code`
//!   `IDEMPOTENCY_IN_PROGRESS`: unlike a thrown 502 it says what is the matter, and the caller's client waits
//!   and sends the same key again. It is not an answer of [`Refusal`], for it *wants* to be sent again. Where the payload
//!   differs from the first one, return 422.
//! - **Neither.** Then no key helps: after a 504 or a lost connection **look it up before you send again**, and say
//!   [`without_idempotency_key`](Guard::without_idempotency_key), so that nobody takes a key for a promise.
//!
//! Two of the demands cannot be seen through everything: an HTTP API and a function URL join the values of a
//! header that was sent twice with commas, and two joined keys are one key that nobody else has.
//!
//! **This is a cooperative control, not a security control.** The headers are the caller's own word. It works because
//! every caller counts, and it is enforced where calls arrive; who may call at all is decided by the gateway.
//!
//! ```
//! use bytes::Bytes;
//! use eastwest::callee;
//! use http::{Request, Response, StatusCode};
//!
//! fn reserve_stock(request: &Request<Bytes>) -> Response<Bytes> {
//!     let context = match callee::accept(request.headers()) {
//!         Ok(context) => context,
//!         Err(refusal) => return refusal.to_response(),
//!     };
//!     // Work, and hand `&context` to every call that the work makes.
//!     Response::new(Bytes::from(context.correlation_id().to_owned()))
//! }
//!
//! let looping = Request::post("/stock").header("x-hop-count", "8").body(Bytes::new())?;
//! let answer = reserve_stock(&looping);
//! assert_eq!(answer.status(), StatusCode::LOOP_DETECTED);
//! assert_eq!(answer.headers()["x-should-retry"], "false");
//! # Ok::<(), http::Error>(())
//! ```

pub(crate) mod answer;
mod demands;
mod events;
mod guard;
mod refusal;
#[cfg(feature = "tower")]
mod service;
#[cfg(test)]
mod tests;

pub use events::{event_headers, event_method};
pub use guard::{Guard, HeaderTaken};
pub use refusal::{Refusal, RefusalKind, Refusals, refusals};
#[cfg(feature = "tower")]
pub use service::{GuardFuture, GuardLayer, GuardService, layer};

use crate::context::CallContext;

/// Accepts a request from another service, or refuses it.
///
/// To be called first thing: the time budget is counted from here. `headers` are pairs of name and value: a
/// `&http::HeaderMap`, a `&HashMap<String, String>` of a Lambda event, a vector of pairs. Names are compared without
/// regard to case.
///
/// # Errors
/// A [`Refusal`] where the hop count is missing, invalid or exhausted, where the idempotency key is invalid, and where
/// the caller will not wait for the answer any more. It is reported as a `tracing` event.
///
/// ```
/// use eastwest::callee::{self, RefusalKind};
/// use std::collections::HashMap;
///
/// let event_headers = HashMap::from([("X-Hop-Count".to_owned(), "2".to_owned())]);
/// let context = callee::accept(&event_headers)?;
/// assert_eq!(context.next_hop()?.get(), 3);
///
/// let refusal = callee::accept([("x-hop-count", "many")]).err().ok_or("it is invalid")?;
/// assert_eq!(refusal.kind(), RefusalKind::InvalidHopCount);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accept<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<CallContext, Refusal>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    Guard::new().accept_any_method(headers)
}

/// Accepts a request at a door that outsiders use too: a missing hop count begins a chain.
///
/// Everything else is as with [`accept`]; an invalid hop count is refused here as well.
///
/// # Errors
/// A [`Refusal`], as with [`accept`].
///
/// ```
/// use eastwest::callee;
///
/// let context = callee::accept_front_door([("user-agent", "a browser")])?;
/// assert_eq!(context.hop(), 0);
/// assert_eq!(context.next_hop()?.get(), 1);
/// assert!(callee::accept_front_door([("x-hop-count", "0")]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accept_front_door<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<CallContext, Refusal>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    Guard::new().front_door().accept_any_method(headers)
}
