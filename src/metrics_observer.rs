//! Calls as counters and histograms of the `metrics` facade.

use crate::observer::{CallView, Event, Observer};
use crate::policy::classify::Class;
use crate::story::Attempt;
use metrics::{Label, counter, histogram};

/// Writes calls to the `metrics` facade: counters and histograms, for whichever recorder the process has installed.
///
/// | name | kind | labels | of |
/// |---|---|---|---|
/// | `http.client.request.duration` | histogram, seconds | method, host, template, status, `error.type` | attempts; OpenTelemetry, *Semantic conventions for HTTP metrics* |
/// | `eastwest.client.call.duration` | histogram, seconds | method, host, template, `error.type` | calls, waits included |
/// | `eastwest.client.calls` | counter | method, host, template, `outcome` | calls that ended: `succeeded`, `failed`, `refused` (nothing was sent) or `abandoned` |
/// | `eastwest.client.attempts` | counter | method, host, template | attempts that ended |
/// | `eastwest.client.retries` | counter | method, host, template | attempts after the first that are about to be made |
/// | `eastwest.client.held_back` | histogram, seconds | method, host, template | waits of attempts for the client's own limits |
/// | `eastwest.client.throttled` | counter | method, host, template | answers that were 429 |
/// | `eastwest.client.in_doubt` | counter | method, host, template | calls that failed or were dropped and may have been carried out |
/// | `eastwest.client.circuit` | counter | `from`, `to` | changes of a breaker |
///
/// Labels are named as the conventions do: `http.request.method`, `server.address`, `url.template` where the call has one,
/// `http.response.status_code`, and `error.type`: the class of an attempt, the kind of a call's error. A path is never a label,
/// for ids in it would make a series each.
///
/// ```
/// use eastwest::{MetricsObserver, ServiceClient};
///
/// let client = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
///     .region("eu-central-1")
///     .environment_credentials()
///     .observer(MetricsObserver::new())
///     .build()?;
/// # let _ = client;
/// # Ok::<(), eastwest::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricsObserver(());

impl MetricsObserver {
    /// Makes one; give it to [`ClientBuilder::observer`](crate::ClientBuilder::observer).
    #[must_use]
    pub fn new() -> MetricsObserver {
        MetricsObserver(())
    }
}

impl Observer for MetricsObserver {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Abandoned { call, may_have_committed } => {
                counter!(CALLS, with(call, [("outcome", "abandoned".to_owned())])).increment(1);
                in_doubt(call, *may_have_committed);
            }
            Event::AttemptEnded { call, attempt } => attempt_ended(call, attempt),
            Event::CircuitChanged { from, to, .. } => {
                counter!(CIRCUIT, "from" => from.as_str(), "to" => to.as_str()).increment(1);
            }
            Event::Failed { call, error } => {
                let outcome = if call.attempts().is_empty() { "refused" } else { "failed" };
                counter!(CALLS, with(call, [("outcome", outcome.to_owned())])).increment(1);
                let kind = with(call, [("error.type", error.kind().as_str().to_owned())]);
                histogram!(CALL_DURATION, kind).record(call.elapsed().as_secs_f64());
                in_doubt(call, error.may_have_committed());
            }
            Event::HeldBack { call, wait } => {
                histogram!(HELD_BACK, with(call, [])).record(wait.as_secs_f64());
            }
            Event::Retries { call, .. } => counter!(RETRIES, with(call, [])).increment(1),
            Event::Succeeded { call, .. } => {
                counter!(CALLS, with(call, [("outcome", "succeeded".to_owned())])).increment(1);
                histogram!(CALL_DURATION, with(call, [])).record(call.elapsed().as_secs_f64());
            }
            Event::AttemptBegins { .. } => {}
        }
    }
}

fn attempt_ended(call: &CallView<'_>, attempt: &Attempt) {
    counter!(ATTEMPTS, with(call, [])).increment(1);
    if attempt.class() == Class::Throttled {
        counter!(THROTTLED, with(call, [])).increment(1);
    }
    let mut labels = with(call, []);
    if let Some(status) = attempt.status() {
        labels.push(Label::new("http.response.status_code", status.as_str().to_owned()));
    }
    if attempt.class() != Class::Success {
        labels.push(Label::from_static_parts("error.type", attempt.class().as_str()));
    }
    histogram!(ATTEMPT_DURATION, labels).record(attempt.duration().as_secs_f64());
}

fn in_doubt(call: &CallView<'_>, may_have_committed: bool) {
    if may_have_committed {
        counter!(IN_DOUBT, with(call, [])).increment(1);
    }
}

/// The labels of a call, and more.
fn with<const N: usize>(call: &CallView<'_>, more: [(&'static str, String); N]) -> Vec<Label> {
    let mut labels = vec![
        Label::new("http.request.method", call.method().as_str().to_owned()),
        Label::new("server.address", call.server_address().to_owned()),
    ];
    if let Some(template) = call.url_template() {
        labels.push(Label::new("url.template", template.to_owned()));
    }
    labels.extend(more.map(|(name, value)| Label::new(name, value)));
    labels
}

const ATTEMPTS: &str = "eastwest.client.attempts";
const ATTEMPT_DURATION: &str = "http.client.request.duration";
const CALLS: &str = "eastwest.client.calls";
const CALL_DURATION: &str = "eastwest.client.call.duration";
const CIRCUIT: &str = "eastwest.client.circuit";
const HELD_BACK: &str = "eastwest.client.held_back";
const IN_DOUBT: &str = "eastwest.client.in_doubt";
const RETRIES: &str = "eastwest.client.retries";
const THROTTLED: &str = "eastwest.client.throttled";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::Backoff;
    use crate::testing::{Ambient, Delivery, FakeGateway, ManualClock, Network, Outgoing, Reply};
    use crate::{
        BreakerSettings, CallContext, ClientBuilder, Error, RateLimit, Response, RetryBudget, ServiceClient,
    };
    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
    use std::collections::BTreeMap;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::Notify;

    /// The labels of every call here.
    const CALL: [&str; 3] =
        ["http.request.method=POST", "server.address=in-memory.test", "url.template=/orders/{id}"];

    /// All that was written, in order: a counter's increments, a histogram's values. By name and those labels that are not
    /// every call's.
    #[derive(Clone, Default)]
    struct Book(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

    impl Book {
        fn page(&self, key: &Key) -> Arc<Page> {
            let labels = key.labels().map(|label| format!("{}={}", label.key(), label.value()));
            let (call, own): (Vec<_>, Vec<_>) = labels.partition(|label| CALL.contains(&label.as_str()));
            let of = if call.len() == CALL.len() { "a call" } else { "no call" };
            Arc::new(Page { book: self.clone(), key: format!("{} of {of} {}", key.name(), own.join(" ")) })
        }

        fn read(&self) -> Vec<(String, Vec<f64>)> {
            std::mem::take(&mut *self.0.lock().unwrap()).into_iter().collect()
        }
    }

    struct Page {
        book: Book,
        key: String,
    }

    impl Page {
        fn write(&self, value: f64) {
            self.book.0.lock().unwrap().entry(self.key.clone()).or_default().push(value);
        }
    }

    impl metrics::CounterFn for Page {
        fn increment(&self, value: u64) {
            self.write(value as f64);
        }

        fn absolute(&self, _: u64) {
            panic!("no counter here is set");
        }
    }

    impl metrics::HistogramFn for Page {
        fn record(&self, value: f64) {
            self.write(value);
        }
    }

    impl Recorder for Book {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.page(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            panic!("{key} is no gauge");
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.page(key))
        }
    }

    fn client(script: impl IntoIterator<Item = Reply>) -> ClientBuilder {
        let step = Duration::from_millis(100);
        let gateway = FakeGateway::builder().manual_clock(&ManualClock::new());
        gateway
            .route("POST", "/orders/4711", script)
            .without_socket()
            .client()
            .max_attempts(3)
            .backoff(Backoff::new(step, step, step))
            .retry_budget(RetryBudget::off())
            .observer(MetricsObserver::new())
    }

    async fn place(client: &ServiceClient) -> Result<Response, Error> {
        let call = client.post(&CallContext::root(), "/orders").segment(4711);
        call.url_template("/orders/{id}").send().await
    }

    fn written(lines: &[(&str, &[f64])]) -> Vec<(String, Vec<f64>)> {
        lines.iter().map(|(key, values)| ((*key).to_owned(), values.to_vec())).collect()
    }

    #[tokio::test]
    async fn a_call_is_counted_and_timed_with_its_attempts_each_by_what_it_came_to() {
        let book = Book::default();
        let _kept = metrics::set_default_local_recorder(&book);
        let late = Reply::integration_timeout().delay(Duration::from_millis(250));
        place(&client([Reply::throttled(), late, Reply::ok()]).build().unwrap()).await.unwrap();
        let expected: &[(&str, &[f64])] = &[
            ("eastwest.client.attempts of a call ", &[1.0, 1.0, 1.0]),
            ("eastwest.client.call.duration of a call ", &[0.45]),
            ("eastwest.client.calls of a call outcome=succeeded", &[1.0]),
            ("eastwest.client.retries of a call ", &[1.0, 1.0]),
            ("eastwest.client.throttled of a call ", &[1.0]),
            ("http.client.request.duration of a call http.response.status_code=200", &[0.0]),
            (
                "http.client.request.duration of a call http.response.status_code=429 error.type=throttled",
                &[0.0],
            ),
            (
                "http.client.request.duration of a call http.response.status_code=504 error.type=gateway timeout",
                &[0.25],
            ),
        ];
        assert_eq!(book.read(), written(expected));
    }

    #[tokio::test]
    async fn a_failed_call_a_refused_one_and_the_circuit_that_opened_between_them_are_counted() {
        let book = Book::default();
        let _kept = metrics::set_default_local_recorder(&book);
        let builder = client([Reply::close()]).breaker(BreakerSettings::default().with_failures_in_row(1));
        let client = builder.max_attempts(1).build().unwrap();
        for _ in 0..2 {
            place(&client).await.unwrap_err();
        }
        let expected: &[(&str, &[f64])] = &[
            ("eastwest.client.attempts of a call ", &[1.0]),
            ("eastwest.client.call.duration of a call error.type=CircuitOpen", &[0.0]),
            ("eastwest.client.call.duration of a call error.type=Transport", &[0.0]),
            ("eastwest.client.calls of a call outcome=failed", &[1.0]),
            ("eastwest.client.calls of a call outcome=refused", &[1.0]),
            ("eastwest.client.circuit of no call from=closed to=open", &[1.0]),
            ("eastwest.client.in_doubt of a call ", &[1.0]),
            ("http.client.request.duration of a call error.type=connection lost", &[0.0]),
        ];
        assert_eq!(book.read(), written(expected));
    }

    #[tokio::test]
    async fn a_wait_for_the_client_s_own_limit_is_timed() {
        let book = Book::default();
        let _kept = metrics::set_default_local_recorder(&book);
        let client = client([Reply::ok()]).rate_limit(RateLimit::per_second(1)).build().unwrap();
        for _ in 0..2 {
            place(&client).await.unwrap();
        }
        let held_back = book.read().into_iter().find(|(key, _)| key.starts_with(HELD_BACK));
        assert_eq!(held_back, written(&[("eastwest.client.held_back of a call ", &[1.0])]).pop());
    }

    /// Nothing comes back from here; whoever waits is told that something was sent.
    struct Silence(Arc<Notify>);

    impl Network for Silence {
        fn exchange<'a>(
            &'a self,
            _: Outgoing,
            _: Duration,
            _: &'a dyn Ambient,
        ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>> {
            self.0.notify_one();
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_is_counted_as_abandoned_and_in_doubt() {
        let book = Book::default();
        let _kept = metrics::set_default_local_recorder(&book);
        let sent = Arc::new(Notify::new());
        let client = client([]).exchange_with(Silence(Arc::clone(&sent))).build().unwrap();
        tokio::select! {
            answer = place(&client) => panic!("{answer:?}"),
            () = sent.notified() => {}
        }
        let expected: &[(&str, &[f64])] = &[
            ("eastwest.client.calls of a call outcome=abandoned", &[1.0]),
            ("eastwest.client.in_doubt of a call ", &[1.0]),
        ];
        assert_eq!(book.read(), written(expected));
    }
}
