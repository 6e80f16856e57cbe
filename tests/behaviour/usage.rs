//! What is counted agrees with what the gateway counted, whatever is dropped or lost.

use crate::rig::Rig;
use eastwest::policy::moment::Draw;
use eastwest::testing::Reply;
use eastwest::{AccountQuota, CallContext, ClientBuilder, ErrorKind, ServiceClient, Usage};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

/// Answers one after the other, round and round.
fn in_turn(replies: Vec<Reply>) -> Reply {
    let next = AtomicUsize::new(0);
    Reply::dynamic(move |_| replies[next.fetch_add(1, Ordering::Relaxed) % replies.len()].clone())
}

/// So many in flight as the least of common limits on open files allows: each takes one at either end.
const IN_FLIGHT: u32 = 200;

/// A client that waits as long as a busy machine takes. The waits of its retries are zero, once the dice fall so, and no call
/// moves the clock under another's signature.
fn patient(rig: &Rig) -> ClientBuilder {
    let long = Duration::from_secs(300);
    rig.builder().total_timeout(long).attempt_timeout(long).connect_timeout(long).calls_in_flight(IN_FLIGHT)
}

/// Begins a thousand calls; of these every third can be dropped by its handle.
fn thousand(client: &ServiceClient) -> (JoinSet<()>, Vec<AbortHandle>) {
    let (mut calls, mut thirds) = (JoinSet::new(), Vec::new());
    for number in 0..1_000 {
        let call = client.post(&CallContext::root(), "/orders").json(&number);
        let handle = calls.spawn(async move { drop(call.send().await) });
        if number % 3 == 0 {
            thirds.push(handle);
        }
    }
    (calls, thirds)
}

/// What the gateway counted.
fn counted(rig: &Rig) -> u64 {
    (rig.gateway.attempts().len() + rig.gateway.malformed_requests()) as u64
}

fn assert_within(rig: &Rig, usage: &Usage) {
    let counted = counted(rig);
    assert!(usage.tokens <= counted, "{counted} were counted by the gateway, {usage:?}");
    assert!(counted <= usage.tokens + usage.in_doubt, "{counted} were counted by the gateway, {usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_at_once_every_token_is_counted_where_nothing_is_lost() {
    let answers = [Reply::ok(), Reply::unavailable(), Reply::throttled(), Reply::json(404, "{}")];
    let rig =
        Rig::answering([in_turn([answers.as_slice(), &[Reply::lambda_rejected(), Reply::ok()]].concat())])
            .await;
    rig.clock.set_draw(Draw::LOWEST);
    let client = patient(&rig).build().unwrap();
    thousand(&client).0.join_all().await;
    let usage = client.usage();
    assert_eq!((usage.tokens, usage.in_doubt, usage.attempts), (counted(&rig), 0, counted(&rig)));
    assert_eq!((usage.calls, usage.attempted, usage.retries), (1_000, 1_000, usage.attempts - 1_000));
    assert!(usage.throttled > 0 && usage.amplification() > 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_that_are_dropped_or_lost_none_is_missing_but_in_doubt() {
    let faults = in_turn(vec![
        Reply::ok(),
        Reply::reset(),
        Reply::unavailable(),
        Reply::close(),
        Reply::reset_before_reading(),
        Reply::garbage(),
        Reply::json(200, "x".repeat(500)).truncate_after(100),
        Reply::ok().keep_alive(false),
    ]);
    // What hangs is what will be dropped, so that nothing waits for a time to pass.
    let answer = Reply::dynamic(move |attempt| {
        let number: usize = std::str::from_utf8(attempt.body()).unwrap().parse().unwrap_or_default();
        if number.is_multiple_of(3) { Reply::hang() } else { faults.clone() }
    });
    let rig = Rig::answering([answer]).await;
    rig.clock.set_draw(Draw::LOWEST);
    let client = patient(&rig).max_attempts(2).build().unwrap();
    let (mut calls, thirds) = thousand(&client);
    // Then some are on their way, some wait for a place, some have ended.
    while client.usage().attempts < 200 && calls.join_next().await.is_some() {}
    thirds.iter().for_each(AbortHandle::abort);
    while calls.join_next().await.is_some() {}
    let usage = client.usage();
    assert_within(&rig, &usage);
    assert!(usage.in_doubt > 0 && usage.tokens > 0, "{usage:?}");
}

#[tokio::test]
async fn a_call_that_is_dropped_in_flight_is_in_doubt_and_one_that_waits_is_not() {
    let rig = Rig::answering([Reply::hang()]).await;
    let client = patient(&rig).build().unwrap();
    let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
    rig.gateway.wait_for_attempts(1).await;
    assert_eq!(client.usage().attempts, 0, "it is not over");
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    drop(client.post(&CallContext::root(), "/orders").send());
    let usage = client.usage();
    assert_eq!((usage.attempts, usage.tokens, usage.in_doubt), (1, 0, 1));
}

#[tokio::test]
async fn what_was_never_sent_is_an_attempt_and_no_token() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    rig.gateway.shutdown().await;
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    let usage = client.usage();
    assert_eq!((usage.attempts, usage.retries, usage.tokens, usage.in_doubt), (4, 3, 0, 0));
}

#[tokio::test]
async fn calls_refused_here_are_counted_by_who_refused_them() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    let context = eastwest::callee::accept([("x-hop-count", "7")]).unwrap();
    let looping = client.post(&context, "/orders").send().await.unwrap_err();
    assert_eq!(looping.kind(), ErrorKind::HopLimit);
    client.breaker().force_open();
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    let usage = client.usage();
    assert_eq!((usage.calls, usage.attempted, usage.tokens), (2, 0, 0));
    assert_eq!((usage.refused_by_hop_limit, usage.refused_by_circuit, rig.seen()), (1, 1, 0));
}

#[tokio::test]
async fn a_recovery_draws_a_token_and_is_no_retry() {
    let rig = Rig::answering([Reply::token_expired(), Reply::ok()]).await;
    let client = rig.client();
    // Fixed credentials cannot be renewed, so the call ends; the token is drawn all the same.
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((client.usage().tokens, client.usage().retries), (1, 0));
}

#[tokio::test]
async fn a_warm_up_is_a_token_and_no_attempt() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.client();
    client.warm_up(Duration::from_secs(5)).await.unwrap();
    let usage = client.usage();
    assert_eq!((usage.tokens, usage.attempts, usage.calls), (counted(&rig), 0, 0));
    assert_eq!(counted(&rig), 1);
}

#[tokio::test]
async fn clients_that_share_an_account_are_summed_in_its_quota() {
    let rig = Rig::answering([Reply::ok()]).await;
    let account = AccountQuota::of_region("eu-central-1").rate(100);
    let client = || rig.builder().account_quota(account.clone()).build().unwrap();
    let (one, other) = (client(), client());
    for client in [&one, &other, &other] {
        client.get(&CallContext::root(), "/orders").send().await.unwrap();
    }
    assert_eq!((one.usage().tokens, other.usage().tokens, account.usage().tokens), (1, 2, 3));
    assert!((other.account_quota().usage().share - 0.003).abs() < 1e-9);
    rig.clock.advance(Duration::from_secs(11));
    assert!(other.usage().share.abs() < 1e-9, "ten seconds are remembered");
    let alone = rig.client();
    alone.get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!((alone.account_quota().usage().tokens, alone.account_quota().bucket().rate()), (1, 10_000));
}
