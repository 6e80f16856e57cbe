//! Services of axum on the loopback, which the client's tests call and which call on.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::any;
use axum::{Extension, Router};
use eastwest::callee::{self, Guard};
use eastwest::{CallContext, ServiceClient};
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A port that a service will listen on: who is called may be known before it serves.
pub(crate) struct Port(TcpListener);

/// A service behind a guard. Dropping it ends it.
pub(crate) struct Service {
    pub(crate) url: String,
    arrived: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Port {
    pub(crate) async fn free() -> Port {
        Port(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// Serves every path with `work`, and counts what arrives, before the guard looks at it.
    pub(crate) fn serve<W, F>(self, guard: Guard, work: W) -> Service
    where
        W: Fn(CallContext) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let (url, arrived) = (self.url(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&arrived);
        let router = Router::new()
            .fallback(any(move |Extension(context): Extension<CallContext>| work(context)))
            .layer(callee::layer(guard))
            .layer(axum::middleware::map_request(move |request: axum::extract::Request| {
                count.fetch_add(1, Ordering::SeqCst);
                async move { request }
            }));
        let serving = tokio::spawn(async move { axum::serve(self.0, router).await.unwrap() });
        Service { url, arrived, serving }
    }

    /// Serves by calling on, and answers a failed call as this crate says.
    pub(crate) fn calling_on(self, next: ServiceClient) -> Service {
        self.serve(Guard::new(), move |context| {
            let next = next.clone();
            async move { call_on(&next, &context).await }
        })
    }
}

impl Service {
    /// How many requests arrived.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) fn answer(status: u16, body: &str) -> Response {
    let mut answer = Response::new(Body::from(body.to_owned()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

async fn call_on(next: &ServiceClient, context: &CallContext) -> Response {
    match next.post(context, "/orders").json(&["on"]).send().await {
        Ok(done) => Response::new(Body::from(done.into_body())),
        Err(error) => error.to_response().map(Body::from),
    }
}
