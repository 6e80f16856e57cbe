//! The client's own signer by itself, for the bench that holds it against another and for whoever feeds it with anything.

use crate::edge::base_url::BaseUrl;
use crate::edge::path::Path;
use crate::edge::sigv4::{BodyHash, Signer};
use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::target::Target;
use aws_credential_types::Credentials;
use http::{HeaderMap, Method};
use std::fmt;
use std::time::SystemTime;

/// Signs one POST again and again, as a call signs each of its attempts: the URL is assembled and the body hashed
/// once, before.
///
/// Not part of the test kit proper, and promised to nobody.
pub struct AttemptSigner {
    signer: Signer,
    target: Target,
    credentials: Credentials,
    hash: BodyHash,
}

impl AttemptSigner {
    /// Prepares what all attempts have in common.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] where a client could not be built of the same.
    pub fn new(
        base_url: &str,
        (path, query): (&str, &[(String, String)]),
        region: &str,
        credentials: Credentials,
        body: &[u8],
    ) -> Result<AttemptSigner, Error> {
        let signer = Signer::new(region, "execute-api")?;
        Ok(AttemptSigner {
            target: BaseUrl::parse(base_url, false)?.target(&Path::from(path), query)?,
            hash: signer.body_hash(body),
            signer,
            credentials,
        })
    }

    /// Path and query as they would be sent, and the value of `Host`.
    pub fn request_target(&self) -> (String, &str) {
        let (path, query) = (self.target.path(), self.target.query());
        let mark = if query.is_empty() { "" } else { "?" };
        (format!("{path}{mark}{query}"), self.target.host_header())
    }

    /// Hashes a body, as is done once a call.
    pub fn hash(&mut self, body: &[u8]) {
        self.hash = self.signer.body_hash(body);
    }

    /// Signs one attempt: all its headers, from the unsigned ones.
    ///
    /// # Errors
    /// [`ErrorKind::Credentials`] where no header can carry the credentials.
    pub fn sign(&self, unsigned: &HeaderMap, at: SystemTime) -> Result<HeaderMap, Error> {
        let signed = self.signer.sign(
            &Method::POST,
            &self.target,
            unsigned.clone(),
            &self.hash,
            &self.credentials,
            at,
        );
        match signed {
            Ok(signed) => Ok(signed.into_headers()),
            Err(fault) => Err(Error::of(ErrorKind::Credentials, None, fault.to_string())),
        }
    }
}

impl fmt::Debug for AttemptSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptSigner")
            .field("signer", &self.signer)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn two_attempts_of_one_second_are_signed_alike_and_another_body_is_not() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let keys = Credentials::from_keys("AKIDEXAMPLE", "secret", None);
        let mut signer = AttemptSigner::new(
            "https://orders.example.test/prod",
            ("/orders", &[]),
            "eu-central-1",
            keys,
            b"a",
        )
        .unwrap();
        let signed = |signer: &AttemptSigner| {
            let headers = signer.sign(&HeaderMap::new(), at).unwrap();
            headers["authorization"].to_str().unwrap().to_owned()
        };
        let first = signed(&signer);
        assert_eq!(first, signed(&signer));
        signer.hash(b"b");
        assert_ne!(first, signed(&signer));
    }
}
