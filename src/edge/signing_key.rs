//! The key of the day, kept with what else is the same for every signature by one set of credentials.

use crate::edge::credential_state::same;
use aws_credential_types::Credentials;
use aws_sigv4::sign::v4;
use http::HeaderValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Keeps the last key that was derived: deriving it is half the cost of a signature.
#[derive(Default)]
pub(crate) struct SigningKeys(Mutex<Option<Arc<DayKey>>>);

impl SigningKeys {
    /// The key of `day`, which is the day of `at`, for a Region and a service.
    ///
    /// # Errors
    /// Credentials that no header can carry.
    pub(crate) fn of_day(
        &self,
        credentials: &Credentials,
        at: SystemTime,
        day: &str,
        (region, service): (&str, &str),
    ) -> Result<Arc<DayKey>, SigningFault> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = kept.as_ref().filter(|key| key.is_of(credentials, day)) {
            return Ok(Arc::clone(key));
        }
        check_credentials(credentials)?;
        let key = v4::generate_signing_key(credentials.secret_access_key(), at, region, service);
        let token = credentials.session_token().map(|token| secret(token.to_owned())).transpose()?;
        let key = Arc::new(DayKey {
            day: day.to_owned(),
            credentials: credentials.clone(),
            bytes: key.as_ref().to_vec(),
            token,
        });
        *kept = Some(Arc::clone(&key));
        Ok(key)
    }
}

/// The key of one day, and the session token's header: both of credentials that were checked.
pub(crate) struct DayKey {
    day: String,
    credentials: Credentials,
    bytes: Vec<u8>,
    token: Option<HeaderValue>,
}

impl DayKey {
    /// The session token, marked sensitive.
    pub(crate) fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// The signature of a string to sign.
    pub(crate) fn sign(&self, to_sign: &str) -> String {
        v4::calculate_signature(&self.bytes, to_sign.as_bytes())
    }

    fn is_of(&self, credentials: &Credentials, day: &str) -> bool {
        // All three count, not only the id: a corrected secret under the same id must not meet the old key.
        self.day == day && same(&self.credentials, credentials)
    }
}

/// Why a request could not be signed. None of them repeats what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SigningFault {
    /// The access key id.
    #[error(
        "the access key id is empty or holds white space, a control character or a character outside ASCII"
    )]
    KeyId,
    /// The secret access key.
    #[error(
        "the secret access key is empty or holds white space, a control character or a character outside ASCII"
    )]
    SecretKey,
    /// The session token.
    #[error(
        "the session token is empty or holds white space, a control character or a character outside ASCII"
    )]
    SessionToken,
}

fn check_credentials(credentials: &Credentials) -> Result<(), SigningFault> {
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !whole(credentials.access_key_id()) {
        return Err(SigningFault::KeyId);
    }
    if !whole(credentials.secret_access_key()) {
        return Err(SigningFault::SecretKey);
    }
    if !credentials.session_token().is_none_or(whole) {
        return Err(SigningFault::SessionToken);
    }
    Ok(())
}

/// A header value of text that was checked before; the error cannot occur.
pub(crate) fn visible(text: &str) -> Result<HeaderValue, SigningFault> {
    HeaderValue::from_str(text).map_err(|_| SigningFault::SessionToken)
}

/// The same of a secret, marked as one.
pub(crate) fn secret(text: String) -> Result<HeaderValue, SigningFault> {
    let mut value = HeaderValue::try_from(text).map_err(|_| SigningFault::SessionToken)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_s_key_is_derived_once_and_anew_for_another_day_or_other_credentials() {
        let (keys, at) = (SigningKeys::default(), SystemTime::UNIX_EPOCH);
        let of = |id: &str, secret: &str, day: &str| {
            let credentials = Credentials::from_keys(id, secret, None);
            keys.of_day(&credentials, at, day, ("eu-central-1", "execute-api")).unwrap()
        };
        let first = of("AKIDEXAMPLE", "secret", "19700101");
        assert!(Arc::ptr_eq(&first, &of("AKIDEXAMPLE", "secret", "19700101")));
        assert!(!Arc::ptr_eq(&first, &of("AKIDEXAMPLE", "secret", "19700102")));
        assert!(!Arc::ptr_eq(&first, &of("AKIDEXAMPLE", "other", "19700101")));
    }
}
