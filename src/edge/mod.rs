//! All that touches a socket, a clock or dice.
//!
//! To read in order: `order` (with `own_headers`), what all attempts of a call begin from; `base_url` (with `path`), where its
//! URL comes from; `head`, how an attempt's headers are put together; `sigv4` (with `canonical` and `signing_key`), its signature;
//! `credentials` (with `credential_state`, and `environment`, a provider), whose it is, and `user_token`, for which user;
//! `clock_skew`, when it is made; `transport` (with `pool`, `tls`, `body`, and `sort`, for what goes wrong), how it is sent.
//! `exchange` (with `recovery`, for what can be put right) joins these to what the loop asks for, `redact` takes out what nobody
//! may see afterwards, and `kept` holds the rest. `lent` gives the same HTTP client to the AWS credential chain, `fault` says
//! what is wrong with a setting, and `ambient` is the ground: the one clock and the dice.

pub(crate) mod ambient;
#[cfg(feature = "testing")]
pub(crate) mod attempt_signer;
pub(crate) mod base_url;
pub(crate) mod body;
pub(crate) mod canonical;
pub(crate) mod clock_skew;
pub(crate) mod credential_state;
pub(crate) mod credentials;
pub(crate) mod environment;
pub(crate) mod exchange;
pub(crate) mod fault;
#[cfg(test)]
pub(crate) mod hand;
pub(crate) mod head;
pub(crate) mod kept;
#[cfg(feature = "aws-config")]
pub(crate) mod lent;
pub(crate) mod order;
#[cfg(feature = "testing")]
pub(crate) mod outgoing;
pub(crate) mod own_headers;
pub(crate) mod path;
#[cfg(test)]
pub(crate) mod peer;
pub(crate) mod pool;
mod recovery;
pub(crate) mod redact;
#[cfg(test)]
pub(crate) mod seen;
pub(crate) mod signing_key;
pub(crate) mod sigv4;
pub(crate) mod sort;
pub(crate) mod tls;
pub(crate) mod transport;
pub(crate) mod user_token;

use crate::error::Cause;
use crate::policy::moment::Moment;
use crate::policy::outcome::{Answer, Loss, Outcome, Unsent};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::time::SystemTime;

/// What one attempt showed, with all that it brought.
pub(crate) struct Seen {
    pub(crate) shown: Shown,
    /// When the attempt was signed.
    pub(crate) sent: Moment,
    /// When the head of its answer, or its failure, was there.
    pub(crate) received: Moment,
    /// When it was over, body and all.
    pub(crate) ended: Moment,
    /// How many seconds the gateway's clock is ahead of the one that signed, where the answer tells.
    pub(crate) clock_gap: Option<i64>,
    /// How many seconds after signing the gateway's `Date` is, where the answer has one.
    pub(crate) signature_age: Option<i64>,
    /// The gateway's time, as well as it is known, when the attempt ended.
    pub(crate) gateway_now: SystemTime,
}

/// What came of an exchange.
pub(crate) enum Shown {
    /// An answer.
    Answered { status: StatusCode, headers: HeaderMap, body: Bytes, oversized: bool, broken: bool },
    /// The request may have arrived, and no whole answer came back.
    Lost { how: Loss, thawed: bool, cause: Cause },
    /// Nothing of the request left this process.
    NeverSent { why: Unsent, reason: String, cause: Cause },
}

impl Seen {
    /// How many seconds the gateway's clock is ahead of ours, uncorrected, where the answer tells.
    pub(crate) fn raw_gap(&self) -> Option<i64> {
        match &self.shown {
            Shown::Answered { headers, .. } => clock_skew::measure(headers, self.sent, self.received),
            Shown::Lost { .. } | Shown::NeverSent { .. } => None,
        }
    }

    /// The same, as policy sees it.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        match &self.shown {
            Shown::Answered { status, headers, body, oversized, broken } => Outcome::Answered(Answer {
                status: *status,
                headers,
                body,
                oversized: *oversized,
                broken: *broken,
                clock_gap: self.clock_gap,
                signature_age: self.signature_age,
                gateway_now: self.gateway_now,
            }),
            Shown::Lost { how, thawed, .. } => Outcome::Lost { how: *how, thawed: *thawed },
            Shown::NeverSent { why, .. } => Outcome::NeverSent(*why),
        }
    }
}
