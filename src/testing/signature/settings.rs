//! Whose signatures are accepted, for what, and how paths are encoded.

use std::fmt;

/// Whose signatures are accepted, for what, and how paths are encoded.
#[derive(Clone)]
pub struct VerifierSettings {
    pub(crate) region: String,
    pub(crate) service: String,
    pub(crate) identities: Vec<Identity>,
    pub(crate) path_encoding: PathEncoding,
    pub(crate) normalize_path: bool,
    pub(crate) allow_unsigned_payload: bool,
}

impl VerifierSettings {
    /// Accepts signatures for this Region and service, so far of nobody.
    #[must_use]
    pub fn new(region: impl Into<String>, service: impl Into<String>) -> Self {
        VerifierSettings {
            region: region.into(),
            service: service.into(),
            identities: Vec::new(),
            path_encoding: PathEncoding::Double,
            normalize_path: false,
            allow_unsigned_payload: false,
        }
    }

    /// Accepts one more set of credentials; a set that was revoked stands again.
    #[must_use]
    pub fn credentials(
        mut self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) -> Self {
        self.accept(access_key_id.into(), secret_access_key.into(), session_token.map(str::to_owned));
        self
    }

    /// Sets how often paths are percent-encoded. Default: [`PathEncoding::Double`].
    #[must_use]
    pub fn path_encoding(mut self, encoding: PathEncoding) -> Self {
        self.path_encoding = encoding;
        self
    }

    /// Takes dot segments and doubled slashes out of the path first. Default: no.
    #[must_use]
    pub fn normalize_path(mut self, normalize: bool) -> Self {
        self.normalize_path = normalize;
        self
    }

    /// Accepts `x-amz-content-sha256: UNSIGNED-PAYLOAD`, as VPC Lattice does. Default: no.
    #[must_use]
    pub fn allow_unsigned_payload(mut self, allow: bool) -> Self {
        self.allow_unsigned_payload = allow;
        self
    }

    pub(crate) fn accept(&mut self, key: String, secret: String, token: Option<String>) {
        self.identities.retain(|known| known.key != key || known.token != token);
        self.identities.push(Identity { key, secret, token, revoked: false });
    }

    pub(crate) fn revoke(&mut self, key: &str) {
        for identity in self.identities.iter_mut().filter(|known| known.key == key) {
            identity.revoked = true;
        }
    }
}

/// Shows no secret and no token.
impl fmt::Debug for VerifierSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.identities.iter().map(|known| known.key.as_str()).collect();
        f.debug_struct("VerifierSettings")
            .field("region", &self.region)
            .field("service", &self.service)
            .field("access_key_ids", &keys)
            .field("path_encoding", &self.path_encoding)
            .field("normalize_path", &self.normalize_path)
            .field("allow_unsigned_payload", &self.allow_unsigned_payload)
            .finish()
    }
}

/// How a path is percent-encoded for signing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEncoding {
    /// Once more than on the wire, as API Gateway and most services do.
    Double,
    /// As on the wire, as Amazon S3 does.
    Single,
}

/// One set of credentials.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
    pub(crate) revoked: bool,
}
