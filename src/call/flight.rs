//! A call on its way, from the first attempt to answer or letter.

use crate::context::HopLimit;
use crate::edge::exchange::Edge;
use crate::edge::order::Order;
use crate::error::Error;
use crate::policy::attempts::{Attempts, Terms};
use crate::policy::time_budget::TimeBudget;
use crate::response::Response;
use crate::retry_loop::Course;
use crate::shared::{Afterlife, Shared};
use crate::story::Story;
use crate::teller::Teller;
use crate::template::too_many_hops;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Instrument, Span};

/// A call that is ready to be sent: what it is made of until its end.
pub(super) struct Flight {
    pub(super) shared: Arc<Shared>,
    pub(super) order: Order,
    pub(super) terms: Arc<Terms>,
    pub(super) afterlife: Afterlife,
}

/// What is of use only as it begins.
pub(super) struct Departure {
    pub(super) start: Instant,
    pub(super) time: TimeBudget,
    /// No callee would take it.
    pub(super) hop_limit: Option<HopLimit>,
}

impl Flight {
    fn span(&self, story: &Story) -> Span {
        let gates = &self.shared.gates;
        gates.watch.call_span(story, self.order.hop, || gates.circuit.state())
    }

    /// Begins to tell of the call.
    fn begin(&self, start: Instant, time: TimeBudget) -> Course<'_, Edge> {
        let Shared { edge, gates, .. } = &*self.shared;
        let story = Story::of(Arc::clone(&self.order.subject));
        let span = self.span(&story);
        let eyes = (&gates.usage, &*gates.watch);
        let teller = Teller::new(story, self.terms.repeatable, start, eyes, span);
        Course::new(edge, gates, &self.order, Attempts::new(&self.terms, time), teller)
    }

    /// Tells of a call that no callee would take.
    fn refused(&self, limit: &HopLimit) -> Error {
        let (gates, story) = (&self.shared.gates, Story::of(Arc::clone(&self.order.subject)));
        let span = self.span(&story);
        too_many_hops(limit, story, (&gates.usage, &*gates.watch), &span)
    }
}

/// Sends a call, once it has found out what it needs. What it is made of is lent to the loop, and moved nowhere: an `async fn` holds twice what it is given.
#[allow(clippy::manual_async_fn, reason = "see above")]
pub(super) fn fly(
    take_off: impl FnOnce() -> Result<(Flight, Departure), Error> + Send,
) -> impl Future<Output = Result<Response, Error>> + Send {
    async move {
        let (flight, Departure { start, time, hop_limit }) = take_off()?;
        let error = match hop_limit {
            Some(limit) => flight.refused(&limit),
            None => {
                let mut course = flight.begin(start, time);
                let made = match course.span().cloned().map(Box::new) {
                    None => course.run().await,
                    // Boxed, so that a call that nobody traces holds no span.
                    Some(span) => Box::pin(course.run().instrument(*span)).await,
                };
                match made {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                }
            }
        };
        // Boxed, so that a call that succeeds holds nothing of it.
        Box::pin(async move { Err(flight.shared.bury(error, flight.order, flight.afterlife).await) }).await
    }
}
