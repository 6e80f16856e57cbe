//! Why a signature is another: common mistakes, made once more to see whether the signature stands then.

use crate::testing::signature::authorization::Authorization;
use crate::testing::signature::canonical::{self, Rules, Secrets, UNSIGNED};
use crate::testing::signature::settings::{Identity, PathEncoding, VerifierSettings};
use crate::testing::wire::http::RawRequest;

/// A request whose signature is another than the calculated one.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) request: &'a RawRequest,
    pub(crate) authorization: &'a Authorization,
    pub(crate) amz_date: &'a str,
    pub(crate) body_hash: &'a str,
}

/// The first of the common mistakes with which the signature stands. `stands` is asked with a secret and a string to sign.
pub(crate) fn likely_cause(
    case: Case<'_>,
    settings: &VerifierSettings,
    identity: &Identity,
    stands: impl Fn(&str, &str) -> bool,
) -> Option<&'static str> {
    let usual = Rules {
        path_encoding: settings.path_encoding,
        normalize_path: settings.normalize_path,
        secrets: Secrets::Shown,
    };
    let right = case.string_to_sign(case.request, case.body_hash, usual);
    let with_secret = |secret: &str| stands(secret, &right);
    if settings.identities.iter().any(|other| other.secret != identity.secret && with_secret(&other.secret)) {
        return Some("it was made with the secret of another access key");
    }
    let secret = identity.secret.as_str();
    if [format!("{secret}\n"), format!("{secret} "), secret.trim().to_owned()]
        .iter()
        .any(|spaced| spaced != secret && with_secret(spaced))
    {
        return Some("white space stands around the secret");
    }
    let with = |request: &RawRequest, body_hash: &str, rules: Rules| {
        stands(secret, &case.string_to_sign(request, body_hash, rules))
    };
    let rules = |path_encoding, normalize_path| Rules { path_encoding, normalize_path, ..usual };
    let (request, hash) = (case.request, case.body_hash);
    match settings.path_encoding {
        PathEncoding::Double if with(request, hash, rules(PathEncoding::Single, usual.normalize_path)) => {
            return Some("the path was encoded once; this service wants it encoded twice");
        }
        PathEncoding::Single if with(request, hash, rules(PathEncoding::Double, usual.normalize_path)) => {
            return Some("the path was encoded twice; this service wants it encoded once");
        }
        _ => {}
    }
    if with(request, hash, rules(usual.path_encoding, !usual.normalize_path)) {
        return Some(
            "dot segments or doubled slashes were taken out of the path that was signed, or out of the one sent",
        );
    }
    if with(request, &canonical::sha256_hex(b""), usual) {
        return Some("an empty body was signed and another one sent");
    }
    if with(request, UNSIGNED, usual) {
        return Some("the body was left out of the signature (UNSIGNED-PAYLOAD)");
    }
    let altered = alterations(request);
    altered.into_iter().find(|(other, _)| with(other, hash, usual)).map(|(_, cause)| cause)
}

impl Case<'_> {
    fn string_to_sign(&self, request: &RawRequest, body_hash: &str, rules: Rules) -> String {
        let signed = &self.authorization.signed_headers;
        let canonical = canonical::canonical_request(request, signed, body_hash, rules);
        canonical::string_to_sign(self.amz_date, &self.authorization.scope.to_text(), &canonical)
    }
}

/// The requests that may have been signed in the place of the one that came.
fn alterations(request: &RawRequest) -> Vec<(RawRequest, &'static str)> {
    let mut altered = Vec::new();
    let target = String::from_utf8_lossy(request.target()).into_owned();
    let mut add = |other: Option<RawRequest>, cause| altered.extend(other.map(|other| (other, cause)));
    let stage = target.strip_prefix('/').and_then(|rest| rest.split_once('/'));
    let without_stage = stage.map(|(_, rest)| request.clone().with_target(format!("/{rest}")));
    add(without_stage, "the first part of the path, the stage, was left out of what was signed");
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let without_query = (!query.is_empty()).then(|| request.clone().with_target(path));
    add(without_query, "the query was left out of what was signed");
    let with_plus = format!("{path}?{}", query.replace("%20", "%2B"));
    let plus = query.contains("%20").then(|| request.clone().with_target(with_plus));
    add(plus, "a space in the query was signed as a plus");
    let host = request.header("host").map(str::to_owned).unwrap_or_default();
    let with_host = |host: &str| {
        let mut other = request.clone();
        other.replace_header("host", host);
        other
    };
    let bare = host.rsplit_once(':').map(|(bare, _)| with_host(bare));
    add(bare, "the port was left out of the host that was signed");
    for port in ["80", "443"] {
        add(Some(with_host(&format!("{host}:{port}"))), "a default port was signed as part of the host");
    }
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] {
        let other = (method != request.method()).then(|| request.clone().with_method(method));
        add(other, "another method was signed than the one sent");
    }
    altered
}

#[cfg(test)]
mod tests {
    use crate::testing::signature::settings::{PathEncoding, VerifierSettings};
    use crate::testing::signature::signed::{KEY, REGION, SECRET, SERVICE, Signer, TOKEN, noon};
    use crate::testing::signature::verdict::Verdict;
    use crate::testing::signature::verifier::verify;
    use crate::testing::wire::http::RawRequest;

    fn settings() -> VerifierSettings {
        VerifierSettings::new(REGION, SERVICE).credentials(KEY, SECRET, Some(TOKEN))
    }

    fn order(target: &str) -> RawRequest {
        RawRequest::new("POST", target).with_header("host", "gateway:8080").with_body("{}")
    }

    fn cause(request: &RawRequest, settings: &VerifierSettings) -> Option<&'static str> {
        let verification = verify(request, settings, noon());
        assert_eq!(verification.verdict(), &Verdict::SignatureMismatch);
        let report = verification.explain();
        let told = verification.likely_cause().unwrap_or("another secret key, or something was changed");
        assert!(report.contains(&format!("\nlikely cause: {told}")), "{report}");
        verification.likely_cause()
    }

    /// Signs the one and sends the other, with the other's lines of authorization.
    fn signed_as(signed: RawRequest, sent: RawRequest) -> RawRequest {
        let signed = Signer::new().sign(signed);
        ["x-amz-date", "x-amz-security-token", "authorization"]
            .iter()
            .fold(sent, |sent, name| sent.with_header(name, signed.header(name).unwrap()))
    }

    #[test]
    fn a_common_mistake_is_found_and_named() {
        let sent = || order("/prod/a%20b?x=a%20b");
        let other_host = |host: &str| {
            let mut signed = sent();
            signed.replace_header("host", host);
            signed
        };
        for (signed, words) in [
            (order("/a%20b?x=a%20b"), "the stage"),
            (order("/prod/a%20b"), "the query was left out"),
            (order("/prod/a%20b?x=a%2Bb"), "as a plus"),
            (sent().with_body(""), "an empty body"),
            (sent().with_method("PUT"), "another method"),
            (other_host("gateway"), "the port was left out"),
        ] {
            let found = cause(&signed_as(signed, sent()), &settings());
            assert!(found.is_some_and(|found| found.contains(words)), "{words}: {found:?}");
        }
    }

    #[test]
    fn a_default_port_in_the_signed_host_is_named() {
        let to = |host: &str| RawRequest::new("GET", "/prod").with_header("host", host);
        let found = cause(&signed_as(to("gateway:443"), to("gateway")), &settings());
        assert!(found.is_some_and(|found| found.contains("a default port")), "{found:?}");
    }

    #[test]
    fn a_path_encoded_once_too_few_or_too_often_is_named() {
        let once = Signer { single_encoding: true, ..Signer::new() }.sign(order("/prod/a%20b"));
        assert!(cause(&once, &settings()).unwrap().starts_with("the path was encoded once"));
        let twice = Signer::new().sign(order("/prod/a%20b"));
        let wants_once = settings().path_encoding(PathEncoding::Single);
        assert!(cause(&twice, &wants_once).unwrap().starts_with("the path was encoded twice"));
        let dotted = signed_as(order("/prod/b"), order("/prod/a/../b"));
        assert!(cause(&dotted, &settings()).unwrap().starts_with("dot segments"));
    }

    #[test]
    fn another_key_s_secret_and_white_space_around_it_are_named_and_nothing_is_made_up() {
        let two = settings().credentials("AKIDOTHER", "other", None);
        let other = Signer { secret: "other", ..Signer::new() }.sign(order("/prod"));
        assert!(cause(&other, &two).unwrap().contains("another access key"));
        let spaced = Signer { secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n", ..Signer::new() };
        assert!(cause(&spaced.sign(order("/prod")), &settings()).unwrap().contains("white space"));
        assert_eq!(cause(&other, &settings()), None);
    }

    #[test]
    fn no_report_holds_a_secret() {
        let other = Signer { secret: "other-secret", ..Signer::new() }.sign(order("/prod"));
        let report =
            verify(&other, &settings().credentials("AKIDOTHER", "other-secret", None), noon()).explain();
        for secret in [SECRET, TOKEN, "other-secret"] {
            assert!(!report.contains(secret), "{report}");
        }
    }
}
