//! What an operator sees of an incident: the log as CloudWatch would get it, JSON a line, and the story that it tells.
//!
//! `cargo run --example observe`. Three orders are placed while the callee is well, throttled, slow and down, and well again; then
//! the log alone is asked for one chain by its correlation id. Ends with 0 only if the story is whole. Time is the example's own.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{BreakerSettings, CallContext, ServiceClient};
use serde_json::{Map, Value, json};
use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

type Failure = Box<dyn StdError + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("the log does not tell the whole story");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the incident; says whether its log tells it.
pub(crate) async fn run() -> Result<bool, Failure> {
    let lines = Lines::default();
    {
        let _heard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
        // Another test of the process may have been the first at an event, with nobody listening.
        tracing::callsite::rebuild_interest_cache();
        incident().await?;
    }
    let log = lines.read();
    println!("the log:\n");
    log.iter().for_each(|line| println!("{line}"));
    println!("\nthe chain of order-2, by its correlation id:\n");
    let chain: Vec<_> = log.iter().filter(|line| line["correlation_id"] == "order-2").collect();
    for line in &chain {
        println!("{:>5}  {}", text(line, "level"), told(line));
    }
    println!("\nand what woke the operator:\n");
    let warnings: Vec<_> = log.iter().filter(|line| line["level"] == "WARN").collect();
    warnings.iter().for_each(|line| println!("{}", told(line)));
    let opened = warnings.iter().filter(|line| line["message"] == "circuit opened").count();
    let messages: Vec<_> = chain.iter().map(|line| text(line, "message")).collect();
    Ok(opened == 1
        && warnings.len() == 2
        && messages.len() == 4
        && messages.iter().take(3).eq(["retrying", "retrying", "circuit opened"].iter())
        && chain.iter().all(|line| line["url.template"] == "/orders"))
}

/// A line in an operator's words.
fn told(line: &Value) -> String {
    let status =
        line["http.response.status_code"].as_u64().map(|status| format!(" {status}")).unwrap_or_default();
    let wait = line["wait_ms"].as_u64().map(|wait| format!(", again in {wait} ms")).unwrap_or_default();
    format!("{}{status}{wait}", text(line, "message"))
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_default().to_owned()
}

async fn incident() -> Result<(), Failure> {
    let clock = ManualClock::new();
    let script = [
        Reply::ok(),
        // The second order meets a throttle and a timeout, and fails.
        Reply::throttled(),
        Reply::integration_timeout(),
        Reply::integration_timeout(),
        Reply::ok(),
    ];
    let gateway = FakeGateway::builder()
        .credentials("AKIDOBSERVE", "observe-secret", None)
        .region("eu-central-1")
        .manual_clock(&clock)
        .route("POST", "/orders", script)
        .start()
        .await?;
    let client = ServiceClient::builder(gateway.base_url())
        .region("eu-central-1")
        .static_credentials("AKIDOBSERVE", "observe-secret", None)
        .breaker(BreakerSettings::default().with_failures_in_row(2))
        .ambient(clock.clone())
        .build()?;
    for order in ["order-1", "order-2", "order-3"] {
        let context = CallContext::root().with_correlation_id(order)?;
        let call = || client.post(&context, "/orders").url_template("/orders").idempotency_key(order);
        // What becomes of it is in the log.
        let _ = call().send().await;
        if order == "order-2" {
            // A call that the open circuit refuses is no line of its own: a log full of repeats hides what matters.
            let _ = client.post(&CallContext::root(), "/orders").send().await;
            clock.advance(Duration::from_secs(5));
        }
    }
    Ok(())
}

/// Events as JSON, with the fields of the spans around them.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Value>>>);

impl Lines {
    fn read(&self) -> Vec<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if *event.metadata().level() > Level::INFO {
            return;
        }
        let mut line = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.clone());
            }
        }
        event.record(&mut line);
        line.0.insert("level".to_owned(), json!(event.metadata().level().as_str()));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Value::Object(line.0));
    }
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }
}
