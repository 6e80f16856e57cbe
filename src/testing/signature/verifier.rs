//! Verification of SigV4 signatures on the bytes as received, sharing no code with any signer.

use crate::testing::signature::amz_date;
use crate::testing::signature::authorization::{Authorization, Scope};
use crate::testing::signature::canonical::{self, UNSIGNED};
use crate::testing::signature::cause::{Case, likely_cause};
use crate::testing::signature::settings::{Identity, VerifierSettings};
use crate::testing::signature::verdict::{Verdict, WINDOW};
use crate::testing::signature::verification::Verification;
use crate::testing::wire::http::RawRequest;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::time::SystemTime;

/// Verifies the signature of a request by the settings, as of `now`.
///
/// It is at least as strict as AWS: besides the signature itself it demands that `host` and every `x-amz-*` header that
/// was sent are signed, that signed headers are sorted, and that the time is within five minutes. Signatures in the
/// query (presigned URLs) are not known to it.
#[must_use]
pub fn verify(request: &RawRequest, settings: &VerifierSettings, now: SystemTime) -> Verification {
    let mut verification = Verification::not_checked();
    verification.verdict = match examine(request, settings, now, &mut verification) {
        Ok(()) => Verdict::Valid,
        Err(fault) => fault,
    };
    verification
}

/// The checks, in the order in which AWS is seen to make them.
fn examine(
    request: &RawRequest,
    settings: &VerifierSettings,
    now: SystemTime,
    seen: &mut Verification,
) -> Result<(), Verdict> {
    let authorization = authorization(request)?;
    let dates = request.header_values("x-amz-date");
    let amz_date = match dates.as_slice() {
        [] => return Err(Verdict::AuthorizationIncomplete(vec!["X-Amz-Date"])),
        [date] => *date,
        _ => return Err(Verdict::DateMalformed(dates.join(","))),
    };
    let body_hash = seen.note(request, &authorization, settings, amz_date);

    check_time(amz_date, now)?;
    if !authorization.signed_headers.iter().any(|name| name == "host") {
        return Err(Verdict::HostNotSigned);
    }
    check_scope(&authorization.scope, amz_date, settings)?;
    let identity = identity(request, &authorization, settings)?;
    check_signed_headers(request, &authorization.signed_headers)?;
    match request.header("x-amz-content-sha256") {
        Some(UNSIGNED) if !settings.allow_unsigned_payload => return Err(Verdict::UnsignedPayloadRefused),
        Some(claimed) if claimed != body_hash => return Err(Verdict::BodyHashMismatch),
        _ => {}
    }
    match signature_stands(&identity.secret, &authorization, &seen.string_to_sign) {
        true => Ok(()),
        false => {
            let stands = |secret: &str, to_sign: &str| signature_stands(secret, &authorization, to_sign);
            let case = Case { request, authorization: &authorization, amz_date, body_hash: &body_hash };
            seen.cause = likely_cause(case, settings, identity, stands);
            Err(Verdict::SignatureMismatch)
        }
    }
}

fn authorization(request: &RawRequest) -> Result<Authorization, Verdict> {
    let values: Vec<&[u8]> = request.raw_values("authorization").collect();
    match values.as_slice() {
        [] => Err(Verdict::AuthorizationMissing),
        [value] => {
            Authorization::parse(std::str::from_utf8(value).map_err(|_| Verdict::AuthorizationMalformed)?)
        }
        _ => Err(Verdict::AuthorizationMalformed),
    }
}

fn check_time(amz_date: &str, now: SystemTime) -> Result<(), Verdict> {
    let signed = amz_date::parse(amz_date).ok_or_else(|| Verdict::DateMalformed(amz_date.to_owned()))?;
    // Whole seconds, as the messages have them: then they never say what is not so.
    let now = amz_date::whole_second(now);
    match (now.duration_since(signed), signed.duration_since(now)) {
        (Ok(age), _) if age > WINDOW => Err(Verdict::SignatureExpired { signed, now }),
        (_, Ok(ahead)) if ahead > WINDOW => Err(Verdict::SignatureNotYetCurrent { signed, now }),
        _ => Ok(()),
    }
}

fn check_scope(scope: &Scope, amz_date: &str, settings: &VerifierSettings) -> Result<(), Verdict> {
    let mut wrong = String::new();
    if scope.region != settings.region {
        wrong += &format!("Credential should be scoped to a valid region, not '{}'. ", scope.region);
    }
    if scope.service != settings.service {
        wrong += &format!("Credential should be scoped to correct service: '{}'. ", settings.service);
    }
    if scope.terminator != TERMINATOR {
        let found = &scope.terminator;
        wrong +=
            &format!("Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{found}'. ");
    }
    let day = amz_date.get(..8).unwrap_or_default();
    if scope.date != day {
        wrong += &format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: \
             '{}' != '{day}', from '{amz_date}'. ",
            scope.date
        );
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Verdict::ScopeMismatch(wrong)),
    }
}

fn identity<'a>(
    request: &RawRequest,
    authorization: &Authorization,
    settings: &'a VerifierSettings,
) -> Result<&'a Identity, Verdict> {
    let tokens: Vec<&[u8]> = request.raw_values("x-amz-security-token").collect();
    let sent = |known: &Identity| match (tokens.as_slice(), &known.token) {
        ([], None) => true,
        ([token], Some(known)) => *token == known.as_bytes(),
        _ => false,
    };
    let mut of_this_key = settings.identities.iter().filter(|known| known.key == authorization.access_key_id);
    if of_this_key.clone().next().is_none() {
        return Err(Verdict::KeyUnknown);
    }
    match of_this_key.find(|known| sent(known)) {
        None => Err(Verdict::TokenMismatch),
        Some(known) if known.revoked => Err(Verdict::KeyRevoked { session: known.token.is_some() }),
        Some(known) => Ok(known),
    }
}

fn check_signed_headers(request: &RawRequest, signed: &[String]) -> Result<(), Verdict> {
    let in_order = signed.iter().zip(signed.iter().skip(1)).all(|(one, next)| one < next);
    if !in_order || signed.iter().any(|name| name.bytes().any(|b| b.is_ascii_uppercase())) {
        return Err(Verdict::SignedHeadersUnordered);
    }
    if let Some(absent) = signed.iter().find(|name| request.raw_values(name).next().is_none()) {
        return Err(Verdict::SignedHeaderAbsent(absent.clone()));
    }
    let sent = request.header_names().map(str::to_ascii_lowercase);
    let mut unsigned = sent.filter(|name| name.starts_with("x-amz-") && !signed.contains(name));
    match unsigned.next() {
        Some(name) => Err(Verdict::AmzHeaderNotSigned(name)),
        None => Ok(()),
    }
}

/// Derives the key, signs, and compares without telling by its time where the difference is.
fn signature_stands(secret: &str, authorization: &Authorization, string_to_sign: &str) -> bool {
    let scope = &authorization.scope;
    let signing_key = [&scope.date, &scope.region, &scope.service, &scope.terminator]
        .into_iter()
        .try_fold(format!("AWS4{secret}").into_bytes(), |key, part| {
            Some(keyed(&key, part)?.finalize().into_bytes().to_vec())
        });
    let claimed = signature_bytes(&authorization.signature);
    match (signing_key.and_then(|key| keyed(&key, string_to_sign)), claimed) {
        (Some(mac), Some(claimed)) => mac.verify_slice(&claimed).is_ok(),
        _ => false,
    }
}

fn keyed(key: &[u8], data: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(data.as_bytes());
    Some(mac)
}

/// Reads lower-case hexadecimal; AWS compares the text, so upper case is another signature.
fn signature_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || text.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    let byte = |pair: &[u8; 2]| match pair {
        [high, low] => Some(canonical::hex_digit(*high)? << 4 | canonical::hex_digit(*low)?),
    };
    pairs.iter().map(byte).collect()
}

const TERMINATOR: &str = "aws4_request";
