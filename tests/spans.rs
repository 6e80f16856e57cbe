//! What is written on the spans of a call and of its attempts, whichever of them somebody traces.
//!
//! A program of its own, and one test at a time: whether somebody listens to a place in the code is known for a whole process, and
//! subscribers that come and go at once beside each other lose some of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use eastwest::CallContext;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};

/// Writes down what is told of spans, each by its name and its number among those that began.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<(Vec<Id>, Vec<String>)>>);

impl Diary {
    fn note(&self, name: &str, id: &Id, what: &str) {
        let mut diary = self.0.lock().unwrap();
        let number = diary.0.iter().position(|known| known == id).unwrap();
        diary.1.push(format!("{name} {number}: {what}"));
    }

    fn lines(&self, having: &str) -> Vec<String> {
        self.0.lock().unwrap().1.iter().filter(|line| line.contains(having)).cloned().collect()
    }
}

/// The fields that are asked for, as text.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if ["http.response.status_code", "message"].contains(&field.name()) {
            self.0 = format!("{value:?}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Diary {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        self.0.lock().unwrap().0.push(id.clone());
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields(String::new());
        record.record(&mut fields);
        self.note(context.span(id).unwrap().name(), id, &fields.0);
    }

    fn on_follows_from(&self, id: &Id, before: &Id, context: Context<'_, S>) {
        let known = context.span(before).is_some();
        let number = self.0.lock().unwrap().0.iter().position(|known| known == before).unwrap();
        self.note("follows", id, &format!("{number} {known}"));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let within = context.event_span(event).map_or("nothing", |span| span.name());
        self.0.lock().unwrap().1.push(format!("{} in {within}", fields.0));
    }
}

static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn gateway(script: impl IntoIterator<Item = Reply>) -> FakeGateway {
    FakeGateway::builder().manual_clock(&ManualClock::new()).route("POST", "/orders", script).without_socket()
}

async fn post(gateway: &FakeGateway) {
    let client = gateway.client().build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
}

#[tokio::test]
async fn an_attempt_that_nobody_traces_writes_nothing_on_the_span_of_another() {
    let _alone = ALONE.lock().await;
    let (diary, traced) = (Diary::default(), Arc::new(AtomicBool::new(true)));
    let asked = Arc::clone(&traced);
    let filter = dynamic_filter_fn(move |span, _| span.name() != "attempt" || asked.load(Ordering::Relaxed));
    let _guard = tracing::subscriber::set_default(registry().with(filter).with(diary.clone()));
    let switch = move |now| {
        let traced = Arc::clone(&traced);
        Reply::dynamic(move |_| {
            traced.store(now, Ordering::Relaxed);
            Reply::unavailable()
        })
    };
    // The second of three attempts is not traced.
    post(&gateway([switch(false), switch(true), Reply::ok()])).await;
    assert_eq!(diary.lines("attempt 1: 50"), ["attempt 1: 503"]);
    assert_eq!(diary.lines("attempt 1: 200"), [""; 0]);
    assert_eq!(diary.lines("attempt 2: 20"), ["attempt 2: 200"]);
    assert_eq!(diary.lines("follows"), ["follows 2: 1 true"]);
}

#[tokio::test]
async fn attempts_are_traced_where_the_call_is_not() {
    let _alone = ALONE.lock().await;
    let diary = Diary::default();
    let filter = dynamic_filter_fn(|span, _| span.name() != "call");
    let _guard = tracing::subscriber::set_default(registry().with(filter).with(diary.clone()));
    post(&gateway([Reply::unavailable(), Reply::ok()])).await;
    assert_eq!(diary.lines("attempt 0: 50"), ["attempt 0: 503"]);
    assert_eq!(diary.lines("attempt 1: 20"), ["attempt 1: 200"]);
    assert_eq!(diary.lines("follows"), ["follows 1: 0 true"]);
}

#[tokio::test]
async fn what_is_said_of_a_call_is_said_within_its_span_abandoned_or_refused_for_its_hops_too() {
    let _alone = ALONE.lock().await;
    let diary = Diary::default();
    let _guard = tracing::subscriber::set_default(registry().with(diary.clone()));
    let gateway = FakeGateway::builder().route("POST", "/orders", [Reply::hang()]).start().await.unwrap();
    let client = gateway.client().build().unwrap();
    let call = tokio::spawn(client.post(&CallContext::root(), "/orders").send());
    gateway.wait_for_attempts(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let seven = eastwest::callee::accept([("x-hop-count", "7")]).unwrap();
    client.post(&seven, "/orders").send().await.unwrap_err();
    let told = diary.lines(" in call");
    assert!(told.iter().any(|line| line.contains("abandoned")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("every callee refuses")), "{told:?}");
    assert_eq!(diary.lines(" in nothing"), [""; 0]);
}

#[tokio::test]
async fn a_retry_is_said_within_the_span_of_its_call() {
    let _alone = ALONE.lock().await;
    let diary = Diary::default();
    let _guard = tracing::subscriber::set_default(registry().with(diary.clone()));
    post(&gateway([Reply::unavailable(), Reply::ok()])).await;
    assert_eq!(diary.lines(" in "), ["503 in call"]);
}
