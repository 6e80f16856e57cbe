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
