//! A call is part of a chain, and a chain that is a loop ends.

use crate::rig::Rig;
use eastwest::testing::Reply;
use eastwest::{CallContext, ErrorKind, callee};

#[tokio::test]
async fn a_loop_of_services_ends_after_seven_calls() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    let mut context = CallContext::root().with_correlation_id("loop-1").unwrap();
    let refused = loop {
        // Each service calls the next with the context that it accepted.
        if let Err(error) = client.post(&context, "/orders").send().await {
            break error;
        }
        let attempt = rig.attempts().pop().unwrap();
        let inbound: Vec<_> = ["x-hop-count", "x-correlation-id", "x-idempotency-key"]
            .map(|name| (name, attempt.header(name).unwrap().to_owned()))
            .into();
        context = callee::accept(inbound).unwrap();
    };
    assert_eq!((refused.kind(), rig.seen()), (ErrorKind::HopLimit, 7));
    assert!(rig.attempts().iter().all(|attempt| attempt.header("x-correlation-id") == Some("loop-1")));
}

#[tokio::test]
async fn a_callee_that_had_no_time_to_begin_is_no_failure_of_the_callee() {
    let refusal = callee::accept([("x-hop-count", "1"), ("x-time-budget-ms", "5")]).unwrap_err();
    let response = refusal.to_response();
    let body = String::from_utf8(response.body().to_vec()).unwrap();
    let reply = Reply::json(response.status().as_u16(), body).header("x-should-retry", "false");
    let rig = Rig::answering([reply]).await;
    let client =
        rig.builder().breaker(eastwest::policy::breaker::BreakerSettings::default().with_failures_in_row(1));
    let client = client.build().unwrap();
    let error = client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((rig.seen(), error.kind(), error.may_have_committed()), (1, ErrorKind::Timeout, false));
    assert_eq!(client.breaker().state(), eastwest::policy::breaker::State::Closed);
}

#[test]
fn what_calls_are_made_of_crosses_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    fn sent<T: Send>(_: T) {}
    shared::<eastwest::ServiceClient>();
    shared::<CallContext>();
    let client = crate::rig::builder("https://api.example.test").build().unwrap();
    sent(client.get(&CallContext::root(), "/").send());
}

#[tokio::test]
async fn a_caller_that_is_run_again_sends_the_keys_that_follow_from_its_own() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    let again = || callee::accept([("x-hop-count", "1"), ("x-idempotency-key", "order-7")]).unwrap();
    for (context, label) in [(again(), "charge"), (again(), "charge"), (again(), "ship")] {
        client.post(&context, "/orders").idempotency_key_for(label).send().await.unwrap();
    }
    let keys: Vec<_> =
        rig.attempts().iter().map(|a| a.header("x-idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys[0], again().derive_key("charge").unwrap().as_str());
    assert_eq!((keys[0] == keys[1], keys[0] == keys[2]), (true, false), "{keys:?}");
    let call = client.post(&CallContext::root(), "/orders").idempotency_key_for("charge");
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("idempotency_key")));
    assert_eq!(rig.seen(), 3);
}
