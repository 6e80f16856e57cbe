//! The verifier against the AWS SDK's signer, and against everything that can be wrong with a signature.

use crate::testing::signature::settings::{PathEncoding, VerifierSettings};
use crate::testing::signature::signed::{KEY, REGION, SECRET, SERVICE, Signer, TOKEN, noon, to_wire};
use crate::testing::signature::verdict::Verdict;
use crate::testing::signature::verifier::verify;
use crate::testing::wire::http::RawRequest;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

fn settings() -> VerifierSettings {
    VerifierSettings::new(REGION, SERVICE).credentials(KEY, SECRET, Some(TOKEN))
}

fn order() -> RawRequest {
    RawRequest::new("POST", "/prod/orders?id=2&id=1")
        .with_header("Host", "api.example.test")
        .with_header("content-type", "application/json")
        .with_header("x-correlation-id", "c-1")
        .with_body(r#"{"quantity":1}"#)
}

fn signed() -> RawRequest {
    Signer::new().sign(order())
}

fn verdict_at(request: &RawRequest, now: SystemTime) -> Verdict {
    verify(request, &settings(), now).verdict().clone()
}

fn verdict(request: &RawRequest) -> Verdict {
    verdict_at(request, noon())
}

/// The signed request with its `authorization` header edited.
fn edited(edit: impl Fn(&str) -> String) -> RawRequest {
    let mut request = signed();
    let authorization = edit(request.header("authorization").unwrap());
    request.replace_header("authorization", authorization);
    request
}

#[test]
fn a_signature_by_the_aws_sdk_stands_and_tells_who_signed_what() {
    let verification = verify(&signed(), &settings(), noon());
    assert!(verification.is_valid(), "{}", verification.explain());
    assert_eq!(verification.access_key_id(), Some(KEY));
    assert_eq!(verification.credential_scope(), Some("20261002/eu-central-1/execute-api/aws4_request"));
    assert_eq!(
        verification.signed_headers(),
        ["content-type", "host", "x-amz-date", "x-amz-security-token", "x-correlation-id"]
    );
}

#[test]
fn a_signature_published_with_an_escaped_path_stands() {
    // AWS's older vector "double-url-encode": the one that shows the second encoding of a path.
    let request = RawRequest::new(
        "POST",
        "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-west-2%3A892717189312%3Afunction%3Amy-rusty-fun/invocations",
    )
    .with_header("Host", "lambda.us-east-2.amazonaws.com")
    .with_header("X-Amz-Date", "20210511T154045Z");
    let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20210511/us-east-2/lambda/aws4_request, \
        SignedHeaders=host;x-amz-date, Signature=4b93abbcc68be32bd64c18e2c71150660ab4c29bbd6c32a383a7517a88fc1804";
    let settings = VerifierSettings::new("us-east-2", "lambda").credentials(KEY, SECRET, None);
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_620_747_645);
    let verification = verify(&request.with_header("Authorization", authorization), &settings, at);
    let canonical = String::from_utf8_lossy(verification.canonical_request()).into_owned();
    assert!(canonical.contains("/arn%253Aaws%253Alambda%253A"), "{canonical}");
    assert!(verification.is_valid(), "{}", verification.explain());
}

#[test]
fn five_minutes_either_way_stand_and_a_second_more_does_not() {
    let (request, minutes, second) = (signed(), Duration::from_secs(300), Duration::from_secs(1));
    assert_eq!(verdict_at(&request, noon() + minutes), Verdict::Valid);
    assert_eq!(verdict_at(&request, noon() - minutes), Verdict::Valid);
    let (late, early) = (noon() + minutes + second, noon() - minutes - second);
    assert_eq!(verdict_at(&request, late), Verdict::SignatureExpired { signed: noon(), now: late });
    assert_eq!(verdict_at(&request, early), Verdict::SignatureNotYetCurrent { signed: noon(), now: early });
    assert_eq!(
        verdict_at(&request, late).to_string(),
        "Signature expired: 20261002T100000Z is now earlier than 20261002T100001Z (20261002T100501Z - 5 min.)"
    );
    assert_eq!(
        verdict_at(&request, early).to_string(),
        "Signature not yet current: 20261002T100000Z is still later than 20261002T095959Z \
         (20261002T095459Z + 5 min.)"
    );
}

#[test]
fn an_authorization_that_is_absent_twice_or_of_another_scheme_is_told_apart() {
    assert_eq!(verdict(&order()), Verdict::AuthorizationMissing);
    assert_eq!(verdict(&signed().with_header("authorization", "x")), Verdict::AuthorizationMalformed);
    assert_eq!(verdict(&edited(|_| "Bearer abc".into())), Verdict::AuthorizationMalformed);
    assert_eq!(verdict(&edited(|a| a.replace("/aws4_request", ""))), {
        Verdict::CredentialMalformed(format!("{KEY}/20261002/{REGION}/{SERVICE}"))
    });
}

#[test]
fn a_date_that_is_absent_twice_or_of_another_form_is_refused() {
    let mut request = signed();
    request.replace_header("x-amz-date", "2026-10-02T10:00:00Z");
    assert_eq!(verdict(&request), Verdict::DateMalformed("2026-10-02T10:00:00Z".into()));
    let twice = signed().with_header("x-amz-date", "20261002T100000Z");
    assert_eq!(verdict(&twice), Verdict::DateMalformed("20261002T100000Z,20261002T100000Z".into()));
    let undated = RawRequest::new("GET", "/").with_header(
        "authorization",
        "AWS4-HMAC-SHA256 Credential=K/20261002/r/s/aws4_request, SignedHeaders=host, Signature=00",
    );
    assert_eq!(verdict(&undated), Verdict::AuthorizationIncomplete(vec!["X-Amz-Date"]));
}

#[test]
fn a_scope_names_everything_that_is_wrong_with_it() {
    let elsewhere = Signer { region: "us-east-1", service: "lambda", ..Signer::new() }.sign(order());
    let Verdict::ScopeMismatch(message) = verdict(&elsewhere) else { panic!("{}", verdict(&elsewhere)) };
    assert_eq!(
        message,
        "Credential should be scoped to a valid region, not 'us-east-1'. \
         Credential should be scoped to correct service: 'execute-api'. "
    );
    let yesterday = edited(|a| a.replace("/20261002/", "/20261001/").replace("aws4_request", "aws5"));
    let Verdict::ScopeMismatch(message) = verdict(&yesterday) else { panic!("{}", verdict(&yesterday)) };
    assert!(message.contains("'20261001' != '20261002', from '20261002T100000Z'"), "{message}");
    assert!(message.contains("not 'aws5'"), "{message}");
}

#[test]
fn keys_and_tokens_must_belong_together() {
    let sign = |key, token| Signer { key, token, ..Signer::new() }.sign(order());
    assert_eq!(verdict(&sign("AKIDOTHER", Some(TOKEN))), Verdict::KeyUnknown);
    assert_eq!(verdict(&sign(KEY, None)), Verdict::TokenMismatch);
    assert_eq!(verdict(&sign(KEY, Some("another"))), Verdict::TokenMismatch);
    let lasting = VerifierSettings::new(REGION, SERVICE).credentials(KEY, SECRET, None);
    assert_eq!(verify(&signed(), &lasting, noon()).verdict(), &Verdict::TokenMismatch);
    assert!(verify(&sign(KEY, None), &lasting, noon()).is_valid());
}

#[test]
fn a_revoked_key_is_refused_until_it_is_accepted_again() {
    let mut settings = settings();
    settings.revoke(KEY);
    assert_eq!(verify(&signed(), &settings, noon()).verdict(), &Verdict::KeyRevoked { session: true });
    settings.accept(KEY.into(), SECRET.into(), Some(TOKEN.into()));
    assert!(verify(&signed(), &settings, noon()).is_valid());
}

#[test]
fn host_and_every_amz_header_must_be_signed() {
    assert_eq!(verdict(&edited(|a| a.replace("host;", ""))), Verdict::HostNotSigned);
    let added = signed().with_header("X-Amz-Meta", "1");
    assert_eq!(verdict(&added), Verdict::AmzHeaderNotSigned("x-amz-meta".into()));
    let without_token = edited(|a| a.replace(";x-amz-security-token", ""));
    assert_eq!(verdict(&without_token), Verdict::AmzHeaderNotSigned("x-amz-security-token".into()));
}

#[test]
fn the_list_of_signed_headers_must_be_sorted_and_true() {
    assert_eq!(verdict(&edited(|a| a.replace("content-type;host", "host;content-type"))), {
        Verdict::SignedHeadersUnordered
    });
    assert_eq!(verdict(&edited(|a| a.replace("host;", "host;host;"))), Verdict::SignedHeadersUnordered);
    assert_eq!(verdict(&edited(|a| a.replace("content-type;host", "Content-Type;host"))), {
        Verdict::SignedHeadersUnordered
    });
    assert_eq!(
        verdict(&edited(|a| a.replace("host;", "host;te;"))),
        Verdict::SignedHeaderAbsent("te".into())
    );
}

#[test]
fn what_was_changed_on_the_way_is_found_if_it_was_signed_and_only_then() {
    let mut unsigned = signed().with_header("via", "1.1 proxy").with_header("user-agent", "x");
    assert_eq!(verdict(&unsigned), Verdict::Valid);
    unsigned.replace_header("via", "1.1 another");
    assert_eq!(verdict(&unsigned), Verdict::Valid);
    let mut altered = signed();
    altered.replace_header("x-correlation-id", "c-2");
    assert_eq!(verdict(&altered), Verdict::SignatureMismatch);
    assert_eq!(verdict(&signed().with_header("x-correlation-id", "c-2")), Verdict::SignatureMismatch);
    assert_eq!(verdict(&signed().with_body("{}")), Verdict::SignatureMismatch);
}

#[test]
fn another_secret_or_another_spelling_of_the_signature_does_not_stand() {
    let other = Signer { secret: "another secret", ..Signer::new() }.sign(order());
    assert_eq!(verdict(&other), Verdict::SignatureMismatch);
    let upper = edited(|a| {
        let (rest, signature) = a.split_once("Signature=").unwrap();
        format!("{rest}Signature={}", signature.to_ascii_uppercase())
    });
    assert_eq!(verdict(&upper), Verdict::SignatureMismatch);
    for signature in ["", "0", "zz", "Signature"] {
        let broken = edited(|a| format!("{}Signature={signature}", a.split_once("Signature=").unwrap().0));
        assert_eq!(verdict(&broken), Verdict::SignatureMismatch, "{signature}");
    }
}

#[test]
fn a_body_hash_in_a_header_must_be_that_of_the_body() {
    let claiming = |hash: &str| Signer::new().sign(order().with_header("x-amz-content-sha256", hash));
    assert_eq!(verdict(&claiming("00")), Verdict::BodyHashMismatch);
    let hash = crate::testing::signature::canonical::sha256_hex(order().body());
    assert_eq!(verdict(&claiming(&hash)), Verdict::Valid);
}

#[test]
fn an_unsigned_payload_stands_only_where_it_is_allowed() {
    let unsigned = Signer { unsigned_payload: true, ..Signer::new() }.sign(order());
    assert_eq!(verdict(&unsigned), Verdict::UnsignedPayloadRefused);
    let lenient = settings().allow_unsigned_payload(true);
    assert!(verify(&unsigned, &lenient, noon()).is_valid());
    assert!(verify(&unsigned.with_body("anything"), &lenient, noon()).is_valid());
}

#[test]
fn one_encoding_and_two_are_different_signatures() {
    let order = RawRequest::new("GET", "/prod/a%20b").with_header("host", "h");
    let once = Signer { single_encoding: true, ..Signer::new() }.sign(order.clone());
    assert_eq!(verdict(&once), Verdict::SignatureMismatch);
    let single = settings().path_encoding(PathEncoding::Single);
    assert!(verify(&once, &single, noon()).is_valid());
    assert_eq!(verify(&Signer::new().sign(order), &single, noon()).verdict(), &Verdict::SignatureMismatch);
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let verification = verify(&signed(), &settings(), noon());
    for text in [
        verification.explain(),
        format!("{verification:?}"),
        format!("{:?}", signed()),
        format!("{:?}", settings()),
    ] {
        for secret in [SECRET, TOKEN, "quantity"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

/// Path segments and query parts, strictly encoded as a careful client does.
fn encoded() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<u8>(), 1..6).prop_map(|bytes| {
        let one = |b: u8| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(b).to_string(),
            // Dots apart: as segments they would be folded away.
            _ => format!("%{b:02X}"),
        };
        // The signer reads queries as UTF-8.
        String::from_utf8_lossy(&bytes).bytes().map(one).collect()
    })
}

#[test]
fn every_reason_is_told_in_words_of_its_own_and_with_what_was_found() {
    let found = || "found-mark".to_owned();
    let with_what_was_found = [
        Verdict::AlgorithmUnsupported(found()),
        Verdict::AmzHeaderNotSigned(found()),
        Verdict::AuthorizationIncomplete(vec!["found-mark"]),
        Verdict::DateMalformed(found()),
        Verdict::ScopeMismatch(found()),
        Verdict::SignedHeaderAbsent(found()),
    ];
    let plain = [
        Verdict::AuthorizationMalformed,
        Verdict::AuthorizationMissing,
        Verdict::BodyHashMismatch,
        // A key that is in the wrong place may be the secret one.
        Verdict::CredentialMalformed(found()),
        Verdict::HostNotSigned,
        Verdict::KeyRevoked { session: true },
        Verdict::KeyUnknown,
        Verdict::NotChecked,
        Verdict::SignatureMismatch,
        Verdict::SignedHeadersUnordered,
        Verdict::TokenMismatch,
        Verdict::UnsignedPayloadRefused,
        Verdict::Valid,
    ];
    for (verdicts, is_told) in [(&with_what_was_found[..], true), (&plain[..], false)] {
        for verdict in verdicts {
            assert_eq!(verdict.to_string().contains("found-mark"), is_told, "{verdict}");
        }
    }
    let told: BTreeSet<_> = with_what_was_found.iter().chain(&plain).map(ToString::to_string).collect();
    assert_eq!(told.len(), 19);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_aws_sdk_signs_stands_after_the_wire(
        segments in proptest::collection::vec(encoded(), 0..4),
        pairs in proptest::collection::vec((encoded(), encoded()), 0..4),
        values in proptest::collection::vec("[!-~]( {0,3}[!-~]){0,4}", 0..3),
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let target = format!("/prod/{}{mark}{}", segments.join("/"), query.join("&"));
        let mut request = RawRequest::new("PUT", target).with_header("host", "127.0.0.1:8080").with_body(body);
        for value in values {
            request = request.with_header("x-several", value);
        }
        let received = RawRequest::parse(&to_wire(&Signer::new().sign(request))).unwrap();
        let verification = verify(&received, &settings(), noon());
        prop_assert!(verification.is_valid(), "{}", verification.explain());
    }

    #[test]
    fn no_header_panics_the_verifier(authorization in "(AWS4-HMAC-SHA256 )?(\\PC|[A-Za-z=,;/ ]){0,80}", date in "\\PC{0,20}") {
        let request = signed();
        let mut request = RawRequest::new(request.method(), request.target());
        request.replace_header("authorization", authorization);
        request.replace_header("x-amz-date", date);
        prop_assert!(!verify(&request, &settings(), noon()).is_valid());
    }
}
