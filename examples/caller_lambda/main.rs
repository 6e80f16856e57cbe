//! A Lambda that calls another team's service: the handler to copy, and a rehearsal of it on this machine.
//!
//! `cargo run --example caller_lambda`. Where Lambda's own variables are set, this is the Lambda. Anywhere else it plays
//! Lambda and API Gateway to a second copy of itself, prints what came of each event, and ends with 0 only if every
//! reply is what it must be.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub(crate) mod rehearsal;
pub(crate) mod rows;

use eastwest::callee::{self, Refusal};
use eastwest::{CallContext, Error, ErrorKind, ServiceClient};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::process::ExitCode;
use std::time::Duration;

/// The Lambda: one client a sandbox, made in the init phase, then one event after the other.
pub(crate) async fn lambda() -> Result<(), lambda_runtime::Error> {
    let orders = ServiceClient::builder(env::var("ORDERS_URL")?)
        .region(env::var("AWS_REGION")?)
        .environment_credentials()
        .build()?;
    orders.warm_up(Duration::from_secs(1)).await?;
    lambda_runtime::run(service_fn(|event| handle(&orders, event))).await
}

/// Takes an order in and places it with the order service.
///
/// There is no error to return: what a handler throws, the gateway turns into a bare 502, which callers send again.
async fn handle(orders: &ServiceClient, event: LambdaEvent<ProxyEvent>) -> Result<ProxyReply, Infallible> {
    let (event, lambda) = event.into_parts();
    let context = match accept(&event, &lambda) {
        Ok(context) => context,
        Err(refusal) => return Ok(ProxyReply::refused(&refusal)),
    };
    let Ok(order) = serde_json::from_str(event.body.as_deref().unwrap_or_default()) else {
        return Ok(ProxyReply::new(400, json!({"type": "NotAnOrder"})));
    };
    Ok(match place(orders, &context, &order).await {
        Ok(placed) => ProxyReply::new(201, json!(placed)),
        Err(error) if error.is_circuit_open() => put_aside(&order, &error),
        Err(error) => ProxyReply::failed(&error, &context),
    })
}

/// Outsiders call this function too; one that only services call begins with `callee::accept`.
fn accept(event: &ProxyEvent, lambda: &Context) -> Result<CallContext, Refusal> {
    let lines = event.multi_value_headers.iter().flatten();
    let headers = lines.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let context = callee::accept_front_door(headers)?.with_lambda_deadline(lambda.deadline());
    Ok(match &lambda.xray_trace_id {
        Some(id) => context.with_trace_id(id),
        None => context,
    })
}

async fn place(orders: &ServiceClient, context: &CallContext, order: &Order) -> Result<Placed, Error> {
    let call = orders.post(context, "/orders").json(order);
    // Whoever sends this event again means the same order, and so must the call that comes of it.
    let call = match context.inbound_idempotency_key() {
        Some(key) => call.idempotency_key(key),
        None => call,
    };
    call.send().await?.json()
}

/// The fallback while the order service is down: the order is accepted now and placed later.
///
/// The example only says so. A real one puts the order on a queue here, under the call's key, to be delivered no sooner
/// than `retry_after`.
fn put_aside(order: &Order, error: &Error) -> ProxyReply {
    let told = json!({"status": "put aside", "sku": order.sku, "key": error.idempotency_key()});
    ProxyReply::new(202, told).come_back_after(error.retry_after())
}

#[derive(Deserialize, Serialize)]
struct Order {
    sku: String,
    quantity: u32,
}

#[derive(Deserialize, Serialize)]
struct Placed {
    id: String,
}

/// What is read of a REST API's proxy event.
///
/// Plain strings, not `http` types: a header that those refuse would fail the event, and so be an error thrown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProxyEvent {
    multi_value_headers: Option<BTreeMap<String, Vec<String>>>,
    body: Option<String>,
}

/// A proxy integration's answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProxyReply {
    status_code: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl ProxyReply {
    fn new(status_code: u16, body: serde_json::Value) -> ProxyReply {
        let reply = ProxyReply { status_code, headers: BTreeMap::new(), body: body.to_string() };
        reply.header("content-type", "application/json")
    }

    /// A refusal's own answer: 508 to a loop, 400 to a hop count that is none, 503 if no time is left.
    fn refused(refusal: &Refusal) -> ProxyReply {
        let (head, body) = refusal.to_response().into_parts();
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        ProxyReply { status_code: head.status.as_u16(), headers: headers.collect(), body: text(&body) }
    }

    /// The answer to give where a call of one's own has failed. Its layer has sent the call as often as made sense, so
    /// the layers above are told not to.
    fn failed(error: &Error, context: &CallContext) -> ProxyReply {
        let status = match error.kind() {
            ErrorKind::HopLimit => 508,
            ErrorKind::CircuitOpen | ErrorKind::Quota | ErrorKind::RateLimited | ErrorKind::Throttled => 503,
            ErrorKind::Timeout => 504,
            _ => 502,
        };
        let told = json!({"type": format!("{:?}", error.kind()), "correlation_id": context.correlation_id()});
        let reply = ProxyReply::new(status, told).header("x-should-retry", "false");
        reply.come_back_after(error.retry_after())
    }

    fn header(mut self, name: &str, value: &str) -> ProxyReply {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    fn come_back_after(self, wait: Option<Duration>) -> ProxyReply {
        match wait {
            Some(wait) => self.header("retry-after", &wait.as_millis().div_ceil(1_000).to_string()),
            None => self,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let ended = match env::var_os("AWS_LAMBDA_RUNTIME_API") {
        Some(_) => lambda().await.map(|()| true),
        None => rehearsal::of_this_program().await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
