//! An SDK of three calls, as a team might write it, for the tests beside it.

use eastwest::{CallContext, Error, ServiceClient};
use serde::Deserialize;

/// The orders service.
pub struct Orders(pub ServiceClient);

/// An order that was placed.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Order {
    /// Its name.
    pub id: String,
}

impl Orders {
    /// Places an order.
    pub async fn place(&self, context: &CallContext, request: &str, sku: &str) -> Result<Order, Error> {
        self.0.post(context, "/orders").idempotency_key(request).json(&[sku]).send().await?.json()
    }

    /// Looks an order up.
    pub async fn order(&self, context: &CallContext, id: &str) -> Result<Order, Error> {
        self.0.get(context, "/orders").segment(id).send().await?.json()
    }

    /// Cancels an order.
    pub async fn cancel(&self, context: &CallContext, id: &str) -> Result<(), Error> {
        self.0.delete(context, "/orders").segment(id).send().await.map(drop)
    }
}
