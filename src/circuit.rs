//! The breaker of a client behind its lock, and the permits that give back what a dropped call held.

use crate::edge::ambient::Ambient;
use crate::fleet::gate::Gate;
use crate::observe::Watch;
use crate::policy::attempts::{Decision, StopReason};
use crate::policy::breaker::{Breaker, BreakerSettings, Effect, State, Ticket};
use crate::policy::fleet::local::Admission;
use crate::policy::moment::{Draw, Moment};
use crate::sync::{AtomicBool, Mutex, MutexGuard};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The circuit breaker of one client, shared by its clones.
///
/// One client calls one callee, so one breaker watches one callee. It looks at attempts, before every one of them.
///
/// A client with a [fleet-wide breaker](crate::fleet) asks that one too, after its own: an attempt is sent if neither
/// refuses it.
#[derive(Clone)]
pub struct CircuitBreaker {
    breaker: Arc<Mutex<Breaker>>,
    ambient: Arc<dyn Ambient>,
    watch: Arc<Watch>,
    fleet: Option<Arc<Fleet>>,
}

struct Fleet {
    gate: Gate,
    /// Whether the circuit is held closed by hand.
    ignored: AtomicBool,
}

impl CircuitBreaker {
    pub(crate) fn new(
        settings: BreakerSettings,
        ambient: Arc<dyn Ambient>,
        watch: Arc<Watch>,
    ) -> CircuitBreaker {
        let breaker = Arc::new(Mutex::new(Breaker::new(settings)));
        CircuitBreaker { breaker, ambient, watch, fleet: None }
    }

    /// The same with a part in a fleet's breaker.
    pub(crate) fn with_fleet(self, gate: Option<Gate>) -> CircuitBreaker {
        let fleet = gate.map(|gate| Arc::new(Fleet { gate, ignored: AtomicBool::new(false) }));
        CircuitBreaker { fleet, ..self }
    }

    /// The state now. With a fleet-wide breaker it is the stricter of the process's own and the fleet's as this process
    /// was last told: open while attempts are refused from memory, half-open from then on until the store says that it
    /// is closed.
    #[must_use]
    pub fn state(&self) -> State {
        let now = self.ambient.now();
        let own = self.lock().state(now);
        match (own, self.gate().map_or(State::Closed, |gate| gate.state(now))) {
            (State::Open, _) | (_, State::Open) => State::Open,
            (State::HalfOpen, _) | (_, State::HalfOpen) => State::HalfOpen,
            (State::Closed, State::Closed) => State::Closed,
        }
    }

    /// When the next attempt would be admitted; none if it would be now. Of a circuit that is held open by hand nobody
    /// knows: then it is the longest open time. With a fleet-wide breaker it is the later of the two times that are known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let now = self.ambient.now();
        let own = self.lock().retry_after(now);
        own.max(self.gate().and_then(|gate| gate.refused_for(now)))
    }

    /// Tells the fleet's store what waits to be told and renews this process's view, within the store's budget (50 ms);
    /// does nothing without a fleet-wide breaker, or while an exchange is on its way.
    ///
    /// At the start of a Lambda's invocation, beside other work, it lets a sandbox learn of an outage before its own
    /// first failure; at its end it sends what would otherwise wait until the next.
    pub async fn sync_fleet(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.gate.sync(Duration::MAX).await;
        }
    }

    /// Connects to the fleet's store, where there is one; trouble with it is no error.
    pub(crate) async fn warm_up(&self, within: Duration) {
        if let Some(fleet) = &self.fleet {
            fleet.gate.warm_up(within).await;
        }
    }

    /// Opens the circuit until [`reset`](CircuitBreaker::reset) or [`force_closed`](CircuitBreaker::force_closed).
    pub fn force_open(&self) {
        self.lock().force_open();
    }

    /// Closes the circuit, whatever fails and whatever the fleet says, until [`reset`](CircuitBreaker::reset).
    pub fn force_closed(&self) {
        self.ignore_fleet(true);
        self.lock().force_closed();
    }

    /// Closes the circuit, forgets all it saw and watches again. The fleet's state is not this process's to forget.
    pub fn reset(&self) {
        self.ignore_fleet(false);
        self.lock().reset();
    }

    /// What opens it, for how long, and what closes it again.
    pub(crate) fn settings(&self) -> BreakerSettings {
        *self.lock().settings()
    }

    /// Asks for an attempt that has so much time left; refused, it says when to come back.
    pub(crate) async fn admit(&self, now: Moment, left: Duration) -> Result<Permit<'_>, Duration> {
        let ticket = self.lock().admit(now).map_err(|refused| refused.retry_after)?;
        let mut permit = Permit { circuit: self, ticket: Some(ticket), began: now, probe: false };
        if let Some(gate) = self.gate() {
            // Boxed, so that who has no fleet pays for none.
            match Box::pin(gate.admit(now, left)).await {
                Admission::Refuse(come_back) => return Err(come_back),
                Admission::Probe => permit.probe = true,
                Admission::Admit | Admission::Ask => {}
            }
            permit.began = self.ambient.now();
        }
        Ok(permit)
    }

    /// Tells the fleet of the attempt that led to this decision, if it is to be told now. A retry is not waited for if
    /// the fleet's circuit turns out to be open.
    pub(crate) async fn consulted(&self, decision: Decision, left: Duration) -> Decision {
        let Some(gate) = self.gate() else {
            return decision;
        };
        Box::pin(gate.tell(left)).await;
        match decision {
            Decision::Retry(..) if gate.refused_for(self.ambient.now()).is_some() => {
                Decision::Stop(StopReason::CircuitOpen)
            }
            decision => decision,
        }
    }

    /// The gate to the fleet, unless the circuit is held closed by hand.
    fn gate(&self) -> Option<&Gate> {
        let fleet = self.fleet.as_ref()?;
        (!fleet.ignored.load(Ordering::Relaxed)).then_some(&fleet.gate)
    }

    fn ignore_fleet(&self, ignore: bool) {
        if let Some(fleet) = &self.fleet {
            fleet.ignored.store(ignore, Ordering::Relaxed);
        }
    }

    /// A poisoned lock means that a thread panicked between two plain assignments; what it guards is still sound.
    fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("state", &self.state()).finish()
    }
}

/// The right to make one attempt. Dropped unsettled, it gives its slot back and counts nothing.
pub(crate) struct Permit<'a> {
    circuit: &'a CircuitBreaker,
    ticket: Option<Ticket>,
    began: Moment,
    /// Whether it is a probe of the fleet's.
    probe: bool,
}

impl Permit<'_> {
    /// When it was given.
    pub(crate) fn began(&self) -> Moment {
        self.began
    }

    /// Tells the breaker what the attempt showed; answers whether it refuses attempts from now on.
    pub(crate) fn settle(mut self, effect: Effect, now: Moment, draw: Draw) -> bool {
        let ticket = self.ticket.take();
        let (transition, is_open) = {
            let mut breaker = self.circuit.lock();
            let transition = ticket.and_then(|ticket| breaker.settle(ticket, effect, now, draw));
            (transition, breaker.is_open(now))
        };
        // Told without the lock: whoever listens may look at the breaker.
        if let Some(transition) = transition {
            self.circuit.watch.circuit_changed(&transition);
        }
        match self.circuit.gate() {
            Some(gate) => {
                gate.settle(self.began, self.probe, effect, now);
                is_open || gate.refused_for(now).is_some()
            }
            None => is_open,
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.circuit.lock().give_back(ticket);
        }
    }
}
