//! One call as OpenTelemetry's SDK and a recorder of metrics see it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{
    CallContext, ClientBuilder, Error, ErrorKind, MetricsObserver, RateLimit, Response, ServiceClient,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use opentelemetry::trace::{SpanId, SpanKind, Status, TracerProvider};
use opentelemetry::{Key, Value};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use std::collections::BTreeMap;
use tracing_subscriber::layer::SubscriberExt;

struct Rig {
    gateway: FakeGateway,
    clock: ManualClock,
}

impl Rig {
    async fn answering(replies: impl IntoIterator<Item = Reply>) -> Rig {
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials("AKIDTELEMETRY", "secret-mark", Some("token-mark"))
            .region("eu-central-1")
            .manual_clock(&clock)
            .route("POST", "/orders/4711", replies)
            .start()
            .await
            .unwrap();
        Rig { gateway, clock }
    }

    fn builder(&self) -> ClientBuilder {
        ServiceClient::builder(self.gateway.base_url())
            .region("eu-central-1")
            .static_credentials("AKIDTELEMETRY", "secret-mark", Some("token-mark"))
            .ambient(self.clock.clone())
    }
}

async fn place(client: &ServiceClient) -> Result<Response, Error> {
    let context = CallContext::root().with_correlation_id("order-1").unwrap();
    let call =
        client.post(&context, "/orders").segment(4711).query("q", "query-mark").url_template("/orders/{id}");
    call.idempotency_key("key-1").body("body-mark").send().await
}

/// The spans of what is done, in the order in which they ended, and the result of it.
async fn traced<T>(work: impl Future<Output = T>) -> (Vec<SpanData>, T) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let done = {
        let _heard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        tracing::callsite::rebuild_interest_cache();
        work.await
    };
    provider.force_flush().unwrap();
    (exporter.get_finished_spans().unwrap(), done)
}

fn of<'a>(span: &'a SpanData, name: &'static str) -> Option<&'a Value> {
    span.attributes
        .iter()
        .find(|attribute| attribute.key == Key::from_static_str(name))
        .map(|found| &found.value)
}

fn text(span: &SpanData, name: &'static str) -> String {
    of(span, name).map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn a_trace_shows_one_call_with_its_attempts_as_children() {
    let rig =
        Rig::answering([Reply::unavailable(), Reply::integration_timeout(), Reply::json(201, "{}")]).await;
    let client = rig.builder().build().unwrap();
    let (spans, answer) = traced(place(&client)).await;
    assert_eq!(answer.unwrap().status(), 201);
    let attempts: Vec<_> = spans.iter().filter(|span| span.span_kind == SpanKind::Client).collect();
    let call = spans.iter().find(|span| span.span_kind == SpanKind::Internal).unwrap();
    assert_eq!((spans.len(), attempts.len()), (4, 3), "{spans:?}");
    assert_eq!((call.parent_span_id, &*call.name), (SpanId::INVALID, "call POST /orders/{id}"));
    for attempt in &attempts {
        assert_eq!(attempt.parent_span_id, call.span_context.span_id());
        assert_eq!(attempt.name, "POST /orders/{id}");
        assert_eq!(text(attempt, "http.request.method"), "POST");
        assert_eq!(text(attempt, "url.template"), "/orders/{id}");
        assert_eq!(text(attempt, "server.address"), "127.0.0.1");
        assert_eq!(text(attempt, "server.port"), rig.gateway.addr().port().to_string());
        let url = format!("http://127.0.0.1:{}/prod/orders/4711", rig.gateway.addr().port());
        assert_eq!(text(attempt, "url.full"), url);
    }
    let told = |name: &'static str| attempts.iter().map(|attempt| text(attempt, name)).collect::<Vec<_>>();
    assert_eq!(told("http.response.status_code"), ["503", "504", "201"]);
    assert_eq!(told("http.request.resend_count"), ["", "1", "2"]);
    assert_eq!(told("error.type"), ["unavailable", "gateway timeout", ""]);
    assert_eq!(attempts[2].status, Status::Unset);
    assert!(matches!(attempts[0].status, Status::Error { .. }));
    for (name, value) in [
        ("correlation_id", "order-1"),
        ("idempotency_key", "key-1"),
        ("hop", "1"),
        ("circuit", "closed"),
        ("attempts", "3"),
        ("http.response.status_code", "201"),
    ] {
        assert_eq!(text(call, name), value, "{name}");
    }
}

#[tokio::test]
async fn a_retry_is_linked_to_the_attempt_before_it_and_has_not_begun_before_that_ended() {
    let rig = Rig::answering([Reply::unavailable(), Reply::unavailable(), Reply::ok()]).await;
    let client = rig.builder().build().unwrap();
    let (spans, answer) = traced(place(&client)).await;
    answer.unwrap();
    let attempts: Vec<_> = spans.iter().filter(|span| span.span_kind == SpanKind::Client).collect();
    assert!(attempts[0].links.is_empty());
    for pair in attempts.windows(2) {
        let linked: Vec<_> = pair[1].links.iter().map(|link| link.span_context.span_id()).collect();
        assert_eq!(linked, [pair[0].span_context.span_id()]);
        assert!(pair[0].end_time <= pair[1].start_time);
    }
}

#[tokio::test]
async fn a_failed_call_is_an_error_of_its_kind_in_the_caller_s_own_trace() {
    let rig = Rig::answering([Reply::json(404, "{}")]).await;
    let client = rig.builder().build().unwrap();
    let (spans, error) = traced(async {
        let handler = tracing::info_span!("handler");
        let _in = handler.enter();
        // The span is left before anything is awaited; its child keeps it.
        let call = place(&client);
        drop(_in);
        tracing::Instrument::instrument(call, handler).await
    })
    .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Rejected);
    let by_name: BTreeMap<_, _> = spans.iter().map(|span| (span.name.to_string(), span)).collect();
    let (handler, call) = (by_name["handler"], by_name["call POST /orders/{id}"]);
    assert_eq!(call.parent_span_id, handler.span_context.span_id());
    assert!(matches!(call.status, Status::Error { .. }));
    assert_eq!(
        (text(call, "error.type"), text(call, "http.response.status_code")),
        ("Rejected".into(), "404".into())
    );
}

#[tokio::test]
async fn no_span_holds_a_query_a_body_or_a_secret() {
    let rig =
        Rig::answering([Reply::signature_mismatch(), Reply::json(400, r#"{"message":"body-mark"}"#)]).await;
    let client = rig.builder().build().unwrap();
    let (spans, error) = traced(place(&client)).await;
    error.unwrap_err();
    let attributes = format!("{:?}", spans.iter().map(|span| &span.attributes).collect::<Vec<_>>());
    for secret in ["query-mark", "body-mark", "secret-mark", "token-mark", "Signature="] {
        assert!(!attributes.contains(secret), "{secret}: {attributes}");
    }
}

/// What a recorder has after the work: name and labels to value.
fn counted(work: impl FnOnce()) -> BTreeMap<String, DebugValue> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, work);
    let key = |key: &metrics::Key| {
        let mut labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        format!("{} {}", key.name(), labels.join(" "))
    };
    let all = snapshotter.snapshot().into_vec();
    all.into_iter().map(|(composite, _, _, value)| (key(composite.key()), value)).collect()
}

#[test]
fn a_recorder_counts_calls_attempts_retries_and_their_times() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let all = counted(|| {
        runtime.block_on(async {
            let replies =
                [Reply::throttled(), Reply::integration_timeout(), Reply::ok(), Reply::integration_timeout()];
            let rig = Rig::answering(replies).await;
            let client = rig.builder().observer(MetricsObserver::new()).build().unwrap();
            place(&client).await.unwrap();
            place(&client).await.unwrap_err();
            client.breaker().force_open();
            assert!(place(&client).await.unwrap_err().is_circuit_open());
        });
    });
    let labels = "http.request.method=POST server.address=127.0.0.1 url.template=/orders/{id}";
    let counter =
        |name: &str, more: &str| match all.get(format!("eastwest.client.{name} {labels}{more}").as_str()) {
            Some(DebugValue::Counter(count)) => *count,
            other => panic!("{name}{more}: {other:?} in {all:?}"),
        };
    assert_eq!((counter("attempts", ""), counter("throttled", "")), (4, 1));
    // Two retries empty the budget, so the second call makes none.
    assert_eq!((counter("retries", ""), counter("in_doubt", "")), (2, 1));
    let outcome = |outcome: &str| {
        let head = "http.request.method=POST";
        let key = format!(
            "eastwest.client.calls {head} outcome={outcome} server.address=127.0.0.1 url.template=/orders/{{id}}"
        );
        match all.get(&key) {
            Some(DebugValue::Counter(count)) => *count,
            other => panic!("{outcome}: {other:?} in {all:?}"),
        }
    };
    assert_eq!((outcome("succeeded"), outcome("failed"), outcome("refused")), (1, 1, 1));
    let histograms: Vec<_> =
        all.keys().filter(|key| key.starts_with("http.client.request.duration ")).collect();
    assert_eq!(histograms.len(), 3, "by status: {histograms:?}");
    assert!(histograms.iter().any(|key| {
        key.contains("error.type=gateway timeout http.request.method=POST http.response.status_code=504")
    }));
    let calls: Vec<_> = all.keys().filter(|key| key.starts_with("eastwest.client.call.duration ")).collect();
    assert!(calls.iter().any(|key| key.contains("error.type=Timeout")), "{calls:?}");
    assert!(!all.keys().any(|key| key.contains("4711")), "no path is a label");
}

#[test]
fn a_wait_for_the_client_s_own_limit_is_measured() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let all = counted(|| {
        runtime.block_on(async {
            let rig = Rig::answering([Reply::ok()]).await;
            let client = rig.builder().rate_limit(RateLimit::per_second(1)).observer(MetricsObserver::new());
            let client = client.build().unwrap();
            place(&client).await.unwrap();
            place(&client).await.unwrap();
        });
    });
    let held_back = all.iter().find(|(key, _)| key.starts_with("eastwest.client.held_back "));
    let Some((_, DebugValue::Histogram(waits))) = held_back else { panic!("{all:?}") };
    assert_eq!(waits.iter().map(|wait| wait.into_inner()).collect::<Vec<_>>(), [1.0]);
}

#[test]
fn a_change_of_the_breaker_is_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let all = counted(|| {
        runtime.block_on(async {
            let rig = Rig::answering([Reply::integration_timeout()]).await;
            let client = rig.builder().observer(MetricsObserver::new()).build().unwrap();
            for _ in 0..5 {
                place(&client).await.unwrap_err();
            }
        });
    });
    let opened = all.get("eastwest.client.circuit from=closed to=open");
    assert!(matches!(opened, Some(DebugValue::Counter(1))), "{all:?}");
}
