//! Where connections go, and how they die.

use crate::rig::{Rig, SHORT, builder};
use eastwest::testing::Reply;
use eastwest::{CallContext, Class, ErrorKind, StopReason};
use std::time::Duration;

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_never_followed() {
    let other = Rig::answering([Reply::ok()]).await;
    for status in [301, 302, 303, 307, 308] {
        let elsewhere =
            Reply::status(status).header("location", format!("{}/orders", other.gateway.base_url()));
        let rig = Rig::answering([elsewhere]).await;
        let error = rig.post_with(|call| call.body("secret order")).await.unwrap_err();
        assert_eq!((rig.seen(), error.status().unwrap().as_u16()), (1, status));
        assert_eq!(error.stop_reason(), Some(StopReason::NotRetryable));
    }
    assert_eq!(other.gateway.connections(), 0);
}

#[tokio::test]
async fn a_refused_connection_sent_nothing_and_is_tried_again_even_without_a_key() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/prod", listener.local_addr().unwrap());
    drop(listener);
    let client = builder(nobody).backoff(no_wait()).build().unwrap();
    let call = client.post(&CallContext::root(), "/orders").no_idempotency_key();
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Transport, 4));
    assert!(error.attempts().iter().all(|attempt| attempt.class() == Class::NeverSent));
    assert!(!error.may_have_committed());
}

#[tokio::test]
async fn a_kept_connection_that_died_is_a_doubt_and_a_keyed_call_goes_on() {
    let rig = Rig::answering([Reply::ok(), Reply::close(), Reply::ok()]).await;
    let client = rig.client();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    let second = client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!((rig.seen(), second.attempts().len(), rig.gateway.connections()), (3, 2, 2));
    assert_eq!(second.attempts()[0].class(), Class::ConnectionLost);
    let rig = Rig::answering([Reply::ok(), Reply::close(), Reply::ok()]).await;
    let client = rig.client();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    let unkeyed = client.post(&CallContext::root(), "/orders").no_idempotency_key().send().await;
    assert_eq!(unkeyed.unwrap_err().stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert_eq!(rig.seen(), 2);
}

#[tokio::test]
async fn a_connection_is_kept_after_an_answered_error() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    rig.post().await.unwrap();
    assert_eq!((rig.seen(), rig.gateway.connections()), (2, 1));
}

#[tokio::test]
async fn a_success_whose_body_is_cut_is_lost_and_an_error_s_is_still_that_error() {
    let rig = Rig::answering([Reply::json(200, "0123456789").truncate_after(3), Reply::ok()]).await;
    let response = rig.post().await.unwrap();
    assert_eq!((rig.seen(), response.attempts()[0].class()), (2, Class::ConnectionLost));
    let rig = Rig::answering([Reply::json(400, "0123456789").truncate_after(3), Reply::ok()]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((rig.seen(), error.kind()), (1, ErrorKind::Rejected));
}

#[tokio::test]
async fn garbage_in_place_of_an_answer_is_a_doubt() {
    let rig = Rig::answering([Reply::garbage(), Reply::ok()]).await;
    rig.post().await.unwrap();
    let rig = Rig::answering([Reply::garbage()]).await;
    let error = rig.post_with(|call| call.no_idempotency_key()).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_committed()), (ErrorKind::Transport, true));
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read_on_and_may_have_committed() {
    let rig = Rig::answering([Reply::json(200, "x".repeat(5_000))]).await;
    let error = rig.post_with(|call| call.response_body_limit(4_999)).await.unwrap_err();
    assert_eq!((rig.seen(), error.kind(), error.may_have_committed()), (1, ErrorKind::TooLarge, true));
    rig.post_with(|call| call.response_body_limit(5_000)).await.unwrap();
}

#[tokio::test]
async fn an_error_s_body_is_kept_up_to_its_limit() {
    let rig = Rig::answering([Reply::status(400).body("x".repeat(70_000))]).await;
    assert_eq!(rig.post().await.unwrap_err().body().len(), 65_536);
}

#[tokio::test]
async fn a_reset_before_anything_was_read_is_a_doubt() {
    let rig = Rig::answering([Reply::reset_before_reading(), Reply::ok()]).await;
    let response = rig.post_with(|call| call.attempt_timeout(Duration::from_secs(1)).body(vec![1; 64])).await;
    assert_eq!(response.unwrap().attempts().len(), 2);
}

#[tokio::test]
async fn a_call_dropped_on_its_way_leaves_the_client_whole() {
    let rig = Rig::answering([Reply::hang(), Reply::ok()]).await;
    let client = rig.client();
    let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
    rig.gateway.wait_for_attempts(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    client.post(&CallContext::root(), "/orders").attempt_timeout(SHORT * 10).send().await.unwrap();
}

fn no_wait() -> eastwest::policy::backoff::Backoff {
    eastwest::policy::backoff::Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO)
}

/// Five connections, all kept and idle; from then on the gateway cuts every one of them that is used again.
async fn with_five_dead_connections() -> (Rig, eastwest::ServiceClient) {
    let rig = Rig::answering([Reply::ok().delay(Duration::from_millis(30))]).await;
    let none = eastwest::policy::retry_budget::RetryBudget::new(0);
    let client = rig.builder().retry_budget(none).build().unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let call = client.post(&CallContext::root(), "/orders");
        calls.spawn(async move { call.send().await.map(drop) });
    }
    assert!(calls.join_all().await.into_iter().all(|result| result.is_ok()));
    assert_eq!(rig.gateway.connections(), 5);
    let last_of_them = rig.gateway.attempts().iter().map(|attempt| attempt.connection()).max().unwrap();
    let cut = Reply::dynamic(
        move |attempt| {
            if attempt.connection() <= last_of_them { Reply::reset() } else { Reply::ok() }
        },
    );
    rig.gateway.script("ANY", "/orders", [cut]);
    (rig, client)
}

#[tokio::test]
async fn however_many_sockets_died_in_a_freeze_one_attempt_is_lost_and_its_retry_costs_no_token() {
    let (rig, client) = with_five_dead_connections().await;
    rig.clock.advance(Duration::from_secs(2));
    let first = client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(first.attempts().len(), 2);
    for _ in 0..5 {
        let next = client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(next.attempts().len(), 1);
    }
}

#[tokio::test]
async fn a_sandbox_that_was_frozen_past_the_idle_time_loses_no_attempt() {
    let (rig, client) = with_five_dead_connections().await;
    rig.clock.set_wall(rig.clock.wall() + Duration::from_secs(3_600));
    let first = client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(first.attempts().len(), 1);
}
