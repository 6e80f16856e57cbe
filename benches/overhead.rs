//! What a successful call costs more than the same call made by hand.
//!
//! `cargo bench --bench overhead` compares times, `-- counts` instructions and allocations; `README.md` beside this file
//! has the figures and what they mean. Nothing is asserted: a busy machine is not a failure.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench reads the clock, prints, and may panic"
)]

#[path = "support/bare.rs"]
mod bare;
#[path = "support/contenders.rs"]
mod contenders;
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/server.rs"]
mod server;
#[path = "support/valgrind.rs"]
mod valgrind;

use bare::BoxError;
use bytes::Bytes;
use contenders::{Contender, Eastwest, Loop, Signed};
use pairs::Spread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--bench").collect();
    // reqwest is built without a TLS provider here, and wants one even for plain HTTP. An error says that it has one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match words.as_slice() {
        ["calls", contender, calls, address] => make_calls(contender, calls.parse()?, address),
        ["counts"] => counts(200),
        ["counts", calls] => counts(calls.parse()?),
        ["serve"] => serve(),
        ["--quick"] => compare(Plan::QUICK),
        // Run by `cargo test`, and not by `cargo bench`: only that it runs is of interest.
        [] if arguments.is_empty() => compare(Plan::QUICK),
        [] => compare(Plan::FULL),
        _ => Err(format!("what is {words:?}?").into()),
    }
}

/// How much is measured.
struct Plan {
    rounds: usize,
    calls: usize,
}

impl Plan {
    const FULL: Plan = Plan { rounds: 301, calls: 200 };
    const QUICK: Plan = Plan { rounds: 21, calls: 50 };
}

/// Compares the times of all contenders over loopback.
fn compare(plan: Plan) -> Result<(), BoxError> {
    let base = format!("http://{}", server::start()?);
    let runtime = runtime()?;
    let (signed, by_hand, eastwest) = (Signed::new(&base)?, Loop::new(&base)?, Eastwest::new(&base)?);
    let ask = |contender: usize, calls: usize| match contender {
        0 => block(&runtime, &signed, calls),
        1 | 2 => block(&runtime, &by_hand, calls),
        _ => block(&runtime, &eastwest, calls),
    };
    for contender in 0..NAMES.len() {
        ask(contender, plan.calls);
    }
    let blocks = pairs::interleave(NAMES.len(), plan.rounds, |contender| ask(contender, plan.calls));

    println!(
        "{} rounds of {} calls each; medians of paired ratios and their quartiles",
        plan.rounds, plan.calls
    );
    println!("| contender | time a call | time to (a) | time to (b) | client CPU a call | CPU to (b) |");
    println!("|---|---|---|---|---|---|");
    let times =
        |contender: usize| -> Vec<f64> { blocks[contender].iter().map(|block| block.median).collect() };
    let cpu = |contender: usize| -> Vec<f64> { blocks[contender].iter().map(|block| block.cpu).collect() };
    for (contender, name) in NAMES.iter().enumerate() {
        let [time, cpu_time] = [times(contender), cpu(contender)].map(|measured| Spread::of(measured).median);
        println!(
            "| {name} | {time:.1} µs | {} | {} | {cpu_time:.1} µs | {} |",
            Spread::of_ratios(&times(contender), &times(0)),
            Spread::of_ratios(&times(contender), &times(1)),
            Spread::of_ratios(&cpu(contender), &cpu(1)),
        );
    }
    Ok(())
}

/// What one block measured, in microseconds a call.
struct Block {
    /// The median of the calls' times.
    median: f64,
    /// The time that the client's thread had a processor, the mean; not a number where the kernel does not tell.
    cpu: f64,
}

fn block(runtime: &Runtime, contender: &impl Contender, calls: usize) -> Block {
    let body = Bytes::from(server::json(server::BODY));
    runtime.block_on(async {
        let before = processor_time();
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let begun = Instant::now();
            let answer = contender.call(body.clone()).await.expect("the server answers");
            times.push(micros(begun.elapsed()));
            assert_eq!(answer, (200, server::BODY));
        }
        let spent = processor_time().zip(before).map(|(after, before)| micros(after.saturating_sub(before)));
        Block { median: Spread::of(times).median, cpu: spent.map_or(f64::NAN, |spent| spent / calls as f64) }
    })
}

/// How long this thread has had a processor, as Linux tells it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Counts instructions and allocations of each contender's call.
fn counts(calls: usize) -> Result<(), BoxError> {
    let server = valgrind::Server::start()?;
    println!("2 x {calls} calls less {calls}");
    println!("| contender | instructions | to (b) | SHA-256, portable | allocations | bytes |");
    println!("|---|---|---|---|---|---|");
    let (signed, by_hand, eastwest) = (
        valgrind::cost("signed", calls, &server)?,
        valgrind::cost("loop", calls, &server)?,
        valgrind::cost("eastwest", calls, &server)?,
    );
    for (name, cost) in [(NAMES[0], signed), (NAMES[1], by_hand), (NAMES[3], eastwest)] {
        println!(
            "| {name} | {:.0} | {:.3} | {:.0} | {:.1} | {:.0} |",
            cost.instructions,
            cost.instructions / by_hand.instructions,
            cost.sha256,
            cost.allocations,
            cost.bytes
        );
    }
    Ok(())
}

/// Makes so many calls and nothing else: what `counts` looks at.
fn make_calls(contender: &str, calls: usize, address: &str) -> Result<(), BoxError> {
    let (base, runtime) = (format!("http://{address}"), runtime()?);
    match contender {
        "signed" => drop(block(&runtime, &Signed::new(&base)?, calls)),
        "loop" => drop(block(&runtime, &Loop::new(&base)?, calls)),
        "eastwest" => drop(block(&runtime, &Eastwest::new(&base)?, calls)),
        _ => return Err(format!("who is {contender}?").into()),
    }
    Ok(())
}

/// Serves until the process is ended.
fn serve() -> Result<(), BoxError> {
    println!("{}", server::start()?);
    loop {
        std::thread::park();
    }
}

fn runtime() -> Result<Runtime, BoxError> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The loop runs twice, as if it were two: how far the second is from 1 is what the machine's noise is worth.
const NAMES: [&str; 4] = ["(a) reqwest and `aws-sigv4`", "(b) a loop by hand", "(b) once more", "eastwest"];
