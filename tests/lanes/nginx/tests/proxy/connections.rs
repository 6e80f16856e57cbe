//! nginx ends connections between calls, and sometimes under them.

use crate::nginx::{Served, Site, pause, statuses};
use crate::rig::{Rig, header, root};
use eastwest::ServiceClient;
use eastwest::testing::Reply;
use std::collections::HashSet;
use std::time::Duration;

fn keeping(server: &'static str) -> Site {
    Site {
        server,
        ..Site::default()
    }
}

fn connections(served: &[Served]) -> usize {
    let numbers: HashSet<u64> = served.iter().map(|line| line.connection).collect();
    numbers.len()
}

#[tokio::test]
async fn kept_connections_are_used_again() {
    let rig = Rig::new(Site::default(), [Reply::ok()]).await;
    let client = rig.client();
    for _ in 0..20 {
        client.post(&root(), "/orders").send().await.unwrap();
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 20], 20));
    assert_eq!(connections(&served), 1);
}

#[tokio::test]
async fn one_request_a_connection_harms_no_call() {
    let rig = Rig::new(keeping("keepalive_requests 1;"), [Reply::ok()]).await;
    let client = rig.client();
    for _ in 0..20 {
        let call = client.post(&root(), "/orders").no_idempotency_key();
        assert_eq!(call.send().await.unwrap().attempts().len(), 1);
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 20], 20));
    assert_eq!(connections(&served), 20);
}

#[tokio::test]
async fn a_few_requests_a_connection_harm_no_call_of_many_at_once() {
    let rig = Rig::new(keeping("keepalive_requests 3;"), [Reply::ok()]).await;
    let client = rig.client();
    let calls: Vec<_> = (0..60)
        .map(|_| tokio::spawn(client.put(&root(), "/orders").body("order").send()))
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 60], 60));
    assert!(connections(&served) >= 20);
}

#[tokio::test]
async fn connections_that_died_between_calls_harm_no_call() {
    let rig = Rig::new(keeping("keepalive_timeout 30ms;"), [Reply::ok()]).await;
    let client = rig.client();
    for _ in 0..8 {
        let call = client.post(&root(), "/orders").no_idempotency_key();
        assert_eq!(call.send().await.unwrap().attempts().len(), 1);
        pause(Duration::from_millis(150)).await;
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 8], 8));
    assert_eq!(connections(&served), 8);
}

/// Calls that come just when nginx ends the connection: some meet it closing.
#[tokio::test]
async fn connections_that_die_under_calls_harm_no_keyed_call() {
    let rig = Rig::new(keeping("keepalive_timeout 2ms;"), [Reply::ok()]).await;
    let callers = (0..8).map(|caller| tokio::spawn(calls_in_step_with_nginx(rig.client(), caller)));
    let (mut attempts, mut keys) = (0, HashSet::new());
    for caller in callers.collect::<Vec<_>>() {
        let (sent, used) = caller.await.unwrap();
        attempts += sent;
        keys.extend(used);
    }
    let (served, arrived) = rig.seen().await;
    let seen: HashSet<String> = header(&arrived, "x-idempotency-key")
        .into_iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(seen, keys);
    assert!(statuses(&served).iter().all(|status| *status == 200));
    // What was lost with its connection never came to nginx's log; nothing came twice unasked.
    assert!(
        (400..=attempts).contains(&arrived.len()),
        "{attempts}, {}",
        arrived.len()
    );
    assert_eq!(served.len(), arrived.len());
}

/// Fifty keyed calls, each just when nginx ends the connection of the one before; answers attempts and keys.
async fn calls_in_step_with_nginx(client: ServiceClient, caller: u64) -> (usize, Vec<String>) {
    let (mut attempts, mut keys) = (0, Vec::new());
    for number in 0..50 {
        let key = format!("order-{caller}-{number}");
        let call = client
            .post(&root(), "/orders")
            .idempotency_key(&key)
            .body("order");
        attempts += call.send().await.unwrap().attempts().len();
        keys.push(key);
        pause(Duration::from_millis(1 + (number + caller) % 3)).await;
    }
    (attempts, keys)
}
