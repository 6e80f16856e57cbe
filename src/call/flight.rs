//! A call on its way, from the first attempt to answer or letter.

use crate::context::HopLimit;
use crate::edge::order::Order;
use crate::error::Error;
use crate::policy::attempts::Terms;
use crate::policy::moment::Moment;
use crate::response::Response;
use crate::retry_loop::{self, Bounds};
use crate::shared::{Afterlife, Shared};
use crate::story::Story;
use crate::teller::Teller;
use crate::template::too_many_hops;
use std::future::Future;
use std::sync::Arc;
use tracing::{Instrument, Span};

/// A call that is ready to be sent.
pub(super) struct Flight {
    pub(super) shared: Arc<Shared>,
    pub(super) order: Order,
    pub(super) terms: Terms,
    pub(super) bounds: Bounds,
    pub(super) start: Moment,
    /// No callee would take it.
    pub(super) refused: Option<HopLimit>,
    pub(super) url_template: Option<Arc<str>>,
    pub(super) afterlife: Afterlife,
}

impl Flight {
    fn story(&self) -> Story {
        let Order { method, target, correlation_id, idempotency_key, .. } = &self.order;
        let ids = (correlation_id.clone(), idempotency_key.clone());
        Story::of((method.clone(), target.path().to_owned()), ids)
            .along(&self.shared.gates.watch.server_address, self.url_template.clone())
    }

    fn span(&self, story: &Story) -> Span {
        let gates = &self.shared.gates;
        gates.watch.call_span(story, self.order.hop, || gates.circuit.state())
    }

    /// Begins to tell of the call.
    fn begin(&self) -> (Teller<'_>, Span) {
        let (gates, story) = (&self.shared.gates, self.story());
        let span = self.span(&story);
        let eyes = (&gates.usage, &*gates.watch);
        let teller = Teller::new(story, self.terms.repeatable, self.start, eyes, span.clone());
        (teller, span)
    }

    /// Tells of a call that no callee would take.
    fn refused(&self, limit: &HopLimit) -> Error {
        let (gates, story) = (&self.shared.gates, self.story());
        let span = self.span(&story);
        too_many_hops(limit, story, (&gates.usage, &*gates.watch), &span)
    }
}

/// Sends a call. What it is made of is lent to the loop, and moved nowhere: an `async fn` holds twice what it is given.
#[allow(clippy::manual_async_fn, reason = "see above")]
pub(super) fn fly(flight: Flight) -> impl Future<Output = Result<Response, Error>> + Send {
    async move {
        let error = match &flight.refused {
            Some(limit) => flight.refused(limit),
            None => {
                let (mut teller, span) = flight.begin();
                let (shared, bounds) = (&flight.shared, (&flight.terms, &flight.bounds));
                let run = retry_loop::run(&shared.edge, &shared.gates, &flight.order, bounds, &mut teller);
                match run.instrument(span).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                }
            }
        };
        // Boxed, so that a call that succeeds holds nothing of it.
        Box::pin(async move { Err(flight.shared.bury(error, flight.order, flight.afterlife).await) }).await
    }
}
