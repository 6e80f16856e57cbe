//! What an operator sees: one warning a failed call, one an opening of the breaker; a retry is only information.

use crate::error::Error;
use crate::policy::account_quota::{AccountBucket, Recent};
use crate::policy::breaker::{State, Transition};
use crate::story::Story;
use std::time::Duration;

/// A retry follows.
pub(crate) fn retries(story: &Story) {
    let Some(attempt) = story.attempts.last() else {
        return;
    };
    tracing::info!(
        http.request.method = %story.method,
        url.path = story.path,
        http.response.status_code = attempt.status.map(|status| status.as_u16()),
        error.r#type = attempt.class.as_str(),
        http.request.resend_count = story.attempts.len(),
        wait_ms = attempt.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        correlation_id = story.correlation_id,
        idempotency_key = story.idempotency_key,
        "retrying"
    );
}

/// A call was given up.
pub(crate) fn gave_up(error: &Error) {
    if error.is_circuit_open() {
        // A log full of repeats hides the line that matters.
        tracing::debug!(correlation_id = error.correlation_id(), "{error}");
    } else {
        tracing::warn!(
            error.r#type = error.class().map(|class| class.as_str()),
            http.response.status_code = error.status().map(|status| status.as_u16()),
            stop_reason = error.stop_reason().map(|reason| reason.as_str()),
            attempts = error.attempts().len(),
            may_have_committed = error.may_have_committed(),
            request_id = error.request_id(),
            correlation_id = error.correlation_id(),
            idempotency_key = error.idempotency_key(),
            "{error}"
        );
    }
}

/// A letter could not be stored.
pub(crate) fn letter_not_stored(id: &str, correlation_id: &str, why: &str) {
    tracing::warn!(dead_letter = id, correlation_id, why, "the dead letter was not stored");
}

/// A letter is replayed after the callee may have forgotten its key.
pub(crate) fn key_out_of_window(id: &str, correlation_id: &str, key: &str, age: Duration, window: Duration) {
    tracing::warn!(
        dead_letter = id,
        correlation_id,
        idempotency_key = key,
        age_s = age.as_secs(),
        window_s = window.as_secs(),
        "the first attempt is older than the callee keeps keys: the key no longer protects, the work may be done twice"
    );
}

/// A call was dropped before its end.
pub(crate) fn abandoned(story: &Story, may_have_committed: bool, repeatable: bool) {
    tracing::info!(
        http.request.method = %story.method,
        url.path = story.path,
        attempts = story.attempts.len(),
        may_have_committed,
        repeatable,
        correlation_id = story.correlation_id,
        idempotency_key = story.idempotency_key,
        "abandoned"
    );
}

/// The breaker changed its state.
pub(crate) fn circuit_changed(transition: &Transition) {
    if transition.to == State::Open {
        tracing::warn!(from = ?transition.from, "circuit opened");
    } else {
        tracing::info!(from = ?transition.from, to = ?transition.to, "circuit changed");
    }
}

/// More is drawn from the account's bucket, or sent for each call, than its owner wants.
pub(crate) fn quota_mark_passed(region: &str, recent: Recent, bucket: AccountBucket) {
    tracing::warn!(
        region,
        tokens_per_second = recent.tokens_per_second(),
        share = bucket.share(recent.tokens_per_second()),
        amplification = recent.amplification(),
        "the draw on the account's throttle quota has passed its mark"
    );
}
