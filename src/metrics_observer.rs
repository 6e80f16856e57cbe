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
