//! The status table: from what an attempt showed to the row that says what follows.

use crate::policy::backoff::Base;
use crate::policy::breaker::Effect;
use crate::policy::gateway::{ErrorBody, GatewayError};
use crate::policy::outcome::{Answer, Loss, Outcome, Unsent};
use http::StatusCode;
use std::fmt;

/// A row of the status table.
///
/// [`Class::rule`] gives its columns; [`Class::ALL`] walks the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// This client stopped waiting, as the gateway would with a 504; the callee may have committed.
    AttemptTimedOut,
    /// 502: the function ran and failed, or answered malformed.
    BadGateway,
    /// 403: the credential names another Region or service, or the header is not whole: a setting.
    BadScope,
    /// A success whose body is over the limit on what is read, or an answer with more header lines than are read.
    BodyTooLarge,
    /// 503 of a callee's guard: no time was left, so it did not begin.
    CalleeOutOfTime,
    /// The peer's certificate does not stand; nothing was sent. A setting, not an outage.
    CertificateRefused,
    /// 403: the signature's time is off because the clocks differ.
    ClockSkewed,
    /// The connection ended, or garbage came, after the request may have arrived; a body was cut that had to be whole: a
    /// success's, or that of a 409 which had not said whether it is about this very key.
    ConnectionLost,
    /// 403: the session token is over, or key id or token are not known.
    CredentialsRefused,
    /// 403: permission, API key, WAF, or the callee's own.
    Forbidden,
    /// 403 of an HTTP API, which says `Forbidden` for every cause.
    ForbiddenUnexplained,
    /// 504: the gateway stopped waiting; the callee may not have.
    GatewayTimeout,
    /// 409 with a sign that this very key is being worked on.
    InProgress,
    /// 508: the hop count is spent.
    LoopRefused,
    /// No name, no connection, or a connection cut before the request was written.
    NeverSent,
    /// 429: a usage plan's quota is used up; no wait inside a call helps.
    QuotaExhausted,
    /// 3xx: never followed, for the session token would go along.
    Redirected,
    /// 4xx: the request must change.
    Rejected,
    /// 408: the callee gave up waiting for the request; it may have begun.
    RequestTimeout,
    /// 403: no such method or path behind this gateway (or the call arrived unsigned).
    RouteMissing,
    /// 500 and unnamed 5xx: a throttled callee that never ran, or a broken one that may have.
    ServerError,
    /// 403: the calculated signature differs.
    SignatureMismatch,
    /// 403: the signature grew old on its way, and the clocks agree.
    SignatureStale,
    /// 2xx.
    Success,
    /// 429: too fast; nothing ran.
    Throttled,
    /// 413, 414, 431: too large for the gateway.
    TooLarge,
    /// 401: the session or the user's token is over.
    Unauthenticated,
    /// 503: unavailable; behind an HTTP API it is also the timeout.
    Unavailable,
    /// 501, 505: not offered.
    Unsupported,
}

/// The columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether a further attempt may follow.
    pub retried: Retried,
    /// Whether a POST or PATCH needs an idempotency key for it.
    pub needs_key: bool,
    /// The base that the wait grows from; none where there is no wait.
    pub base: Option<Base>,
    /// Whether the callee may have done the work.
    pub may_have_committed: bool,
    /// What the breaker learns.
    pub effect: Effect,
}

/// Whether a further attempt may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retried {
    /// Once a call, at once, after the named recovery.
    After(Recovery),
    /// At most as often a call as the profile allows for a 502.
    CappedAsBadGateway,
    /// At most as often a call as the profile allows for a 500.
    CappedAsServerError,
    /// Never.
    Never,
    /// Until attempts, retry budget or time budget end.
    Yes,
}

/// What is put right before a refused signature is sent anew. Each is tried at most once a call, two in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recovery {
    /// Drop the refused credentials and fetch others; final if they are the same.
    Credentials,
    /// Take the gateway's time and sign anew.
    Clock,
    /// Fetch credentials and user token anew; final if neither changed.
    Identity,
    /// Fetch credentials and sign anew, whether or not they changed.
    Signature,
}

impl Class {
    /// Every class, in the order of the table in the README.
    pub const ALL: &'static [Class] = &[
        Class::Success,
        Class::BodyTooLarge,
        Class::Redirected,
        Class::Rejected,
        Class::Unauthenticated,
        Class::SignatureStale,
        Class::ClockSkewed,
        Class::SignatureMismatch,
        Class::CredentialsRefused,
        Class::ForbiddenUnexplained,
        Class::Forbidden,
        Class::BadScope,
        Class::RouteMissing,
        Class::RequestTimeout,
        Class::InProgress,
        Class::TooLarge,
        Class::Throttled,
        Class::QuotaExhausted,
        Class::ServerError,
        Class::Unsupported,
        Class::BadGateway,
        Class::Unavailable,
        Class::CalleeOutOfTime,
        Class::GatewayTimeout,
        Class::LoopRefused,
        Class::NeverSent,
        Class::CertificateRefused,
        Class::AttemptTimedOut,
        Class::ConnectionLost,
    ];

    /// The columns of this row.
    #[must_use]
    pub fn rule(self) -> Rule {
        let refused = |retried| Rule {
            retried,
            needs_key: false,
            base: None,
            may_have_committed: false,
            effect: Effect::Neutral,
        };
        let in_doubt = |retried, base| Rule {
            retried,
            needs_key: true,
            base: Some(base),
            may_have_committed: true,
            effect: Effect::Failure,
        };
        match self {
            Class::Success | Class::BodyTooLarge => {
                Rule { may_have_committed: true, effect: Effect::Success, ..refused(Retried::Never) }
            }
            Class::BadScope
            | Class::CalleeOutOfTime
            | Class::CertificateRefused
            | Class::Forbidden
            | Class::LoopRefused
            | Class::QuotaExhausted
            | Class::Redirected
            | Class::Rejected
            | Class::RouteMissing
            | Class::TooLarge
            | Class::Unsupported => refused(Retried::Never),
            Class::ClockSkewed | Class::ForbiddenUnexplained | Class::SignatureStale => {
                refused(Retried::After(Recovery::Clock))
            }
            Class::CredentialsRefused => refused(Retried::After(Recovery::Credentials)),
            Class::SignatureMismatch => refused(Retried::After(Recovery::Signature)),
            Class::Unauthenticated => refused(Retried::After(Recovery::Identity)),
            Class::Throttled => Rule { base: Some(Base::Throttled), ..refused(Retried::Yes) },
            Class::NeverSent => {
                Rule { base: Some(Base::Transient), effect: Effect::Failure, ..refused(Retried::Yes) }
            }
            Class::InProgress => Rule { effect: Effect::Neutral, ..in_doubt(Retried::Yes, Base::Throttled) },
            Class::ServerError => in_doubt(Retried::CappedAsServerError, Base::Throttled),
            Class::BadGateway => in_doubt(Retried::CappedAsBadGateway, Base::Transient),
            Class::Unavailable => in_doubt(Retried::Yes, Base::Throttled),
            Class::AttemptTimedOut
            | Class::ConnectionLost
            | Class::GatewayTimeout
            | Class::RequestTimeout => in_doubt(Retried::Yes, Base::Transient),
        }
    }

    /// The row of a status alone, for an answer that says nothing more.
    #[must_use]
    pub fn of_status(status: StatusCode) -> Class {
        match status.as_u16() {
            200..=299 => Class::Success,
            300..=399 => Class::Redirected,
            401 => Class::Unauthenticated,
            403 => Class::Forbidden,
            408 => Class::RequestTimeout,
            413 | 414 | 431 => Class::TooLarge,
            429 => Class::Throttled,
            400..=499 => Class::Rejected,
            501 | 505 => Class::Unsupported,
            502 => Class::BadGateway,
            503 => Class::Unavailable,
            504 => Class::GatewayTimeout,
            508 => Class::LoopRefused,
            // 1xx never ends an exchange; over 599 is nobody's status. Both are as opaque as a 500.
            _ => Class::ServerError,
        }
    }

    /// A short name, as in the README's table and in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::AttemptTimedOut => "attempt timed out",
            Class::BadGateway => "bad gateway",
            Class::BadScope => "bad scope",
            Class::BodyTooLarge => "body too large",
            Class::CalleeOutOfTime => "callee out of time",
            Class::CertificateRefused => "certificate refused",
            Class::ClockSkewed => "clock skewed",
            Class::ConnectionLost => "connection lost",
            Class::CredentialsRefused => "credentials refused",
            Class::Forbidden => "forbidden",
            Class::ForbiddenUnexplained => "forbidden, unexplained",
            Class::GatewayTimeout => "gateway timeout",
            Class::InProgress => "in progress",
            Class::LoopRefused => "loop refused",
            Class::NeverSent => "never sent",
            Class::QuotaExhausted => "quota exhausted",
            Class::Redirected => "redirected",
            Class::Rejected => "rejected",
            Class::RequestTimeout => "request timeout",
            Class::RouteMissing => "route missing",
            Class::ServerError => "server error",
            Class::SignatureMismatch => "signature mismatch",
            Class::SignatureStale => "signature stale",
            Class::Success => "success",
            Class::Throttled => "throttled",
            Class::TooLarge => "too large",
            Class::Unauthenticated => "unauthenticated",
            Class::Unavailable => "unavailable",
            Class::Unsupported => "unsupported",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Finds the row of an outcome: the gateway's error type first, then the message, then the status.
#[must_use]
pub fn classify(outcome: &Outcome<'_>) -> Class {
    match outcome {
        Outcome::Answered(answer) => classify_answer(answer),
        Outcome::Lost { how: Loss::TimedOut, .. } => Class::AttemptTimedOut,
        // The same would come again: it is an answer, and more than is read.
        Outcome::Lost { how: Loss::HeadTooLarge, .. } => Class::BodyTooLarge,
        Outcome::Lost { how: Loss::Connection | Loss::Garbage | Loss::Truncated, .. } => {
            Class::ConnectionLost
        }
        Outcome::NeverSent(Unsent::Certificate) => Class::CertificateRefused,
        Outcome::NeverSent(
            Unsent::ConnectTimeout
            | Unsent::Dns
            | Unsent::HandshakeCut
            | Unsent::Refused
            | Unsent::StreamRefused,
        ) => Class::NeverSent,
    }
}

/// The row that the gateway's error type alone settles, whatever a rule for the status would say.
#[must_use]
pub(crate) fn settled_by_type(error: GatewayError) -> bool {
    !matches!(
        error,
        GatewayError::AuthorizerConfiguration
            | GatewayError::AuthorizerFailure
            | GatewayError::BadRequest
            | GatewayError::InternalServerError
            | GatewayError::Unauthorized
    )
}

fn classify_answer(answer: &Answer<'_>) -> Class {
    if answer.status.is_success() {
        return if answer.oversized { Class::BodyTooLarge } else { Class::Success };
    }
    match GatewayError::read(answer.status, answer.headers) {
        Some(GatewayError::Throttling | GatewayError::TooManyRequests) => return Class::Throttled,
        Some(GatewayError::LimitExceeded) => return Class::QuotaExhausted,
        Some(GatewayError::Forbidden) => return Class::Forbidden,
        Some(error) if answer.status == StatusCode::FORBIDDEN => return refused_signature(error, answer),
        _ => {}
    }
    let by_status = Class::of_status(answer.status);
    match answer.status.as_u16() {
        403 if is_http_api_forbidden(answer) => Class::ForbiddenUnexplained,
        409 if ErrorBody::read(answer.headers, answer.body).says_in_progress() => Class::InProgress,
        // Which of the two it is stood in what was cut off; to one of them the first attempt is still at work.
        409 if answer.broken => Class::ConnectionLost,
        503 if is_out_of_time(answer) => Class::CalleeOutOfTime,
        _ => by_status,
    }
}

/// Within a listed 403 type, the message picks the row; it outranks the type, which varies by product.
fn refused_signature(error: GatewayError, answer: &Answer<'_>) -> Class {
    let message =
        ErrorBody::read(answer.headers, answer.body).message.unwrap_or_default().to_ascii_lowercase();
    let says = |words: &str| message.contains(words);
    let time_worded = says("signature expired") || says("signature not yet current");
    match error {
        GatewayError::MissingAuthenticationToken => Class::RouteMissing,
        _ if says("security token") && (says("expired") || says("invalid")) => Class::CredentialsRefused,
        GatewayError::ExpiredToken | GatewayError::UnrecognizedClient => Class::CredentialsRefused,
        GatewayError::IncompleteSignature => Class::BadScope,
        GatewayError::InvalidSignature if says("credential should be scoped") => Class::BadScope,
        GatewayError::InvalidSignature if time_worded && clocks_differ(answer) => Class::ClockSkewed,
        GatewayError::InvalidSignature if time_worded => Class::SignatureStale,
        // Also where the API's owner replaced the message: one fresh signature tells.
        GatewayError::InvalidSignature => Class::SignatureMismatch,
        _ => Class::Forbidden,
    }
}

/// Whether the gateway's clock is known to be more than four minutes from ours.
fn clocks_differ(answer: &Answer<'_>) -> bool {
    answer.clock_gap.is_some_and(|gap| gap.unsigned_abs() > CLOCK_TOLERANCE_SECS)
}

/// Whether the gateway answered more than four minutes from the time that was signed, by clock or by delay.
#[must_use]
pub(crate) fn signed_at_another_time(answer: &Answer<'_>) -> bool {
    answer.signature_age.is_some_and(|age| age.unsigned_abs() > CLOCK_TOLERANCE_SECS)
}

/// How far apart two clocks may be, in seconds, before a refused signature is blamed on them. The gateway allows
/// five minutes; a minute of it is left to the way.
pub(crate) const CLOCK_TOLERANCE_SECS: u64 = 240;

/// The `type` by which a callee's guard says that it had no time to begin.
pub(crate) const NO_TIME_LEFT_TYPE: &str = "NoTimeLeft";

/// An HTTP API says exactly this for every refusal, and has no error type; a REST API and a callee say more.
fn is_http_api_forbidden(answer: &Answer<'_>) -> bool {
    let has_id = answer.headers.contains_key("apigw-requestid");
    let from_rest = answer.headers.contains_key("x-amzn-errortype");
    let says_forbidden =
        || ErrorBody::read(answer.headers, answer.body).message.as_deref() == Some("Forbidden");
    has_id && !from_rest && says_forbidden()
}

fn is_out_of_time(answer: &Answer<'_>) -> bool {
    let fields: Option<serde_json::Value> = serde_json::from_slice(answer.body).ok();
    fields.as_ref().and_then(|f| f.get("type")).and_then(serde_json::Value::as_str) == Some(NO_TIME_LEFT_TYPE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use std::time::SystemTime;

    const STALE: &str = r#"{"message":"Signature expired: 20261002T110000Z"}"#;

    fn class(status: u16, headers: &[(&'static str, &'static str)], body: &str, gap: Option<i64>) -> Class {
        let pairs = headers.iter();
        let pairs =
            pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        classify(&Outcome::Answered(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &pairs.collect::<HeaderMap>(),
            body: body.as_bytes(),
            oversized: false,
            broken: false,
            clock_gap: gap,
            signature_age: gap,
            gateway_now: SystemTime::UNIX_EPOCH,
        }))
    }

    #[test]
    fn a_firewall_that_refuses_by_429_forbids_and_does_not_throttle() {
        for status in [403, 429] {
            let typed = [("x-amzn-errortype", "ForbiddenException")];
            assert_eq!(
                class(status, &typed, r#"{"message":"Forbidden"}"#, None),
                Class::Forbidden,
                "{status}"
            );
        }
    }

    #[test]
    fn a_firewall_that_speaks_of_a_security_token_says_nothing_of_ours() {
        let body = r#"{"message":"the security token of this form is invalid"}"#;
        assert_eq!(class(403, &[("x-amzn-errortype", "ForbiddenException")], body, None), Class::Forbidden);
    }

    #[test]
    fn clocks_that_are_four_minutes_apart_agree_and_a_second_more_they_do_not() {
        let typed = [("x-amzn-errortype", "InvalidSignatureException")];
        for gap in [240, -240] {
            assert_eq!(class(403, &typed, STALE, Some(gap)), Class::SignatureStale, "{gap}");
        }
        for gap in [241, -241] {
            assert_eq!(class(403, &typed, STALE, Some(gap)), Class::ClockSkewed, "{gap}");
        }
    }

    #[test]
    fn forbidden_is_unexplained_only_where_an_http_api_says_it_and_nothing_else() {
        let (id, body) = (("apigw-requestid", "abc="), r#"{"message":"Forbidden"}"#);
        assert_eq!(class(403, &[id], body, None), Class::ForbiddenUnexplained);
        assert_eq!(class(403, &[], body, None), Class::Forbidden);
        assert_eq!(class(403, &[id, ("x-amzn-errortype", "Other")], body, None), Class::Forbidden);
        assert_eq!(class(403, &[id], r#"{"message":"not yours"}"#, None), Class::Forbidden);
    }
}
