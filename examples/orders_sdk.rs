//! A team's own typed SDK over `ServiceClient`, with its own error type and two fallbacks for the time when the circuit is
//! open: the last known price, marked *to be confirmed*, and the order put aside as *in progress*.
//!
//! `cargo run --example orders_sdk` plays a day with an outage in it against the embedded gateway, and ends with 0 only if
//! no order was lost and none was placed twice.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{CallContext, Error, ErrorKind, IdempotencyKey, ServiceClient};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

// ---- The SDK: what the orders team publishes.

/// The orders service, as its callers see it. A cheap clone.
#[derive(Clone)]
pub struct Orders {
    client: ServiceClient,
    prices: Arc<Mutex<HashMap<String, u32>>>,
    put_aside: Arc<Mutex<VecDeque<Aside>>>,
}

/// What an order is asked for.
#[derive(Clone, Debug, Serialize)]
pub struct NewOrder {
    /// The article.
    pub sku: String,
    /// How many of it.
    pub quantity: u32,
}

/// What became of an order.
#[derive(Debug, PartialEq, Eq)]
pub enum Placed {
    /// The service has it.
    Confirmed {
        /// The service's name for it.
        id: String,
    },
    /// It is put aside and will be placed under the same key.
    InProgress {
        /// When to look again, if that is known.
        look_again_after: Option<Duration>,
    },
}

/// A price, and whether the service still says so.
#[derive(Debug, PartialEq, Eq)]
pub enum Price {
    /// As the service says.
    Current(u32),
    /// As it was when the service was last heard.
    ToBeConfirmed(u32),
}

/// What can go wrong, in the orders team's words.
#[derive(Debug)]
pub enum OrdersError {
    /// The service refuses the order as it is.
    Invalid {
        /// The service's code.
        code: Option<String>,
    },
    /// The order may have been placed: ask again under the same request id.
    InDoubt(Error),
    /// All else.
    Failed(Error),
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").field("client", &self.client).finish_non_exhaustive()
    }
}

struct Aside {
    key: IdempotencyKey,
    order: NewOrder,
}

#[derive(Deserialize)]
struct Order {
    id: String,
}

#[derive(Deserialize)]
struct PriceTag {
    cents: u32,
}

impl Orders {
    /// The SDK over a client that its user has built: Region, credentials and profile are the user's to choose.
    #[must_use]
    pub fn over(client: ServiceClient) -> Orders {
        Orders { client, prices: Arc::default(), put_aside: Arc::default() }
    }

    /// The price of an article, in cents.
    ///
    /// # Errors
    /// [`OrdersError`]; with the circuit open, only where no price was ever heard.
    pub async fn price(&self, context: &CallContext, sku: &str) -> Result<Price, OrdersError> {
        match self.client.get(context, "/prices").segment(sku).send().await {
            Ok(answer) => {
                let tag: PriceTag = answer.json()?;
                locked(&self.prices).insert(sku.to_owned(), tag.cents);
                Ok(Price::Current(tag.cents))
            }
            Err(error) if error.is_circuit_open() => {
                let last = locked(&self.prices).get(sku).copied();
                last.map(Price::ToBeConfirmed).ok_or(OrdersError::Failed(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Places an order once, however often it is asked for under the same request id.
    ///
    /// # Errors
    /// [`OrdersError`]. With the circuit open there is none: the order is put aside.
    pub async fn place(
        &self,
        context: &CallContext,
        request_id: &str,
        order: &NewOrder,
    ) -> Result<Placed, OrdersError> {
        let key = IdempotencyKey::derive(["orders", "place", request_id]);
        match self.send(context, &key, order).await {
            Err(error) if error.is_circuit_open() => {
                let look_again_after = error.retry_after();
                locked(&self.put_aside).push_back(Aside { key, order: order.clone() });
                Ok(Placed::InProgress { look_again_after })
            }
            result => Ok(Placed::Confirmed { id: result?.id }),
        }
    }

    /// Places what was put aside, each order under the key that it was asked for with; answers how many are left.
    ///
    /// # Errors
    /// The first order that is not placed stays, and so do those behind it.
    pub async fn place_what_was_put_aside(&self, context: &CallContext) -> Result<usize, OrdersError> {
        loop {
            let Some((key, order)) =
                locked(&self.put_aside).front().map(|a| (a.key.clone(), a.order.clone()))
            else {
                return Ok(0);
            };
            match self.send(context, &key, &order).await {
                Ok(_) => drop(locked(&self.put_aside).pop_front()),
                Err(error) if error.is_circuit_open() => return Ok(locked(&self.put_aside).len()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn send(
        &self,
        context: &CallContext,
        key: &IdempotencyKey,
        order: &NewOrder,
    ) -> Result<Order, Error> {
        self.client.post(context, "/orders").idempotency_key(key).json(order).send().await?.json()
    }
}

impl From<Error> for OrdersError {
    fn from(error: Error) -> OrdersError {
        match error.kind() {
            ErrorKind::Rejected => OrdersError::Invalid { code: error.code().map(str::to_owned) },
            _ if error.may_have_committed() => OrdersError::InDoubt(error),
            _ => OrdersError::Failed(error),
        }
    }
}

impl fmt::Display for OrdersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrdersError::Invalid { code } => {
                write!(f, "the order is not accepted ({})", code.as_deref().unwrap_or("no code"))
            }
            OrdersError::InDoubt(error) => write!(f, "the order may have been placed: {error}"),
            OrdersError::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OrdersError {}

fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- A day of one of its users.

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The service's own book: an order a key, however often the key comes.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<String>>>);

impl Book {
    fn enter(&self, attempt: &RecordedAttempt) -> Reply {
        let key = attempt.header("x-idempotency-key").unwrap_or_default().to_owned();
        let mut keys = locked(&self.0);
        let at = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        Reply::json(201, format!(r#"{{"id":"o-{}"}}"#, at + 1))
    }

    fn orders(&self) -> usize {
        locked(&self.0).len()
    }
}

/// Plays the day; answers whether it went as it must. `lossy` leaves out the placing of what was put aside, to show that
/// the check bites.
pub async fn run(lossy: bool) -> Result<bool, Failure> {
    let (clock, book) = (ManualClock::new(), Book::default());
    let gateway = FakeGateway::builder()
        .credentials("AKIDORDERSSDK", "secret", None)
        .region("eu-central-1")
        .manual_clock(&clock)
        .start()
        .await?;
    let client = ServiceClient::builder(gateway.base_url())
        .region("eu-central-1")
        .static_credentials("AKIDORDERSSDK", "secret", None)
        .ambient(clock.clone())
        .build()?;
    let (orders, context) = (Orders::over(client), CallContext::root());
    let order = NewOrder { sku: "A-7".to_owned(), quantity: 3 };
    let well = |gateway: &FakeGateway| {
        let book = book.clone();
        gateway.script("GET", "/prices/A-7", [Reply::json(200, r#"{"cents":1250}"#)]);
        gateway.script("POST", "/orders", [Reply::dynamic(move |attempt| book.enter(attempt))]);
    };
    let mut day = Day::default();

    well(&gateway);
    day.expect("in the morning, a price", &orders.price(&context, "A-7").await?, &Price::Current(1_250));
    let first = Placed::Confirmed { id: "o-1".to_owned() };
    day.expect("an order", &orders.place(&context, "request-1", &order).await?, &first);
    day.expect("the same request again", &orders.place(&context, "request-1", &order).await?, &first);

    gateway.script("GET", "/prices/A-7", [Reply::unavailable()]);
    gateway.script("POST", "/orders", [Reply::unavailable()]);
    let mut failed = 0;
    while orders.price(&context, "A-7").await.is_err() {
        failed += 1;
    }
    day.expect("an outage: so many fail before the circuit opens", &failed, &3);
    let price = orders.price(&context, "A-7").await?;
    day.expect("a price, with the circuit open", &price, &Price::ToBeConfirmed(1_250));
    let aside = orders.place(&context, "request-2", &order).await?;
    day.expect("an order, with the circuit open", &matches!(aside, Placed::InProgress { .. }), &true);

    well(&gateway);
    clock.advance(Duration::from_secs(5));
    if !lossy {
        let left = orders.place_what_was_put_aside(&context).await?;
        day.expect("well again: orders still put aside", &left, &0);
    }
    day.expect("and a price", &orders.price(&context, "A-7").await?, &Price::Current(1_250));
    day.expect("orders in the service's book", &book.orders(), &2);
    println!("\n{} of {} things as they must be.", day.right, day.seen);
    Ok(day.right == day.seen)
}

/// What was seen so far, and how much of it was right.
#[derive(Default)]
struct Day {
    seen: usize,
    right: usize,
}

impl Day {
    fn expect<T: PartialEq + fmt::Debug>(&mut self, what: &str, is: &T, must_be: &T) {
        let right = is == must_be;
        self.seen += 1;
        self.right += usize::from(right);
        println!("{} {what:<50} {is:?}", if right { " " } else { "!" });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(false).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
