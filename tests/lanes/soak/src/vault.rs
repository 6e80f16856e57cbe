//! Where the clients' credentials come from: a provider whose set is rotated, and which is slow or fails at times.

use crate::time::{sleep, up_to, wall};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};
use fastrand::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The provider. Clones are the same.
#[derive(Clone, Debug)]
pub struct Vault(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    number: u64,
    rng: Rng,
    moody: bool,
    loads: u64,
}

impl Vault {
    pub fn new(seed: u64) -> Vault {
        Vault(Arc::new(Mutex::new(State { number: 1, rng: Rng::with_seed(seed), moody: false, loads: 0 })))
    }

    /// Gives another set from now on.
    pub fn rotate(&self) {
        self.0.lock().unwrap().number += 1;
    }

    /// Sets whether it is slow, or fails, at times.
    pub fn moods(&self, moody: bool) {
        self.0.lock().unwrap().moody = moody;
    }

    /// The access key, the secret and the session token that it gives now.
    pub fn current(&self) -> [String; 3] {
        set(self.0.lock().unwrap().number)
    }

    /// How often it was asked.
    pub fn loads(&self) -> u64 {
        self.0.lock().unwrap().loads
    }

    async fn load(&self) -> provider::Result {
        let (wait, fails, lasting) = {
            let mut state = self.0.lock().unwrap();
            state.loads += 1;
            let moody = state.moody;
            let wait =
                if moody && state.rng.u8(0..4) == 0 { up_to(&mut state.rng, 300) } else { Duration::ZERO };
            let fails = moody && state.rng.u8(0..20) == 0;
            // Some sets are due to be refreshed within seconds: the client does so 5 minutes ahead of their end.
            let lasting = (state.rng.u8(0..2) == 0).then(|| 301 + state.rng.u64(0..15));
            (wait, fails, lasting)
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        if fails {
            return Err(CredentialsError::provider_error("the vault is closed for a moment"));
        }
        let [id, secret, token] = self.current();
        let expiry = lasting.map(|seconds| wall() + Duration::from_secs(seconds));
        Ok(Credentials::new(id, secret, Some(token), expiry, "the soak's vault"))
    }
}

impl ProvideCredentials for Vault {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.load())
    }
}

fn set(number: u64) -> [String; 3] {
    [format!("AKIDSOAK{number}"), format!("secret-{number}"), format!("token-{number}")]
}
