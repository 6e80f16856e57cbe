//! The fleet-wide breaker: the shipped view of a process and the shipped shared state, with a store that answers at once.

use eastwest::policy::breaker::Effect;
use eastwest::policy::fleet::local::{Admission, LocalView, Telling};
use eastwest::policy::fleet::shared::SharedState;
use eastwest::policy::moment::{Draw, Moment};
use std::time::Duration;

/// Asks for an attempt: from memory, and of the store where memory does not know.
pub(crate) fn admit(
    local: &mut LocalView,
    store: &mut SharedState,
    (now, moment): (u64, Moment),
    jitter: Draw,
) -> Admission {
    match local.admit(moment) {
        Admission::Ask => {
            let settings = *local.settings();
            let view = store.exchange(&settings, &local.ask(moment), Duration::from_nanos(now));
            local.answered(view, moment, jitter)
        }
        known => known,
    }
}

/// Takes in what an attempt came to, tells the store what is due, and says whether attempts are refused from now on.
pub(crate) fn settle(
    local: &mut LocalView,
    store: &mut SharedState,
    (sent, probe): (Moment, bool),
    effect: Effect,
    (now, moment): (u64, Moment),
    written: Draw,
) -> bool {
    if local.settle(sent, probe, effect, moment, written) != Telling::Nothing {
        let settings = *local.settings();
        let view = store.exchange(&settings, &local.report(moment), Duration::from_nanos(now));
        local.learn(view, moment, written);
    }
    local.refused_for(moment).is_some()
}
