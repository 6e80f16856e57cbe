//! A team's own typed SDK over `ServiceClient`, with its own error type and two fallbacks for the time when the circuit is
//! open: the last known price, marked *to be confirmed*, and the order put aside as *in progress*.
//!
//! `cargo run --example orders_sdk` plays a day with an outage in it against the embedded gateway, and ends with 0 only if
//! no order was lost and none was placed twice. Below are the tests that the team has of it: `cargo test --example orders_sdk`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use eastwest::iam::{Route, Routes};
use eastwest::testing::{FakeGateway, IdempotentCallee, ManualClock, Reply};
use eastwest::{CallContext, Error, ErrorKind, IdempotencyKey, ServiceClient};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

// ---- The SDK: what the orders team publishes.

const PRICE: Route = Route::get("/prices/{sku}");
const PLACE: Route = Route::post("/orders");
/// What the service serves: its callers write their grants from it.
pub const ROUTES: Routes = Routes::new("orders", &[PRICE, PLACE]);

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
        match self.client.get(context, "/prices").segment(sku).url_template(PRICE.template()).send().await {
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
        let call = self.client.post(context, PLACE.template()).url_template(PLACE.template());
        call.idempotency_key(key).json(order).send().await?.json()
    }
}

impl From<Error> for OrdersError {
    fn from(error: Error) -> OrdersError {
        match error.kind() {
            _ if error.may_have_committed() => OrdersError::InDoubt(error),
            ErrorKind::Rejected => OrdersError::Invalid { code: error.code().map(str::to_owned) },
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
fn book() -> IdempotentCallee {
    IdempotentCallee::new(|_, order| Reply::json(201, format!(r#"{{"id":"o-{order}"}}"#)))
}

/// Plays the day; answers whether it went as it must. `lossy` leaves out the placing of what was put aside, to show that
/// the check bites.
pub async fn run(lossy: bool) -> Result<bool, Failure> {
    let (clock, book) = (ManualClock::new(), book());
    let gateway = FakeGateway::builder().manual_clock(&clock).start().await?;
    let (orders, context) = (Orders::over(gateway.client().build()?), CallContext::root());
    let order = NewOrder { sku: "A-7".to_owned(), quantity: 3 };
    let well = |gateway: &FakeGateway| {
        gateway.script("GET", "/prices/A-7", [Reply::json(200, r#"{"cents":1250}"#)]);
        gateway.script("POST", "/orders", [book.answers()]);
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
    day.expect("orders in the service's book", &book.commits(), &2);
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

// ---- The tests that the orders team has of its SDK.

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest::testing::{GatewayResponse, Story};

    /// The SDK, and the gateway that it talks to in memory; neither waits for anything.
    struct Bench {
        gateway: FakeGateway,
        orders: Orders,
        clock: ManualClock,
    }

    impl Bench {
        fn of(prices: impl IntoIterator<Item = Reply>, orders: impl IntoIterator<Item = Reply>) -> Bench {
            let clock = ManualClock::new();
            let gateway = FakeGateway::builder()
                .manual_clock(&clock)
                .route("GET", "/prices/A-7", prices)
                .route("POST", "/orders", orders)
                .without_socket();
            let orders = Orders::over(gateway.client().build().unwrap());
            Bench { gateway, orders, clock }
        }

        async fn place(&self, request_id: &str) -> Result<Placed, OrdersError> {
            let order = NewOrder { sku: "A-7".to_owned(), quantity: 3 };
            self.orders.place(&CallContext::root(), request_id, &order).await
        }

        async fn price(&self) -> Result<Price, OrdersError> {
            self.orders.price(&CallContext::root(), "A-7").await
        }

        fn orders_sent(&self) -> Story {
            self.gateway.story().on("/orders")
        }
    }

    fn confirmed(id: &str) -> Placed {
        Placed::Confirmed { id: id.to_owned() }
    }

    #[tokio::test]
    async fn an_order_is_placed_once_though_its_answer_was_lost_twice() {
        let book = book();
        let lost = [book.commits_then(Reply::integration_timeout()), Reply::reset(), book.answers()];
        let bench = Bench::of([], lost);
        assert_eq!(bench.place("request-1").await.unwrap(), confirmed("o-1"));
        book.assert_commits(1);
        bench.orders_sent().assert_attempts(3).assert_same_key().assert_resigned();
    }

    #[tokio::test]
    async fn a_request_that_is_asked_again_goes_out_under_the_same_key_and_another_under_another() {
        let book = book();
        let bench = Bench::of([], [book.answers()]);
        for (request, id) in [("request-1", "o-1"), ("request-1", "o-1"), ("request-2", "o-2")] {
            assert_eq!(bench.place(request).await.unwrap(), confirmed(id));
        }
        assert_eq!((book.commits(), book.replays()), (2, 1));
    }

    #[tokio::test]
    async fn with_the_circuit_open_the_last_price_is_to_be_confirmed_and_an_unknown_one_is_an_error() {
        let bench = Bench::of([Reply::json(200, r#"{"cents":1250}"#)], []);
        assert_eq!(bench.price().await.unwrap(), Price::Current(1_250));
        bench.orders.client.breaker().force_open();
        assert_eq!(bench.price().await.unwrap(), Price::ToBeConfirmed(1_250));
        let unknown = bench.orders.price(&CallContext::root(), "B-1").await.unwrap_err();
        assert!(matches!(unknown, OrdersError::Failed(error) if error.is_circuit_open()));
        bench.gateway.assert_attempts(1);
    }

    #[tokio::test]
    async fn every_call_goes_by_a_route_that_callers_are_granted() {
        let bench = Bench::of([Reply::json(200, r#"{"cents":1250}"#)], [book().answers()]);
        bench.price().await.unwrap();
        bench.place("request-1").await.unwrap();
        for attempt in bench.gateway.attempts() {
            let route = ROUTES.serving(attempt.method(), attempt.path_below_stage()).unwrap();
            assert!(route.is_some(), "{attempt:?}");
        }
    }

    #[tokio::test]
    async fn an_order_that_was_put_aside_is_placed_later_under_the_key_it_was_asked_for_with() {
        let book = book();
        let bench = Bench::of([], [book.answers()]);
        bench.orders.client.breaker().force_open();
        assert!(matches!(bench.place("request-1").await.unwrap(), Placed::InProgress { .. }));
        bench.gateway.assert_attempts(0);
        bench.orders.client.breaker().reset();
        assert_eq!(bench.orders.place_what_was_put_aside(&CallContext::root()).await.unwrap(), 0);
        assert_eq!(bench.place("request-1").await.unwrap(), confirmed("o-1"), "the same request, once more");
        bench.orders_sent().assert_attempts(2).assert_same_key();
        book.assert_commits(1);
    }

    #[tokio::test]
    async fn what_the_service_does_not_accept_is_told_with_its_code_and_not_sent_again() {
        let bench = Bench::of([], [Reply::json(422, r#"{"code":"QUANTITY"}"#)]);
        let refused = bench.place("request-1").await.unwrap_err();
        assert!(matches!(refused, OrdersError::Invalid { code: Some(code) } if code == "QUANTITY"));
        bench.gateway.assert_attempts(1);
    }

    #[tokio::test]
    async fn an_order_whose_answer_never_comes_is_in_doubt_after_the_time_that_a_call_may_take() {
        let bench = Bench::of([], [Reply::stall()]);
        let before = bench.clock.wall();
        assert!(matches!(bench.place("request-1").await.unwrap_err(), OrdersError::InDoubt(_)));
        assert!(bench.clock.wall() <= before + Duration::from_secs(10));
    }

    #[tokio::test]
    async fn an_order_that_surely_was_not_placed_is_not_in_doubt() {
        for reply in [Reply::refuse(), Reply::throttled(), Reply::access_denied(), Reply::no_such_route()] {
            let bench = Bench::of([], [reply]);
            assert!(matches!(bench.place("request-1").await.unwrap_err(), OrdersError::Failed(_)));
        }
    }

    #[tokio::test]
    async fn whatever_the_gateway_says_a_price_is_an_error_and_never_a_wrong_price() {
        for kind in GatewayResponse::ALL {
            let bench = Bench::of([kind.reply()], []);
            assert!(bench.price().await.is_err(), "{}", kind.as_str());
        }
    }
}
