//! An outage, the letters that it leaves on disk, and their replay under the same keys: each order is placed exactly once.
//!
//! `cargo run --example replay_dead_letter`. Ends with 0 only if it was so. The callee carries out the first order and
//! answers too late, which is the case that keys are for. Time is the example's own, so nothing is really waited for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use eastwest::dead_letter::FileSink;
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{BreakerSettings, CallContext, IdempotencyKey, ServiceClient};
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Failure = Box<dyn StdError + Send + Sync>;

const REGION: &str = "eu-central-1";
const KEY_ID: &str = "AKIDREPLAY";
const SECRET: &str = "replay-secret";
const ORDERS: [&str; 5] = ["o-1", "o-2", "o-3", "o-4", "o-5"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("not every order was placed exactly once");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Tells the story; says whether each order was placed exactly once.
pub(crate) async fn run() -> Result<bool, Failure> {
    let directory = std::env::temp_dir().join(format!("eastwest-replay-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let told = story(&directory.join("letters.jsonl")).await;
    std::fs::remove_dir_all(&directory)?;
    told
}

async fn story(file: &Path) -> Result<bool, Failure> {
    let (clock, callee) = (ManualClock::new(), Callee::default());
    let gateway = FakeGateway::builder()
        .credentials(KEY_ID, SECRET, None)
        .region(REGION)
        .manual_clock(&clock)
        .route("POST", "/orders", [callee.reply()])
        .start()
        .await?;
    let letters = FileSink::open(file)?;
    let client = ServiceClient::builder(gateway.base_url())
        .region(REGION)
        .static_credentials(KEY_ID, SECRET, None)
        .breaker(BreakerSettings::default().with_failures_in_row(3))
        .dead_letter_sink(letters.clone())
        .ambient(clock.clone())
        .build()?;

    println!("an outage: the first order is carried out and answered too late, then nothing answers well");
    for order in ORDERS {
        let call = client.post(&CallContext::root(), "/orders").json(&[order]);
        match call.idempotency_key(IdempotencyKey::derive(["order", order])).send().await {
            Ok(answer) => println!("  {order}: {}", answer.status()),
            Err(error) => println!("  {order}: {error}"),
        }
    }

    clock.advance(Duration::from_secs(300));
    let (count, oldest) = (letters.count().await?, letters.oldest_age(clock.wall()).await?);
    let age = oldest.unwrap_or_default().as_secs();
    println!("\nthe alarm: {count} letters in {}, the oldest {age} s old", file.display());

    println!("\nthe callee is well again: replay");
    callee.recover();
    let mut same_keys = true;
    for letter in letters.list().await?.letters {
        let answer = client.replay(&letter)?.send().await?;
        let sent = gateway.attempts().pop();
        let key = sent.as_ref().and_then(|attempt| attempt.header("x-idempotency-key"));
        same_keys &= key.is_some() && key == letter.idempotency_key.as_deref();
        println!("  {} {}: {}", letter.method, letter.path, String::from_utf8_lossy(answer.body()));
        letters.acknowledge(&letter.id).await?;
    }

    println!("\nwhat the callee placed");
    let placed = callee.placed();
    for (order, times) in &placed {
        println!("  {order}: {times} time");
    }
    let left = letters.count().await?;
    println!("letters left: {left}");
    let each_once = placed.len() == ORDERS.len() && placed.values().all(|times| *times == 1);
    Ok(each_once && same_keys && left == 0 && count == ORDERS.len())
}

/// A callee that stores what it did by key, as every callee of repeated calls must.
#[derive(Clone, Default)]
struct Callee(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_well: bool,
    known_keys: BTreeMap<String, String>,
    placed: BTreeMap<String, u32>,
}

impl Callee {
    fn reply(&self) -> Reply {
        let callee = self.clone();
        Reply::dynamic(move |attempt| callee.answer(attempt))
    }

    fn answer(&self, attempt: &RecordedAttempt) -> Reply {
        self.with(|state| {
            let key = attempt.header("x-idempotency-key").unwrap_or_default().to_owned();
            let order = String::from_utf8_lossy(attempt.body()).into_owned();
            if !state.is_well && !state.placed.is_empty() {
                return Reply::unavailable();
            }
            if state.known_keys.contains_key(&key) {
                return Reply::json(200, format!("{order} was placed before"));
            }
            *state.placed.entry(order.clone()).or_default() += 1;
            state.known_keys.insert(key, order.clone());
            match state.is_well {
                true => Reply::json(201, format!("{order} is placed")),
                // It worked, and the gateway had stopped waiting.
                false => Reply::integration_timeout(),
            }
        })
    }

    fn recover(&self) {
        self.with(|state| state.is_well = true);
    }

    fn placed(&self) -> BTreeMap<String, u32> {
        self.with(|state| state.placed.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
