//! Many calls at once: a commit a key, no more and no fewer.

use crate::bridge::{Heard, Integration};
use crate::callee::Callee;
use crate::rig::{Rig, THROWING, confirmation, fresh_order, prompt, root};
use std::collections::HashSet;

const MANY: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_with_keys_of_their_own_whose_first_replies_are_lost_commit_once_each() {
    let Some(callee) = Callee::at_hand() else { return };
    let rig = Rig::new(callee, [Integration::LosingFirst]).await;
    let client = rig.client_for_many();
    // One cart for all: as many commits as calls, counted in one place.
    let cart = fresh_order();
    let calls: Vec<_> =
        (0..MANY).map(|_| tokio::spawn(client.post(&root(), THROWING).json(&prompt(&cart)).send())).collect();
    let (mut keys, mut confirmations) = (Vec::new(), HashSet::new());
    for call in calls {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(answer.attempts().len(), 2);
        keys.push(answer.idempotency_key().unwrap().to_owned());
        confirmations.insert(confirmation(&answer));
    }
    let mut commits = callee.commits(&cart).await;
    commits.sort();
    keys.sort();
    assert_eq!(commits, keys);
    assert_eq!(confirmations.len(), MANY);
    assert_eq!(rig.arrived().len(), 2 * MANY);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_under_one_key_commit_once_between_them() {
    let Some(callee) = Callee::at_hand() else { return };
    let rig = Rig::new(callee, [Integration::Patient]).await;
    let (client, order, key) = (rig.client_for_many(), fresh_order(), fresh_order());
    let calls: Vec<_> = (0..MANY)
        .map(|_| client.post(&root(), THROWING).idempotency_key(&key).json(&prompt(&order)))
        .map(|call| tokio::spawn(call.send()))
        .collect();
    let mut confirmations = HashSet::new();
    for call in calls {
        match call.await.unwrap() {
            Ok(answer) => {
                confirmations.insert(confirmation(&answer));
            }
            // Sent again once, and the first run was at work still.
            Err(error) => assert!(error.may_have_committed() && error.attempts().len() == 2, "{error:?}"),
        }
    }
    assert_eq!((confirmations.len(), callee.commits(&order).await), (1, vec![key]));
    // Two that race for the first record are told apart by Powertools now with the one, now with the other; neither ran.
    let in_progress = Heard::Threw("IdempotencyAlreadyInProgressError".to_owned());
    let raced = Heard::Threw("IdempotencyPersistenceLayerError".to_owned());
    let others: Vec<_> = rig
        .heard()
        .into_iter()
        .filter(|heard| *heard != Heard::Answered(201) && *heard != in_progress && *heard != raced)
        .collect();
    assert_eq!(others, []);
}
