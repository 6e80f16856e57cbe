//! What is counted, and when somebody is warned.

use super::*;
use crate::edge::seen::Seen;
use std::sync::Mutex;
use std::time::Duration;

fn counted(came: Came) -> Counted {
    Counted { first: true, retry: false, came }
}

fn reporter(shared: Option<AccountQuota>) -> Reporter {
    Reporter::new(shared, "eu-central-1", system_now())
}

/// What is warned about while `f` runs.
fn heard(f: impl FnOnce()) -> String {
    let seen = Seen::default();
    let writer = Mutex::new(seen.clone());
    let subscriber = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, f);
    seen.text()
}

#[test]
fn an_answer_is_a_token_a_loss_a_doubt_and_what_was_never_sent_is_neither() {
    let reporter = reporter(None);
    let now = system_now();
    for came in [Came::Answer, Came::Throttle, Came::Doubt, Came::Nothing] {
        reporter.call();
        reporter.attempt(counted(came), Some(now));
    }
    reporter.attempt(Counted { first: false, retry: true, came: Came::Doubt }, None);
    let usage = reporter.usage(now);
    assert_eq!((usage.calls, usage.attempted, usage.attempts, usage.retries), (4, 4, 5, 1));
    assert_eq!((usage.tokens, usage.in_doubt, usage.throttled), (2, 2, 1));
    assert!((usage.amplification() - 1.25).abs() < 1e-9);
    assert!((usage.tokens_per_second - 0.2).abs() < 1e-9);
    assert!((usage.share - 0.2 / 10_000.0).abs() < 1e-12);
}

#[test]
fn a_refused_call_is_counted_by_who_refused_it_and_amplifies_nothing() {
    let reporter = reporter(None);
    for by in [RefusedBy::Circuit, RefusedBy::HopLimit, RefusedBy::HopLimit, RefusedBy::RateLimit] {
        reporter.call();
        reporter.refused(by);
    }
    let usage = reporter.usage(system_now());
    let refused = (usage.refused_by_circuit, usage.refused_by_hop_limit, usage.refused_by_rate_limit);
    assert_eq!((usage.calls, usage.attempted, refused), (4, 0, (1, 2, 1)));
    assert!((usage.amplification() - 1.0).abs() < 1e-9);
}

#[test]
fn clients_that_share_a_quota_are_summed_there_and_kept_apart_in_their_own_usage() {
    let account = AccountQuota::of_region("eu-south-1").rate(100);
    let (one, other) = (reporter(Some(account.clone())), reporter(Some(account.clone())));
    let now = system_now();
    one.attempt(counted(Came::Answer), Some(now));
    other.attempt(counted(Came::Answer), Some(now));
    other.attempt(counted(Came::Answer), Some(now));
    assert_eq!((one.usage(now).tokens, other.usage(now).tokens, account.usage_at(now).tokens), (1, 2, 3));
    assert!((other.usage(now).share - 0.002).abs() < 1e-9, "of the account's bucket");
    assert_eq!((account.bucket().rate(), account.bucket().burst()), (100, 1_250));
}

#[test]
fn a_client_without_a_quota_of_others_counts_once() {
    let reporter = reporter(None);
    reporter.attempt(counted(Came::Answer), Some(system_now()));
    assert_eq!(reporter.account().usage().tokens, 1);
    assert_eq!(reporter.account().bucket().rate(), 10_000);
}

#[test]
fn a_passed_mark_is_warned_about_once_a_minute() {
    let account = AccountQuota::of_region("eu-central-1").rate(10).warn_at_share(0.5);
    let reporter = reporter(Some(account));
    let start = system_now();
    let send = |now: Instant, tokens: u32| {
        (0..tokens).for_each(|_| reporter.attempt(counted(Came::Answer), Some(now)));
    };
    assert_eq!(heard(|| send(start, 50)), "");
    let warned = heard(|| send(start, 50));
    assert_eq!(warned.matches("has passed its mark").count(), 1, "{warned}");
    assert!(warned.contains("WARN") && warned.contains("region=\"eu-central-1\""), "{warned}");
    assert_eq!(heard(|| send(start + Duration::from_secs(59), 100)), "");
    assert!(heard(|| send(start + Duration::from_secs(61), 100)).contains("has passed its mark"));
}

#[test]
fn an_amplification_of_many_calls_is_warned_about_and_one_of_a_few_is_not() {
    let account = AccountQuota::of_region("eu-central-1").warn_at_amplification(1.5);
    let now = system_now();
    let call = |reporter: &Reporter| {
        reporter.attempt(counted(Came::Answer), Some(now));
        reporter.attempt(Counted { first: false, retry: true, came: Came::Answer }, Some(now));
    };
    let few = reporter(Some(account.clone()));
    assert_eq!(heard(|| (0..9).for_each(|_| call(&few))), "");
    assert!(heard(|| call(&few)).contains("amplification="));
}

#[test]
fn what_is_new_since_the_last_reading_is_what_a_query_sums() {
    let reporter = reporter(None);
    let now = system_now();
    reporter.call();
    reporter.attempt(counted(Came::Answer), Some(now));
    let first = reporter.usage(now);
    reporter.call();
    reporter.attempt(counted(Came::Throttle), Some(now));
    let new = reporter.usage(now).since(&first);
    assert_eq!((new.calls, new.attempts, new.tokens, new.throttled), (1, 1, 1, 1));
    let line = serde_json::to_value(new).unwrap();
    assert_eq!((&line["tokens"], &line["attempted"]), (&1.into(), &1.into()));
}

#[test]
fn a_request_beside_the_calls_is_a_token_a_doubt_or_nothing() {
    let reporter = reporter(None);
    let now = system_now();
    reporter.aside().answered(now);
    reporter.aside().unsent();
    drop(reporter.aside());
    let usage = reporter.usage(now);
    assert_eq!((usage.tokens, usage.in_doubt, usage.attempts, usage.calls), (1, 1, 0, 0));
}
