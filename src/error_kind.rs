//! What a caller can do about a failed call.

use crate::policy::classify::Class;

/// What the caller can do about an [`Error`](crate::Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The breaker is open and nothing was sent: use the fallback, come back after [`Error::retry_after`](crate::Error::retry_after).
    CircuitOpen,
    /// A setting, or a part of the call, is not valid; nothing was sent. [`Error::field`](crate::Error::field) names it.
    Configuration,
    /// No credentials could be had, or the gateway refused those that could.
    Credentials,
    /// The answer came, and its body is not what was asked for.
    Decode,
    /// The caller may not do this here: a policy, an API key, a firewall, or the callee itself.
    Forbidden,
    /// The chain of calls is too long; most likely it is a loop.
    HopLimit,
    /// The first sending of this very key is still being worked on.
    InProgress,
    /// A usage plan's quota is used up; no wait inside a call helps.
    Quota,
    /// This client's own rate limit, or its limit on calls in flight, does not admit the call in its time; nothing was sent.
    RateLimited,
    /// The callee refuses the request as it is: change it.
    Rejected,
    /// There is no such method or path behind this gateway.
    Route,
    /// The signature does not stand: clock, secret, Region or service.
    Signature,
    /// Too fast: come back after [`Error::retry_after`](crate::Error::retry_after).
    Throttled,
    /// Time ran out, here or at the gateway; the callee may have done the work.
    Timeout,
    /// The request is over one of the gateway's limits, or the answer over this client's.
    TooLarge,
    /// No connection, or it was lost.
    Transport,
    /// The session, or the user's token, is not accepted.
    Unauthorized,
    /// The callee failed.
    Unavailable,
}

impl ErrorKind {
    /// The variant's name, as letters, replies, spans and counters have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::CircuitOpen => "CircuitOpen",
            ErrorKind::Configuration => "Configuration",
            ErrorKind::Credentials => "Credentials",
            ErrorKind::Decode => "Decode",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::HopLimit => "HopLimit",
            ErrorKind::InProgress => "InProgress",
            ErrorKind::Quota => "Quota",
            ErrorKind::RateLimited => "RateLimited",
            ErrorKind::Rejected => "Rejected",
            ErrorKind::Route => "Route",
            ErrorKind::Signature => "Signature",
            ErrorKind::Throttled => "Throttled",
            ErrorKind::Timeout => "Timeout",
            ErrorKind::TooLarge => "TooLarge",
            ErrorKind::Transport => "Transport",
            ErrorKind::Unauthorized => "Unauthorized",
            ErrorKind::Unavailable => "Unavailable",
        }
    }

    /// The kind of a class that ends a call.
    ///
    /// | class | kind |
    /// |---|---|
    /// | attempt timed out, callee out of time, gateway timeout, request timeout | `Timeout` |
    /// | bad gateway, server error, unavailable | `Unavailable` |
    /// | bad scope, clock skewed, signature mismatch, signature stale | `Signature` |
    /// | body too large, too large | `TooLarge` |
    /// | certificate refused, connection lost, never sent | `Transport` |
    /// | credentials refused | `Credentials` |
    /// | forbidden, forbidden unexplained | `Forbidden` |
    /// | in progress | `InProgress` |
    /// | loop refused | `HopLimit` |
    /// | quota exhausted | `Quota` |
    /// | redirected, rejected, unsupported; success that a classifier stopped | `Rejected` |
    /// | route missing | `Route` |
    /// | throttled | `Throttled` |
    /// | unauthenticated | `Unauthorized` |
    #[must_use]
    pub fn of_class(class: Class) -> ErrorKind {
        match class {
            Class::AttemptTimedOut
            | Class::CalleeOutOfTime
            | Class::GatewayTimeout
            | Class::RequestTimeout => ErrorKind::Timeout,
            Class::BadGateway | Class::ServerError | Class::Unavailable => ErrorKind::Unavailable,
            Class::BadScope | Class::ClockSkewed | Class::SignatureMismatch | Class::SignatureStale => {
                ErrorKind::Signature
            }
            Class::BodyTooLarge | Class::TooLarge => ErrorKind::TooLarge,
            Class::CertificateRefused | Class::ConnectionLost | Class::NeverSent => ErrorKind::Transport,
            Class::CredentialsRefused => ErrorKind::Credentials,
            Class::Forbidden | Class::ForbiddenUnexplained => ErrorKind::Forbidden,
            Class::InProgress => ErrorKind::InProgress,
            Class::LoopRefused => ErrorKind::HopLimit,
            Class::QuotaExhausted => ErrorKind::Quota,
            Class::Redirected | Class::Rejected | Class::Success | Class::Unsupported => ErrorKind::Rejected,
            Class::RouteMissing => ErrorKind::Route,
            Class::Throttled => ErrorKind::Throttled,
            Class::Unauthenticated => ErrorKind::Unauthorized,
        }
    }
}
