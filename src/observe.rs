//! What an operator sees: one warning a failed call, one an opening of the breaker; a retry is only information.

use crate::error::Error;
use crate::policy::breaker::{State, Transition};
use crate::story::Story;

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
