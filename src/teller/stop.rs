//! Why a call is given up, with what there is to tell of it.

use crate::pace::Late;
use crate::policy::attempts::StopReason;
use std::time::Duration;

/// Why no further attempt is made.
pub(crate) struct Stop {
    pub(super) reason: StopReason,
    /// When to come back, where whoever refused has said so.
    pub(super) come_back: Option<Duration>,
    /// Why the pace did not admit an attempt.
    late: Option<Late>,
    pub(super) unrecoverable: Option<&'static str>,
}

impl Stop {
    /// The breaker did not admit the attempt.
    pub(crate) fn circuit_open(come_back: Duration) -> Stop {
        Stop { come_back: Some(come_back), ..StopReason::CircuitOpen.into() }
    }

    /// The pace did not admit the attempt in its time.
    pub(crate) fn late(late: Late) -> Stop {
        Stop { come_back: late.come_back(), late: Some(late), ..StopReason::RateLimited.into() }
    }

    /// What the gateway refused cannot be put right.
    pub(crate) fn cannot_recover(why: &'static str) -> Stop {
        Stop { unrecoverable: Some(why), ..StopReason::RecoveryUsed.into() }
    }

    /// What there is to say where no attempt was made.
    pub(super) fn nothing_sent(&self, reason: StopReason) -> &'static str {
        match (reason, self.late) {
            (StopReason::CircuitOpen, _) => "the circuit is open, nothing was sent",
            (_, Some(late)) => late.as_str(),
            _ => "no time was left to begin",
        }
    }
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Stop {
        Stop { reason, come_back: None, late: None, unrecoverable: None }
    }
}
