//! What API Gateway says to a signature that does not stand.

use crate::testing::answers::named::{rest, tight};
use crate::testing::answers::reply::Reply;
use crate::testing::gateway::record::RecordedAttempt;
use crate::testing::signature::amz_date;
use crate::testing::signature::verdict::{self, Verdict};
use crate::testing::signature::verification::Verification;
use std::time::SystemTime;

impl Reply {
    /// 403: the `authorization` header is no SigV4.
    pub fn incomplete_signature() -> Self {
        incomplete_signature(INVALID_PAIR)
    }

    /// 403: the signature is older than five minutes. The message names the request's `x-amz-date` and the gateway's clock
    /// as they are, even if they agree: a signature that grew old on the way is told so by a clock that is right.
    pub fn signature_expired() -> Self {
        Reply::dynamic(|attempt| {
            invalid_signature(&verdict::expired(signed_at(attempt), attempt.received_at()))
        })
    }

    /// 403: the signature is from the future. The message names the request's `x-amz-date` and the gateway's clock.
    pub fn signature_not_yet_current() -> Self {
        Reply::dynamic(|attempt| {
            invalid_signature(&verdict::not_yet_current(signed_at(attempt), attempt.received_at()))
        })
    }

    /// 403: the calculated signature is another. As the real answer, it echoes the canonical request *with the session
    /// token*, where the request was signed.
    pub fn signature_mismatch() -> Self {
        Reply::dynamic(|attempt| mismatch(attempt.verification()))
    }

    /// 403: the credential is scoped to another Region and service.
    pub fn bad_scope() -> Self {
        invalid_signature(
            "Credential should be scoped to a valid region, not 'us-east-1'. \
             Credential should be scoped to correct service: 'execute-api'. ",
        )
    }
}

/// The gateway's answer to a signature that does not stand; `None` to one that does.
pub(crate) fn refusal(verification: &Verification) -> Option<Reply> {
    Some(match verification.verdict() {
        Verdict::AlgorithmUnsupported(named) => incomplete_signature(&format!(
            "Unsupported AWS 'algorithm': '{named}' (only AWS4-HMAC-SHA256 for now). "
        )),
        Verdict::AmzHeaderNotSigned(_) => invalid_signature(NOT_SIGNED),
        Verdict::AuthorizationIncomplete(missing) => {
            let sentence = |part: &&str| match *part {
                "X-Amz-Date" => NO_DATE.to_owned(),
                part => format!("Authorization header requires '{part}' parameter. "),
            };
            incomplete_signature(missing.iter().map(sentence).collect::<String>().trim_end())
        }
        Verdict::AuthorizationMalformed => incomplete_signature(INVALID_PAIR),
        Verdict::AuthorizationMissing => Reply::missing_authentication_token(),
        Verdict::CredentialMalformed(found) => incomplete_signature(&format!(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{found}'"
        )),
        Verdict::DateMalformed(found) => incomplete_signature(&format!(
            "Date must be in ISO-8601 'basic format'. Got '{found}'. See http://en.wikipedia.org/wiki/ISO_8601"
        )),
        Verdict::HostNotSigned => invalid_signature(HOST_NOT_SIGNED),
        Verdict::KeyRevoked { session: true } => Reply::token_expired(),
        Verdict::KeyRevoked { session: false } | Verdict::KeyUnknown | Verdict::TokenMismatch => {
            Reply::token_invalid()
        }
        Verdict::ScopeMismatch(wrong) => invalid_signature(wrong),
        Verdict::SignatureExpired { signed, now } => invalid_signature(&verdict::expired(*signed, *now)),
        Verdict::SignatureNotYetCurrent { signed, now } => {
            invalid_signature(&verdict::not_yet_current(*signed, *now))
        }
        Verdict::BodyHashMismatch
        | Verdict::SignatureMismatch
        | Verdict::SignedHeaderAbsent(_)
        | Verdict::SignedHeadersUnordered
        | Verdict::UnsignedPayloadRefused => mismatch(verification),
        Verdict::NotChecked | Verdict::Valid => return None,
    })
}

/// The answer to a signature that is another than the calculated one.
fn mismatch(verification: &Verification) -> Reply {
    let mut message = MISMATCH.to_owned();
    if !verification.canonical_request().is_empty() {
        let canonical = String::from_utf8_lossy(verification.canonical_request());
        message += &format!(
            "\n\nThe Canonical String for this request should have been\n'{canonical}'\n\n\
             The String-to-Sign should have been\n'{}'\n",
            verification.string_to_sign()
        );
    }
    invalid_signature(&message)
}

/// The answer to a signature that cannot be read.
fn incomplete_signature(message: &str) -> Reply {
    rest(403, "IncompleteSignatureException", tight(message))
}

/// The answer to a signature that was read and does not stand.
fn invalid_signature(message: &str) -> Reply {
    rest(403, "InvalidSignatureException", tight(message))
}

fn signed_at(attempt: &RecordedAttempt) -> SystemTime {
    attempt.header("x-amz-date").and_then(amz_date::parse).unwrap_or(attempt.received_at())
}

/// The gateway puts a hash of the header's value here; which one makes no difference to a caller.
const INVALID_PAIR: &str = "Invalid key=value pair (missing equal-sign) in Authorization header \
    (hashed with SHA-256 and encoded with Base64): 'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg='.";
const HOST_NOT_SIGNED: &str = "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.";
const MISMATCH: &str = "The request signature we calculated does not match the signature you provided. \
    Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";
const NO_DATE: &str = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ";
/// Amazon S3's words; API Gateway's are not captured.
const NOT_SIGNED: &str = "There were headers present in the request which were not signed";
