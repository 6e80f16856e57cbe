//! The key of the day, kept with what else is the same for every signature by one set of credentials.

use crate::edge::canonical;
use crate::edge::credential_state::same;
use aws_credential_types::Credentials;
use aws_sigv4::sign::v4;
use http::HeaderValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Keeps the last key that was derived, which is half the cost of a signature, and the last second that was spelt.
#[derive(Default)]
pub(crate) struct SigningKeys(Mutex<Last>);

#[derive(Default)]
struct Last {
    stamp: Option<(u64, Stamp)>,
    key: Option<Arc<DayKey>>,
}

impl SigningKeys {
    /// The second of `at`, which lies within the calendar, and the key of its day for a Region and a service.
    ///
    /// # Errors
    /// Credentials that no header can carry.
    pub(crate) fn at(
        &self,
        credentials: &Credentials,
        at: SystemTime,
        (region, service): (&str, &str),
    ) -> Result<(Stamp, Arc<DayKey>), SigningFault> {
        let second = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = match &last.stamp {
            Some((of, stamp)) if *of == second => stamp.clone(),
            _ => {
                let stamp = Stamp::of(second)?;
                last.stamp = Some((second, stamp.clone()));
                stamp
            }
        };
        let day = stamp.day();
        if let Some(key) = last.key.as_ref().filter(|key| key.is_of(credentials, day)) {
            let key = Arc::clone(key);
            return Ok((stamp, key));
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
        last.key = Some(Arc::clone(&key));
        Ok((stamp, key))
    }
}

/// A second as signatures spell it, `20150830T123600Z`: what begins in one second shares it.
#[derive(Clone)]
pub(crate) struct Stamp(HeaderValue);

impl Stamp {
    fn of(second: u64) -> Result<Stamp, SigningFault> {
        // Digits and two letters are a value: the error cannot occur.
        let value = HeaderValue::try_from(canonical::date_time(second));
        value.map(Stamp).map_err(|_| SigningFault::KeyId)
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// `20150830`
    pub(crate) fn day(&self) -> &str {
        canonical::day(self.as_str())
    }

    pub(crate) fn into_value(self) -> HeaderValue {
        self.0
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

/// A header value of a secret that was checked before, marked as one; the error cannot occur.
pub(crate) fn secret(text: String) -> Result<HeaderValue, SigningFault> {
    let mut value = HeaderValue::try_from(text).map_err(|_| SigningFault::SessionToken)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_day_s_key_is_derived_once_and_anew_for_another_day_or_other_credentials() {
        let keys = SigningKeys::default();
        let of = |id: &str, secret: &str, second: u64| {
            let (credentials, at) = (
                Credentials::from_keys(id, secret, None),
                SystemTime::UNIX_EPOCH + Duration::from_secs(second),
            );
            keys.at(&credentials, at, ("eu-central-1", "execute-api")).unwrap()
        };
        let (stamp, first) = of("AKIDEXAMPLE", "secret", 0);
        assert_eq!(stamp.as_str(), "19700101T000000Z");
        let (stamp, later) = of("AKIDEXAMPLE", "secret", 86_399);
        assert_eq!((stamp.as_str(), stamp.day()), ("19700101T235959Z", "19700101"));
        assert!(Arc::ptr_eq(&first, &later));
        assert!(!Arc::ptr_eq(&first, &of("AKIDEXAMPLE", "secret", 86_400).1));
        assert!(!Arc::ptr_eq(&first, &of("AKIDEXAMPLE", "other", 0).1));
    }
}
