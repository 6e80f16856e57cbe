//! The same client under wiremock, as the teams that wrap it test their own.

use crate::rig::builder;
use eastwest::policy::backoff::Backoff;
use eastwest::{CallContext, ErrorKind, StopReason};
use std::time::Duration;
use wiremock::matchers::{body_json, header, header_exists, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn client(server: &MockServer) -> eastwest::ServiceClient {
    let zero = Duration::ZERO;
    builder(format!("{}/prod", server.uri())).backoff(Backoff::new(zero, zero, zero)).build().unwrap()
}

#[tokio::test]
async fn a_call_arrives_as_it_was_made() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/prod/orders"))
        .and(query_param("dry-run", "yes & no"))
        .and(header("content-type", "application/json"))
        .and(header("x-hop-count", "1"))
        .and(header("x-idempotency-key", "order-7"))
        .and(header_exists("authorization"))
        .and(body_json(["A-7"]))
        .respond_with(ResponseTemplate::new(201).set_body_json(["o-1"]))
        .expect(1)
        .mount(&server)
        .await;
    let call = client(&server)
        .post(&CallContext::root(), "/orders")
        .query("dry-run", "yes & no")
        .idempotency_key("order-7")
        .json(&["A-7"]);
    let answer = call.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.json::<Vec<String>>().unwrap()), (201, vec!["o-1".into()]));
}

#[tokio::test]
async fn a_script_of_statuses_plays_in_order() {
    let server = MockServer::start().await;
    let answer = |status| Mock::given(method("GET")).respond_with(ResponseTemplate::new(status));
    answer(503).up_to_n_times(1).with_priority(1).expect(1).mount(&server).await;
    answer(429).up_to_n_times(1).with_priority(2).expect(1).mount(&server).await;
    answer(200).with_priority(3).expect(1).mount(&server).await;
    let response = client(&server).get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(response.attempts().len(), 3);
}

#[tokio::test]
async fn a_callee_that_stays_down_is_given_up() {
    let server = MockServer::start().await;
    Mock::given(method("PUT")).respond_with(ResponseTemplate::new(504)).expect(4).mount(&server).await;
    let error = client(&server).put(&CallContext::root(), "/orders/7").send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.stop_reason()),
        (ErrorKind::Timeout, Some(StopReason::AttemptsExhausted))
    );
}
