//! What clones of a client and its calls share.

use crate::context::IdempotencyKey;
use crate::edge::ambient::fresh_uuid;
use crate::edge::exchange::Edge;
use crate::edge::target::BaseUrl;
use crate::retry_loop::Gates;
use crate::settings::Settings;
use http::HeaderName;

/// One callee as this process knows it: settings, breaker, budgets, credentials and connections.
pub(crate) struct Shared {
    pub(crate) base: BaseUrl,
    pub(crate) settings: Settings,
    pub(crate) names: Names,
    pub(crate) gates: Gates,
    pub(crate) edge: Edge,
}

impl Shared {
    /// One fresh key for one intent.
    pub(crate) fn fresh_key(&self) -> IdempotencyKey {
        IdempotencyKey::from_uuid(fresh_uuid(&*self.gates.ambient))
    }
}

/// The header names that an owner may choose.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) idempotency_key: HeaderName,
    pub(crate) user_token: HeaderName,
}
