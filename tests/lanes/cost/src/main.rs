//! Counts what a call costs and holds it under a ceiling. Nothing here depends on how fast or how busy the machine is.
//!
//! Without an argument it judges; it ends with 1 where a ceiling is passed, and with 77 where valgrind is missing.

mod server;
#[path = "../../../../benches/support/valgrind.rs"]
mod valgrind;

/// What the shared module looks for beside itself.
mod bare {
    pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
}

use bare::BoxError;
use bytes::Bytes;
use eastwest::{
    Backoff, BreakerSettings, CallContext, ClientBuilder, Event, Observer, RetryBudget, ServiceClient,
};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What must not be passed: a few per cent above what was measured when it was last set. Who makes something cheaper
/// lowers its ceiling.
const CEILINGS: [(&str, f64); 9] = [
    ("bytes of a call's future", 16.0),
    ("instructions a call, outside SHA-256", 104_000.0),
    ("allocations a call", 75.0),
    ("bytes asked for a call", 29_300.0),
    ("allocations a call of 64 KiB", 75.0),
    ("bytes asked for a call of 64 KiB", 29_800.0),
    ("instructions of one retry", 176_000.0),
    ("allocations of one retry", 71.0),
    ("bytes that a waiting call holds", 1_460.0),
];

/// Of an answer's body.
pub(crate) const ANSWER: usize = 1_024;
/// As many calls are made more in the second run than in the first; a quarter of it where SHA-256 would take all the time.
const CALLS: usize = 80;

fn main() -> Result<ExitCode, BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => judge(),
        ["calls", what, calls, address] => {
            make_calls(what, calls.parse()?, address).map(|()| ExitCode::SUCCESS)
        }
        ["serve"] => {
            println!("{}", server::start()?);
            loop {
                std::thread::park();
            }
        }
        _ => Err(format!("what is {words:?}?").into()),
    }
}

fn judge() -> Result<ExitCode, BoxError> {
    let mut measured = vec![size_of_future()? as f64];
    let counted = Command::new("valgrind").arg("--version").output().is_ok_and(|told| told.status.success());
    if counted {
        let server = valgrind::Server::start()?;
        let small = valgrind::cost("small", CALLS, &server)?;
        let large = valgrind::cost("large", CALLS / 4, &server)?;
        let again = valgrind::cost("again", CALLS, &server)?;
        measured.extend([
            small.instructions,
            small.allocations,
            small.bytes,
            large.allocations,
            large.bytes,
            again.instructions - small.instructions,
            again.allocations - small.allocations,
            held(CALLS, &server)?,
        ]);
    }
    let mut passed = true;
    println!("| what | measured | ceiling |\n|---|---|---|");
    for ((what, ceiling), measured) in CEILINGS.iter().zip(measured) {
        let mark = if measured > *ceiling { " **PASSED**" } else { "" };
        passed &= measured <= *ceiling;
        println!("| {what} | {measured:.0}{mark} | {ceiling:.0} |");
    }
    Ok(match (passed, counted) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(77),
    })
}

/// What the heap holds for each further call that waits for its retry, the task that it waits in included, and not the answer's
/// body.
fn held(calls: usize, server: &valgrind::Server) -> Result<f64, BoxError> {
    let most = |calls: usize| {
        let told = valgrind::valgrind(valgrind::HEAP, "waiting", calls, server)?;
        // "==7== At t-gmax:  1,106 bytes in 12 blocks"
        let line = told.lines().find_map(|line| line.split_once("At t-gmax:"));
        valgrind::number(line.ok_or("dhat gives no peak")?.1)
    };
    Ok((most(2 * calls)? - most(calls)?) / calls as f64)
}

fn size_of_future() -> Result<usize, BoxError> {
    let client = client("127.0.0.1:9").build()?;
    Ok(size_of_val(&client.post(&CallContext::root(), "/small").send()))
}

/// Makes so many calls and nothing else: what valgrind looks at.
fn make_calls(what: &str, calls: usize, address: &str) -> Result<(), BoxError> {
    let (path, length) = match what {
        "small" => ("/small", 1_024),
        "large" => ("/large", 65_536),
        "again" => ("/again", 1_024),
        "waiting" => return wait(calls, address),
        _ => return Err(format!("what is {what}?").into()),
    };
    let client = client(address).build()?;
    let body = Bytes::from(vec![b'a'; length]);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        for _ in 0..calls {
            let call = client.post(&CallContext::root(), path).header("content-type", "application/json");
            let answer = call.body(body.clone()).send().await?;
            assert_eq!((answer.status().as_u16(), answer.body().len()), (200, ANSWER));
        }
        Ok(())
    })
}

/// Begins so many calls, one after the other has failed once, and ends while they wait for hours.
fn wait(calls: usize, address: &str) -> Result<(), BoxError> {
    let ages = Duration::from_secs(3_600_000_000);
    let failed_once = Arc::new(Notify::new());
    let client = client(address)
        .backoff(Backoff::new(ages, ages, ages))
        .total_timeout(ages * 2)
        .observer(Retries(Arc::clone(&failed_once)))
        .build()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        for _ in 0..calls {
            let client = client.clone();
            drop(tokio::spawn(async move {
                let context = CallContext::root();
                let call = client.post(&context, "/unavailable").header("content-type", "application/json");
                let _ = call.body("{}").send().await;
            }));
            failed_once.notified().await;
        }
        Ok(())
    })
}

/// Says when a call begins to wait.
struct Retries(Arc<Notify>);

impl Observer for Retries {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Retries { .. } = event {
            self.0.notify_one();
        }
    }
}

/// A client as it is by default, but for a failing callee: it sends again at once, and never tires of it.
fn client(address: &str) -> ClientBuilder {
    let token = "IQoJb3JpZ2luX2VjE0P/".repeat(40);
    let never = BreakerSettings::default().with_failures_in_row(u32::MAX).with_minimum_outcomes(u32::MAX);
    ServiceClient::builder(format!("http://{address}"))
        .region("eu-central-1")
        .static_credentials("ASIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Some(&token))
        .backoff(Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO))
        .retry_budget(RetryBudget::off())
        .breaker(never)
}
