//! nginx gives up on what is behind it: 504 and 502.

use crate::nginx::{Site, free_port, statuses};
use crate::rig::{Rig, header, root};
use eastwest::testing::Reply;
use eastwest::{Class, ErrorKind, StopReason};
use std::collections::HashSet;
use std::time::Duration;

fn impatient() -> Site {
    Site {
        server: "proxy_read_timeout 150ms;",
        ..Site::default()
    }
}

#[tokio::test]
async fn a_504_of_a_keyed_call_is_repeated_under_the_same_key_with_a_fresh_signature() {
    let rig = Rig::new(impatient(), [Reply::hang(), Reply::hang(), Reply::ok()]).await;
    let answer = rig
        .client()
        .post(&root(), "/orders")
        .body("order")
        .send()
        .await
        .unwrap();
    let classes: Vec<Class> = answer.attempts().iter().map(|attempt| attempt.class()).collect();
    assert_eq!(
        classes,
        [Class::GatewayTimeout, Class::GatewayTimeout, Class::Success]
    );
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![504, 504, 200], 3));
    let keys: HashSet<&str> = header(&arrived, "x-idempotency-key").into_iter().collect();
    assert_eq!((keys.len(), header(&arrived, "x-idempotency-key").len()), (1, 3));
    assert_eq!(header(&arrived, "x-attempt-count"), ["1", "2", "3"]);
    let signatures: HashSet<&str> = header(&arrived, "authorization").into_iter().collect();
    assert_eq!(signatures.len(), 3);
    assert!(arrived.iter().all(|attempt| attempt.body() == "order"));
}

#[tokio::test]
async fn a_504_of_a_keyless_post_is_not_repeated_and_may_have_been_carried_out() {
    let rig = Rig::new(
        impatient(),
        [Reply::ok().delay(Duration::from_millis(400)), Reply::ok()],
    )
    .await;
    let call = rig.client().post(&root(), "/orders").no_idempotency_key();
    let error = call.send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status().unwrap().as_u16()),
        (ErrorKind::Timeout, 504)
    );
    assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert!(error.may_have_committed());
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![504], 1));
    // The gateway did carry it out: it had an answer ready that nobody waited for.
    assert_eq!(arrived[0].status(), Some(200));
}

#[tokio::test]
async fn a_504_of_a_keyless_put_is_repeated_because_a_put_may_be() {
    let rig = Rig::new(impatient(), [Reply::hang(), Reply::ok()]).await;
    let call = rig.client().put(&root(), "/orders").no_idempotency_key();
    assert_eq!(call.send().await.unwrap().attempts().len(), 2);
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![504, 200], 2));
}

#[tokio::test]
async fn a_504_each_time_ends_with_the_attempts_and_may_have_been_carried_out() {
    let rig = Rig::new(impatient(), [Reply::hang()]).await;
    let error = rig.client().post(&root(), "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Timeout, 4));
    assert_eq!(error.stop_reason(), Some(StopReason::AttemptsExhausted));
    assert!(error.may_have_committed());
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![504; 4], 4));
}

#[tokio::test]
async fn a_dead_upstream_is_a_502_and_costs_one_retry() {
    let rig = Rig::with_upstream_elsewhere(Site::default(), free_port()).await;
    let error = rig.client().post(&root(), "/orders").send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status().unwrap().as_u16()),
        (ErrorKind::Unavailable, 502)
    );
    assert_eq!(error.stop_reason(), Some(StopReason::StatusCapReached));
    // The client cannot know that nginx reached nobody.
    assert!(error.may_have_committed());
    assert_eq!(error.attempts().len(), 2);
    assert!(!error.to_string().contains('<'), "{error}");
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![502, 502], 0));
}

#[tokio::test]
async fn a_dead_upstream_is_asked_once_by_a_keyless_post() {
    let rig = Rig::with_upstream_elsewhere(Site::default(), free_port()).await;
    let call = rig.client().post(&root(), "/orders").no_idempotency_key();
    let error = call.send().await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert!(error.may_have_committed());
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![502], 0));
}

#[tokio::test]
async fn an_upstream_that_hangs_up_is_a_502_and_the_retry_gets_through() {
    for broken in [Reply::close(), Reply::reset()] {
        let rig = Rig::new(Site::default(), [broken, Reply::ok()]).await;
        let answer = rig.client().post(&root(), "/orders").send().await.unwrap();
        assert_eq!(answer.attempts()[0].class(), Class::BadGateway);
        let (served, arrived) = rig.seen().await;
        assert_eq!((statuses(&served), arrived.len()), (vec![502, 200], 2));
        let keys: HashSet<&str> = header(&arrived, "x-idempotency-key").into_iter().collect();
        assert_eq!(keys.len(), 1);
    }
}

#[tokio::test]
async fn an_upstream_that_talks_garbage_leaves_a_doubt_that_a_keyed_call_gets_over() {
    let rig = Rig::new(Site::default(), [Reply::garbage(), Reply::ok()]).await;
    let answer = rig.client().post(&root(), "/orders").send().await.unwrap();
    // Some versions of nginx take the garbage for HTTP/0.9 and hand it on as it is; others say 502.
    let first = answer.attempts()[0].class();
    assert!(
        matches!(first, Class::ConnectionLost | Class::BadGateway),
        "{first}"
    );
    let (served, arrived) = rig.seen().await;
    assert_eq!((served.len(), arrived.len()), (2, 2));

    let rig = Rig::new(Site::default(), [Reply::garbage()]).await;
    let call = rig.client().post(&root(), "/orders").no_idempotency_key();
    let error = call.send().await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert!(error.may_have_committed());
    let (served, arrived) = rig.seen().await;
    assert_eq!((served.len(), arrived.len()), (1, 1));
}

#[tokio::test]
async fn an_answer_that_breaks_off_behind_nginx_breaks_off_before_it_too() {
    let cut = Reply::json(200, "0123456789").truncate_after(3);
    let rig = Rig::new(Site::default(), [cut, Reply::ok()]).await;
    let answer = rig.client().post(&root(), "/orders").send().await.unwrap();
    assert_eq!(answer.attempts()[0].class(), Class::ConnectionLost);
    let (served, arrived) = rig.seen().await;
    // nginx had sent the head: its log says 200 for the answer that never came whole.
    assert_eq!((statuses(&served), arrived.len()), (vec![200, 200], 2));
}
