//! The breaker of a client behind its lock, and the permits that give back what a dropped call held.

use crate::edge::ambient::Ambient;
use crate::observe::Watch;
use crate::policy::breaker::{Breaker, BreakerSettings, Effect, State, Ticket};
use crate::policy::moment::{Draw, Moment};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The circuit breaker of one client, shared by its clones.
///
/// One client calls one callee, so one breaker watches one callee. It looks at attempts, before every one of them.
#[derive(Clone)]
pub struct CircuitBreaker {
    breaker: Arc<Mutex<Breaker>>,
    ambient: Arc<dyn Ambient>,
    watch: Arc<Watch>,
}

impl CircuitBreaker {
    pub(crate) fn new(
        settings: BreakerSettings,
        ambient: Arc<dyn Ambient>,
        watch: Arc<Watch>,
    ) -> CircuitBreaker {
        CircuitBreaker { breaker: Arc::new(Mutex::new(Breaker::new(settings))), ambient, watch }
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().state(self.ambient.now())
    }

    /// When the next attempt would be admitted; none if it would be now. Of a circuit that is held open by hand nobody
    /// knows: then it is the longest open time.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.lock().retry_after(self.ambient.now())
    }

    /// Opens the circuit until [`reset`](CircuitBreaker::reset) or [`force_closed`](CircuitBreaker::force_closed).
    pub fn force_open(&self) {
        self.lock().force_open();
    }

    /// Closes the circuit, whatever fails, until [`reset`](CircuitBreaker::reset).
    pub fn force_closed(&self) {
        self.lock().force_closed();
    }

    /// Closes the circuit, forgets all it saw and watches again.
    pub fn reset(&self) {
        self.lock().reset();
    }

    /// What opens it, for how long, and what closes it again.
    pub(crate) fn settings(&self) -> BreakerSettings {
        *self.lock().settings()
    }

    /// Asks for an attempt; refused, it says when to come back.
    pub(crate) fn admit(&self, now: Moment) -> Result<Permit<'_>, Duration> {
        match self.lock().admit(now) {
            Ok(ticket) => Ok(Permit { circuit: self, ticket: Some(ticket) }),
            Err(refused) => Err(refused.retry_after),
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
}

impl Permit<'_> {
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
        is_open
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.circuit.lock().give_back(ticket);
        }
    }
}
