//! The named settings.

use crate::policy::backoff::{Backoff, Base};
use std::time::Duration;

/// A set of settings that fit together, by what waits for the call.
///
/// | setting | [`interactive`](Profile::interactive) | [`standard`](Profile::standard) | [`background`](Profile::background) |
/// |---|---|---|---|
/// | `total_timeout` | 3 s | 10 s | 60 s |
/// | `attempt_timeout` | 1.5 s | 4 s | 10 s |
/// | `connect_timeout` | 500 ms | 1 s | 2 s |
/// | `min_attempt_time` | 50 ms | 50 ms | 100 ms |
/// | `deadline_reserve` | 100 ms | 100 ms | 500 ms |
/// | `transient_base` | 200 ms | 200 ms | 1 s |
/// | `throttled_base` | 500 ms | 500 ms | 1 s |
/// | `backoff_cap` | 1 s | 2 s | 30 s |
/// | `max_attempts` | 3 | 3 | 6 |
/// | `server_error_retries` (500) | 2 | 2 | 2 |
/// | `bad_gateway_retries` (502) | 1 | 1 | 1 |
/// | `retry_budget` | 2 | 2 | 5 |
///
/// Each value can be replaced on the client's builder; those of a call also on the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    pub(crate) name: &'static str,
    pub(crate) total_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) min_attempt_time: Duration,
    pub(crate) deadline_reserve: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) max_attempts: u32,
    pub(crate) server_error_retries: u32,
    pub(crate) bad_gateway_retries: u32,
    pub(crate) retry_budget: u32,
}

impl Profile {
    /// Somebody waits for the answer.
    #[must_use]
    pub fn interactive() -> Profile {
        Profile {
            name: "interactive",
            total_timeout: Duration::from_secs(3),
            attempt_timeout: Duration::from_millis(1_500),
            connect_timeout: Duration::from_millis(500),
            backoff: Backoff::new(
                Duration::from_millis(200),
                Duration::from_millis(500),
                Duration::from_secs(1),
            ),
            ..Profile::standard()
        }
    }

    /// A service calls a service. The default.
    #[must_use]
    pub fn standard() -> Profile {
        Profile {
            name: "standard",
            total_timeout: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(4),
            connect_timeout: Duration::from_secs(1),
            min_attempt_time: Duration::from_millis(50),
            deadline_reserve: Duration::from_millis(100),
            backoff: Backoff::new(
                Duration::from_millis(200),
                Duration::from_millis(500),
                Duration::from_secs(2),
            ),
            max_attempts: 3,
            server_error_retries: 2,
            bad_gateway_retries: 1,
            retry_budget: 2,
        }
    }

    /// Nobody waits: a queue's consumer, a nightly run.
    ///
    /// Its retry budget of 5 fits fleets of up to about 3,000 sandboxes.
    #[must_use]
    pub fn background() -> Profile {
        Profile {
            name: "background",
            total_timeout: Duration::from_secs(60),
            attempt_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(2),
            min_attempt_time: Duration::from_millis(100),
            deadline_reserve: Duration::from_millis(500),
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(30)),
            max_attempts: 6,
            server_error_retries: 2,
            bad_gateway_retries: 1,
            retry_budget: 5,
        }
    }

    /// The profile's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The time that a call may take, everything included.
    #[must_use]
    pub fn total_timeout(&self) -> Duration {
        self.total_timeout
    }

    /// The time that one exchange may take, from connecting to the last byte of the body.
    #[must_use]
    pub fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// The time that TCP and TLS may take.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// The least time that must be left for an attempt to begin: less would only waste a token of the gateway.
    #[must_use]
    pub fn min_attempt_time(&self) -> Duration {
        self.min_attempt_time
    }

    /// What is kept back of a Lambda's own deadline, to answer in.
    #[must_use]
    pub fn deadline_reserve(&self) -> Duration {
        self.deadline_reserve
    }

    /// The waits between attempts: two bases and a cap.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// How often a call is sent in all, the first time included.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// How many retries a call makes on a 500.
    #[must_use]
    pub fn server_error_retries(&self) -> u32 {
        self.server_error_retries
    }

    /// How many retries a call makes on a 502.
    #[must_use]
    pub fn bad_gateway_retries(&self) -> u32 {
        self.bad_gateway_retries
    }

    /// How long a call would take with every attempt at its limit and every wait at its ceiling, if the total did not end it
    /// before that. A callee's `Retry-After` may ask for longer waits.
    #[must_use]
    pub fn attempts_and_waits(&self) -> Duration {
        let ceiling = |retry| {
            let of = |base| self.backoff.ceiling(base, retry);
            of(Base::Transient).max(of(Base::Throttled))
        };
        let retries = self.max_attempts.saturating_sub(1);
        // From the 128th doubling on they are all alike.
        let growing = retries.min(128);
        let waits = (0..growing).fold(Duration::ZERO, |sum, retry| sum.saturating_add(ceiling(retry)));
        let alike = ceiling(growing).saturating_mul(retries - growing);
        self.attempt_timeout.saturating_mul(self.max_attempts).saturating_add(waits).saturating_add(alike)
    }

    /// How many tokens the client's retry budget holds.
    #[must_use]
    pub fn retry_budget(&self) -> u32 {
        self.retry_budget
    }
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::standard()
    }
}

/// Refresh credentials this long before they expire.
pub const CREDENTIAL_REFRESH_BEFORE_EXPIRY: Duration = Duration::from_secs(300);
/// Close a connection that was idle for so long; under the usual 20 s of servers.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Read at most so many bytes of a successful answer's body: the gateway's own payload limit.
pub const RESPONSE_BODY_LIMIT: usize = 10 * 1_024 * 1_024;
/// Keep at most so many bytes of any other answer's body.
pub const ERROR_BODY_LIMIT: usize = 64 * 1_024;
/// Refuse a request body of more bytes: *Amazon API Gateway quotas*, payload size.
pub const REQUEST_BODY_LIMIT: usize = 10_485_760;
/// Longer attempts than this outlast the gateway's own limit and are warned about.
pub const GATEWAY_INTEGRATION_TIMEOUT: Duration = Duration::from_secs(29);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_waits_are_added_up_at_their_limits() {
        let seconds = |profile: Profile| profile.attempts_and_waits().as_secs_f64();
        // 3 x 1.5 s + 0.5 s + 1 s; 3 x 4 s + 0.5 s + 1 s; 6 x 10 s + 1 s + 2 s + 4 s + 8 s + 16 s.
        assert_eq!(seconds(Profile::interactive()), 6.0);
        assert_eq!(seconds(Profile::standard()), 13.5);
        assert_eq!(seconds(Profile::background()), 91.0);
    }

    #[test]
    fn ten_mebibytes_of_a_success_are_read_and_sixty_four_kibibytes_of_any_other_answer() {
        assert_eq!((RESPONSE_BODY_LIMIT, ERROR_BODY_LIMIT), (10_485_760, 65_536));
    }

    #[test]
    fn each_profile_bears_its_own_name_and_tells_its_own_numbers() {
        let profiles = [Profile::interactive(), Profile::standard(), Profile::background()];
        assert_eq!(profiles.map(|profile| profile.name()), ["interactive", "standard", "background"]);
        let other = Profile {
            server_error_retries: 3,
            bad_gateway_retries: 4,
            retry_budget: 5,
            ..Profile::standard()
        };
        let told = (other.server_error_retries(), other.bad_gateway_retries(), other.retry_budget());
        assert_eq!(told, (3, 4, 5));
    }

    #[test]
    fn any_number_of_attempts_adds_up_without_a_long_count() {
        let many = Profile { max_attempts: u32::MAX, ..Profile::standard() };
        let least = Profile::standard().attempt_timeout * u32::MAX;
        assert!(many.attempts_and_waits() > least);
        let none = Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let once = Profile { max_attempts: 1, backoff: none, ..Profile::standard() };
        assert_eq!(once.attempts_and_waits(), Duration::from_secs(4));
    }
}
