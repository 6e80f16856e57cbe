//! Keeps the story of a call while it runs, and tells it at its end: as an answer, an error or an event.

use crate::edge::{Seen, Shown};
use crate::error::{Answered, Cause, Error, Inner};
use crate::error_kind::ErrorKind;
use crate::observe;
use crate::pace::Late;
use crate::policy::attempts::{Attempts, StopReason};
use crate::policy::classify::Class;
use crate::policy::gateway::{ErrorBody, GatewayError, first_sentence};
use crate::policy::moment::Moment;
use crate::response::Response;
use crate::story::{Attempt, Story};
use crate::usage::{Came, Counted, RefusedBy, Reporter};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::time::Duration;

/// The story of one call.
///
/// Dropped before its end, it says that the call was abandoned. What it tells it also counts.
pub(crate) struct Teller<'a> {
    usage: &'a Reporter,
    repeatable: bool,
    start: Moment,
    story: Story,
    come_back: Option<Duration>,
    unrecoverable: Option<&'static str>,
    /// Why the pace did not admit an attempt.
    late: Option<Late>,
    on_its_way: bool,
    /// How many retries were counted.
    retries: u32,
    /// How many retries there are, the one that is on its way included.
    retries_begun: u32,
    last: Option<Seen>,
    may_have_committed: bool,
    ended: bool,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(
        (method, path): (&Method, &str),
        repeatable: bool,
        start: Moment,
        ids: (String, Option<String>),
        usage: &'a Reporter,
    ) -> Teller<'a> {
        usage.call();
        let story = Story::of((method.clone(), path.to_owned()), ids);
        Teller {
            usage,
            repeatable,
            start,
            story,
            come_back: None,
            unrecoverable: None,
            late: None,
            on_its_way: false,
            retries: 0,
            retries_begun: 0,
            last: None,
            may_have_committed: false,
            ended: false,
        }
    }

    pub(crate) fn start(&self) -> Moment {
        self.start
    }

    /// An attempt is about to be signed.
    pub(crate) fn begins(&mut self, run: &Attempts<'_>) {
        self.on_its_way = true;
        self.retries_begun = run.retries();
    }

    /// An attempt has shown what it shows.
    pub(crate) fn ended(&mut self, seen: Seen, run: &Attempts<'_>) {
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
        self.may_have_committed = run.may_have_committed() && !self.story.method.is_safe();
        self.story.attempts.push(attempt);
        self.last = Some(seen);
    }

    /// What the last attempt showed.
    pub(crate) fn last(&self) -> Option<&Seen> {
        self.last.as_ref()
    }

    /// The breaker did not admit the attempt.
    pub(crate) fn circuit_refused(&mut self, come_back: Duration) -> StopReason {
        self.come_back = Some(come_back);
        StopReason::CircuitOpen
    }

    /// The pace did not admit the attempt in its time.
    pub(crate) fn late(&mut self, late: Late) -> StopReason {
        self.come_back = late.come_back();
        self.late = Some(late);
        StopReason::RateLimited
    }

    /// What the gateway refused cannot be put right.
    pub(crate) fn cannot_recover(&mut self, why: &'static str) -> StopReason {
        self.unrecoverable = Some(why);
        StopReason::RecoveryUsed
    }

    /// A wait follows, and then a further attempt.
    pub(crate) fn waits(&mut self, wait: Duration) {
        if let Some(attempt) = self.story.attempts.last_mut() {
            attempt.wait = Some(wait);
            observe::retries(&self.story);
        }
    }

    /// The call succeeded.
    pub(crate) fn answer(mut self, now: Moment) -> Response {
        self.ended = true;
        let story = self.take_story(now);
        match self.last.take().map(|seen| seen.shown) {
            Some(Shown::Answered { status, headers, body, .. }) => Response { status, headers, body, story },
            // Only an answer is a success; were it otherwise, an empty answer is the honest rest.
            _ => Response {
                status: StatusCode::NO_CONTENT,
                headers: HeaderMap::new(),
                body: Bytes::new(),
                story,
            },
        }
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
        if let (Some(seen), Some(class)) = (self.last.take(), run.last_class()) {
            // The last real outcome is not lost behind the later failure.
            inner.answer = told(seen, class).1;
        }
        self.finish(error)
    }

    /// Policy gave the call up.
    ///
    /// `circuit_opens_after` is when the breaker would admit an attempt, if it would not now.
    pub(crate) fn gave_up(
        mut self,
        reason: StopReason,
        run: &Attempts<'_>,
        circuit_opens_after: Option<Duration>,
        now: Moment,
    ) -> Error {
        // Of two reasons that hold, the breaker's is told first.
        let reason = match reason {
            StopReason::TimeBudgetExhausted if circuit_opens_after.is_some() => StopReason::CircuitOpen,
            reason => reason,
        };
        let come_back = match reason {
            StopReason::CircuitOpen => self.come_back.or(circuit_opens_after),
            StopReason::RateLimited => self.come_back,
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
            (Some(seen), Some(class)) => told(seen, class),
            _ => (self.nothing_sent(reason).to_owned(), None, None),
        };
        match kind {
            ErrorKind::CircuitOpen => self.usage.refused(RefusedBy::Circuit),
            ErrorKind::RateLimited => self.usage.refused(RefusedBy::RateLimit),
            _ => {}
        }
        let what = match self.unrecoverable {
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

    fn nothing_sent(&self, reason: StopReason) -> &'static str {
        match (reason, self.late) {
            (StopReason::CircuitOpen, _) => "the circuit is open, nothing was sent",
            (_, Some(late)) => late.as_str(),
            _ => "no time was left to begin",
        }
    }

    fn finish(&mut self, error: Error) -> Error {
        self.ended = true;
        observe::gave_up(&error);
        error
    }

    fn count(&mut self, came: Came, ended: Option<Moment>) {
        let first = self.story.attempts.is_empty();
        let retry = self.retries_begun > self.retries;
        self.retries = self.retries_begun;
        self.usage.attempt(Counted { first, retry, came }, ended.map(|now| now.monotonic));
    }

    fn take_story(&mut self, now: Moment) -> Story {
        let elapsed = now.monotonic.saturating_duration_since(self.start.monotonic);
        let nothing = Story::of((Method::default(), String::new()), (String::new(), None));
        let mut story = std::mem::replace(&mut self.story, nothing);
        story.elapsed = elapsed;
        story
    }
}

impl Drop for Teller<'_> {
    fn drop(&mut self) {
        if !self.ended {
            if self.on_its_way {
                self.count(Came::Doubt, None);
            }
            // An attempt that was on its way may have arrived, whatever would have been answered.
            let on_its_way = self.on_its_way && !self.story.method.is_safe();
            let may_have_committed = self.may_have_committed || on_its_way;
            observe::abandoned(&self.story, may_have_committed, self.repeatable);
        }
    }
}

/// What an attempt counts for.
fn came(shown: &Shown, class: Option<Class>) -> Came {
    match shown {
        Shown::Answered { .. } if matches!(class, Some(Class::QuotaExhausted | Class::Throttled)) => {
            Came::Throttle
        }
        Shown::Answered { .. } => Came::Answer,
        Shown::Lost { .. } => Came::Doubt,
        Shown::NeverSent { .. } => Came::Nothing,
    }
}

/// What the last attempt showed, in words; what is kept of its answer; and the cause beneath.
fn told(seen: Seen, class: Class) -> (String, Option<Answered>, Option<Cause>) {
    match seen.shown {
        Shown::Answered { status, headers, body, .. } => {
            let gateway_error = GatewayError::read(status, &headers);
            let read = ErrorBody::read(&headers, &body);
            let what = match (class, gateway_error) {
                (Class::RouteMissing, _) => {
                    "403: no such method or path behind this gateway, or the call arrived unsigned".to_owned()
                }
                (_, Some(error)) => format!("{} {class} ({})", status.as_u16(), error.as_str()),
                (_, None) => format!("{} {class}", status.as_u16()),
            };
            let echoes = gateway_error.is_some_and(GatewayError::may_echo_the_request);
            let message = read.message.map(|m| if echoes { first_sentence(&m).to_owned() } else { m });
            let body = if echoes { Bytes::from(message.clone().unwrap_or_default()) } else { body };
            let code = read.code;
            (what, Some(Answered { status, headers, body, gateway_error, code, message }), None)
        }
        Shown::Lost { how, cause, .. } => (format!("{class}: {}", how.as_str()), None, Some(cause)),
        Shown::NeverSent { reason, cause, .. } => (format!("{class}: {reason}"), None, Some(cause)),
    }
}
