//! One client per callee: the face.

use crate::call::Call;
use crate::circuit::CircuitBreaker;
use crate::context::CallContext;
use crate::edge::path::Path;
use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::policy::retry_budget::RetryBudget;
use crate::shared::Shared;
use crate::usage::{AccountQuota, Usage};
use http::Method;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A client of one service behind an AWS API Gateway.
///
/// Build one a process and callee, in a Lambda's init phase, and clone it freely: clones share connections,
/// credentials, breaker and budgets.
///
/// ```
/// use eastwest::{CallContext, Error, ServiceClient};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize)]
/// struct NewOrder { sku: &'static str, quantity: u32 }
///
/// #[derive(Deserialize)]
/// struct Order { id: String }
///
/// async fn place(orders: &ServiceClient, context: &CallContext) -> Result<Order, Error> {
///     let order = NewOrder { sku: "A-7", quantity: 3 };
///     orders.post(context, "/orders").json(&order).send().await?.json()
/// }
///
/// let orders = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
///     .region("eu-central-1")
///     .environment_credentials()
///     .build()?;
/// # let _ = (orders, place);
/// # Ok::<(), Error>(())
/// ```
///
/// A handler cannot forget the context, which carries the hop count: it is the first argument of every verb.
///
/// ```compile_fail,E0061
/// # async fn handler(orders: eastwest::ServiceClient) {
/// let call = orders.post("/orders");
/// # }
/// ```
#[derive(Clone)]
pub struct ServiceClient(pub(crate) Arc<Shared>);

impl ServiceClient {
    /// Begins a call of any method.
    ///
    /// `path` is URL path text below the base: valid `%XX` escapes are kept, what a path may not hold is encoded;
    /// a query or fragment in it is an error. Use [`Call::segments`] for data.
    pub fn request(&self, context: &CallContext, method: Method, path: impl AsRef<str>) -> Call {
        Call::new(Arc::clone(&self.0), context.clone(), method, Path::from(path.as_ref()))
    }

    /// Begins a GET.
    pub fn get(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::GET, path)
    }

    /// Begins a HEAD.
    pub fn head(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::HEAD, path)
    }

    /// Begins a POST.
    pub fn post(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::POST, path)
    }

    /// Begins a PUT.
    pub fn put(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::PUT, path)
    }

    /// Begins a PATCH.
    pub fn patch(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::PATCH, path)
    }

    /// Begins a DELETE.
    pub fn delete(&self, context: &CallContext, path: impl AsRef<str>) -> Call {
        self.request(context, Method::DELETE, path)
    }

    /// The circuit breaker of this client and its clones.
    #[must_use]
    pub fn breaker(&self) -> &CircuitBreaker {
        &self.0.gates.circuit
    }

    /// The retry budget of this client and its clones, and of whoever else was given it.
    #[must_use]
    pub fn retry_budget(&self) -> &RetryBudget {
        &self.0.gates.budget
    }

    /// What this client and its clones drew so far from the account that their calls share with everybody.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.gates.usage.usage(self.0.gates.ambient.now().monotonic)
    }

    /// The quota that this client reports to: the one it was given, or its own.
    #[must_use]
    pub fn account_quota(&self) -> &AccountQuota {
        self.0.gates.usage.account()
    }

    /// Fetches credentials and opens a connection, in a Lambda's init phase, so that the first call pays for neither.
    ///
    /// The connection is opened by an unsigned `HEAD` of the base URL, which the gateway refuses before it reaches the
    /// callee. It is a token of the account's bucket, and no attempt. With a [fleet-wide breaker](crate::fleet) its store is
    /// connected too; trouble with it is no error. `within` bounds each of them.
    ///
    /// # Errors
    /// [`ErrorKind::Credentials`](crate::ErrorKind::Credentials) if none could be had,
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport) if no connection could. Neither harms the calls to come.
    pub async fn warm_up(&self, within: Duration) -> Result<(), Error> {
        let gates = &self.0.gates;
        let aside = gates.usage.aside();
        let warmed = self.0.edge.warm_up(&self.0.base, within).await;
        match &warmed {
            Ok(()) => aside.answered(gates.ambient.now().monotonic),
            // Whether the connection failed or was lost makes no difference here.
            Err(error) if error.kind() == ErrorKind::Transport => drop(aside),
            Err(_) => aside.unsent(),
        }
        gates.circuit.warm_up(within).await;
        warmed
    }
}

impl fmt::Debug for ServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClient")
            .field("base_url", &self.0.base.to_string())
            .field("profile", &self.0.settings.profile.name())
            .field("breaker", &self.0.gates.circuit)
            .field("retry_budget", &self.0.gates.budget)
            .finish_non_exhaustive()
    }
}
