//! A callee that commits and answers late: one commit for a call, its retries, and its repetition after it was given up.

use crate::bridge::{Heard, Integration};
use crate::callee::Callee;
use crate::rig::{Rig, TELLING, THROWING, classes, fresh_order, late, prompt, root};
use Integration::{Impatient, Losing, LosingFirst, Patient};
use eastwest::{Class, ErrorKind, Response, StopReason};
use std::collections::HashSet;

/// Attempt 1 meets the gateway's limit; in the second wait, if there is one, the callee finishes.
async fn late_once(rig: &Rig, path: &str, order: &str) -> Response {
    let client = rig.client_while_finishing(order, 2);
    client.post(&root(), path).json(&late(order)).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_meets_the_first_run_in_a_502_ends_with_its_reply() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let answer = late_once(&rig, THROWING, &order).await;
    assert_eq!(answer.status(), 201);
    assert_eq!(classes(answer.attempts()), [Class::GatewayTimeout, Class::BadGateway, Class::Success]);
    let in_progress = Heard::Threw("IdempotencyAlreadyInProgressError".to_owned());
    assert_eq!(rig.heard(), [Heard::Nothing, in_progress, Heard::Answered(201)]);
    assert_eq!(rig.keys().into_iter().collect::<HashSet<_>>().len(), 1);
    assert_eq!(callee.commits(&order).await, [answer.idempotency_key().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_is_told_of_the_first_run_by_a_409_ends_with_its_reply() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let answer = late_once(&rig, TELLING, &order).await;
    assert_eq!(answer.status(), 201);
    assert_eq!(classes(answer.attempts()), [Class::GatewayTimeout, Class::InProgress, Class::Success]);
    assert_eq!(rig.heard(), [Heard::Nothing, Heard::Answered(409), Heard::Answered(201)]);
    assert_eq!(callee.commits(&order).await, [answer.idempotency_key().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callee_that_finishes_in_the_first_wait_has_its_reply_ready_for_the_first_retry() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let call = rig.client_while_finishing(&order, 1).post(&root(), THROWING).json(&late(&order));
    let answer = call.send().await.unwrap();
    assert_eq!(classes(answer.attempts()), [Class::GatewayTimeout, Class::Success]);
    assert_eq!(rig.commits(&order).await, 1);
}

/// What the proofs above are worth.
#[tokio::test(flavor = "multi_thread")]
async fn without_powertools_the_same_call_commits_twice() {
    let Some(callee) = Callee::switched_off() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let answer = late_once(&rig, THROWING, &order).await;
    assert_eq!(classes(answer.attempts()), [Class::GatewayTimeout, Class::Success]);
    assert_eq!(rig.heard(), [Heard::Nothing, Heard::Answered(201)]);
    let key = answer.idempotency_key().unwrap();
    assert_eq!(callee.commits(&order).await, [key, key]);
    callee.finish(&order).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_given_up_and_is_made_again_under_the_error_s_key_commits_once() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let client = rig.client();
    let error = client.post(&root(), THROWING).json(&late(&order)).send().await.unwrap_err();
    assert_eq!(classes(error.attempts()), [Class::GatewayTimeout, Class::BadGateway, Class::BadGateway]);
    assert!(error.may_have_committed());
    assert_eq!(rig.commits(&order).await, 1);
    callee.finish(&order).await;
    let call = client.post(&root(), THROWING).idempotency_key(error.idempotency_key().unwrap());
    let answer = call.json(&late(&order)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.attempts().len()), (201, 1));
    assert_eq!(rig.commits(&order).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_was_lost_on_its_way_is_given_again_from_the_record() {
    let Some(callee) = Callee::at_hand() else { return };
    for (losing, class) in [(Losing, Class::ConnectionLost), (LosingFirst, Class::GatewayTimeout)] {
        let (rig, order) = (Rig::new(callee, [losing, Patient]).await, fresh_order());
        let client = rig.client();
        let answer = client.post(&root(), THROWING).json(&prompt(&order)).send().await.unwrap();
        assert_eq!(classes(answer.attempts()), [class, Class::Success]);
        assert_eq!(rig.heard(), [Heard::Answered(201), Heard::Answered(201)]);
        assert_eq!(rig.commits(&order).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_a_key_is_refused_by_powertools_and_not_sent_again() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Patient]).await, fresh_order());
    let call = rig.client().post(&root(), THROWING).no_idempotency_key().json(&prompt(&order));
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (ErrorKind::Unavailable, 502));
    assert_eq!(error.stop_reason(), Some(StopReason::NoIdempotencyKey));
    assert_eq!(rig.heard(), [Heard::Threw("IdempotencyKeyError".to_owned())]);
    assert_eq!(rig.arrived().len(), 1);
    assert_eq!(rig.commits(&order).await, 0);
}
