//! The retry budget: few retries for a sandbox whose callee is down, more for a process that serves many at once.

use crate::rig::{KEY_ID, REGION, Rig, SECRET, TOKEN};
use eastwest::testing::Reply;
use eastwest::{CallContext, CircuitState, RetryBudget, ServiceClient, StopReason};
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn send(client: &ServiceClient) -> Option<Option<StopReason>> {
    let ended = client.post(&CallContext::root(), "/orders").send().await;
    ended.err().map(|error| error.stop_reason())
}

#[tokio::test]
async fn one_sandbox_retries_a_callee_that_is_down_twice_and_then_not_before_ten_successes() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let client = rig.builder().retry_budget(RetryBudget::default()).max_attempts(3).build().unwrap();
    for _ in 0..50 {
        assert!(send(&client).await.is_some());
    }
    assert_eq!((rig.seen(), client.usage().retries), (52, 2));
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    for _ in 0..9 {
        assert_eq!(send(&client).await, None);
    }
    rig.gateway.script("ANY", "/orders", [Reply::lambda_rejected()]);
    assert_eq!(send(&client).await, Some(Some(StopReason::RetryBudgetExhausted)));
    assert_eq!((rig.seen(), client.usage().retries), (62, 2), "nine successes have earned none");
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    assert_eq!(send(&client).await, None);
    rig.gateway.script("ANY", "/orders", [Reply::lambda_rejected()]);
    assert_eq!(send(&client).await, Some(Some(StopReason::RetryBudgetExhausted)));
    assert_eq!((rig.seen(), client.usage().retries), (65, 3), "the tenth has earned one");
}

#[tokio::test]
async fn with_all_defaults_an_outage_costs_two_retries_and_fewer_attempts_than_calls() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let client = ServiceClient::builder(rig.gateway.base_url())
        .region(REGION)
        .static_credentials(KEY_ID, SECRET, Some(TOKEN))
        .ambient(rig.clock.clone())
        .build()
        .unwrap();
    for _ in 0..100 {
        assert!(send(&client).await.is_some());
        rig.clock.advance(Duration::from_secs(1));
    }
    let usage = client.usage();
    assert_eq!((usage.calls, usage.attempted + usage.refused_by_circuit), (100, 100));
    assert_eq!((usage.retries, usage.tokens), (2, rig.seen() as u64));
    assert!(rig.seen() < 50, "{}", rig.seen());
    rig.gateway.script("ANY", "/orders", [Reply::ok()]);
    rig.clock.advance(Duration::from_secs(5));
    assert_eq!(send(&client).await, None);
    assert_eq!(client.breaker().state(), CircuitState::Closed);
}

#[tokio::test]
async fn a_process_that_serves_many_has_two_retries_for_each_and_clients_can_share_them() {
    let rig = Rig::answering([Reply::lambda_rejected()]).await;
    let budget = RetryBudget::for_concurrency(3);
    let client = || rig.builder().retry_budget(budget.clone()).max_attempts(3).build().unwrap();
    let (one, other) = (client(), client());
    for _ in 0..10 {
        send(&one).await;
        send(&other).await;
    }
    assert_eq!(one.usage().retries + other.usage().retries, 6);
    let off = rig.builder().retry_budget(RetryBudget::off()).max_attempts(3).build().unwrap();
    for _ in 0..10 {
        assert_eq!(send(&off).await, Some(Some(StopReason::AttemptsExhausted)));
    }
    assert_eq!(off.usage().retries, 20);
}

/// What is warned about while `f` runs.
fn heard(f: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, f);
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn a_retry_budget_that_one_call_empties_before_its_last_attempt_is_warned_about() {
    let rig = Rig::answering([]).await;
    let built = |tokens, attempts| {
        let builder = rig.builder().retry_budget(RetryBudget::new(tokens)).max_attempts(attempts);
        heard(|| drop(builder.build().unwrap())).contains("max_attempts is never reached")
    };
    assert!(built(1, 3));
    assert!(!built(2, 3));
    let off = rig.builder().retry_budget(RetryBudget::off()).max_attempts(9);
    assert_eq!(heard(|| drop(off.build().unwrap())), "");
}
