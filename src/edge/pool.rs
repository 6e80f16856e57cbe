//! The HTTP client with its connections, replaced where they may be dead.

use crate::edge::fault::Fault;
use crate::edge::tls::TlsSettings;
use crate::policy::moment::Moment;
use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lends the one HTTP client, and replaces it on the kept TLS settings.
pub(crate) struct Pool {
    settings: TransportSettings,
    tls: ClientConfig,
    state: Mutex<State>,
}

impl Pool {
    /// Builds the client. No connection is opened.
    ///
    /// # Errors
    /// TLS settings that cannot work.
    pub(crate) fn new(settings: TransportSettings) -> Result<Pool, Fault> {
        let tls = settings.tls.client_config()?;
        let state = Mutex::new(State {
            client: settings.client(&tls)?,
            generation: 0,
            answered: false,
            last_used: None,
        });
        Ok(Pool { settings, tls, state })
    }

    /// Lends the client for one exchange; a new one where the old has been idle for longer than its connections are
    /// kept, by either clock: the pool's own timer may have been frozen.
    pub(crate) fn lease(&self, now: Moment) -> Lease {
        let mut state = self.lock();
        let idle = state.last_used.map(|last| now.since(&last)).unwrap_or_default();
        if idle > self.settings.pool_idle_timeout {
            self.replace(&mut state);
        }
        state.last_used = Some(now);
        Lease {
            client: state.client.clone(),
            began: now,
            answered: state.answered,
            idle,
            generation: state.generation,
        }
    }

    /// Whether nothing but HTTP/1.1 is ever spoken.
    pub(crate) fn speaks_only_http1(&self) -> bool {
        !self.settings.http2
    }

    /// Notes that an exchange ended, and whether an answer came.
    pub(crate) fn give_back(&self, lease: &Lease, now: Moment, answered: bool) {
        let mut state = self.lock();
        state.last_used = Some(now);
        state.answered |= answered && state.generation == lease.generation;
    }

    /// Replaces the client. Exchanges that are under way go on over the old one.
    #[cfg(test)]
    pub(crate) fn renew(&self) {
        self.replace(&mut self.lock());
    }

    /// Replaces the client that was lent, unless another exchange has done so: of many that are cut at once, one does.
    pub(crate) fn renew_after(&self, lease: &Lease) {
        let mut state = self.lock();
        if state.generation == lease.generation {
            self.replace(&mut state);
        }
    }

    fn replace(&self, state: &mut State) {
        // What was built before is built again; if not, the old one still serves.
        if let Ok(client) = self.settings.client(&self.tls) {
            state.client = client;
            state.generation = state.generation.wrapping_add(1);
            state.answered = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The client, lent for one exchange.
pub(crate) struct Lease {
    /// The client to send with.
    pub(crate) client: Client,
    /// When it was lent.
    pub(crate) began: Moment,
    /// Whether an answer came over it before, so that a connection may lie in its pool.
    pub(crate) answered: bool,
    /// How long nobody had used it.
    pub(crate) idle: Duration,
    generation: u64,
}

/// How exchanges are made.
#[derive(Debug)]
pub(crate) struct TransportSettings {
    /// The longest time for name, TCP and TLS together: 1 second. Shorter than an attempt's time, for then a request
    /// that was surely not sent can be told from one that may have been.
    pub(crate) connect_timeout: Duration,
    /// Whether the proxies that the environment names are used: no.
    pub(crate) environment_proxies: bool,
    /// Whether HTTP/2 is spoken, where it is offered in the TLS handshake, and in any case without TLS: no.
    pub(crate) http2: bool,
    /// Whether plain HTTP is refused here too: yes.
    pub(crate) https_only: bool,
    /// How long an idle connection is kept: 15 seconds, less than the usual 20 of servers.
    pub(crate) pool_idle_timeout: Duration,
    /// Addresses for names, in place of a look-up: a VPC endpoint without private DNS. The port is the URL's.
    pub(crate) resolve: Vec<(String, SocketAddr)>,
    /// Whom to trust and who we are.
    pub(crate) tls: TlsSettings,
}

impl TransportSettings {
    fn client(&self, tls: &ClientConfig) -> Result<Client, Fault> {
        let mut builder = self
            .speaking(client_builder(tls))
            .connect_timeout(self.connect_timeout)
            .https_only(self.https_only)
            .pool_idle_timeout(self.pool_idle_timeout)
            .user_agent(USER_AGENT);
        if !self.environment_proxies {
            builder = builder.no_proxy();
        }
        for (host, _) in &self.resolve {
            let of_host = self.resolve.iter().filter(|(name, _)| name == host);
            let addresses: Vec<SocketAddr> = of_host.map(|(_, address)| *address).collect();
            builder = builder.resolve_to_addrs(host, &addresses);
        }
        builder.build().map_err(|error| Fault::new("transport", error.to_string()))
    }
}

#[cfg(not(feature = "http2"))]
impl TransportSettings {
    fn speaking(&self, builder: ClientBuilder) -> ClientBuilder {
        debug_assert!(!self.http2, "nobody can ask for it");
        builder.http1_only()
    }
}

#[cfg(feature = "http2")]
impl TransportSettings {
    fn speaking(&self, builder: ClientBuilder) -> ClientBuilder {
        match (self.http2, self.https_only) {
            (false, _) => builder.http1_only(),
            (true, true) => builder,
            (true, false) => builder.http2_prior_knowledge(),
        }
    }
}

impl Default for TransportSettings {
    fn default() -> TransportSettings {
        TransportSettings {
            connect_timeout: Duration::from_secs(1),
            environment_proxies: false,
            http2: false,
            https_only: true,
            pool_idle_timeout: Duration::from_secs(15),
            resolve: Vec::new(),
            tls: TlsSettings::default(),
        }
    }
}

/// A client that sends what it is given, once: whatever features of reqwest others have switched on.
pub(crate) fn client_builder(tls: &ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .no_hickory_dns()
}

struct State {
    client: Client,
    generation: u64,
    answered: bool,
    last_used: Option<Moment>,
}

/// What the client calls itself, unless its user does.
pub(crate) const USER_AGENT: &str = concat!("eastwest/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;

    #[test]
    fn of_many_exchanges_that_are_cut_at_once_one_replaces_the_client() {
        let pool = Pool::new(TransportSettings::default()).unwrap();
        let now = some_moment();
        let (one, other) = (pool.lease(now), pool.lease(now));
        pool.renew_after(&one);
        let fresh = pool.lease(now);
        assert_ne!(fresh.generation, one.generation);
        pool.renew_after(&other);
        assert_eq!(pool.lease(now).generation, fresh.generation);
    }

    #[test]
    fn an_answer_over_the_old_client_says_nothing_of_the_new_one() {
        let pool = Pool::new(TransportSettings::default()).unwrap();
        let now = some_moment();
        let old = pool.lease(now);
        pool.renew();
        pool.give_back(&old, now, true);
        let new = pool.lease(now);
        assert!(!new.answered);
        pool.give_back(&new, now, true);
        assert!(pool.lease(now).answered);
    }

    #[test]
    fn only_an_idle_time_beyond_the_limit_replaces_the_client() {
        let pool = Pool::new(TransportSettings::default()).unwrap();
        let mut now = some_moment();
        let first = pool.lease(now);
        now.wall += Duration::from_secs(15);
        assert_eq!(pool.lease(now).generation, first.generation);
        now.wall += Duration::from_secs(16);
        let woken = pool.lease(now);
        assert_ne!(woken.generation, first.generation);
        assert_eq!(woken.idle, Duration::from_secs(16));
    }

    #[test]
    fn no_setting_that_is_public_shows_a_key() {
        let shown = format!("{:?}", Pool::new(TransportSettings::default()).unwrap());
        assert!(shown.contains("Bundled and 0 added") && shown.contains("identity: None"), "{shown}");
    }
}
