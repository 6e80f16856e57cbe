//! What the verifier found.

use crate::testing::signature::amz_date;
use std::fmt;
use std::time::SystemTime;

/// What the verifier found: a signature that stands, or the first thing that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The algorithm is not `AWS4-HMAC-SHA256`; holds the one that was named.
    AlgorithmUnsupported(String),
    /// This `x-amz-*` header was sent and not signed, so anyone on the way could have changed it.
    AmzHeaderNotSigned(String),
    /// Of `Credential`, `Signature`, `SignedHeaders` and `X-Amz-Date`, these are missing.
    AuthorizationIncomplete(Vec<&'static str>),
    /// There are several `authorization` headers, or it is no list of `name=value` pairs.
    AuthorizationMalformed,
    /// There is no `authorization` header.
    AuthorizationMissing,
    /// `x-amz-content-sha256` is not the hash of the body that came.
    BodyHashMismatch,
    /// The credential is not `key/date/region/service/terminator`; holds it.
    CredentialMalformed(String),
    /// `x-amz-date` is not of the form `yyyymmddThhmmssZ`; holds it.
    DateMalformed(String),
    /// `host` is not signed.
    HostNotSigned,
    /// The key is known and has been revoked; `session` says whether it came with a session token.
    KeyRevoked {
        /// Whether the key belongs to a session.
        session: bool,
    },
    /// No such access key.
    KeyUnknown,
    /// The signature was not looked at: the body was over the limit, or the connection was cut on purpose.
    NotChecked,
    /// The credential scope names another date, Region, service or terminator; says which, in AWS's words.
    ScopeMismatch(String),
    /// The signature is older than five minutes.
    SignatureExpired {
        /// When it was made, by its own word.
        signed: SystemTime,
        /// The verifier's clock.
        now: SystemTime,
    },
    /// All is in place and the signature is another: wrong secret, or something was changed on the way.
    SignatureMismatch,
    /// The signature is from more than five minutes ahead.
    SignatureNotYetCurrent {
        /// When it was made, by its own word.
        signed: SystemTime,
        /// The verifier's clock.
        now: SystemTime,
    },
    /// This header is said to be signed and was not sent.
    SignedHeaderAbsent(String),
    /// The list of signed headers is not in lower case, not sorted, or repeats a name.
    SignedHeadersUnordered,
    /// The session token is missing, another, or not expected with this key.
    TokenMismatch,
    /// `x-amz-content-sha256: UNSIGNED-PAYLOAD`, and that is not allowed here.
    UnsignedPayloadRefused,
    /// The signature stands.
    Valid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::AlgorithmUnsupported(named) => {
                write!(f, "the algorithm {named:?} is not AWS4-HMAC-SHA256")
            }
            Verdict::AmzHeaderNotSigned(name) => write!(f, "the header {name:?} was sent and not signed"),
            Verdict::AuthorizationIncomplete(missing) => write!(f, "missing: {}", missing.join(", ")),
            Verdict::AuthorizationMalformed => f.write_str("the authorization header is malformed"),
            Verdict::AuthorizationMissing => f.write_str("there is no authorization header"),
            Verdict::BodyHashMismatch => f.write_str("x-amz-content-sha256 is not the hash of the body"),
            Verdict::CredentialMalformed(_) => {
                f.write_str("the credential is not key/date/region/service/terminator")
            }
            Verdict::DateMalformed(date) => write!(f, "x-amz-date {date:?} is not yyyymmddThhmmssZ"),
            Verdict::HostNotSigned => f.write_str("host is not signed"),
            Verdict::KeyRevoked { .. } => f.write_str("the access key has been revoked"),
            Verdict::KeyUnknown => f.write_str("the access key is not known"),
            Verdict::NotChecked => f.write_str("the signature was not looked at"),
            Verdict::ScopeMismatch(what) => f.write_str(what.trim_end()),
            Verdict::SignatureExpired { signed, now } => f.write_str(&expired(*signed, *now)),
            Verdict::SignatureMismatch => f.write_str("the signature does not match"),
            Verdict::SignatureNotYetCurrent { signed, now } => f.write_str(&not_yet_current(*signed, *now)),
            Verdict::SignedHeaderAbsent(name) => write!(f, "the header {name:?} is signed and was not sent"),
            Verdict::SignedHeadersUnordered => {
                f.write_str("the signed headers are not in lower case, not sorted, or repeated")
            }
            Verdict::TokenMismatch => f.write_str("the session token does not belong to the access key"),
            Verdict::UnsignedPayloadRefused => f.write_str("an unsigned payload is not allowed"),
            Verdict::Valid => f.write_str("the signature stands"),
        }
    }
}

/// API Gateway's sentence for a signature that is too old.
pub(crate) fn expired(signed: SystemTime, now: SystemTime) -> String {
    let oldest = now.checked_sub(WINDOW).unwrap_or(SystemTime::UNIX_EPOCH);
    let (signed, oldest, now) = (amz_date::format(signed), amz_date::format(oldest), amz_date::format(now));
    format!("Signature expired: {signed} is now earlier than {oldest} ({now} - 5 min.)")
}

/// API Gateway's sentence for a signature from the future.
pub(crate) fn not_yet_current(signed: SystemTime, now: SystemTime) -> String {
    let newest = now.checked_add(WINDOW).unwrap_or(now);
    let (signed, newest, now) = (amz_date::format(signed), amz_date::format(newest), amz_date::format(now));
    format!("Signature not yet current: {signed} is still later than {newest} ({now} + 5 min.)")
}

/// How far a signature's time may be from the verifier's, either way.
pub(crate) const WINDOW: std::time::Duration = std::time::Duration::from_secs(5 * 60);
