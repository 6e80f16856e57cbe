//! From settings to a client, or to the name of the setting that is wrong.

mod restraint;
mod wire;

use crate::circuit::CircuitBreaker;
use crate::client::ServiceClient;
use crate::context::headers;
use crate::dead_letter::DeadLetterSink;
use crate::edge::ambient::{Ambient, shared_system};
use crate::edge::base_url::BaseUrl;
use crate::edge::clock_skew::ClockSkew;
use crate::edge::credential_state::CacheSettings;
use crate::edge::credentials::CredentialCache;
use crate::edge::environment::EnvironmentCredentials;
use crate::edge::exchange::Edge;
use crate::edge::pool::TransportSettings;
use crate::edge::sigv4::Signer;
use crate::edge::tls::{ClientIdentity, Roots, TlsSettings};
use crate::edge::transport::Transport;
use crate::edge::user_token::UserTokenSource;
use crate::error::Error;
use crate::fleet::{FleetBreaker, SharedLimit};
use crate::observe::Watch;
use crate::observer::Observer;
use crate::pace::Pace;
use crate::policy::backoff::Backoff;
use crate::policy::breaker::BreakerSettings;
use crate::policy::profile::{CREDENTIAL_REFRESH_BEFORE_EXPIRY, POOL_IDLE_TIMEOUT, Profile};
use crate::policy::rate_limit::RateLimit;
use crate::policy::refine::{Sighting, Verdict};
use crate::policy::retry_budget::RetryBudget;
use crate::retry_loop::Gates;
use crate::settings::{Overrides, Settings};
use crate::shared::{Letters, Limits, Names, Shared};
use crate::usage::{AccountQuota, Reporter};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use http::{HeaderValue, StatusCode};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Gathers the settings of a [`ServiceClient`].
///
/// Region and credentials have no default; all else has, by the [`Profile`]. What contradicts itself is refused by
/// [`build`](ClientBuilder::build), by name.
#[must_use = "a builder does nothing until it builds"]
pub struct ClientBuilder {
    base_url: String,
    allow_http: bool,
    region: Option<String>,
    service: String,
    credentials: Option<SharedCredentialsProvider>,
    overrides: Overrides,
    breaker: BreakerSettings,
    fleet: Option<FleetBreaker>,
    retry_budget: Option<RetryBudget>,
    rate_limit: Option<RateLimit>,
    calls_in_flight: Option<u32>,
    shared_limit: Option<Arc<dyn SharedLimit>>,
    account_quota: Option<AccountQuota>,
    user_tokens: Option<Arc<dyn UserTokenSource>>,
    idempotency_header: String,
    letters: Letters,
    observers: Vec<Arc<dyn Observer>>,
    user_token_header: String,
    announce_time_budget: bool,
    pool_idle_timeout: Duration,
    speaks_http2: bool,
    environment_proxy: bool,
    roots: Trust,
    more_roots: Vec<Vec<u8>>,
    client_identity: Option<(Vec<u8>, Vec<u8>)>,
    api_id: Option<String>,
    url_limit: Option<usize>,
    resolve: Vec<(String, SocketAddr)>,
    pub(crate) world: Arc<dyn Ambient>,
    #[cfg(feature = "testing")]
    pub(crate) network: Option<Arc<dyn crate::network::Network>>,
}

impl ServiceClient {
    /// Begins a client of the API at `base_url`, stage or base path included.
    ///
    /// `https` only, except for loopback hosts. Region and credentials must follow.
    pub fn builder(base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(base_url.into())
    }

    /// Begins a client with Region and credentials from the AWS configuration.
    #[cfg(feature = "aws-config")]
    pub fn from_aws_config(base_url: impl Into<String>, config: &aws_config::SdkConfig) -> ClientBuilder {
        ClientBuilder::new(base_url.into()).aws_config(config)
    }
}

impl ClientBuilder {
    pub(crate) fn new(base_url: String) -> ClientBuilder {
        ClientBuilder {
            base_url,
            allow_http: false,
            region: None,
            service: "execute-api".to_owned(),
            credentials: None,
            overrides: Overrides::default(),
            breaker: BreakerSettings::default(),
            fleet: None,
            retry_budget: None,
            rate_limit: None,
            calls_in_flight: None,
            shared_limit: None,
            account_quota: None,
            user_tokens: None,
            idempotency_header: headers::IDEMPOTENCY_KEY.to_string(),
            letters: Letters { sink: None, idempotency_window: IDEMPOTENCY_WINDOW },
            observers: Vec::new(),
            user_token_header: headers::USER_TOKEN.to_string(),
            announce_time_budget: true,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            speaks_http2: false,
            environment_proxy: false,
            roots: Trust::Bundled,
            more_roots: Vec::new(),
            client_identity: None,
            api_id: None,
            url_limit: None,
            resolve: Vec::new(),
            world: shared_system(),
            #[cfg(feature = "testing")]
            network: None,
        }
    }

    /// Sets the Region that signatures name. It is never guessed from the host: a custom domain hides it.
    pub fn region(mut self, region: impl Into<String>) -> ClientBuilder {
        self.region = Some(region.into());
        self
    }

    /// Sets the service that signatures name: `execute-api` (the default), `lambda` for function URLs, or
    /// `vpc-lattice-svcs`, whose payload is not signed.
    pub fn service(mut self, service: impl Into<String>) -> ClientBuilder {
        self.service = service.into();
        self
    }

    /// Sets where credentials come from. They are cached and refreshed by the client, whatever the provider does.
    pub fn credentials_provider(mut self, provider: impl ProvideCredentials + 'static) -> ClientBuilder {
        self.credentials = Some(SharedCredentialsProvider::new(provider));
        self
    }

    /// Sets fixed credentials, for tests.
    pub fn static_credentials(
        self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) -> ClientBuilder {
        let token = session_token.map(str::to_owned);
        let credentials =
            Credentials::new(access_key_id, secret_access_key, token, None, "static credentials");
        self.credentials_provider(credentials)
    }

    /// Takes credentials from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, as a Lambda has
    /// them, and spares the start that the whole AWS chain costs. The Region is not read: set it.
    pub fn environment_credentials(self) -> ClientBuilder {
        self.credentials_provider(EnvironmentCredentials)
    }

    /// Takes Region and credentials from the AWS configuration, where it has them.
    #[cfg(feature = "aws-config")]
    pub(crate) fn aws_config(mut self, config: &aws_config::SdkConfig) -> ClientBuilder {
        if let Some(region) = config.region() {
            self.region = Some(region.as_ref().to_owned());
        }
        if let Some(provider) = config.credentials_provider() {
            self.credentials = Some(provider);
        }
        self
    }

    /// Sets times and counts by name; `standard` by default. Single values set here win over it.
    pub fn profile(mut self, profile: Profile) -> ClientBuilder {
        self.overrides.profile = Some(profile);
        self
    }

    /// Bounds a whole call: credentials, signing, waits, attempts and bodies.
    pub fn total_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.overrides.total_timeout = Some(timeout);
        self
    }

    /// Bounds one exchange, from connecting to the last byte of the body; it is cut to what is left of the total.
    pub fn attempt_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.overrides.attempt_timeout = Some(timeout);
        self
    }

    /// Bounds TCP and TLS. Kept below the attempt's, so that "surely not sent" can be told.
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.overrides.connect_timeout = Some(timeout);
        self
    }

    /// Sets the least time that must be left for an attempt to begin.
    pub fn min_attempt_time(mut self, time: Duration) -> ClientBuilder {
        self.overrides.min_attempt_time = Some(time);
        self
    }

    /// Sets what is kept back of a Lambda's own deadline, to answer in.
    pub fn deadline_reserve(mut self, reserve: Duration) -> ClientBuilder {
        self.overrides.deadline_reserve = Some(reserve);
        self
    }

    /// Sets the waits between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> ClientBuilder {
        self.overrides.backoff = Some(backoff);
        self
    }

    /// Sets how often a call is sent in all, the first time included; at least 1.
    pub fn max_attempts(mut self, attempts: u32) -> ClientBuilder {
        self.overrides.max_attempts = Some(attempts);
        self
    }

    /// Sets how many retries a call makes on a 500.
    pub fn server_error_retries(mut self, retries: u32) -> ClientBuilder {
        self.overrides.server_error_retries = Some(retries);
        self
    }

    /// Sets how many retries a call makes on a 502.
    pub fn bad_gateway_retries(mut self, retries: u32) -> ClientBuilder {
        self.overrides.bad_gateway_retries = Some(retries);
        self
    }

    /// Sets what an answer of this status means.
    ///
    /// ```
    /// # use eastwest::ServiceClient;
    /// use eastwest::http::StatusCode;
    /// use eastwest::{Class, Verdict};
    ///
    /// // An API that answers 500 to a validation error.
    /// let builder = ServiceClient::builder("https://legacy.example/v1")
    ///     .on_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Class(Class::Rejected));
    /// # let _ = builder;
    /// ```
    pub fn on_status(mut self, status: StatusCode, verdict: Verdict) -> ClientBuilder {
        self.overrides.refinements.set_status(status, verdict);
        self
    }

    /// Sets a function that refines the status table from status, headers and the start of the body.
    pub fn classifier(
        mut self,
        classifier: impl Fn(&Sighting<'_>) -> Verdict + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.overrides.refinements.set_classifier(Arc::new(classifier));
        self
    }

    /// Sets the limit on request bodies, in bytes; 10,485,760 by default, the gateway's own.
    pub fn request_body_limit(mut self, bytes: usize) -> ClientBuilder {
        self.overrides.request_body_limit = Some(bytes);
        self
    }

    /// Sets the limit on whole URLs, in characters; 8,192 by default, the private gateway's own. At most 65,000.
    pub fn url_limit(mut self, characters: usize) -> ClientBuilder {
        self.url_limit = Some(characters);
        self
    }

    /// Sets how many bytes of a successful answer's body are read; 10 MiB by default. A longer one is an error.
    pub fn response_body_limit(mut self, bytes: usize) -> ClientBuilder {
        self.overrides.response_body_limit = Some(bytes);
        self
    }

    /// Sets how many bytes of any other answer's body are kept; 64 KiB by default.
    pub fn error_body_limit(mut self, bytes: usize) -> ClientBuilder {
        self.overrides.error_body_limit = Some(bytes);
        self
    }

    /// Sets the name of the header that carries the idempotency key; `x-idempotency-key` by default.
    pub fn idempotency_header(mut self, name: impl Into<String>) -> ClientBuilder {
        self.idempotency_header = name.into();
        self
    }

    /// Sets for how long the callee recognises a key, 1 h by default: a [replay](ServiceClient::replay) of a letter whose first
    /// attempt is older warns.
    pub fn idempotency_window(mut self, window: Duration) -> ClientBuilder {
        self.letters.idempotency_window = window;
        self
    }

    /// Sets where the letters of failed calls go; nowhere by default. It may take 1 s more than the call's own time.
    pub fn dead_letter_sink(mut self, sink: impl DeadLetterSink + 'static) -> ClientBuilder {
        self.letters.sink = Some(Arc::new(sink));
        self
    }

    /// Adds one who is told what becomes of calls, while it happens.
    pub fn observer(mut self, observer: impl Observer + 'static) -> ClientBuilder {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Sets where calls get their user's token from, unless they bring their own.
    pub fn user_token_source(mut self, source: impl UserTokenSource + 'static) -> ClientBuilder {
        self.user_tokens = Some(Arc::new(source));
        self
    }

    /// Sets the name of the header that carries the user's token; `x-user-token` by default. `authorization` is the
    /// signature's.
    pub fn user_token_header(mut self, name: impl Into<String>) -> ClientBuilder {
        self.user_token_header = name.into();
        self
    }

    /// Does not tell the callee how long it is waited for (`x-time-budget-ms`).
    pub fn without_time_budget_header(mut self) -> ClientBuilder {
        self.announce_time_budget = false;
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration), with [`Error::field`] naming the setting.
    pub fn build(self) -> Result<ServiceClient, Error> {
        self.overrides.check()?;
        let mut base = BaseUrl::parse(&self.base_url, self.allow_http)?;
        if let Some(characters) = self.url_limit {
            base = base.with_longest_url(characters);
        }
        let region = self.region.as_deref().map(str::trim).filter(|region| !region.is_empty());
        let Some(region) = region else {
            return Err(Error::configuration(
                "region",
                "not set with `.region(..)`, and never guessed from the host",
            ));
        };
        if let Some(named) = base.named_region().filter(|named| *named != region) {
            let reason = format!("is {region}, and the host is in {named}, where no signature for it stands");
            return Err(Error::configuration("region", reason));
        }
        let Some(credentials) = self.credentials else {
            return Err(Error::configuration(
                "credentials",
                "not set; `.environment_credentials()` on a Lambda",
            ));
        };
        let refused = |(field, reason): (&'static str, &'static str)| Error::configuration(field, reason);
        self.breaker.check().map_err(refused)?;
        self.fleet.as_ref().map_or(Ok(()), FleetBreaker::check).map_err(refused)?;
        self.rate_limit.as_ref().map_or(Ok(()), RateLimit::check).map_err(refused)?;
        if self.calls_in_flight == Some(0) {
            return Err(Error::configuration("calls_in_flight", "admits no attempt at all: 1 is the least"));
        }
        let settings = self.overrides.over(&Settings::default());
        let budget = self.retry_budget.unwrap_or_else(|| RetryBudget::new(settings.profile.retry_budget()));
        if budget.capacity().is_some_and(|capacity| capacity < settings.profile.max_attempts - 1) {
            tracing::warn!(
                "the retry budget holds less than one call's retries: max_attempts is never reached"
            );
        }
        let names = Names::chosen(&self.idempotency_header, &self.user_token_header)?;
        if self.resolve.iter().any(|(host, _)| !host.eq_ignore_ascii_case(base.host())) {
            return Err(Error::configuration("resolve", "the host is not the base URL's"));
        }
        settings.check()?;
        let api_id = self.api_id.as_deref().map(api_id).transpose()?;
        let usage = Reporter::new(self.account_quota, region, self.world.now().monotonic);
        let signer = Signer::new(region, self.service)?.also_signing(names.idempotency_key.clone());
        let cache = CacheSettings { early: CREDENTIAL_REFRESH_BEFORE_EXPIRY, ..CacheSettings::default() };
        let transport = TransportSettings {
            connect_timeout: settings.profile.connect_timeout.min(settings.profile.attempt_timeout),
            pool_idle_timeout: self.pool_idle_timeout,
            http2: self.speaks_http2,
            environment_proxies: self.environment_proxy,
            resolve: self.resolve,
            https_only: !base.is_plain_http(),
            tls: TlsSettings {
                offer_http2: self.speaks_http2,
                ..tls_settings(self.roots, &self.more_roots, self.client_identity)?
            },
        };
        let transport = Transport::new(transport, Arc::clone(&self.world))?;
        #[cfg(feature = "testing")]
        if self.network.is_none() && base.host() == crate::network::NO_SOCKET {
            let reason =
                "has no socket behind it: begin with `gateway.client()`, or add `.exchange_with(..)`";
            return Err(Error::configuration("base_url", reason));
        }
        #[cfg(feature = "testing")]
        let transport = transport.over(self.network);
        let edge = Edge {
            signer,
            credentials: CredentialCache::new(credentials, Arc::clone(&self.world), cache),
            skew: ClockSkew::default(),
            transport,
            announce_time_budget: self.announce_time_budget,
            header_limit: if api_id.is_some() || base.is_private_endpoint() {
                PRIVATE_HEADER_LIMIT
            } else {
                HEADER_LIMIT
            },
            error_body_limit: settings.error_body_limit,
            api_id,
            user_tokens: self.user_tokens,
            user_token_header: names.user_token.clone(),
            idempotency_header: names.idempotency_key.clone(),
            ambient: Arc::clone(&self.world),
        };
        let now = self.world.now();
        let limits = Limits {
            rate: self.rate_limit.clone(),
            in_flight: self.calls_in_flight,
            is_shared: self.shared_limit.is_some(),
            has_fleet: self.fleet.is_some(),
        };
        let pace =
            Pace::new(self.rate_limit, self.calls_in_flight, now).shared_with_others(self.shared_limit);
        let watch = Arc::new(Watch {
            observers: self.observers,
            server_address: base.host().into(),
            server_port: base.port(),
            origin: base.origin(),
        });
        let fleet = self.fleet.map(|fleet| fleet.gate(Arc::clone(&self.world)));
        let circuit =
            CircuitBreaker::new(self.breaker, Arc::clone(&self.world), Arc::clone(&watch)).with_fleet(fleet);
        let gates = Gates { ambient: self.world, circuit, budget, pace, usage, watch };
        let letters = self.letters;
        let terms = [true, false].map(|repeatable| Arc::new(settings.terms(repeatable)));
        Ok(ServiceClient(Arc::new(Shared { base, settings, terms, names, gates, edge, letters, limits })))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("region", &self.region)
            .field("service", &self.service)
            .field("has_credentials", &self.credentials.is_some())
            .finish_non_exhaustive()
    }
}

/// Whose certificates are trusted, besides those that are added.
enum Trust {
    Bundled,
    Nobody,
    Platform,
}

fn tls_settings(
    trust: Trust,
    more_roots: &[Vec<u8>],
    identity: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<TlsSettings, Error> {
    let mut roots = match trust {
        Trust::Bundled => Roots::bundled(),
        Trust::Nobody => Roots::none(),
        Trust::Platform => Roots::platform(),
    };
    for pem in more_roots {
        roots = roots.and_pem(pem)?;
    }
    let identity = identity.map(|(chain, key)| ClientIdentity::from_pem(&chain, &key)).transpose()?;
    Ok(TlsSettings { roots, identity, offer_http2: false })
}

fn api_id(id: &str) -> Result<HeaderValue, Error> {
    let well_formed = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let value = HeaderValue::from_str(id).ok().filter(|_| well_formed);
    value.ok_or_else(|| Error::configuration("api_id", "letters and digits only"))
}

/// How long callees commonly keep keys.
const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(3_600);

/// All header lines of a request (*Quotas for configuring and running a REST API in API Gateway*: header names, values, line
/// terminators and white space).
const HEADER_LIMIT: usize = 10_240;

/// The same for private APIs.
const PRIVATE_HEADER_LIMIT: usize = 8_000;
