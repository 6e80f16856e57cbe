//! Attempts and waits, told while they happen.

use eastwest::{Attempt, Error, Event, Observer};
use std::sync::{Arc, Mutex, PoisonError};

/// Where progress is told: on stderr, or nowhere, or into a test.
#[derive(Clone)]
pub(crate) struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    pub(crate) fn new(quiet: bool) -> Progress {
        if quiet { Progress(Arc::new(|_| {})) } else { Progress(Arc::new(|line| eprintln!("{line}"))) }
    }

    /// Keeps what is told.
    #[allow(dead_code, reason = "for the tests of this example")]
    pub(crate) fn kept() -> (Progress, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&lines);
        let say = move |line: &str| keep.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
        (Progress(Arc::new(say)), lines)
    }

    pub(crate) fn say(&self, line: &str) {
        self.0(line);
    }

    pub(crate) fn failed(&self, error: &Error) {
        self.say(&format!("! {error}"));
        if let Some(wait) = error.retry_after() {
            self.say(&format!("! come back in {} s", wait.as_secs_f64().ceil()));
        }
        if error.may_have_committed() {
            let way = match error.idempotency_key() {
                Some(key) => format!("ask again with --key {key}"),
                None => "look it up before you send again".to_owned(),
            };
            self.say(&format!("! it may have been carried out: {way}"));
        }
    }
}

impl Observer for Progress {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::AttemptBegins { call, number: 1, .. } => {
                let key = call.idempotency_key().map(|key| format!(", key {key}")).unwrap_or_default();
                self.say(&format!(
                    "> {} {} (correlation id {}{key})",
                    call.method(),
                    call.path(),
                    call.correlation_id()
                ));
            }
            Event::AttemptBegins { number, .. } => self.say(&format!("> attempt {number}")),
            Event::AttemptEnded { attempt, .. } => self.say(&format!("< {}", ended(attempt))),
            Event::HeldBack { wait, .. } => self.say(&format!("  held back for {} ms", wait.as_millis())),
            Event::Retries { wait, .. } if wait.is_zero() => self.say("  again at once, put right"),
            Event::Retries { wait, .. } => self.say(&format!("  again in {} ms", wait.as_millis())),
            Event::CircuitChanged { from, to, .. } => {
                self.say(&format!("  the circuit was {from:?} and is {to:?}"))
            }
            Event::Succeeded { call, .. } => {
                self.say(&format!("= {} attempts, {} ms", call.attempts().len(), call.elapsed().as_millis()));
            }
            _ => {}
        }
    }
}

fn ended(attempt: &Attempt) -> String {
    let took = attempt.duration().as_millis();
    match attempt.status() {
        Some(status) => format!("{} {} after {took} ms", status.as_u16(), attempt.class()),
        None => format!("{} after {took} ms", attempt.class()),
    }
}
