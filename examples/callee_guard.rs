//! Two services that call each other without end, and a guard in front of each: the chain is cut after seven calls.
//!
//! `cargo run --example callee_guard`. Orders asks stock, stock asks orders, and nobody meant it. The hop count rides
//! along with every call; the seventh service of the chain cannot call on, and what it answers goes back through all of
//! them without one retry. Then a caller that counts but does not stop knocks at hop eight, and one that does not count
//! at all; the guard answers both before the service sees them. Ends with 0 only if all of that is so.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use eastwest::callee::{self, Guard};
use eastwest::{CallContext, Error, ErrorKind, ServiceClient};
use std::error::Error as StdError;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn StdError + Send + Sync>;

/// Who was called, at which hop of which chain.
type Calls = Arc<Mutex<Vec<(&'static str, u8, String)>>>;

/// A service that cannot answer without asking the other one.
#[derive(Clone)]
struct Service {
    name: &'static str,
    other: ServiceClient,
    calls: Calls,
}

async fn serve(State(service): State<Service>, Extension(context): Extension<CallContext>) -> Response {
    let call = (service.name, context.hop(), context.correlation_id().to_owned());
    service.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    match service.other.post(&context, "/").json(&["what do you have?"]).send().await {
        Ok(answer) => Response::new(Body::from(answer.into_body())),
        Err(error) => error.to_response().map(Body::from),
    }
}

/// Runs the loop and prints it. `guard` stands in front of both services.
pub async fn run(guard: Guard) -> Result<bool, Failure> {
    let calls = Calls::default();
    let (orders, stock) = (listener().await?, listener().await?);
    let orders_client = client(orders.local_addr()?)?;
    let knocked_at = stock.local_addr()?;
    let to_stock = Service { name: "orders", other: client(knocked_at)?, calls: Arc::clone(&calls) };
    let to_orders = Service { name: "stock", other: orders_client.clone(), calls: Arc::clone(&calls) };
    for (listener, service) in [(orders, to_stock), (stock, to_orders)] {
        let router = Router::new().route("/", post(serve)).with_state(service);
        let router = router.layer(callee::layer(guard.clone()));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    let begun = CallContext::root();
    let ended = orders_client.post(&begun, "/").json(&["an order"]).send().await;
    let seen = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (name, hop, id) in &seen {
        println!("hop {hop}  {name:<6}  correlation {id}");
    }
    let statuses = [knock(knocked_at, "x-hop-count: 8\r\n").await?, knock(knocked_at, "").await?];
    let seen_since = calls.lock().unwrap_or_else(PoisonError::into_inner).len() - seen.len();
    println!(
        "\n{} calls of the chain {}; it ended with {}.\nAt hop 8: {}. Without a hop count: {}.",
        seen.len(),
        begun.correlation_id(),
        told(&ended.as_ref().map(|_| ())),
        statuses[0],
        statuses[1]
    );
    let hops: Vec<u8> = seen.iter().map(|(_, hop, _)| *hop).collect();
    let one_chain = seen.iter().all(|(_, _, id)| id == begun.correlation_id());
    let cut = ended.is_err_and(|error| error.kind() == ErrorKind::HopLimit && error.attempts().len() == 1);
    Ok(cut && one_chain && hops == [1, 2, 3, 4, 5, 6, 7] && statuses == ["508", "400"] && seen_since == 0)
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

fn client(service: SocketAddr) -> Result<ServiceClient, Error> {
    ServiceClient::builder(format!("http://{service}"))
        .region("eu-central-1")
        .static_credentials("AKIDCALLEEGUARD", "callee-guard-secret", None)
        .build()
}

/// The status that a caller gets who writes the hop count himself.
async fn knock(service: SocketAddr, header: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(service).await?;
    let head = format!("POST / HTTP/1.1\r\nhost: {service}\r\nx-idempotency-key: k\r\n{header}");
    stream.write_all(format!("{head}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_whitespace().nth(1).unwrap_or_default().to_owned())
}

fn told(ended: &Result<(), &Error>) -> String {
    match ended {
        Ok(()) => "an answer".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Guard::new()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
