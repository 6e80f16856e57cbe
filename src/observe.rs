//! What an operator sees: a span a call and one an attempt, one warning a failed call, one an opening of the breaker; a retry is
//! only information. Spans and fields are named as OpenTelemetry's *Semantic conventions for HTTP* do.

use crate::error::Error;
use crate::observer::{CallView, Event, Observer};
use crate::policy::account_quota::{AccountBucket, Recent};
use crate::policy::breaker::{State, Transition};
use crate::policy::classify::Class;
use crate::story::Story;
use http::StatusCode;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use tracing::field::Empty;

/// Who is told of a client's calls, and where these go.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) server_address: Arc<str>,
    pub(crate) server_port: Option<u16>,
    /// Scheme, host and port, as the URL of an attempt begins.
    pub(crate) origin: String,
}

impl Watch {
    /// The span of a call, around all its attempts and waits.
    pub(crate) fn call_span(&self, story: &Story, hop: u8, circuit: impl FnOnce() -> State) -> Span {
        let span = tracing::info_span!(
            "call",
            otel.name = Empty,
            otel.kind = "internal",
            otel.status_code = Empty,
            http.request.method = %story.subject.method,
            url.template = story.subject.url_template.as_deref(),
            server.address = &*self.server_address,
            http.response.status_code = Empty,
            error.r#type = Empty,
            attempts = Empty,
            hop,
            circuit = Empty,
            correlation_id = story.subject.correlation_id(),
            idempotency_key = story.subject.idempotency_key(),
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("call {}", name(story)));
            span.record("circuit", circuit().as_str());
        }
        span
    }

    /// An attempt begins; its span, which tells what it follows from.
    pub(crate) fn attempt_begins(
        &self,
        story: &Story,
        number: u32,
        timeout: Duration,
        before: &Span,
    ) -> Span {
        self.tell(&Event::AttemptBegins { call: CallView(story), number, timeout });
        let span = tracing::info_span!(
            "attempt",
            otel.name = Empty,
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = %story.subject.method,
            http.request.resend_count = number.checked_sub(1).filter(|resent| *resent > 0),
            url.full = Empty,
            url.template = story.subject.url_template.as_deref(),
            server.address = &*self.server_address,
            server.port = self.server_port,
            http.response.status_code = Empty,
            error.r#type = Empty,
        );
        if !span.is_disabled() {
            span.record("otel.name", name(story));
            // Without the query: it may hold what nobody may see.
            span.record("url.full", format!("{}{}", self.origin, story.subject.path()));
            span.follows_from(before.id());
        }
        span
    }

    /// The last attempt of the story is over.
    pub(crate) fn attempt_ended(&self, story: &Story, span: &Span) {
        let Some(attempt) = story.attempts.last() else {
            return;
        };
        if !span.is_disabled() {
            if let Some(status) = attempt.status {
                span.record("http.response.status_code", status.as_u16());
            }
            if attempt.class != Class::Success {
                span.record("otel.status_code", "ERROR");
                span.record("error.type", attempt.class.as_str());
            }
        }
        self.tell(&Event::AttemptEnded { call: CallView(story), attempt });
    }

    /// The client's own limits have held an attempt back.
    pub(crate) fn held_back(&self, story: &Story, wait: Duration) {
        tracing::debug!(
            http.request.method = %story.subject.method,
            url.path = story.subject.path(),
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            correlation_id = story.subject.correlation_id(),
            "held back"
        );
        self.tell(&Event::HeldBack { call: CallView(story), wait });
    }

    /// A retry follows.
    pub(crate) fn retries(&self, story: &Story) {
        let Some(attempt) = story.attempts.last() else {
            return;
        };
        tracing::info!(
            http.request.method = %story.subject.method,
            url.path = story.subject.path(),
            http.response.status_code = attempt.status.map(|status| status.as_u16()),
            error.r#type = attempt.class.as_str(),
            http.request.resend_count = story.attempts.len(),
            wait_ms = attempt.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            correlation_id = story.subject.correlation_id(),
            idempotency_key = story.subject.idempotency_key(),
            "retrying"
        );
        self.tell(&Event::Retries { call: CallView(story), wait: attempt.wait.unwrap_or_default() });
    }

    /// A call has its answer.
    pub(crate) fn succeeded(&self, story: &Story, status: StatusCode, span: &Span) {
        if !span.is_disabled() {
            span.record("http.response.status_code", status.as_u16());
            span.record("attempts", story.attempts.len());
        }
        self.tell(&Event::Succeeded { call: CallView(story), status });
    }

    /// A call was given up.
    pub(crate) fn gave_up(&self, error: &Error, span: &Span) {
        if !span.is_disabled() {
            if let Some(status) = error.status() {
                span.record("http.response.status_code", status.as_u16());
            }
            span.record("otel.status_code", "ERROR");
            span.record("error.type", error.kind().as_str());
            span.record("attempts", error.attempts().len());
        }
        if error.is_circuit_open() {
            // A log full of repeats hides the line that matters.
            tracing::debug!(correlation_id = error.correlation_id(), "{error}");
        } else {
            tracing::warn!(
                error.r#type = error.class().map(|class| class.as_str()),
                http.response.status_code = error.status().map(|status| status.as_u16()),
                stop_reason = error.stop_reason().map(|reason| reason.as_str()),
                attempts = error.attempts().len(),
                may_have_committed = error.may_have_committed(),
                request_id = error.request_id(),
                correlation_id = error.correlation_id(),
                idempotency_key = error.idempotency_key(),
                "{error}"
            );
        }
        if let Some(story) = error.story() {
            self.tell(&Event::Failed { call: CallView(story), error });
        }
    }

    /// A call was dropped before its end.
    pub(crate) fn abandoned(&self, story: &Story, may_have_committed: bool, repeatable: bool) {
        tracing::info!(
            http.request.method = %story.subject.method,
            url.path = story.subject.path(),
            attempts = story.attempts.len(),
            may_have_committed,
            repeatable,
            correlation_id = story.subject.correlation_id(),
            idempotency_key = story.subject.idempotency_key(),
            "abandoned"
        );
        let event = Event::Abandoned { call: CallView(story), may_have_committed };
        if !std::thread::panicking() {
            return self.tell(&event);
        }
        // The call is dropped because something panicked, an observer maybe: one that does it again would end the process.
        for observer in &self.observers {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
        }
    }

    /// The breaker changed its state.
    pub(crate) fn circuit_changed(&self, transition: &Transition) {
        let Transition { from, to, cause, open_for } = *transition;
        if to == State::Open {
            tracing::warn!(server.address = &*self.server_address, ?from, ?cause, "circuit opened");
        } else {
            tracing::info!(server.address = &*self.server_address, ?from, ?to, "circuit changed");
        }
        self.tell(&Event::CircuitChanged { from, to, cause, open_for });
    }

    fn tell(&self, event: &Event<'_>) {
        for observer in &self.observers {
            observer.observe(event);
        }
    }
}

/// A span's name: of few values, so no path that may hold ids (OpenTelemetry, *Semantic conventions for HTTP spans*, name).
fn name(story: &Story) -> String {
    match &story.subject.url_template {
        Some(template) => format!("{} {template}", story.subject.method),
        None => story.subject.method.to_string(),
    }
}

/// A letter could not be stored.
pub(crate) fn letter_not_stored(id: &str, correlation_id: &str, why: &str) {
    tracing::warn!(dead_letter = id, correlation_id, why, "the dead letter was not stored");
}

/// A letter is replayed after the callee may have forgotten its key.
pub(crate) fn key_out_of_window(id: &str, correlation_id: &str, key: &str, age: Duration, window: Duration) {
    tracing::warn!(
        dead_letter = id,
        correlation_id,
        idempotency_key = key,
        age_s = age.as_secs(),
        window_s = window.as_secs(),
        "the first attempt is older than the callee keeps keys: the key no longer protects, the work may be done twice"
    );
}

/// More is drawn from the account's bucket, or sent for each call, than its owner wants.
pub(crate) fn quota_mark_passed(region: &str, recent: Recent, bucket: AccountBucket) {
    tracing::warn!(
        region,
        tokens_per_second = recent.tokens_per_second(),
        share = bucket.share(recent.tokens_per_second()),
        amplification = recent.amplification(),
        "the draw on the account's throttle quota has passed its mark"
    );
}

/// The fleet's circuit has tripped or closed, as this process was told.
pub(crate) fn fleet_circuit_changed(callee: &str, tripped: bool) {
    if tripped {
        tracing::warn!(callee, "the fleet's circuit tripped");
    } else {
        tracing::info!(callee, "the fleet's circuit closed");
    }
}

/// The store that a fleet shares could not be asked.
pub(crate) fn fleet_store_failed(shared: &str, why: &str, aloud: bool) {
    if aloud {
        tracing::warn!(shared, why, "the store that the fleet shares failed and is left alone for a while");
    } else {
        tracing::debug!(shared, why, "the store that the fleet shares failed again");
    }
}
