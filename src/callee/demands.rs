//! What each header of a request has to be for the request to be accepted.

use crate::callee::refusal::RefusalKind;
use crate::context::inbound::Field;
use crate::context::{CorrelationId, HopCount, IdempotencyKey, MAX_HOPS};
use crate::edge::ambient::Ambient;
use std::time::{Duration, Instant};

/// Who comes in where a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// Outsiders, who do not count hops, and other services.
    Front,
    /// Other services only.
    Inner,
}

/// Whether this very request must carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Key,
    NoKey,
}

pub(super) fn inbound_hop(hop_count: &Field, door: Door) -> Result<Option<HopCount>, RefusalKind> {
    let hop = match hop_count {
        Field::Absent if door == Door::Front => return Ok(None),
        Field::Absent => return Err(RefusalKind::MissingHopCount),
        Field::One(text) => HopCount::parse(text),
        Field::Unusable => None,
    };
    match hop {
        None => Err(RefusalKind::InvalidHopCount),
        Some(hop) if hop.get() >= MAX_HOPS => Err(RefusalKind::HopBudgetExhausted),
        Some(hop) => Ok(Some(hop)),
    }
}

pub(super) fn inbound_key(key: &Field, demand: Demand) -> Result<Option<IdempotencyKey>, RefusalKind> {
    match key {
        Field::Absent if demand == Demand::Key => Err(RefusalKind::MissingIdempotencyKey),
        Field::Absent => Ok(None),
        Field::One(key) => {
            IdempotencyKey::from_bytes(key).map(Some).map_err(|_| RefusalKind::InvalidIdempotencyKey)
        }
        Field::Unusable => Err(RefusalKind::InvalidIdempotencyKey),
    }
}

/// When the caller stops waiting, as far as it says so in a way that can be read.
pub(super) fn deadline(
    time_budget: &Field,
    least: Duration,
    now: Instant,
) -> Result<Option<Instant>, RefusalKind> {
    let Some(budget) = time_budget.one().and_then(whole_millis) else {
        return Ok(None);
    };
    let left = budget.saturating_sub(WAY_BACK);
    if left.is_zero() || left < least {
        return Err(RefusalKind::NoTimeLeft);
    }
    // A deadline past what the clock can say is as good as none.
    Ok(now.checked_add(left))
}

pub(super) fn correlation_id(id: &Field) -> Result<CorrelationId, Untold> {
    match id {
        Field::Absent => Err(Untold::Missing),
        Field::One(id) => CorrelationId::from_bytes(id).map_err(|_| Untold::Unusable),
        Field::Unusable => Err(Untold::Unusable),
    }
}

/// Why there is no inbound correlation id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Untold {
    Missing,
    Unusable,
}

impl Untold {
    /// Makes a fresh id, and says so where the chain's log breaks off. The old one is never repeated: it may forge lines.
    pub(super) fn replace(self, ambient: &dyn Ambient) -> CorrelationId {
        let fresh = CorrelationId::fresh_in(ambient);
        if let Untold::Unusable = self {
            tracing::warn!(
                correlation_id = fresh.as_str(),
                "the inbound x-correlation-id is invalid or there are two: replaced by a fresh one"
            );
        }
        fresh
    }
}

/// Reads whole milliseconds, ASCII digits only. More than 64 bits hold is no bound, as if nothing were said.
fn whole_millis(text: &[u8]) -> Option<Duration> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let millis = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

/// What the answer needs for its way back, taken off what the caller says it will wait.
const WAY_BACK: Duration = Duration::from_millis(30);
