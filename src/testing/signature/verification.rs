//! A verdict on a signature, and what it was found on.

use crate::testing::signature::authorization::Authorization;
use crate::testing::signature::canonical::{self, HIDDEN, Rules, Secrets, UNSIGNED};
use crate::testing::signature::settings::VerifierSettings;
use crate::testing::signature::verdict::Verdict;
use crate::testing::wire::http::RawRequest;
use std::fmt;

/// A verdict, and what it was found on.
#[derive(Clone)]
pub struct Verification {
    pub(crate) verdict: Verdict,
    /// What probably went wrong, where the signature is another.
    pub(crate) cause: Option<&'static str>,
    access_key_id: Option<String>,
    scope: Option<String>,
    signed_headers: Vec<String>,
    canonical_request: Vec<u8>,
    pub(crate) string_to_sign: String,
    shown: String,
}

impl Verification {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether the signature stands.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    /// The access key id that signed, if the header could be read.
    #[must_use]
    pub fn access_key_id(&self) -> Option<&str> {
        self.access_key_id.as_deref()
    }

    /// The credential scope, `date/region/service/aws4_request`, if the header could be read.
    #[must_use]
    pub fn credential_scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The names of the signed headers, as the request lists them.
    #[must_use]
    pub fn signed_headers(&self) -> &[String] {
        &self.signed_headers
    }

    /// The canonical request, empty if the header could not be read. It holds the session token.
    #[must_use]
    pub fn canonical_request(&self) -> &[u8] {
        &self.canonical_request
    }

    /// The string to sign, empty if the header could not be read.
    #[must_use]
    pub fn string_to_sign(&self) -> &str {
        &self.string_to_sign
    }

    /// What probably went wrong, where the signature is another than the calculated one and was made by a common mistake:
    /// the verifier makes each of them, and looks whether the signature stands then.
    #[must_use]
    pub fn likely_cause(&self) -> Option<&'static str> {
        self.cause
    }

    /// Tells a person what was found and on what, for a test's failure message. The values of headers and query
    /// parameters whose names speak of tokens, secrets, keys or cookies are hidden.
    #[must_use]
    pub fn explain(&self) -> String {
        if self.canonical_request.is_empty() {
            return self.verdict.to_string();
        }
        let (verdict, shown, to_sign) = (&self.verdict, &self.shown, &self.string_to_sign);
        let cause = match (self.cause, verdict) {
            (Some(cause), _) => format!("\nlikely cause: {cause}"),
            (None, Verdict::SignatureMismatch) => format!("\nlikely cause: {UNKNOWN_CAUSE}"),
            (None, _) => String::new(),
        };
        let who = self.access_key_id.as_deref().unwrap_or_default();
        let scope = self.scope.as_deref().unwrap_or_default();
        let over = self.signed_headers.join(", ");
        format!(
            "{verdict}{cause}\nsigned by {who} for {scope}, over {over}\n\n\
             canonical request, as it should have been:\n{shown}\n\nstring to sign:\n{to_sign}\n"
        )
    }

    /// Keeps what the signature is over; answers the body hash that belongs in the canonical request.
    pub(crate) fn note(
        &mut self,
        request: &RawRequest,
        authorization: &Authorization,
        settings: &VerifierSettings,
        amz_date: &str,
    ) -> String {
        let body_hash = match request.header("x-amz-content-sha256") {
            Some(UNSIGNED) => UNSIGNED.to_owned(),
            _ => canonical::sha256_hex(request.body()),
        };
        let (path_encoding, normalize_path) = (settings.path_encoding, settings.normalize_path);
        let canonical = |secrets| {
            let rules = Rules { path_encoding, normalize_path, secrets };
            canonical::canonical_request(request, &authorization.signed_headers, &body_hash, rules)
        };
        let scope = authorization.scope.to_text();
        self.canonical_request = canonical(Secrets::Shown);
        self.string_to_sign = canonical::string_to_sign(amz_date, &scope, &self.canonical_request);
        self.shown = String::from_utf8_lossy(&canonical(Secrets::Hidden)).into_owned();
        for identity in &settings.identities {
            for secret in [Some(&identity.secret), identity.token.as_ref()].into_iter().flatten() {
                // A shorter one is a test's own word, and would be found in words that are no secret.
                if secret.len() >= SHORTEST_SECRET {
                    self.shown = self.shown.replace(secret.as_str(), HIDDEN);
                }
            }
        }
        self.access_key_id = Some(authorization.access_key_id.clone());
        self.scope = Some(scope);
        self.signed_headers.clone_from(&authorization.signed_headers);
        body_hash
    }

    pub(crate) fn not_checked() -> Self {
        Verification {
            verdict: Verdict::NotChecked,
            cause: None,
            access_key_id: None,
            scope: None,
            signed_headers: Vec::new(),
            canonical_request: Vec::new(),
            string_to_sign: String::new(),
            shown: String::new(),
        }
    }
}

/// Shows no canonical request: it holds the session token.
impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification")
            .field("verdict", &self.verdict)
            .field("access_key_id", &self.access_key_id)
            .field("credential_scope", &self.scope)
            .field("signed_headers", &self.signed_headers)
            .finish_non_exhaustive()
    }
}

const UNKNOWN_CAUSE: &str = "another secret key, or something was changed on the way; \
    compare the signer's canonical request with this one, line by line";
const SHORTEST_SECRET: usize = 16;
