//! Which value holds: a call's own, its profile's, the client's, the client's profile's.

use crate::error::Error;
use crate::policy::attempts::Terms;
use crate::policy::backoff::Backoff;
use crate::policy::profile::{
    ERROR_BODY_LIMIT, GATEWAY_INTEGRATION_TIMEOUT, Profile, REQUEST_BODY_LIMIT, RESPONSE_BODY_LIMIT,
};
use crate::policy::rate_limit::Priority;
use crate::policy::refine::Refinements;
use std::sync::Arc;
use std::time::Duration;

/// The values that were set on one level, a client's or a call's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) profile: Option<Profile>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) min_attempt_time: Option<Duration>,
    pub(crate) deadline_reserve: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) server_error_retries: Option<u32>,
    pub(crate) bad_gateway_retries: Option<u32>,
    pub(crate) request_body_limit: Option<usize>,
    pub(crate) response_body_limit: Option<usize>,
    pub(crate) error_body_limit: Option<usize>,
    pub(crate) priority: Option<Priority>,
    pub(crate) refinements: Refinements,
}

/// The values that hold.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    pub(crate) request_body_limit: usize,
    pub(crate) response_body_limit: usize,
    pub(crate) error_body_limit: usize,
    pub(crate) priority: Priority,
    pub(crate) refinements: Arc<Refinements>,
}

impl Overrides {
    /// Refuses values that contradict each other on this level.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let times = [
            ("total_timeout", self.total_timeout),
            ("attempt_timeout", self.attempt_timeout),
            ("connect_timeout", self.connect_timeout),
        ];
        for (field, time) in times {
            if time == Some(Duration::ZERO) {
                return Err(Error::configuration(field, "must be longer than zero"));
            }
        }
        let longer = |long: Option<Duration>, short: Option<Duration>| matches!((long, short), (Some(l), Some(s)) if l > s);
        if longer(self.attempt_timeout, self.total_timeout) {
            return Err(Error::configuration("attempt_timeout", "must not be longer than total_timeout"));
        }
        if longer(self.connect_timeout, self.attempt_timeout) {
            return Err(Error::configuration("connect_timeout", "must not be longer than attempt_timeout"));
        }
        if longer(self.connect_timeout, self.total_timeout) {
            return Err(Error::configuration("connect_timeout", "must not be longer than total_timeout"));
        }
        if self.max_attempts == Some(0) {
            return Err(Error::configuration("max_attempts", "counts the first attempt, so 1 is the least"));
        }
        if self.attempt_timeout.is_some_and(|timeout| timeout > GATEWAY_INTEGRATION_TIMEOUT) {
            tracing::warn!(
                "an attempt_timeout over 29 s outlasts the gateway: such work is a workflow, and raising the \
                 gateway's limit may cost the Region's throttle quota"
            );
        }
        Ok(())
    }

    /// The values that hold where `base` is the level below. A whole profile replaces that level's times and counts.
    pub(crate) fn over(&self, base: &Settings) -> Settings {
        let below = self.profile.unwrap_or(base.profile);
        let profile = Profile {
            total_timeout: self.total_timeout.unwrap_or(below.total_timeout),
            attempt_timeout: self.attempt_timeout.unwrap_or(below.attempt_timeout),
            connect_timeout: self.connect_timeout.unwrap_or(below.connect_timeout),
            min_attempt_time: self.min_attempt_time.unwrap_or(below.min_attempt_time),
            deadline_reserve: self.deadline_reserve.unwrap_or(below.deadline_reserve),
            backoff: self.backoff.unwrap_or(below.backoff),
            max_attempts: self.max_attempts.unwrap_or(below.max_attempts),
            server_error_retries: self.server_error_retries.unwrap_or(below.server_error_retries),
            bad_gateway_retries: self.bad_gateway_retries.unwrap_or(below.bad_gateway_retries),
            ..below
        };
        Settings {
            profile,
            request_body_limit: self.request_body_limit.unwrap_or(base.request_body_limit),
            response_body_limit: self.response_body_limit.unwrap_or(base.response_body_limit),
            error_body_limit: self.error_body_limit.unwrap_or(base.error_body_limit),
            priority: self.priority.unwrap_or(base.priority),
            refinements: base.refinements.overlaid(&self.refinements),
        }
    }
}

impl Settings {
    /// Refuses values under which nothing could ever be sent.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.profile.total_timeout < self.profile.min_attempt_time {
            let reason = "leaves no time for one attempt: it is shorter than min_attempt_time";
            return Err(Error::configuration("total_timeout", reason));
        }
        Ok(())
    }

    /// What policy is told of a call.
    pub(crate) fn terms(&self, repeatable: bool) -> Terms {
        Terms {
            max_attempts: self.profile.max_attempts,
            attempt_timeout: self.profile.attempt_timeout,
            backoff: self.profile.backoff,
            server_error_retries: self.profile.server_error_retries,
            bad_gateway_retries: self.profile.bad_gateway_retries,
            refinements: Arc::clone(&self.refinements),
            repeatable,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            profile: Profile::standard(),
            request_body_limit: REQUEST_BODY_LIMIT,
            response_body_limit: RESPONSE_BODY_LIMIT,
            error_body_limit: ERROR_BODY_LIMIT,
            priority: Priority::default(),
            refinements: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Option<Duration> {
        Some(Duration::from_secs(secs))
    }

    #[test]
    fn values_of_one_level_that_contradict_each_other_are_refused_by_name() {
        let refused = |overrides: Overrides| overrides.check().unwrap_err().field();
        let (total_timeout, attempt_timeout) = (secs(1), secs(2));
        assert_eq!(
            refused(Overrides { total_timeout, attempt_timeout, ..Overrides::default() }),
            Some("attempt_timeout")
        );
        let connect_timeout = secs(3);
        assert_eq!(
            refused(Overrides { connect_timeout, attempt_timeout, ..Overrides::default() }),
            Some("connect_timeout")
        );
        assert_eq!(
            refused(Overrides { connect_timeout, total_timeout, ..Overrides::default() }),
            Some("connect_timeout")
        );
        assert_eq!(
            refused(Overrides { max_attempts: Some(0), ..Overrides::default() }),
            Some("max_attempts")
        );
        let total_timeout = secs(0);
        assert_eq!(refused(Overrides { total_timeout, ..Overrides::default() }), Some("total_timeout"));
    }

    #[test]
    fn a_total_cut_down_alone_is_no_contradiction() {
        let cut = Overrides { total_timeout: secs(1), ..Overrides::default() };
        assert!(cut.check().is_ok());
        let settings = cut.over(&Settings::default());
        assert_eq!(settings.profile.total_timeout, Duration::from_secs(1));
        assert_eq!(settings.profile.attempt_timeout, Profile::standard().attempt_timeout);
    }

    #[test]
    fn a_call_s_value_beats_its_profile_which_beats_the_client() {
        let client = Overrides { max_attempts: Some(9), total_timeout: secs(99), ..Overrides::default() };
        let client = client.over(&Settings::default());
        assert_eq!((client.profile.max_attempts, client.profile.name()), (9, "standard"));
        let call =
            Overrides { profile: Some(Profile::background()), max_attempts: Some(2), ..Overrides::default() };
        let call = call.over(&client);
        assert_eq!(call.profile.max_attempts, 2);
        assert_eq!(call.profile.total_timeout, Profile::background().total_timeout);
        assert_eq!(Overrides::default().over(&client).profile, client.profile);
    }
}
