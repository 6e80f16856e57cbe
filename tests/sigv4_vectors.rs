//! AWS's published SigV4 vectors, against the verifier of the test kit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use eastwest::testing::{RawRequest, Verdict, Verification, VerifierSettings, verify};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[test]
fn every_published_signature_stands_and_is_over_the_published_text() {
    let mut stood = 0;
    for vector in vectors() {
        let verification = vector.verification(vector.request());
        // Its session token was added after signing: AWS IoT takes that, this verifier wants it signed.
        let expected = match vector.name.as_str() {
            "post-sts-header-after" => Verdict::AmzHeaderNotSigned("x-amz-security-token".to_owned()),
            _ => Verdict::Valid,
        };
        let canonical = String::from_utf8_lossy(verification.canonical_request());
        assert_eq!(canonical, vector.text("header-canonical-request.txt"), "{}", vector.name);
        assert_eq!(
            verification.string_to_sign(),
            vector.text("header-string-to-sign.txt"),
            "{}",
            vector.name
        );
        assert_eq!(verification.verdict(), &expected, "{}: {}", vector.name, verification.explain());
        stood += usize::from(verification.is_valid());
    }
    assert_eq!(stood, 37);
}

#[test]
fn no_published_signature_stands_for_another_method_path_query_or_body() {
    for vector in vectors().into_iter().filter(|vector| vector.name != "post-sts-header-after") {
        let request = vector.request();
        let refused = |altered: RawRequest, what: &str| {
            let verdict = vector.verification(altered).verdict().clone();
            assert!(
                matches!(verdict, Verdict::SignatureMismatch | Verdict::BodyHashMismatch),
                "{} with another {what}: {verdict}",
                vector.name
            );
        };
        let wire = fs::read(vector.path("header-signed-request.txt")).unwrap();
        let line_end = wire.iter().position(|b| *b == b'\n').unwrap();
        let with_line = |method: &str, target: &[u8]| {
            let wire = [method.as_bytes(), b" ", target, b" HTTP/1.1", &wire[line_end..]].concat();
            RawRequest::parse(&wire).unwrap()
        };
        let mark: &[u8] = if request.query().is_some() { b"&" } else { b"?" };
        refused(with_line("PUT", request.target()), "method");
        refused(with_line(request.method(), &[b"/other", request.target()].concat()), "path");
        refused(with_line(request.method(), &[request.target(), mark, b"more=1"].concat()), "query");
        refused(request.with_body("another"), "body");
    }
}

#[test]
fn an_explanation_shows_the_canonical_request_and_no_secret() {
    let named = |name: &str| vectors().into_iter().find(|vector| vector.name == name).unwrap();
    for name in ["get-vanilla-with-session-token", "post-sts-header-before", "post-sts-header-after"] {
        let vector = named(name);
        let explanation = vector.verification(vector.request()).explain();
        assert!(explanation.contains("host:example.amazonaws.com"), "{explanation}");
        assert!(explanation.contains("AWS4-HMAC-SHA256\n20150830T123600Z"), "{explanation}");
        let context = vector.context();
        for secret in ["secret_access_key", "token"] {
            let secret = context["credentials"][secret].as_str().unwrap();
            assert!(!explanation.contains(secret), "{explanation}");
        }
    }
}

struct Vector {
    name: String,
    directory: PathBuf,
}

impl Vector {
    fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn context(&self) -> serde_json::Value {
        serde_json::from_str(&self.text("context.json")).unwrap()
    }

    fn request(&self) -> RawRequest {
        let wire = fs::read(self.path("header-signed-request.txt")).unwrap();
        RawRequest::parse(&wire).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn verification(&self, request: RawRequest) -> Verification {
        let context = self.context();
        let text = |pointer: &str| context.pointer(pointer).and_then(|v| v.as_str());
        // "omit_session_token" is how the vector was signed, not whom it belongs to.
        let settings = VerifierSettings::new(text("/region").unwrap(), text("/service").unwrap())
            .credentials(
                text("/credentials/access_key_id").unwrap(),
                text("/credentials/secret_access_key").unwrap(),
                text("/credentials/token"),
            )
            .normalize_path(context.get("normalize").unwrap().as_bool().unwrap());
        assert_eq!(text("/timestamp"), Some("2015-08-30T12:36:00Z"));
        verify(&request, &settings, SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160))
    }
}

fn vectors() -> Vec<Vector> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sigv4-vectors");
    let entries = fs::read_dir(directory).expect("the vectors are in the tree");
    let mut vectors: Vec<Vector> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| Vector { name: entry.file_name().into_string().unwrap(), directory: entry.path() })
        .collect();
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(vectors.len(), 38);
    vectors
}
