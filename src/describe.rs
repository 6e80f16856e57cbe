//! A client's effective settings as data: for assertions, and for a line in the log at the start.

use crate::client::ServiceClient;
use crate::dead_letter::SINK_LIMIT;
use crate::policy::breaker::BreakerSettings;
use crate::policy::rate_limit::RateLimit;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The settings that hold for a client's calls, unless a call has its own.
///
/// With serde it is written as flat JSON, times in whole milliseconds under names that end in `_ms`. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The base URL, stage or base path included.
    pub base_url: String,
    /// The Region that signatures name.
    pub region: String,
    /// The service that signatures name.
    pub service: String,
    /// The name of the profile; single values may differ from it.
    pub profile: &'static str,
    /// Bounds a whole call.
    #[serde(rename = "total_timeout_ms", serialize_with = "millis")]
    pub total_timeout: Duration,
    /// Bounds one exchange.
    #[serde(rename = "attempt_timeout_ms", serialize_with = "millis")]
    pub attempt_timeout: Duration,
    /// Bounds TCP and TLS.
    #[serde(rename = "connect_timeout_ms", serialize_with = "millis")]
    pub connect_timeout: Duration,
    /// The least time that must be left for an attempt to begin.
    #[serde(rename = "min_attempt_time_ms", serialize_with = "millis")]
    pub min_attempt_time: Duration,
    /// What is kept back of a Lambda's own deadline.
    #[serde(rename = "deadline_reserve_ms", serialize_with = "millis")]
    pub deadline_reserve: Duration,
    /// The ceiling of the first wait after a passing fault.
    #[serde(rename = "transient_base_ms", serialize_with = "millis")]
    pub transient_base: Duration,
    /// The ceiling of the first wait after a sign of overload.
    #[serde(rename = "throttled_base_ms", serialize_with = "millis")]
    pub throttled_base: Duration,
    /// The longest ceiling of a wait.
    #[serde(rename = "backoff_cap_ms", serialize_with = "millis")]
    pub backoff_cap: Duration,
    /// How often a call is sent in all, the first time included.
    pub max_attempts: u32,
    /// How many retries a call makes on a 500.
    pub server_error_retries: u32,
    /// How many retries a call makes on a 502.
    pub bad_gateway_retries: u32,
    /// How many tokens the retry budget holds when full; none where it is off.
    pub retry_budget: Option<u32>,
    /// The breaker's thresholds and times.
    #[serde(serialize_with = "breaker")]
    pub breaker: BreakerSettings,
    /// The rate limit, where one is set.
    #[serde(serialize_with = "rate_limit")]
    pub rate_limit: Option<RateLimit>,
    /// How many calls may be in flight, where that is limited.
    pub calls_in_flight: Option<u32>,
    /// Whether every attempt draws from a limit that others draw from too.
    pub draws_from_shared_limit: bool,
    /// Whether the client takes part in a fleet-wide breaker.
    pub has_fleet_breaker: bool,
    /// The limit on request bodies, in bytes.
    pub request_body_limit: usize,
    /// How many bytes of a successful answer's body are read.
    pub response_body_limit: usize,
    /// How many bytes of any other answer's body are kept.
    pub error_body_limit: usize,
    /// The header of the idempotency key.
    pub idempotency_header: String,
    /// The header of the user's token.
    pub user_token_header: String,
    /// Whether attempts say how long they are waited for (`x-time-budget-ms`).
    pub announces_time_budget: bool,
    /// For how long the callee recognises a key.
    #[serde(rename = "idempotency_window_ms", serialize_with = "millis")]
    pub idempotency_window: Duration,
    /// Whether letters of failed calls go to a sink.
    pub has_dead_letter_sink: bool,
    /// How long a call would take with every attempt at its limit and every wait at its ceiling, if the total did not end it.
    #[serde(rename = "attempts_and_waits_ms", serialize_with = "millis")]
    pub attempts_and_waits: Duration,
}

impl Description {
    /// The longest that a call may take: the total, as a callee's `Retry-After` may ask for more than the waits' ceilings; and
    /// up to a second more for the letter of a failed call, where there is a sink.
    ///
    /// This is what whoever waits for the call has to be ready for: it must fit under an API Gateway's 29 s for a call made to
    /// serve a request, and under what a person waits for one at a screen.
    ///
    /// ```
    /// use eastwest::{Profile, ServiceClient};
    /// use std::time::Duration;
    ///
    /// let client = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
    ///     .region("eu-central-1")
    ///     .environment_credentials()
    ///     .profile(Profile::interactive())
    ///     .build()?;
    /// assert_eq!(client.describe().longest_call(), Duration::from_secs(3));
    /// # Ok::<(), eastwest::Error>(())
    /// ```
    #[must_use]
    pub fn longest_call(&self) -> Duration {
        let letter = if self.has_dead_letter_sink { SINK_LIMIT } else { Duration::ZERO };
        self.total_timeout.saturating_add(letter)
    }

    /// Whether the total may end a call before its last attempt: all attempts at their limits and all waits at their ceilings
    /// are longer than it.
    ///
    /// It is so with each of the profiles. They are made for a callee that answers quickly, well or ill; of one that hangs, the
    /// last attempts are cut, and the call ends in its time.
    #[must_use]
    pub fn total_may_cut_attempts(&self) -> bool {
        self.attempts_and_waits > self.total_timeout
    }
}

impl ServiceClient {
    /// The settings that hold for this client's calls, as data.
    #[must_use]
    pub fn describe(&self) -> Description {
        let (shared, profile) = (&self.0, &self.0.settings.profile);
        let (region, service) = shared.edge.signer.scope();
        Description {
            base_url: shared.base.to_string(),
            region: region.to_owned(),
            service: service.to_owned(),
            profile: profile.name(),
            total_timeout: profile.total_timeout(),
            attempt_timeout: profile.attempt_timeout(),
            connect_timeout: profile.connect_timeout().min(profile.attempt_timeout()),
            min_attempt_time: profile.min_attempt_time(),
            deadline_reserve: profile.deadline_reserve(),
            transient_base: profile.backoff().transient_base(),
            throttled_base: profile.backoff().throttled_base(),
            backoff_cap: profile.backoff().cap(),
            max_attempts: profile.max_attempts(),
            server_error_retries: profile.server_error_retries(),
            bad_gateway_retries: profile.bad_gateway_retries(),
            retry_budget: shared.gates.budget.capacity(),
            breaker: shared.gates.circuit.settings(),
            rate_limit: shared.limits.rate.clone(),
            calls_in_flight: shared.limits.in_flight,
            draws_from_shared_limit: shared.limits.is_shared,
            has_fleet_breaker: shared.limits.has_fleet,
            request_body_limit: shared.settings.request_body_limit,
            response_body_limit: shared.settings.response_body_limit,
            error_body_limit: shared.settings.error_body_limit,
            idempotency_header: shared.names.idempotency_key.to_string(),
            user_token_header: shared.names.user_token.to_string(),
            announces_time_budget: shared.edge.announce_time_budget,
            idempotency_window: shared.letters.idempotency_window,
            has_dead_letter_sink: shared.letters.sink.is_some(),
            attempts_and_waits: profile.attempts_and_waits(),
        }
    }
}

fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn rate_limit<S: Serializer>(limit: &Option<RateLimit>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(limit) = limit else { return serializer.serialize_none() };
    let period = u64::try_from(limit.period.as_millis()).unwrap_or(u64::MAX);
    let burst = u64::from(limit.burst);
    serializer.collect_map([("attempts", limit.attempts.into()), ("period_ms", period), ("burst", burst)])
}

fn breaker<S: Serializer>(settings: &BreakerSettings, serializer: S) -> Result<S::Ok, S::Error> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // The builder's largest number says never, which a reader of a log would not guess.
    let growth_from = Some(settings.growth_from()).filter(|from| *from != u32::MAX);
    let known = [
        ("failures_in_row", u64::from(settings.failures_in_row())),
        ("failure_percent", settings.failure_percent().into()),
        ("minimum_outcomes", settings.minimum_outcomes().into()),
        ("window_ms", ms(settings.window())),
        ("failure_memory_ms", ms(settings.failure_memory())),
        ("open_for_ms", ms(settings.open_for())),
        ("open_cap_ms", ms(settings.open_cap())),
        ("jitter_percent", settings.jitter_percent().into()),
        ("probes", settings.probes().into()),
        ("successes_to_close", settings.successes_to_close().into()),
    ];
    let known = known.map(|(name, value)| (name, Some(value)));
    serializer.collect_map(known.into_iter().chain([("growth_from", growth_from.map(u64::from))]))
}
