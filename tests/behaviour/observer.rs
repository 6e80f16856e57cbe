//! Whoever wants to be told what becomes of calls is told, in order, and of no secret.

use crate::rig::{Rig, SECRET, TOKEN};
use eastwest::testing::Reply;
use eastwest::{CallContext, Event, Observer, Priority, RateLimit};
use std::sync::{Arc, Mutex};

/// Writes events down in a few words.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Observer for Diary {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::Abandoned { may_have_committed, .. } => format!("abandoned {may_have_committed}"),
            Event::AttemptBegins { number, .. } => format!("begins {number}"),
            Event::AttemptEnded { attempt, .. } => format!("ended {attempt}"),
            Event::CircuitChanged { from, to, .. } => format!("circuit {} {}", from.as_str(), to.as_str()),
            Event::Failed { error, .. } => format!("failed {}", error.kind().as_str()),
            Event::HeldBack { wait, .. } => format!("held back {}", wait.as_millis()),
            Event::Retries { wait, .. } => format!("retries {}", !wait.is_zero()),
            Event::Succeeded { call, status, .. } => {
                format!("succeeded {status} of {}", call.attempts().len())
            }
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl Diary {
    fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test]
async fn a_wait_for_the_client_s_own_limit_is_told_with_its_length() {
    let rig = Rig::answering([Reply::ok()]).await;
    let diary = Diary::default();
    let client = rig.builder().rate_limit(RateLimit::per_second(2)).observer(diary.clone()).build().unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        client.post(&CallContext::root(), "/orders").priority(Priority::Critical).send().await.unwrap();
        told.push(diary.read().remove(0));
    }
    assert_eq!(told, ["begins 1", "begins 1", "held back 500"]);
}

#[tokio::test]
async fn a_call_s_events_come_in_order_and_end_in_one() {
    let replies = [Reply::unavailable(), Reply::token_expired(), Reply::ok(), Reply::json(404, "{}")];
    let rig = Rig::answering(replies).await;
    let diary = Diary::default();
    let client = rig.builder().observer(diary.clone()).build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    // The same credentials again are no recovery.
    assert_eq!(
        diary.read(),
        ["begins 1", "ended 503", "retries true", "begins 2", "ended 403", "failed Credentials"]
    );
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(diary.read(), ["begins 1", "ended 200", "succeeded 200 OK of 1"]);
    client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!(diary.read(), ["begins 1", "ended 404", "failed Rejected"]);
}

#[tokio::test]
async fn a_dropped_call_is_abandoned_and_an_invalid_one_is_nobody_s_news() {
    let rig = Rig::answering([Reply::hang()]).await;
    let diary = Diary::default();
    let client = rig.builder().observer(diary.clone()).build().unwrap();
    let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
    rig.gateway.wait_for_attempts(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(diary.read(), ["begins 1", "abandoned true"]);
    client.post(&CallContext::root(), "/a/../b").send().await.unwrap_err();
    assert!(diary.read().is_empty());
}

#[tokio::test]
async fn the_breaker_s_changes_and_its_refusals_are_told_to_all_observers() {
    let rig = Rig::answering([Reply::integration_timeout()]).await;
    let (one, other) = (Diary::default(), Diary::default());
    let builder = rig.builder().breaker(eastwest::BreakerSettings::default().with_failures_in_row(1));
    let client = builder.max_attempts(1).observer(one.clone()).observer(other.clone()).build().unwrap();
    for _ in 0..2 {
        client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    }
    let told = one.read();
    assert_eq!(
        told,
        ["begins 1", "circuit closed open", "ended 504", "failed Timeout", "failed CircuitOpen"]
    );
    assert_eq!(other.read(), told);
}

#[tokio::test]
async fn a_chain_that_is_too_long_is_told_as_a_failure_without_attempts() {
    let rig = Rig::answering([Reply::ok()]).await;
    let diary = Diary::default();
    let client = rig.builder().observer(diary.clone()).build().unwrap();
    let context = eastwest::callee::accept([("x-hop-count", "7")]).unwrap();
    client.get(&context, "/orders").send().await.unwrap_err();
    assert_eq!((diary.read(), rig.seen()), (vec!["failed HopLimit".to_owned()], 0));
}

#[tokio::test]
async fn no_event_shows_a_query_a_body_or_a_secret() {
    struct Shown(Arc<Mutex<String>>);
    impl Observer for Shown {
        fn observe(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push_str(&format!("{event:?}"));
        }
    }
    let rig = Rig::answering([Reply::unavailable(), Reply::signature_mismatch()]).await;
    let shown = Arc::new(Mutex::new(String::new()));
    let client = rig.builder().observer(Shown(Arc::clone(&shown))).build().unwrap();
    let call = client.post(&CallContext::root(), "/orders").query("q", "query-mark").body("body-mark");
    call.user_token("user-mark").send().await.unwrap_err();
    let shown = shown.lock().unwrap();
    assert!(shown.contains("AttemptEnded"));
    for secret in [SECRET, TOKEN, "query-mark", "body-mark", "user-mark", "Signature="] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

#[tokio::test]
async fn an_observer_that_panics_once_more_while_its_call_unwinds_takes_nothing_but_that_call_with_it() {
    struct Broken;
    impl Observer for Broken {
        fn observe(&self, event: &Event<'_>) {
            assert!(!matches!(event, Event::AttemptEnded { .. } | Event::Abandoned { .. }), "broken");
        }
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let diary = Diary::default();
    let builder = rig.builder().calls_in_flight(1).observer(Broken).observer(diary.clone());
    let client = builder.build().unwrap();
    for _ in 0..2 {
        let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
        assert!(call.await.unwrap_err().is_panic());
        assert_eq!(diary.read(), ["begins 1", "abandoned true"]);
    }
    let usage = client.usage();
    assert_eq!((usage.attempts, usage.tokens, usage.in_doubt, rig.seen()), (2, 2, 0, 2));
}
