//! Calls against an embedded gateway, one or more for each rule that matters, and a table of what became of them.
//!
//! `cargo run --example quickstart`. Ends with 0 only if every call came out as the rules say. Time is the example's
//! own, so nothing is really waited for; sockets, signatures and answers are real.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::indexing_slicing)]

use eastwest::story::Attempt;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{
    Call, CallContext, CircuitState, Error, ErrorKind, Response, RetryBudget, ServiceClient, StopReason,
    callee,
};
use std::error::Error as StdError;
use std::process::ExitCode;
use std::time::Duration;

type Failure = Box<dyn StdError + Send + Sync>;

const REGION: &str = "eu-central-1";
const KEY_ID: &str = "AKIDQUICKSTART";
const SECRET: &str = "quickstart-secret";
const TOKEN: &str = "quickstart-session-token";

/// One call, the gateway's part in it, and how it must come out.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    script: Vec<Reply>,
    shape: fn(Call) -> Call,
    must_show: &'static [u16],
    must_end: Outcome,
    may_have_committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Answer(u16),
    Failure(ErrorKind, StopReason),
}

/// The table's rows. `shown` is what each attempt of a call must be answered with, in order.
pub(crate) fn rows() -> Vec<Row> {
    let row = |name, script, shape, must_show, must_end, may_have_committed| Row {
        name,
        script,
        shape,
        must_show,
        must_end,
        may_have_committed,
    };
    let as_is: fn(Call) -> Call = |call| call;
    let unkeyed: fn(Call) -> Call = |call| call.no_idempotency_key();
    let failure = Outcome::Failure;
    let limited = |seconds: &'static str| Reply::throttled().header("retry-after", seconds);
    vec![
        row("a success", vec![Reply::ok()], as_is, &[200], Outcome::Answer(200), true),
        row(
            "503, then well",
            vec![Reply::unavailable(), Reply::ok()],
            as_is,
            &[503, 200],
            Outcome::Answer(200),
            true,
        ),
        row(
            "429, come back in 2 s",
            vec![limited("2"), Reply::ok()],
            as_is,
            &[429, 200],
            Outcome::Answer(200),
            true,
        ),
        row(
            "504 with a key",
            vec![Reply::integration_timeout(), Reply::ok()],
            as_is,
            &[504, 200],
            Outcome::Answer(200),
            true,
        ),
        row(
            "504 without a key",
            vec![Reply::integration_timeout(), Reply::ok()],
            unkeyed,
            &[504],
            failure(ErrorKind::Timeout, StopReason::NoIdempotencyKey),
            true,
        ),
        row(
            "connection cut, with a key",
            vec![Reply::reset(), Reply::ok()],
            as_is,
            &[0, 200],
            Outcome::Answer(200),
            true,
        ),
        row(
            "a stale signature",
            vec![Reply::signature_expired(), Reply::ok()],
            as_is,
            &[403, 200],
            Outcome::Answer(200),
            true,
        ),
        row(
            "500 each time",
            vec![Reply::lambda_rejected()],
            as_is,
            &[500, 500, 500],
            failure(ErrorKind::Unavailable, StopReason::AttemptsExhausted),
            true,
        ),
        row(
            "502 twice",
            vec![Reply::lambda_failed()],
            as_is,
            &[502, 502],
            failure(ErrorKind::Unavailable, StopReason::StatusCapReached),
            true,
        ),
        row(
            "413",
            vec![Reply::payload_too_large()],
            as_is,
            &[413],
            failure(ErrorKind::TooLarge, StopReason::NotRetryable),
            false,
        ),
        row(
            "the day's quota is used up",
            vec![Reply::quota_exceeded()],
            as_is,
            &[429],
            failure(ErrorKind::Quota, StopReason::NotRetryable),
            false,
        ),
        row(
            "no such route",
            vec![Reply::no_such_route()],
            as_is,
            &[403],
            failure(ErrorKind::Route, StopReason::NotRetryable),
            false,
        ),
        row(
            "429, come back in 60 s",
            vec![limited("60")],
            as_is,
            &[429],
            failure(ErrorKind::Throttled, StopReason::TimeBudgetExhausted),
            false,
        ),
    ]
}

/// What became of a call, and whether it is what the rules say.
struct Line {
    name: String,
    attempts: String,
    signed: String,
    outcome: String,
    committed: &'static str,
    ids: String,
    as_ruled: bool,
}

/// Runs all calls and prints the table. `turned` names a row whose script is replaced by an endless 400, to show that
/// the check bites.
pub async fn run(turned: Option<&str>) -> Result<bool, Failure> {
    let clock = ManualClock::new();
    let gateway = gateway(&clock).await?;
    let client = client(&gateway, &clock)?;
    let mut lines = Vec::new();
    for (index, row) in rows().into_iter().enumerate() {
        let path = format!("/row-{index}");
        let script = if turned == Some(row.name) { vec![Reply::json(400, "{}")] } else { row.script.clone() };
        gateway.script("POST", &path, script);
        let call = client.post(&CallContext::root(), &path).json(&["order"]);
        let result = (row.shape)(call).send().await;
        lines.push(line(
            row.name,
            &gateway,
            &path,
            &result,
            (row.must_show, row.must_end, row.may_have_committed),
        ));
    }
    lines.push(too_many_hops(&client, &gateway).await?);
    lines.extend(an_outage(&gateway, &clock).await?);
    print(&lines);
    Ok(lines.iter().all(|line| line.as_ruled))
}

async fn gateway(clock: &ManualClock) -> Result<FakeGateway, Failure> {
    let gateway = FakeGateway::builder()
        .credentials(KEY_ID, SECRET, Some(TOKEN))
        .region(REGION)
        .manual_clock(clock)
        .start();
    Ok(gateway.await?)
}

fn client(gateway: &FakeGateway, clock: &ManualClock) -> Result<ServiceClient, Error> {
    ServiceClient::builder(gateway.base_url())
        .region(REGION)
        .static_credentials(KEY_ID, SECRET, Some(TOKEN))
        // A dozen calls in a row want more than a sandbox that sees one call at a time.
        .retry_budget(RetryBudget::for_concurrency(16))
        .ambient(clock.clone())
        .build()
}

/// A service that was called as the seventh of its chain calls on: the eighth would have to refuse, so nothing is sent.
async fn too_many_hops(client: &ServiceClient, gateway: &FakeGateway) -> Result<Line, Failure> {
    let seventh = callee::accept([("x-hop-count", "7")])?;
    let result = client.post(&seventh, "/hops").send().await;
    let must_end = Outcome::Failure(ErrorKind::HopLimit, StopReason::HopLimit);
    Ok(line("the chain is a loop", gateway, "/hops", &result, (&[], must_end, false)))
}

/// A callee that is down opens the breaker; once it is well again, one probe closes it.
async fn an_outage(gateway: &FakeGateway, clock: &ManualClock) -> Result<Vec<Line>, Failure> {
    let client = client(gateway, clock)?;
    let context = CallContext::root();
    gateway.script("PUT", "/outage", [Reply::unavailable()]);
    let send = || client.put(&context, "/outage").send();
    let failure = |stop| Outcome::Failure(ErrorKind::Unavailable, stop);
    let refused = Outcome::Failure(ErrorKind::CircuitOpen, StopReason::CircuitOpen);
    let exhausted = failure(StopReason::AttemptsExhausted);
    let opened = failure(StopReason::CircuitOpen);
    let mut lines = Vec::new();
    for (name, rule) in [
        ("an outage, first call", (&[503, 503, 503][..], exhausted, true)),
        ("an outage, the breaker opens", (&[503, 503][..], opened, true)),
        ("an outage, nothing is sent", (&[][..], refused, false)),
    ] {
        lines.push(line(name, gateway, "/outage", &send().await, rule));
    }
    gateway.script("PUT", "/outage", [Reply::ok()]);
    clock.advance(Duration::from_secs(3));
    let healed = send().await;
    let mut last =
        line("well again: one probe", gateway, "/outage", &healed, (&[200], Outcome::Answer(200), true));
    last.as_ruled &= client.breaker().state() == CircuitState::Closed;
    lines.push(last);
    Ok(lines)
}

fn line(
    name: &str,
    gateway: &FakeGateway,
    path: &str,
    result: &Result<Response, Error>,
    (must_show, must_end, must_be_in_doubt): (&[u16], Outcome, bool),
) -> Line {
    let (attempts, key, id, ended, may_have_committed) = match result {
        Ok(answer) => {
            let ended = Some(Outcome::Answer(answer.status().as_u16()));
            (answer.attempts(), answer.idempotency_key(), Some(answer.correlation_id()), ended, true)
        }
        Err(error) => {
            let ended = error.stop_reason().map(|reason| Outcome::Failure(error.kind(), reason));
            let doubt = error.may_have_committed();
            (error.attempts(), error.idempotency_key(), error.correlation_id(), ended, doubt)
        }
    };
    let on_the_wire = gateway.attempts_on(path);
    let recorded = on_the_wire.iter().rev().take(attempts.len());
    let signed = recorded.clone().filter(|attempt| attempt.signature_valid()).count();
    let shown: Vec<u16> = attempts.iter().map(|a| a.status().map_or(0, |status| status.as_u16())).collect();
    let one_key = recorded.clone().all(|attempt| attempt.header("x-idempotency-key") == key);
    let as_ruled = shown == must_show
        && ended == Some(must_end)
        && may_have_committed == must_be_in_doubt
        && signed == attempts.len()
        && one_key;
    Line {
        name: name.to_owned(),
        attempts: attempts.iter().map(told).collect::<Vec<_>>().join("  "),
        signed: format!("{signed}/{}", attempts.len()),
        outcome: match result {
            Ok(answer) => format!("{}", answer.status().as_u16()),
            Err(error) => {
                let stopped = error.stop_reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                format!("{:?}{stopped}", error.kind())
            }
        },
        committed: match (result, may_have_committed) {
            (Ok(_), _) => "yes",
            (Err(_), true) => "may have",
            (Err(_), false) => "no",
        },
        ids: format!("{} / {}", short(id), short(key)),
        as_ruled,
    }
}

fn told(attempt: &Attempt) -> String {
    let wait = match attempt.wait_after() {
        None => String::new(),
        Some(Duration::ZERO) => " at once".to_owned(),
        Some(wait) => format!(" +{:.1}s", wait.as_secs_f64()),
    };
    match attempt.status() {
        Some(status) => format!("{}{wait}", status.as_u16()),
        None => format!("lost{wait}"),
    }
}

fn short(id: Option<&str>) -> String {
    id.map_or("-".to_owned(), |id| id.chars().take(8).collect())
}

fn print(lines: &[Line]) {
    let head = ["call", "attempts and waits", "signed", "outcome", "committed?", "correlation / key"];
    let rows: Vec<[&str; 6]> = lines
        .iter()
        .map(|line| {
            let attempts = if line.attempts.is_empty() { "nothing sent" } else { &line.attempts };
            [line.name.as_str(), attempts, &line.signed, &line.outcome, line.committed, &line.ids]
        })
        .collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or_default())
        .collect();
    let told = |mark: &str, row: &[&str; 6]| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("{mark} {}", cells.join("  ").trim_end());
    };
    told(" ", &head);
    for (line, row) in lines.iter().zip(&rows) {
        told(if line.as_ruled { " " } else { "!" }, row);
    }
    println!(
        "\n`503 +0.5s 200`: answered 503, half a second waited, answered 200. `lost`: no answer came. `signed`: how many\n\
         attempts carried a signature that the gateway found right. Waits are at their longest, for the example's dice\n\
         always fall high: a Retry-After of 2 s is 2 s and up to half of it more."
    );
    let wrong = lines.iter().filter(|line| !line.as_ruled).count();
    println!("\n{} calls, {wrong} of them not as the rules say.", lines.len());
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(None).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
