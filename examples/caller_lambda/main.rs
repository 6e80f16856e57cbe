//! A Lambda that calls another team's service: the handler to copy, and a rehearsal of it on this machine.
//!
//! `cargo run --example caller_lambda`. Where Lambda's own variables are set, this is the Lambda. Anywhere else it plays
//! Lambda and API Gateway to a second copy of itself, prints what came of each event, and ends with 0 only if every
//! reply is what it must be.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub(crate) mod rehearsal;
pub(crate) mod rows;

use eastwest::callee::{Guard, Refusal};
use eastwest::{CallContext, Error, ServiceClient};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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
async fn handle(orders: &ServiceClient, event: LambdaEvent<Value>) -> Result<Value, Infallible> {
    let (event, lambda) = event.into_parts();
    let context = match accept(&event, &lambda) {
        Ok(context) => context,
        Err(refusal) => return Ok(refusal.to_proxy_reply()),
    };
    let body = event.get("body").and_then(Value::as_str);
    let Ok(order) = serde_json::from_str(body.unwrap_or_default()) else {
        return Ok(reply(400, &json!({"type": "NotAnOrder"}), None));
    };
    Ok(match place(orders, &context, &order).await {
        Ok(placed) => reply(201, &json!(placed), None),
        Err(error) if error.is_circuit_open() => put_aside(&order, &error),
        Err(error) => error.to_proxy_reply(),
    })
}

/// Outsiders call this function too, and have no key; one that only services call takes `Guard::new()` as it is.
fn accept(event: &Value, lambda: &Context) -> Result<CallContext, Refusal> {
    let guard = Guard::new().front_door().without_idempotency_key();
    let context = guard.accept_event(event)?.with_lambda_deadline(lambda.deadline());
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
fn put_aside(order: &Order, error: &Error) -> Value {
    let told = json!({"status": "put aside", "sku": order.sku, "key": error.idempotency_key()});
    reply(202, &told, error.retry_after())
}

/// A proxy integration's answer of the function's own.
fn reply(status: u16, body: &Value, come_back_after: Option<Duration>) -> Value {
    let seconds = come_back_after.map(|wait| wait.as_millis().div_ceil(1_000).to_string());
    let headers = match seconds {
        Some(seconds) => json!({"content-type": "application/json", "retry-after": seconds}),
        None => json!({"content-type": "application/json"}),
    };
    json!({"statusCode": status, "headers": headers, "body": body.to_string()})
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
