//! Keeps the story of a call while it runs, and tells it at its end: as an answer, an error or an event.

use crate::edge::kept::Kept;
use crate::edge::{Seen, Shown};
use crate::error::{Error, Inner};
use crate::error_kind::ErrorKind;
use crate::observe::Watch;
use crate::policy::attempts::{Attempts, StopReason};
use crate::policy::classify::Class;
use crate::policy::method::is_safe;
use crate::policy::moment::Moment;
use crate::response::Response;
use crate::story::{Attempt, Story};
use crate::teller::told::{came, told};
use crate::usage::{Came, Counted, RefusedBy, Reporter};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::time::{Duration, Instant};
use tracing::Span;

/// The story of one call.
///
/// Dropped before its end, it says that the call was abandoned. What it tells it also counts.
pub(crate) struct Teller<'a> {
    usage: &'a Reporter,
    watch: &'a Watch,
    /// Boxed, so that a call that nobody traces holds none.
    spans: Option<Box<Spans>>,
    repeatable: bool,
    start: Instant,
    story: Story,
    on_its_way: bool,
    /// How many retries were counted.
    retries: u32,
    /// How many retries there are, the one that is on its way included.
    retries_begun: u32,
    last: Option<Kept>,
    may_have_committed: bool,
    ended: bool,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(
        story: Story,
        repeatable: bool,
        start: Instant,
        (usage, watch): (&'a Reporter, &'a Watch),
        call_span: Span,
    ) -> Teller<'a> {
        usage.call();
        let spans = Spans::of(call_span);
        Teller {
            usage,
            watch,
            spans: (!spans.call.is_disabled()).then(|| Box::new(spans)),
            repeatable,
            start,
            story,
            on_its_way: false,
            retries: 0,
            retries_begun: 0,
            last: None,
            may_have_committed: false,
            ended: false,
        }
    }

    /// An attempt is about to be signed; the span to make it in.
    pub(crate) fn begins(&mut self, run: &Attempts<'_>, number: u32, timeout: Duration) -> Span {
        self.on_its_way = true;
        self.retries_begun = run.retries();
        let before = self.spans.as_ref().map_or(&NO_SPAN, |spans| &spans.traced);
        let span = self.watch.attempt_begins(&self.story, number, timeout, before);
        if self.spans.is_some() || !span.is_disabled() {
            self.spans.get_or_insert_with(|| Box::new(Spans::of(Span::none()))).begins(&span);
        }
        span
    }

    /// An attempt has shown what it shows.
    pub(crate) fn ended(&mut self, seen: &Seen, run: &Attempts<'_>) {
        self.on_its_way = false;
        self.count(came(&seen.shown, run.last_class()), Some(seen.ended));
        let status = match &seen.shown {
            Shown::Answered { status, .. } => Some(*status),
            Shown::Lost { .. } | Shown::NeverSent { .. } => None,
        };
        let attempt = Attempt {
            started: seen.sent.wall,
            duration: seen.ended.monotonic.saturating_duration_since(seen.sent.monotonic),
            class: run.last_class().unwrap_or(Class::ServerError),
            status,
            wait: None,
        };
        // What only reads leaves nothing behind (RFC 9110, 9.2.1).
        self.may_have_committed = run.may_have_committed() && !is_safe(&self.story.subject.method);
        self.story.push(attempt);
        let span = self.spans.as_ref().map_or(&NO_SPAN, |spans| &spans.attempt);
        self.watch.attempt_ended(&self.story, span);
    }

    /// Keeps what an attempt showed that was no success.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.last = Some(kept);
    }

    /// What the last attempt showed.
    pub(crate) fn last(&self) -> Option<&Kept> {
        self.last.as_ref()
    }

    /// The pace has admitted the attempt, after so long.
    pub(crate) fn admitted(&self, wait: Duration) {
        if wait >= NOTICED {
            self.watch.held_back(&self.story, wait);
        }
    }

    /// A wait follows, and then a further attempt.
    pub(crate) fn waits(&mut self, wait: Duration) {
        if let Some(attempt) = self.story.attempts.last_mut() {
            attempt.wait = Some(wait);
            self.watch.retries(&self.story);
        }
    }

    /// The call succeeded.
    pub(crate) fn answer(&mut self, seen: Seen, now: Moment) -> Response {
        self.ended = true;
        let story = self.take_story(now);
        let (status, headers, body) = match seen.shown {
            Shown::Answered { status, headers, body, .. } => (status, headers, body),
            // Only an answer is a success; were it otherwise, an empty answer is the honest rest.
            _ => (StatusCode::NO_CONTENT, HeaderMap::new(), Bytes::new()),
        };
        self.watch.succeeded(&story, status, self.call_span());
        Response { status, headers, body, story }
    }

    /// No identity could be had, or nothing could be signed with it.
    pub(crate) fn unsigned(&mut self, mut error: Error, run: &Attempts<'_>, now: Moment) -> Error {
        let story = self.take_story(now);
        let inner = error.inner_mut();
        inner.story = Some(story);
        inner.may_have_committed = self.may_have_committed;
        inner.class = run.last_class();
        inner.retry_after = run.retry_after();
        inner.look_it_up = !self.repeatable;
        if let (Some(kept), Some(class)) = (self.last.take(), run.last_class()) {
            // The last real outcome is not lost behind the later failure.
            inner.answer = told(kept, class).1;
        }
        self.finish(error)
    }

    /// Policy gave the call up.
    ///
    /// `circuit_opens_after` is when the breaker would admit an attempt, if it would not now.
    pub(crate) fn gave_up(
        &mut self,
        stop: Stop,
        run: &Attempts<'_>,
        circuit_opens_after: Option<Duration>,
        now: Moment,
    ) -> Error {
        // Of two reasons that hold, the breaker's is told first.
        let reason = match stop.reason {
            StopReason::TimeBudgetExhausted if circuit_opens_after.is_some() => StopReason::CircuitOpen,
            reason => reason,
        };
        let come_back = match reason {
            StopReason::CircuitOpen => stop.come_back.or(circuit_opens_after),
            StopReason::RateLimited => stop.come_back,
            _ => None,
        };
        let class = run.last_class();
        let kind = match (reason, class) {
            (StopReason::CircuitOpen, None) => ErrorKind::CircuitOpen,
            (StopReason::RateLimited, None) => ErrorKind::RateLimited,
            (_, Some(class)) => ErrorKind::of_class(class),
            (_, None) => ErrorKind::Timeout,
        };
        let (what, answer, cause) = match (self.last.take(), class) {
            (Some(kept), Some(class)) => told(kept, class),
            _ => (stop.nothing_sent(reason).to_owned(), None, None),
        };
        match kind {
            ErrorKind::CircuitOpen => self.usage.refused(RefusedBy::Circuit),
            ErrorKind::RateLimited => self.usage.refused(RefusedBy::RateLimit),
            _ => {}
        }
        let what = match stop.unrecoverable {
            Some(why) => format!("{what}: {why}"),
            None => what,
        };
        let error = Error::from_inner(Inner {
            kind,
            stop_reason: Some(reason),
            class,
            what,
            field: None,
            answer,
            story: Some(self.take_story(now)),
            retry_after: come_back.max(run.retry_after()),
            may_have_committed: self.may_have_committed,
            look_it_up: !self.repeatable,
            cause,
            intent: None,
        });
        self.finish(error)
    }

    /// The span of the call, where somebody traces it.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.spans.as_ref().map(|spans| &spans.call).filter(|span| !span.is_disabled())
    }

    fn call_span(&self) -> &Span {
        self.spans.as_ref().map_or(&NO_SPAN, |spans| &spans.call)
    }

    fn finish(&mut self, error: Error) -> Error {
        self.ended = true;
        self.watch.gave_up(&error, self.call_span());
        error
    }

    fn count(&mut self, came: Came, ended: Option<Moment>) {
        let first = self.story.attempts.is_empty();
        let retry = self.retries_begun > self.retries;
        self.retries = self.retries_begun;
        self.usage.attempt(Counted { first, retry, came }, ended.map(|now| now.monotonic));
    }

    fn take_story(&mut self, now: Moment) -> Story {
        let elapsed = now.monotonic.saturating_duration_since(self.start);
        self.story.end(elapsed)
    }
}

impl Drop for Teller<'_> {
    fn drop(&mut self) {
        if !self.ended {
            if self.on_its_way {
                self.count(Came::Doubt, None);
            }
            // An attempt that was on its way may have arrived, whatever would have been answered.
            let on_its_way = self.on_its_way && !is_safe(&self.story.subject.method);
            let may_have_committed = self.may_have_committed || on_its_way;
            let told = || self.watch.abandoned(&self.story, may_have_committed, self.repeatable);
            self.call_span().in_scope(told);
        }
    }
}

/// The spans of a call and of its attempts.
struct Spans {
    call: Span,
    /// Of the last attempt, traced or not.
    attempt: Span,
    /// Of the last attempt that somebody traces, which the next one follows from.
    traced: Span,
}

impl Spans {
    fn of(call: Span) -> Spans {
        Spans { call, attempt: Span::none(), traced: Span::none() }
    }

    fn begins(&mut self, attempt: &Span) {
        self.attempt = attempt.clone();
        if !attempt.is_disabled() {
            self.traced = attempt.clone();
        }
    }
}

static NO_SPAN: Span = Span::none();

/// What is shorter is no wait: it was only asked.
const NOTICED: Duration = Duration::from_millis(1);

mod stop;
mod told;

pub(crate) use stop::Stop;
