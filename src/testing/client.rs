//! What the kit adds to a client's builder: another world, another network, and a client that a gateway knows.

use crate::builder::ClientBuilder;
use crate::client::ServiceClient;
use crate::edge::ambient::Ambient;
use crate::network::Network;
use crate::testing::gateway::fake::FakeGateway;
use crate::testing::lock::lock;
#[cfg(feature = "wiremock")]
use crate::testing::wiremock::SignedFor;
use std::sync::Arc;

impl ClientBuilder {
    /// Replaces clock, waits and dice, with a [`ManualClock`](crate::testing::ManualClock) for instance; for tests.
    ///
    /// The gateway must go by the same clock: a difference of more than a day is not corrected.
    pub fn ambient(mut self, ambient: impl Ambient) -> ClientBuilder {
        self.world = Arc::new(ambient);
        self
    }

    /// Exchanges requests with this in the place of sockets, with [`FakeGateway::in_memory`] for instance; for tests.
    ///
    /// All else is as ever: each attempt is signed, counted, decided on and waited for. Nothing is connected to, so what is
    /// set for connections (TLS, pool, proxy, HTTP/2) has no effect.
    pub fn exchange_with(mut self, network: impl Network) -> ClientBuilder {
        self.network = Some(Arc::new(network));
        self
    }
}

impl FakeGateway {
    /// Begins a client of this gateway: its base URL, its Region and service, credentials that it accepts (it accepts a set
    /// of its own making where it has none), its clock where that is a [`ManualClock`](crate::testing::ManualClock), and in
    /// memory where it has no socket.
    ///
    /// What an SDK's users set, profile, retry budget and so on, is the test's to set.
    pub fn client(&self) -> ClientBuilder {
        let (region, service, identity) = {
            let mut settings = lock(&self.shared.settings);
            if settings.identities.is_empty() {
                settings.accept(OWN_KEY.to_owned(), OWN_SECRET.to_owned(), None);
            }
            let known = settings.identities.iter().find(|known| !known.revoked);
            (settings.region.clone(), settings.service.clone(), known.cloned())
        };
        let mut builder = ServiceClient::builder(self.base_url()).region(region).service(service);
        if let Some(known) = identity {
            builder = builder.static_credentials(known.key, known.secret, known.token.as_deref());
        }
        if let Some(clock) = &self.shared.by_hand {
            builder = builder.ambient(clock.clone());
        }
        match self.addr().port() {
            0 => builder.exchange_with(self.in_memory()),
            _ => builder,
        }
    }
}

#[cfg(feature = "wiremock")]
impl SignedFor {
    /// Begins a client whose requests this matches: the base URL is the server's with the stage `prod`, so that a mock's path
    /// is `/prod/orders`; Region, service and credentials are those that are expected, and so is the clock where it was given.
    ///
    /// What an SDK's users set, profile, retry budget and so on, is the test's to set.
    pub fn client(&self, server: &::wiremock::MockServer) -> ClientBuilder {
        let (settings, clock) = self.expected();
        let mut builder = ServiceClient::builder(format!("{}/prod", server.uri()))
            .region(&settings.region)
            .service(&settings.service);
        if let Some(known) = settings.identities.first() {
            builder = builder.static_credentials(&known.key, &known.secret, known.token.as_deref());
        }
        match clock {
            Some(clock) => builder.ambient(clock.clone()),
            None => builder,
        }
    }
}

/// The access key of a gateway that was given none.
const OWN_KEY: &str = "AKIDTESTKIT";
const OWN_SECRET: &str = "the-secret-of-the-test-kit";
