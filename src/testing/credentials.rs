//! A provider of credentials that counts how often it is asked, and fails, hangs or gives others when told to.

use crate::testing::lock::lock;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, future};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A provider of credentials that counts and fails. Clones share what they count and what they were told.
///
/// ```
/// use eastwest::testing::{FakeCredentials, FakeGateway, Reply};
/// use eastwest::{CallContext, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), eastwest::Error> {
/// let gateway = FakeGateway::builder()
///     .credentials("AKIDNEW", "new-secret", None)
///     .route("GET", "/orders", [Reply::ok()])
///     .without_socket();
/// let credentials = FakeCredentials::new("AKIDOLD", "old-secret", None);
/// let client = gateway.client().credentials_provider(credentials.clone()).build()?;
///
/// // The gateway knows none of the old set; after the refusal the provider is asked once more, and gives the new one.
/// credentials.then("AKIDNEW", "new-secret", None);
/// client.get(&CallContext::root(), "/orders").send().await?;
/// assert_eq!(credentials.loads(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FakeCredentials(Arc<Mutex<State>>);

struct State {
    current: Credentials,
    /// What is given once the current ones were, in order.
    next: Vec<Credentials>,
    expiry: Option<SystemTime>,
    failing: usize,
    hanging: bool,
    given: usize,
    loads: usize,
    failures: usize,
}

impl FakeCredentials {
    /// Gives this set each time it is asked.
    #[must_use]
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) -> FakeCredentials {
        FakeCredentials(Arc::new(Mutex::new(State {
            current: set(access_key_id.into(), secret_access_key.into(), session_token),
            next: Vec::new(),
            expiry: None,
            failing: 0,
            hanging: false,
            given: 0,
            loads: 0,
            failures: 0,
        })))
    }

    /// Gives this set once the one before it was given, and from then on.
    pub fn then(
        &self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) {
        let set = set(access_key_id.into(), secret_access_key.into(), session_token);
        lock(&self.0).next.push(set);
    }

    /// Lets all sets that are given from now on expire at this time.
    pub fn expire_at(&self, expiry: SystemTime) {
        lock(&self.0).expiry = Some(expiry);
    }

    /// Fails the next so many times that it is asked.
    pub fn fail_next(&self, times: usize) {
        lock(&self.0).failing = times;
    }

    /// Sets whether it never answers.
    pub fn hang(&self, hang: bool) {
        lock(&self.0).hanging = hang;
    }

    /// How often it was asked.
    #[must_use]
    pub fn loads(&self) -> usize {
        lock(&self.0).loads
    }

    /// How often it failed.
    #[must_use]
    pub fn failures(&self) -> usize {
        lock(&self.0).failures
    }

    /// `None` if it is to hang.
    fn load(&self) -> Option<Result> {
        let mut state = lock(&self.0);
        state.loads += 1;
        if state.hanging {
            return None;
        }
        if state.failing > 0 {
            state.failing -= 1;
            state.failures += 1;
            return Some(Err(CredentialsError::provider_error("the test's provider was told to fail")));
        }
        if state.given > 0 && !state.next.is_empty() {
            state.current = state.next.remove(0);
        }
        state.given += 1;
        let mut set = state.current.clone();
        *set.expiry_mut() = state.expiry;
        Some(Ok(set))
    }
}

impl ProvideCredentials for FakeCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        match self.load() {
            Some(result) => future::ProvideCredentials::ready(result),
            None => future::ProvideCredentials::new(std::future::pending()),
        }
    }
}

/// Shows no secret and no token.
impl fmt::Debug for FakeCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        f.debug_struct("FakeCredentials")
            .field("access_key_id", &state.current.access_key_id())
            .field("loads", &state.loads)
            .field("failures", &state.failures)
            .finish_non_exhaustive()
    }
}

fn set(access_key_id: String, secret_access_key: String, session_token: Option<&str>) -> Credentials {
    Credentials::new(access_key_id, secret_access_key, session_token.map(str::to_owned), None, "test kit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(result: Option<Result>) -> std::result::Result<String, ()> {
        result.unwrap().map(|set| set.access_key_id().to_owned()).map_err(drop)
    }

    #[test]
    fn it_fails_as_often_as_told_counts_and_then_gives_one_set_after_the_other() {
        let credentials = FakeCredentials::new("K1", "secret-1", Some("token-1"));
        credentials.then("K2", "secret-2", None);
        credentials.fail_next(2);
        let given: Vec<_> = (0..5).map(|_| key(credentials.load())).collect();
        assert_eq!(given, [Err(()), Err(()), Ok("K1".into()), Ok("K2".into()), Ok("K2".into())]);
        assert_eq!((credentials.loads(), credentials.failures()), (5, 2));
    }

    #[test]
    fn it_hangs_while_told_to_and_its_clones_know() {
        let credentials = FakeCredentials::new("K", "secret", None);
        credentials.clone().hang(true);
        assert!(credentials.load().is_none());
        credentials.hang(false);
        let expiry = SystemTime::UNIX_EPOCH;
        credentials.expire_at(expiry);
        assert_eq!(credentials.load().unwrap().unwrap().expiry(), Some(expiry));
    }

    #[test]
    fn its_debug_shows_no_secret() {
        let shown = format!("{:?}", FakeCredentials::new("K", "the-secret", Some("the-token")));
        assert!(shown.contains("\"K\"") && !shown.contains("the-"), "{shown}");
    }
}
