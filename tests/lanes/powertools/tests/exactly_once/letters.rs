//! A call that was given up, and is made again of its dead letter: the same key, so the same commit.

use crate::bridge::{Heard, Integration};
use crate::callee::Callee;
use crate::rig::{Rig, THROWING, classes, fresh_order, late, root};
use Integration::{Impatient, Patient};
use eastwest::dead_letter::DeadLetter;
use eastwest::{Class, Error};

/// The letter of a failed call, read from what was written of it.
fn letter(error: &Error) -> DeadLetter {
    let written = serde_json::to_string(&error.dead_letter().unwrap()).unwrap();
    serde_json::from_str(&written).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_letter_of_a_call_is_replayed_as_often_as_it_takes_and_commits_once() {
    let Some(callee) = Callee::at_hand() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let error = rig.client().post(&root(), THROWING).json(&late(&order)).send().await.unwrap_err();
    assert_eq!(classes(error.attempts()), [Class::GatewayTimeout, Class::BadGateway, Class::BadGateway]);
    let first = letter(&error);
    assert!(first.may_have_committed);

    // The first run is still at work.
    let error = rig.client().replay(&first).unwrap().send().await.unwrap_err();
    assert_eq!(classes(error.attempts()), [Class::BadGateway, Class::BadGateway]);
    let second = letter(&error);
    assert_eq!((&second.id, &second.idempotency_key), (&first.id, &first.idempotency_key));

    callee.finish(&order).await;
    let answer = rig.client().replay(&second).unwrap().send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.attempts().len()), (201, 1));
    let key = first.idempotency_key.as_deref().unwrap();
    assert_eq!(rig.keys(), [key; 6]);
    assert_eq!(callee.commits(&order).await, [key]);
}

/// What the proof above is worth.
#[tokio::test(flavor = "multi_thread")]
async fn without_powertools_a_replay_commits_again() {
    let Some(callee) = Callee::switched_off() else { return };
    let (rig, order) = (Rig::new(callee, [Impatient, Patient]).await, fresh_order());
    let call = rig.client().post(&root(), THROWING).max_attempts(1).json(&late(&order));
    let error = call.send().await.unwrap_err();
    callee.finish(&order).await;
    rig.client().replay(&letter(&error)).unwrap().send().await.unwrap();
    assert_eq!(rig.heard(), [Heard::Nothing, Heard::Answered(201)]);
    assert_eq!(rig.commits(&order).await, 2);
}
