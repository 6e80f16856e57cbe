//! Plays Lambda and API Gateway to the function, and looks at what comes back.
//!
//! Lambda's side of the runtime API (AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes") is
//! three routes, for which a second embedded gateway does. The function is a process of its own, as in a sandbox: its
//! settings are its environment, and it is killed when the last reply is in.

use super::rows::{Row, rows};
use eastwest::testing::{FakeGateway, RecordedAttempt, Reply};
use serde_json::Value;
use std::error::Error as StdError;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::process::Command;
use tokio::time::timeout;

type Failure = Box<dyn StdError + Send + Sync>;

/// Rehearses with another copy of the running program.
pub(crate) async fn of_this_program() -> Result<bool, Failure> {
    run(None, Command::new(std::env::current_exe()?)).await
}

/// Hands all events to the function that `function` starts, and prints what came of them. `turned` names a row whose
/// event and script are other than they should be, to show that the check bites.
pub(crate) async fn run(turned: Option<&str>, mut function: Command) -> Result<bool, Failure> {
    let mut rows = rows();
    for row in rows.iter_mut().filter(|row| turned == Some(row.name)) {
        row.turn();
    }
    let orders = FakeGateway::builder().credentials(KEY_ID, SECRET, Some(TOKEN)).region(REGION).start();
    let orders = Arc::new(orders.await?);
    let lambda = runtime_api(&orders, &rows).await?;
    let mut sandbox = function
        .env("ORDERS_URL", orders.base_url())
        .env("AWS_REGION", REGION)
        .env("AWS_ACCESS_KEY_ID", KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_SESSION_TOKEN", TOKEN)
        .env("AWS_LAMBDA_RUNTIME_API", lambda.addr().to_string())
        .env("AWS_LAMBDA_FUNCTION_NAME", "place-order")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    // Each event is asked for and answered; then there is one more asking, which stays without an answer.
    let all_in = timeout(LONGEST_RUN, lambda.wait_for_attempts(2 * rows.len() + 1));
    tokio::select! {
        all_in = all_in => drop(all_in?),
        ended = sandbox.wait() => return Err(format!("the function ended by itself, {}", ended?).into()),
    }
    sandbox.kill().await?;
    Ok(tell(&rows, &orders, &lambda))
}

/// Lambda's side: hands out one event after the other, and takes in what became of each.
async fn runtime_api(orders: &Arc<FakeGateway>, rows: &[Row]) -> Result<FakeGateway, Failure> {
    let events = rows.iter().enumerate();
    let events = events.map(|(index, row)| invocation(index, row, Arc::clone(orders)));
    let mut lambda = FakeGateway::builder().stage("2018-06-01").verify_signatures(false).route(
        "GET",
        "/runtime/invocation/next",
        events.chain([Reply::hang()]),
    );
    for index in 0..rows.len() {
        for outcome in ["response", "error"] {
            let taken_in = Reply::json(202, r#"{"status":"OK"}"#);
            lambda = lambda.route("POST", &outcome_path(index, outcome), [taken_in]);
        }
    }
    Ok(lambda.start().await?)
}

/// One event. As it is handed out its deadline begins to run, and the order service turns to its script.
fn invocation(index: usize, row: &Row, orders: Arc<FakeGateway>) -> Reply {
    let (event, script, time_left) = (row.event().to_string(), row.script.clone(), row.time_left);
    Reply::dynamic(move |_| {
        orders.script("POST", "/orders", script.clone());
        Reply::json(200, event.clone())
            .header("Lambda-Runtime-Aws-Request-Id", id(index))
            .header("Lambda-Runtime-Trace-Id", trace_id(index))
            .header("Lambda-Runtime-Invoked-Function-Arn", FUNCTION)
            .header("Lambda-Runtime-Deadline-Ms", deadline(time_left).to_string())
    })
}

#[allow(clippy::disallowed_methods, reason = "the function's deadline is by the machine's own clock")]
fn deadline(time_left: Duration) -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().saturating_add(time_left).as_millis()
}

fn id(index: usize) -> String {
    format!("event-{}", index + 1)
}

fn outcome_path(index: usize, outcome: &str) -> String {
    format!("/runtime/invocation/{}/{outcome}", id(index))
}

/// Every event has a trace of its own, by which its calls are found again.
fn trace_id(index: usize) -> String {
    format!("Root=1-6abf9a40-{index:024x};Parent=53995c3f42cd8ad8;Sampled=1")
}

/// Prints the transcript, and says whether all of it is as it must be.
fn tell(rows: &[Row], orders: &FakeGateway, lambda: &FakeGateway) -> bool {
    println!("  {:<31} {:>3}  {:<21} reply", "event", "hop", "order service answered");
    // The one unsigned HEAD is the client warming up.
    let mut all_calls = orders.attempts();
    all_calls.retain(|call| call.method() != "HEAD");
    let (mut told, mut wrong) = (0, 0);
    for (index, row) in rows.iter().enumerate() {
        let of_this = |call: &&RecordedAttempt| call.header("x-amzn-trace-id") == Some(&trace_id(index));
        let calls: Vec<_> = all_calls.iter().filter(of_this).cloned().collect();
        let reply = reply(lambda, index);
        let as_ruled = row.saw_as_ruled(&calls) && row.replied_as_ruled(&reply);
        println!("{} {}", if as_ruled { " " } else { "!" }, line(row.name, &calls, &reply));
        told += calls.len();
        wrong += usize::from(!as_ruled);
    }
    let astray = all_calls.len() - told;
    println!(
        "\n{} events, {wrong} of them not as the rules say; {} calls, {astray} of them of no event.",
        rows.len(),
        all_calls.len()
    );
    wrong == 0 && astray == 0
}

/// What the function returned; null if it returned nothing, or threw.
fn reply(lambda: &FakeGateway, index: usize) -> Value {
    let returned = lambda.attempts_on(&outcome_path(index, "response"));
    let first = returned.first().map(|returned| serde_json::from_slice(returned.body()));
    first.and_then(Result::ok).unwrap_or_default()
}

fn line(name: &str, calls: &[RecordedAttempt], reply: &Value) -> String {
    let hop = calls.first().and_then(|call| call.header("x-hop-count"));
    let shown: Vec<_> = calls
        .iter()
        .map(|call| call.status().map_or("lost".to_owned(), |status| status.to_string()))
        .collect();
    let header = |name: &str| {
        let value = reply.pointer(&format!("/headers/{name}"))?;
        Some(format!("{name}: {}", value.as_str()?))
    };
    let status = reply.pointer("/statusCode").map(Value::to_string);
    let body = reply.pointer("/body").and_then(Value::as_str);
    let parts = [
        status.or(Some("nothing returned".to_owned())),
        header("retry-after"),
        header("x-should-retry"),
        body.map(str::to_owned),
    ];
    format!(
        "{name:<31} {:>3}  {:<22} {}",
        hop.unwrap_or("-"),
        if shown.is_empty() { "nothing sent".to_owned() } else { shown.join(" ") },
        parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
    )
}

const REGION: &str = "eu-central-1";
const KEY_ID: &str = "AKIDCALLERLAMBDA";
const SECRET: &str = "caller-lambda-secret";
const TOKEN: &str = "caller-lambda-session-token";
const FUNCTION: &str = "arn:aws:lambda:eu-central-1:123456789012:function:place-order";

/// Longer than any run takes; a function that never answers ends the rehearsal all the same.
const LONGEST_RUN: Duration = Duration::from_secs(30);
