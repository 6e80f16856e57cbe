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
use eastwest::{Backoff, BreakerSettings, CallContext, RetryBudget, ServiceClient};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// What must not be passed: a few per cent above what was measured when it was last set. Who makes something cheaper
/// lowers its ceiling.
const CEILINGS: [(&str, f64); 8] = [
    ("bytes of a call's future", 16.0),
    ("instructions a call, outside SHA-256", 106_000.0),
    ("allocations a call", 83.0),
    ("bytes asked for a call", 29_800.0),
    ("allocations a call of 64 KiB", 83.0),
    ("bytes asked for a call of 64 KiB", 30_300.0),
    ("instructions of one retry", 176_000.0),
    ("allocations of one retry", 75.0),
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

fn size_of_future() -> Result<usize, BoxError> {
    let client = client("http://127.0.0.1:9")?;
    Ok(size_of_val(&client.post(&CallContext::root(), "/small").send()))
}

/// Makes so many calls and nothing else: what valgrind looks at.
fn make_calls(what: &str, calls: usize, address: &str) -> Result<(), BoxError> {
    let (path, length) = match what {
        "small" => ("/small", 1_024),
        "large" => ("/large", 65_536),
        "again" => ("/again", 1_024),
        _ => return Err(format!("what is {what}?").into()),
    };
    let client = client(&format!("http://{address}"))?;
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

/// A client as it is by default, but for a failing callee: it sends again at once, and never tires of it.
fn client(base: &str) -> Result<ServiceClient, BoxError> {
    let token = "IQoJb3JpZ2luX2VjE0P/".repeat(40);
    let never = BreakerSettings::default().with_failures_in_row(u32::MAX).with_minimum_outcomes(u32::MAX);
    Ok(ServiceClient::builder(base)
        .region("eu-central-1")
        .static_credentials("ASIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Some(&token))
        .backoff(Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO))
        .retry_budget(RetryBudget::off())
        .breaker(never)
        .build()?)
}
