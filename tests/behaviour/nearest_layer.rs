//! The layer nearest the failure retries, and no other: attempts never multiply along a chain.

use crate::rig::{KEY_ID, REGION, Rig, SECRET, TOKEN, builder};
use crate::service::{Port, Service};
use eastwest::callee::{self, Guard};
use eastwest::policy::attempts::StopReason;
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{CallContext, ErrorKind, ServiceClient};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Three attempts, whose waits take no time.
fn three_attempts(url: &str) -> ServiceClient {
    let client = builder(url).max_attempts(3).attempt_timeout(Duration::from_secs(8));
    client.ambient(ManualClock::new()).build().unwrap()
}

async fn service_before(url: &str) -> Service {
    Port::free().await.calling_on(three_attempts(url))
}

#[tokio::test]
async fn of_a_chain_of_three_only_the_last_call_is_sent_again() {
    let c = Rig::answering([Reply::unavailable()]).await;
    let b = Port::free().await.calling_on(c.builder().max_attempts(3).build().unwrap());
    let context = CallContext::root();
    let error = three_attempts(&b.url).post(&context, "/orders").send().await.unwrap_err();
    assert_eq!((b.arrived(), c.attempts().len()), (1, 3));
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (ErrorKind::Unavailable, 502));
    assert_eq!(error.stop_reason(), Some(StopReason::CalleeForbids));
    let told: Value = error.json().unwrap();
    assert_eq!(told["type"], "Unavailable");
    assert_eq!(told["correlation_id"], context.correlation_id());
}

#[tokio::test]
async fn through_three_levels_no_failure_multiplies() {
    let failures = [
        (Reply::unavailable(), 3),
        (Reply::lambda_rejected(), 3),
        (Reply::lambda_failed(), 2),
        (Reply::integration_timeout(), 3),
        (Reply::throttled(), 3),
        (Reply::reset(), 3),
        (Reply::json(422, "{}"), 1),
        (Reply::no_such_route(), 1),
    ];
    for (failure, attempts) in failures {
        let d = Rig::answering([failure.clone()]).await;
        let c = Port::free().await.calling_on(d.builder().max_attempts(3).build().unwrap());
        let b = service_before(&c.url).await;
        let error = three_attempts(&b.url).post(&CallContext::root(), "/orders").send().await.unwrap_err();
        let seen = (b.arrived(), c.arrived(), d.attempts().len());
        assert_eq!(seen, (1, 1, attempts), "{failure:?}: {error}");
    }
}

#[tokio::test]
async fn two_services_that_call_each_other_are_cut_after_seven_calls() {
    let (one, other) = (Port::free().await, Port::free().await);
    let (to_one, to_other) = (three_attempts(&one.url()), three_attempts(&other.url()));
    let (one, other) = (one.calling_on(to_other), other.calling_on(to_one.clone()));
    let error = to_one.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((one.arrived(), other.arrived()), (4, 3));
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::HopLimit, 1));
}

fn any_pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![
        6 => Just("x-hop-count".to_owned()),
        2 => Just("X-Correlation-ID".to_owned()),
        2 => Just("x-idempotency-key".to_owned()),
        1 => Just("x-time-budget-ms".to_owned()),
        1 => Just("x-amzn-trace-id".to_owned()),
        1 => Just("traceparent".to_owned()),
        1 => Just("tracestate".to_owned()),
        1 => ".{0,12}",
    ];
    let value = prop_oneof![3 => "[1-7]", 2 => "[0-9]{4,6}", 2 => "[!-~]{1,40}", 1 => ".{0,40}"];
    prop::collection::vec((name, value), 0..7)
}

/// Events as they come, and as they should never come.
fn any_event() -> impl Strategy<Value = Value> {
    let junk = prop_oneof![
        Just(json!(null)),
        Just(json!([])),
        Just(json!({"x-hop-count": [1, null]})),
        ".{0,8}".prop_map(Value::from)
    ];
    let single =
        |pairs: Vec<(String, String)>| pairs.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let multi = |pairs: Vec<(String, String)>| {
        pairs.into_iter().map(|(name, value)| (name, json!([value]))).collect()
    };
    let method = prop_oneof![Just(json!("GET")), Just(json!("POST")), Just(json!(1))];
    let v1 = (any_pairs(), any_pairs(), method.clone()).prop_map(move |(one, many, method)| {
        json!({"httpMethod": method, "headers": Value::Object(single(one)), "multiValueHeaders": Value::Object(multi(many))})
    });
    let v2 = (any_pairs(), method).prop_map(move |(one, method)| {
        json!({"headers": Value::Object(single(one)), "requestContext": {"http": {"method": method}}})
    });
    let broken = (junk.clone(), junk.clone(), junk).prop_map(|(headers, multi, method)| {
        json!({"httpMethod": method, "headers": headers, "multiValueHeaders": multi})
    });
    prop_oneof![4 => v1, 3 => v2, 1 => broken]
}

/// Sends a request with what was accepted: it arrives, and its signature stands. Only where the caller is in a hurry may
/// the time run out instead.
fn sent_on(runtime: &Runtime, gateway: &FakeGateway, context: &CallContext) -> Result<(), TestCaseError> {
    let client = builder(gateway.base_url()).max_attempts(1).build().unwrap();
    match runtime.block_on(client.post(context, "/orders").json(&["on"]).send()) {
        Ok(_) => {
            let of_this =
                |sent: &&RecordedAttempt| sent.header("x-correlation-id") == Some(context.correlation_id());
            let recorded = gateway.attempts();
            let sent = recorded.iter().rev().find(of_this);
            prop_assert!(sent.is_some(), "it carries another correlation id");
            let sent = sent.unwrap();
            let hop = context.next_hop().unwrap().get().to_string();
            prop_assert!(sent.signature_valid(), "{}", sent.explain());
            prop_assert_eq!(sent.header("x-hop-count"), Some(hop.as_str()));
        }
        Err(error) if context.next_hop().is_err() => {
            prop_assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::HopLimit, 0));
        }
        Err(error) => {
            let hurried = context.deadline().is_some();
            prop_assert!(hurried && error.kind() == ErrorKind::Timeout, "{error}");
        }
    }
    Ok(())
}

fn gateway(runtime: &Runtime) -> Arc<FakeGateway> {
    let gateway = FakeGateway::builder().credentials(KEY_ID, SECRET, Some(TOKEN)).region(REGION);
    Arc::new(runtime.block_on(gateway.route("POST", "/orders", [Reply::ok()]).start()).unwrap())
}

#[test]
fn whatever_is_accepted_makes_a_valid_request_to_the_next_service() {
    let runtime = Runtime::new().unwrap();
    let gateway = gateway(&runtime);
    let cases = (any_pairs(), any_event(), any::<bool>());
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&cases, |(pairs, event, front)| {
            let guard = if front { Guard::new().front_door() } else { Guard::new() };
            let of_pairs = guard.accept("POST", pairs.iter().map(|(name, value)| (name, value)));
            let of_event = guard.accept_event(&event);
            let of_headers = callee::accept(pairs);
            for accepted in [of_pairs, of_event, of_headers] {
                match accepted {
                    Ok(context) => sent_on(&runtime, &gateway, &context)?,
                    Err(refusal) => prop_assert_eq!(
                        refusal.to_proxy_reply()["statusCode"].clone(),
                        refusal.status().as_u16()
                    ),
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(gateway.attempts().len() > 10, "hardly anything was accepted: {}", gateway.attempts().len());
}
