//! Where a client's calls meet the fleet's breaker: its view in memory, and the exchanges that keep it fresh.

use crate::edge::ambient::Ambient;
use crate::fleet::store::{FleetStore, asked};
use crate::observe;
use crate::policy::breaker::{Effect, State};
use crate::policy::fleet::local::{Admission, LocalView, Telling};
use crate::policy::fleet::rest::Aloud;
use crate::policy::fleet::{FleetSettings, Report, View};
use crate::policy::moment::Moment;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// One client's gate to the fleet's breaker.
///
/// Every exchange runs in a task of its own, one at a time: a call that is dropped while it waits drops no report, and
/// no call waits for longer than the store's budget. Without a runtime there are no exchanges.
pub(crate) struct Gate(Arc<Shared>);

struct Shared {
    callee: String,
    store: Arc<dyn FleetStore>,
    ambient: Arc<dyn Ambient>,
    mind: Mutex<Mind>,
}

struct Mind {
    local: LocalView,
    /// Whether an exchange is on its way.
    busy: bool,
    /// Whether a failure is to be told before its call goes on.
    due: bool,
    aloud: Aloud,
}

impl Gate {
    pub(crate) fn new(
        callee: String,
        store: Arc<dyn FleetStore>,
        settings: FleetSettings,
        ambient: Arc<dyn Ambient>,
    ) -> Gate {
        let mind = Mind { local: LocalView::new(settings), busy: false, due: false, aloud: Aloud::default() };
        Gate(Arc::new(Shared { callee, store, ambient, mind: Mutex::new(mind) }))
    }

    /// Asks for an attempt: from memory, and of the store where memory does not know, for `left` at most.
    pub(crate) async fn admit(&self, now: Moment, left: Duration) -> Admission {
        let (known, settings, tripped) = {
            let mind = self.0.mind();
            (mind.local.admit(now), *mind.local.settings(), mind.local.is_tripped(now))
        };
        if known != Admission::Ask {
            return known;
        }
        match self.0.begin(true) {
            Begun::Busy if tripped => Admission::Refuse(settings.store_budget()),
            Begun::Busy | Begun::Not => Admission::Admit,
            Begun::Under(answer) => {
                let within = left.min(settings.store_budget());
                tokio::time::timeout(within, answer)
                    .await
                    .ok()
                    .and_then(Result::ok)
                    .unwrap_or(Admission::Admit)
            }
        }
    }

    /// Takes in what an attempt came to. What is to be told of it aside is told from now on; what is to be told before
    /// the call goes on waits for [`tell`](Gate::tell).
    pub(crate) fn settle(&self, began: Moment, probe: bool, effect: Effect, now: Moment) {
        let draw = self.0.ambient.draw();
        let telling = {
            let mut mind = self.0.mind();
            let telling = mind.local.settle(began, probe, effect, now, draw);
            mind.due |= telling == Telling::AtOnce;
            telling
        };
        if telling == Telling::Aside {
            // Nobody waits for the answer.
            let _ = self.0.begin(false);
        }
    }

    /// Tells what is to be told before a call goes on, and waits for the answer within the store's budget and `left`.
    pub(crate) async fn tell(&self, left: Duration) {
        if std::mem::take(&mut self.0.mind().due) {
            self.sync(left).await;
        }
    }

    /// Tells what waits and renews the view, within the store's budget and `left`.
    pub(crate) async fn sync(&self, left: Duration) {
        let budget = self.0.mind().local.settings().store_budget();
        if let Begun::Under(answer) = self.0.begin(false) {
            // What the answer says is in memory by then; if it is late, the call does not wait for it.
            let _ = tokio::time::timeout(left.min(budget), answer).await;
        }
    }

    /// Connects, for `within` at most, and takes a first look.
    pub(crate) async fn warm_up(&self, within: Duration) {
        // What fails here shows in the look.
        let _ = asked(within, async { self.0.store.warm_up().await }).await;
        self.sync(within).await;
    }

    /// How long attempts are refused from memory; `None` if none is.
    pub(crate) fn refused_for(&self, now: Moment) -> Option<Duration> {
        self.0.mind().local.refused_for(now)
    }

    /// What the fleet's circuit lets through, as far as this process knows.
    pub(crate) fn state(&self, now: Moment) -> State {
        let mind = self.0.mind();
        match mind.local.refused_for(now) {
            Some(_) => State::Open,
            None if mind.local.is_tripped(now) => State::HalfOpen,
            None => State::Closed,
        }
    }
}

/// An exchange that was to begin.
enum Begun {
    /// There is one on its way already.
    Busy,
    /// The store is left alone, or there is no runtime.
    Not,
    /// It is on its way.
    Under(oneshot::Receiver<Admission>),
}

impl Shared {
    /// Begins an exchange, unless there is one already or the store is left alone.
    fn begin(self: &Arc<Self>, asks: bool) -> Begun {
        let now = self.ambient.now();
        let Ok(runtime) = Handle::try_current() else {
            return Begun::Not;
        };
        let report = {
            let mut mind = self.mind();
            if mind.busy {
                return Begun::Busy;
            }
            if mind.local.rests(now) {
                return Begun::Not;
            }
            mind.busy = true;
            if asks { mind.local.ask(now) } else { mind.local.report(now) }
        };
        let (answer, waiting) = oneshot::channel();
        let busy = Busy(Arc::clone(self));
        runtime.spawn(async move {
            let admission = busy.0.exchange(report, now).await;
            drop(busy);
            // Whoever asked may be gone.
            let _ = answer.send(admission);
        });
        Begun::Under(waiting)
    }

    async fn exchange(&self, report: Report, sent: Moment) -> Admission {
        let settings = *self.mind().local.settings();
        let exchange = async { self.store.exchange(&self.callee, &settings, &report).await };
        let outcome = asked(settings.store_budget(), exchange).await;
        let (now, draw) = (self.ambient.now(), self.ambient.draw());
        match outcome {
            Ok(view) => self.learn(view, report.asks, now),
            // A sandbox that was frozen on the way: that says nothing of the store.
            Err(_) if now.since(&sent) > settings.store_budget().saturating_add(FROZEN) => {
                self.mind().local.dropped(&report);
                Admission::Admit
            }
            Err(why) => {
                let aloud = {
                    let mut mind = self.mind();
                    mind.local.failed(&report, now, draw);
                    mind.aloud.may_be_told(now)
                };
                observe::fleet_store_failed(&self.callee, &why.to_string(), aloud);
                Admission::Admit
            }
        }
    }

    fn learn(&self, view: View, asks: bool, now: Moment) -> Admission {
        let draw = self.ambient.draw();
        let (before, admission) = {
            let mut mind = self.mind();
            let before = mind.local.is_tripped(now);
            let admission = mind.local.answered(view, now, draw);
            (before, admission)
        };
        if before != view.is_tripped() {
            observe::fleet_circuit_changed(&self.callee, view.is_tripped());
        }
        if asks { admission } else { Admission::Admit }
    }

    /// A poisoned lock means that a thread panicked between two plain assignments; what it guards is still sound.
    fn mind(&self) -> MutexGuard<'_, Mind> {
        self.mind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says while it lives that an exchange is on its way: one whose runtime is shut down under it does not end otherwise.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.mind().busy = false;
    }
}

/// An exchange that took so much longer than its budget was not slow: the process stood still.
const FROZEN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
