//! nginx refuses: too many requests, bodies and targets too large.

use crate::nginx::{Site, statuses};
use crate::rig::{Rig, header, root};
use eastwest::policy::backoff::Backoff;
use eastwest::testing::Reply;
use eastwest::{Class, ErrorKind, StopReason};
use std::time::Duration;

const ONE_A_SECOND: &str = "limit_req_zone $server_port zone=one:1m rate=1r/s;";
const ONE_A_MINUTE: &str = "limit_req_zone $server_port zone=one:1m rate=1r/m;";

fn limited(rate: &'static str) -> Site {
    Site {
        http: rate,
        server: "limit_req zone=one; limit_req_status 429;",
        ..Site::default()
    }
}

#[tokio::test]
async fn a_limited_call_backs_off_in_real_time_and_gets_through() {
    let rig = Rig::new(limited(ONE_A_SECOND), [Reply::ok()]).await;
    let two = Duration::from_secs(2);
    // Eleven waits of a second in the mean: that they end within the limit's one second does not happen.
    let client = rig
        .real_time_builder()
        .max_attempts(12)
        .backoff(Backoff::new(two, two, two))
        .build()
        .unwrap();
    client.post(&root(), "/orders").send().await.unwrap();
    let answer = client
        .post(&root(), "/orders")
        .no_idempotency_key()
        .send()
        .await
        .unwrap();
    let (last, refused) = answer.attempts().split_last().unwrap();
    assert_eq!(last.class(), Class::Success);
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|attempt| attempt.class() == Class::Throttled));
    let refused = refused.len();
    let (served, arrived) = rig.seen().await;
    assert_eq!(arrived.len(), 2);
    let mut expected = vec![200];
    expected.extend(vec![429; refused]);
    expected.push(200);
    assert_eq!(statuses(&served), expected);
}

#[tokio::test]
async fn a_limit_that_says_when_to_come_back_is_obeyed_and_costs_one_retry() {
    let site = Site {
        server: "limit_req zone=one; limit_req_status 429;
    error_page 429 = @slow;
    location @slow { add_header Retry-After 1 always; return 429; }",
        ..limited(ONE_A_SECOND)
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let client = rig.real_time_builder().build().unwrap();
    client.post(&root(), "/orders").send().await.unwrap();
    let answer = client.post(&root(), "/orders").send().await.unwrap();
    let waited = answer.attempts()[0].wait_after().unwrap();
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
    assert_eq!(answer.attempts().len(), 2);
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200, 429, 200], 2));
}

#[tokio::test]
async fn a_limit_that_does_not_yield_ends_as_throttled_and_as_not_carried_out() {
    let rig = Rig::new(limited(ONE_A_MINUTE), [Reply::ok()]).await;
    let client = rig.client();
    client.post(&root(), "/orders").send().await.unwrap();
    let error = client.post(&root(), "/orders").send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert_eq!(error.stop_reason(), Some(StopReason::AttemptsExhausted));
    assert_eq!((error.attempts().len(), error.may_have_committed()), (4, false));
    // The dice of the hand-turned clock always show the ceiling: full backoff, doubled each time.
    assert_eq!(rig.clock.waits(), [100, 200, 400].map(Duration::from_millis));
    let (served, arrived) = rig.seen().await;
    assert_eq!(
        (statuses(&served), arrived.len()),
        (vec![200, 429, 429, 429, 429], 1)
    );
}

#[tokio::test]
async fn a_callee_s_retry_after_passes_and_is_a_floor() {
    let busy = Reply::json(503, "{}").header("Retry-After", "7");
    let rig = Rig::new(Site::default(), [busy.clone(), Reply::ok()]).await;
    rig.client().post(&root(), "/orders").send().await.unwrap();
    assert_eq!(rig.clock.waits(), [Duration::from_millis(10_500)]);
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![503, 200], 2));

    let rig = Rig::new(Site::default(), [busy]).await;
    let client = rig
        .builder()
        .total_timeout(Duration::from_secs(5))
        .attempt_timeout(Duration::from_secs(4));
    let error = client
        .build()
        .unwrap()
        .post(&root(), "/orders")
        .send()
        .await
        .unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![503], 1));
}

async fn too_large(server: &'static str, body: usize) {
    let site = Site {
        server,
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let client = rig.client();
    // One call before, so that the refusal comes over a kept connection as well as over a fresh one.
    client
        .post(&root(), "/orders")
        .body(vec![b'x'; 1_024])
        .send()
        .await
        .unwrap();
    let error = client
        .post(&root(), "/orders")
        .body(vec![b'x'; body])
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::TooLarge,
        "{body} bytes, {server}: {error:?}"
    );
    assert_eq!(error.stop_reason(), Some(StopReason::NotRetryable));
    assert_eq!((error.attempts().len(), error.may_have_committed()), (1, false));
    client.post(&root(), "/orders").send().await.unwrap();
    rig.has_served(3).await;
    let (served, arrived) = rig.seen().await;
    let mut statuses = statuses(&served);
    statuses.sort_unstable();
    assert_eq!((statuses, arrived.len()), (vec![200, 200, 413], 2));
}

#[tokio::test]
async fn a_body_over_nginx_s_limit_is_too_large_and_never_sent_again() {
    for body in [1_025, 64 * 1_024, 1_024 * 1_024, 8 * 1_024 * 1_024] {
        too_large("client_max_body_size 1k;", body).await;
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large_even_where_nginx_closes_without_reading_it() {
    for body in [1_025, 64 * 1_024, 1_024 * 1_024, 8 * 1_024 * 1_024] {
        too_large("client_max_body_size 1k; lingering_close off;", body).await;
    }
}

#[tokio::test]
async fn a_target_over_nginx_s_limit_is_too_large() {
    let site = Site {
        http: "large_client_header_buffers 4 2k;",
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let call = rig.client().get(&root(), "/orders").query("q", "x".repeat(4_000));
    let error = call.send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status().unwrap().as_u16()),
        (ErrorKind::TooLarge, 414)
    );
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![414], 0));
}

#[tokio::test]
async fn a_body_that_nginx_spools_to_a_file_arrives_whole() {
    let site = Site {
        server: "client_max_body_size 20m; client_body_buffer_size 8k;",
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let body: Vec<u8> = (0..3_000_000_u32)
        .flat_map(u32::to_le_bytes)
        .take(3 << 20)
        .collect();
    rig.client()
        .put(&root(), "/orders")
        .body(body.clone())
        .send()
        .await
        .unwrap();
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200], 1));
    assert!(arrived[0].body() == &body);
    assert_eq!(header(&arrived, "content-length"), [body.len().to_string()]);
}
