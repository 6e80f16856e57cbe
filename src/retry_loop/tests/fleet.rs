//! The fleet-wide breaker in the loop: what an attempt learns of it, and for how long a call waits to learn.

use super::*;
use crate::fleet::gate::Gate;
use crate::fleet::{FleetStore, StoreFuture};
use crate::policy::fleet::shared::SharedState;
use crate::policy::fleet::{FleetSettings, Report, View};
use std::future::pending;

/// A store that never answers, or one whose circuit others have just tripped.
enum Store {
    Hangs,
    Tripped,
}

impl FleetStore for Store {
    fn exchange<'a>(
        &'a self,
        _: &'a str,
        settings: &'a FleetSettings,
        _: &'a Report,
    ) -> StoreFuture<'a, View> {
        Box::pin(async move {
            match self {
                Store::Hangs => pending().await,
                Store::Tripped => {
                    let failures = Report { failures: 50, stands_for: 50, ..Report::default() };
                    Ok(SharedState::default().exchange(settings, &failures, Duration::from_secs(1_000)))
                }
            }
        })
    }
}

fn rig_with(store: Store, script: impl IntoIterator<Item = Step>) -> Rig {
    let mut rig = Rig::new(script);
    let settings = FleetSettings::default().with_first_one_in(1);
    let gate = Gate::new("orders".to_owned(), Arc::new(store), settings, Arc::clone(&rig.gates.ambient));
    rig.gates.circuit = rig.gates.circuit.clone().with_fleet(Some(gate));
    rig
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_learns_that_the_fleet_has_tripped_is_not_sent_again() {
    let rig = rig_with(Store::Tripped, [UNAVAILABLE, OK]);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), rig.waits()), (1, vec![]));
    assert_eq!(error.stop_reason(), Some(StopReason::CircuitOpen));
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_waited_for_no_longer_than_the_call_may_take() {
    let mut rig = rig_with(Store::Hangs, [UNAVAILABLE]);
    rig.bounds.total = Duration::from_secs(1);
    rig.fake.takes = Duration::from_millis(990);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.stop_reason()), (1, Some(StopReason::TimeBudgetExhausted)));
    assert_eq!(error.elapsed(), Duration::from_secs(1));
}
