//! Why a call was given up, worked out once more from what its callee saw.

use super::record::Record;
use super::*;
use crate::error_kind::ErrorKind;

/// Nothing has happened since the call ended: the gates are as it left them.
pub(super) fn check(error: &Error, record: &Record, (gates, now): (&Gates, Instant), alone: bool) {
    let Some(reason) = error.stop_reason() else {
        assert_eq!(error.kind(), ErrorKind::Credentials, "{error}");
        return;
    };
    if let Some(expected) = of_outcome(record) {
        assert_eq!(reason, expected, "{error}: {record:?}");
        return;
    }
    let last = record.ended.last();
    let recovers = last.is_some_and(|last| matches!(last.code(), Some(401 | 403)));
    let at_once = last.is_some_and(|last| last.at == now);
    let refuses = gates.circuit.retry_after().is_some();
    let holds = match reason {
        StopReason::AttemptsExhausted => recovers && at_once && exhausted(record),
        // With one call at a time, whatever opens it is seen before the wait.
        StopReason::CircuitOpen => refuses && (!alone || at_once || recovers || last.is_none()),
        StopReason::RateLimited => !gates.pace.is_off(),
        StopReason::RecoveryUsed => recovers,
        StopReason::RetryBudgetExhausted => {
            !refuses && at_once && gates.budget.available_tenths().is_some_and(|tenths| tenths < 10)
        }
        StopReason::TimeBudgetExhausted => {
            !refuses
                && record.ends.saturating_duration_since(now)
                    < record.least.saturating_add(longest_wait(record))
        }
        _ => false,
    };
    assert!(holds, "{reason} does not hold: {error}, {record:?}");
}

/// The reason that the last outcome gives by itself. Whether a recovery is used up is not known here.
fn of_outcome(record: &Record) -> Option<StopReason> {
    let last = record.ended.last()?;
    let recovers = matches!(last.code(), Some(401 | 403));
    let reasons = [
        (last.never_again, StopReason::NotRetryable),
        (last.forbids, StopReason::CalleeForbids),
        (!record.repeatable && last.in_doubt, StopReason::NoIdempotencyKey),
        (!recovers && exhausted(record), StopReason::AttemptsExhausted),
        (record.is_capped(), StopReason::StatusCapReached),
    ];
    reasons.into_iter().find_map(|(holds, reason)| holds.then_some(reason))
}

fn exhausted(record: &Record) -> bool {
    record.ended.len() == record.max_attempts as usize
}

/// The longest wait that could have been decided on after the last outcome.
fn longest_wait(record: &Record) -> Duration {
    let hint = record.ended.last().and_then(|last| last.hint);
    hint.map_or(record.backoff.cap(), |hint| hint.saturating_add(hint / 2))
}
