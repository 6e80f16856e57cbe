//! The examples come out as the rules say, and say so if they do not.
#![allow(clippy::unwrap_used, missing_docs)]

use eastwest::callee::Guard;
use http::HeaderName;
use tokio::process::Command;
use tokio::task::JoinSet;

#[allow(dead_code, unreachable_pub, reason = "its main is not called, and nothing is above this crate")]
#[path = "../examples/quickstart.rs"]
mod quickstart;

#[allow(dead_code, unreachable_pub, reason = "its main is not called, and nothing is above this crate")]
#[path = "../examples/orders_sdk.rs"]
mod orders_sdk;

#[allow(dead_code, unreachable_pub, reason = "its main is not called, and nothing is above this crate")]
#[path = "../examples/callee_guard.rs"]
mod callee_guard;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/caller_lambda/main.rs"]
mod caller_lambda;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/replay_dead_letter.rs"]
mod replay_dead_letter;

#[allow(dead_code, unreachable_pub, reason = "its main is not called, and nothing is above this crate")]
#[path = "../examples/call/main.rs"]
mod call;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/observe.rs"]
mod observe;

/// What `call` would print for these words: its exit code, its stdout and its stderr.
async fn called(words: &[&str]) -> (call::exit::Exit, String, Vec<String>) {
    let words = ["call"].iter().chain(words).map(Into::into);
    let args = call::args::Args::parse(words).unwrap();
    let (progress, lines) = call::progress::Progress::kept();
    let mut out = Vec::new();
    let exit = call::run(&args, &mut out, progress).await;
    let lines = lines.lock().unwrap().clone();
    (exit, String::from_utf8(out).unwrap(), lines)
}

#[tokio::test]
async fn a_call_from_the_command_line_tells_its_attempts_and_waits_and_prints_the_body_alone() {
    let words = [
        "--fake",
        "POST",
        "https://orders.example/prod/orders?a=1",
        "{}",
        "--key",
        "order-1",
        "-H",
        "tenant:t-1",
    ];
    let (exit, out, lines) = called(&words).await;
    assert_eq!((exit, out.as_str()), (call::exit::Exit::Success, r#"{"accepted":true}"#));
    let begin = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let told: Vec<_> = lines.iter().map(|line| begin(line)).collect();
    assert_eq!(
        told,
        ["> POST", "< 429", "again in", "> attempt", "< 504", "again in", "> attempt", "< 200", "= 3"],
        "{lines:?}"
    );
    assert!(lines[0].contains("/prod/orders ") && lines[0].contains("order-1"), "{lines:?}");
}

#[tokio::test]
async fn the_exit_code_of_a_call_says_what_a_script_can_do() {
    let outage = ["--fake-outage", "POST", "https://orders.example/prod/orders", "{}"];
    let (exit, _, lines) = called(&outage).await;
    assert_eq!(exit, call::exit::Exit::InDoubt);
    assert!(lines.last().unwrap().contains("--key "), "{lines:?}");
    let (exit, ..) = called(&["--fake-outage", "GET", "https://orders.example/prod/orders"]).await;
    assert_eq!(exit, call::exit::Exit::Later);
    let (exit, ..) =
        called(&["--fake", "GET", "https://orders.example/prod/orders", "-H", "host:evil"]).await;
    assert_eq!(exit, call::exit::Exit::Usage);
    for bad in [
        &["POST"][..],
        &["GET", "nonsense"],
        &["GET", "https://u@x.example/"],
        &["GET", "https://x.example/", "-H", "x"],
    ] {
        let words = ["call"].iter().chain(bad).map(Into::into);
        assert!(call::args::Args::parse(words).unwrap_err().use_stderr(), "{bad:?}");
    }
}

#[tokio::test]
async fn the_story_of_an_incident_can_be_read_from_its_log_alone() {
    // In a process of its own: which events are heard at all is a matter of the whole process.
    let told = this_program().args(["--exact", "the_incident_itself", "--ignored"]).output().await.unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stdout));
}

#[tokio::test]
#[ignore = "run by the test above in a process of its own"]
async fn the_incident_itself() {
    assert!(observe::run().await.unwrap());
}

#[tokio::test]
async fn replayed_letters_place_each_order_exactly_once() {
    assert!(replay_dead_letter::run().await.unwrap());
}

#[tokio::test]
async fn a_loop_of_two_guarded_services_is_cut_after_seven_calls() {
    assert!(callee_guard::run(Guard::new()).await.unwrap());
}

#[tokio::test]
async fn the_example_of_the_guard_fails_if_the_guard_is_another() {
    let another_header = Guard::new().idempotency_header(HeaderName::from_static("another")).unwrap();
    for guard in [Guard::new().front_door(), another_header] {
        assert!(!callee_guard::run(guard.clone()).await.unwrap(), "{guard:?} is not missed");
    }
}

#[tokio::test]
async fn every_call_of_the_quickstart_comes_out_as_the_rules_say() {
    assert!(quickstart::run(None).await.unwrap());
}

#[tokio::test]
async fn the_quickstart_fails_if_any_script_is_another() {
    for row in quickstart::rows() {
        let passed = quickstart::run(Some(row.name)).await.unwrap();
        assert!(!passed, "{:?} was turned and is not missed", row.name);
    }
}

#[tokio::test]
async fn a_caller_in_a_real_lambda_replies_as_the_rules_say() {
    assert!(caller_lambda::rehearsal::run(None, the_lambda()).await.unwrap());
}

#[tokio::test]
async fn the_rehearsal_of_the_lambda_fails_if_any_event_is_another() {
    let mut names: Vec<_> = caller_lambda::rows::rows().iter().map(|row| row.name).collect();
    // The breaker is open by then, and whatever the event and the gateway are, the reply is the fallback's.
    assert_eq!(names.pop(), Some("an outage, the fallback"));
    let mut runs = JoinSet::new();
    for name in names {
        runs.spawn(async move {
            let passed = caller_lambda::rehearsal::run(Some(name), the_lambda()).await;
            assert!(!passed.unwrap(), "{name:?} was turned and is not missed");
        });
    }
    runs.join_all().await;
}

#[tokio::test]
async fn a_lambda_that_ends_before_its_events_do_fails_its_rehearsal() {
    let mut nothing_to_run = this_program();
    nothing_to_run.args(["--exact", "no test of this name"]);
    let failure = caller_lambda::rehearsal::run(None, nothing_to_run).await.unwrap_err();
    assert!(failure.to_string().starts_with("the function ended by itself"), "{failure}");
}

/// The function of the tests above, in a process of its own: its environment is the sandbox's.
#[tokio::test]
#[ignore = "is no test: it is started by those of the Lambda"]
async fn the_lambda_itself() {
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        caller_lambda::lambda().await.unwrap();
    }
}

fn the_lambda() -> Command {
    let mut lambda = this_program();
    lambda.args(["--exact", "the_lambda_itself", "--ignored"]);
    lambda
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

#[tokio::test]
async fn the_day_of_the_orders_sdk_goes_well_and_a_lost_order_is_seen() {
    assert!(orders_sdk::run(false).await.unwrap());
    assert!(!orders_sdk::run(true).await.unwrap());
}
