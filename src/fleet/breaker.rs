//! What a client is given to take part in a fleet's breaker.

use crate::edge::ambient::Ambient;
use crate::fleet::gate::Gate;
use crate::fleet::store::{FleetStore, is_name};
use crate::policy::fleet::FleetSettings;
use std::fmt;
use std::sync::Arc;

/// A client's part in the breaker that a whole fleet shares for one callee.
///
/// The client's own breaker is asked first, and goes on as it does without this one.
#[derive(Clone)]
pub struct FleetBreaker {
    callee: String,
    store: Arc<dyn FleetStore>,
    settings: FleetSettings,
}

impl FleetBreaker {
    /// Names the callee, which all of the fleet must name alike, and the store. A name is 1 to 128 visible ASCII
    /// characters without braces.
    #[must_use]
    pub fn new(callee: impl Into<String>, store: impl FleetStore) -> FleetBreaker {
        FleetBreaker { callee: callee.into(), store: Arc::new(store), settings: FleetSettings::default() }
    }

    /// Sets thresholds, times and rates.
    #[must_use]
    pub fn settings(mut self, settings: FleetSettings) -> FleetBreaker {
        self.settings = settings;
        self
    }

    /// Looks for a name or a setting that makes no sense: the first such, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if !is_name(&self.callee) {
            return Err(("fleet_breaker", "the callee's name must be visible ASCII without braces"));
        }
        self.settings.check()
    }

    pub(crate) fn gate(self, ambient: Arc<dyn Ambient>) -> Gate {
        Gate::new(self.callee, self.store, self.settings, ambient)
    }
}

impl fmt::Debug for FleetBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBreaker")
            .field("callee", &self.callee)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
