//! A parent that is run again for the same inbound request: its calls carry the keys of the first run.

use crate::bridge::Integration;
use crate::callee::Callee;
use crate::rig::{KEY_ID, Rig, SECRET, THROWING, confirmation, fresh_order, late, prompt};
use eastwest::{CallContext, IdempotencyKey, Response};
use serde_json::Value;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Each run has a context, a client and a connection of its own.
async fn run(rig: &Rig, inbound_key: &str, label: &str, order: &str) -> Response {
    let context: CallContext =
        eastwest::callee::accept([("x-hop-count", "2"), ("x-idempotency-key", inbound_key)]).unwrap();
    let call = rig.client().post(&context, THROWING).idempotency_key_for(label);
    call.json(&prompt(order)).send().await.unwrap()
}

/// A run as a process of its own.
fn spawn(rig: &Rig, inbound_key: &str, label: &str, body: &Value) -> Child {
    Command::new(env!("CARGO_BIN_EXE_eastwest-lane-powertools"))
        .args([&rig.gateway.base_url(), inbound_key, label, &body.to_string()])
        .env("AWS_ACCESS_KEY_ID", KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env_remove("AWS_SESSION_TOKEN")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_for_one_inbound_key_commit_once_and_another_label_commits_too() {
    let Some(callee) = Callee::at_hand() else { return };
    let rig = Rig::new(callee, [Integration::Patient]).await;
    let (order, inbound) = (fresh_order(), fresh_order());
    let first = run(&rig, &inbound, "place-order", &order).await;
    let again = run(&rig, &inbound, "place-order", &order).await;
    assert_eq!(confirmation(&first), confirmation(&again));
    assert_eq!(rig.commits(&order).await, 1);
    let other = run(&rig, &inbound, "place-gift", &order).await;
    assert_ne!(confirmation(&first), confirmation(&other));
    assert_eq!(rig.commits(&order).await, 2);
    run(&rig, &fresh_order(), "place-order", &order).await;
    assert_eq!(rig.commits(&order).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_killed_after_the_commit_and_run_again_as_another_process_commits_once() {
    let Some(callee) = Callee::at_hand() else { return };
    let rig = Rig::new(callee, [Integration::Patient]).await;
    let (order, inbound) = (fresh_order(), fresh_order());
    let body = late(&order);
    let mut first = spawn(&rig, &inbound, "place-order", &body);
    callee.has_committed(&order).await;
    first.kill().await.unwrap();
    callee.finish(&order).await;
    let again = spawn(&rig, &inbound, "place-order", &body).wait_with_output().await.unwrap();
    assert!(again.status.success());
    let told: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(told["id"], order.as_str());
    let key = IdempotencyKey::derive(["child", &inbound, "place-order"]);
    assert_eq!(callee.commits(&order).await, [key.as_str()]);
    assert_eq!(rig.gateway.wait_for_attempts(2).await.len(), 2);
    assert_eq!(rig.keys(), [key.as_str(), key.as_str()]);
}
