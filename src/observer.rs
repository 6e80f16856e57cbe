//! Who wants to be told what becomes of calls, while it happens.

use crate::error::Error;
use crate::policy::breaker::{Cause, State};
use crate::story::{Attempt, Story};
use http::{Method, StatusCode};
use std::time::Duration;

/// Is told what becomes of a client's calls, while it happens.
///
/// It is called on the call's own task, between its steps: what takes long holds the call up, and what panics, panics there. A
/// call that ends by a panic is abandoned, and a further panic at that is caught. It sees no body, no header, no query and no
/// secret.
///
/// ```
/// use eastwest::{Event, Observer, ServiceClient};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Doubts(AtomicU64);
///
/// impl Observer for Doubts {
///     fn observe(&self, event: &Event<'_>) {
///         match event {
///             Event::Failed { error, .. } if error.may_have_committed() => {
///                 self.0.fetch_add(1, Ordering::Relaxed);
///             }
///             // Further events may come with a later version.
///             _ => {}
///         }
///     }
/// }
///
/// let client = ServiceClient::builder("https://abc123.execute-api.eu-central-1.amazonaws.com/prod")
///     .region("eu-central-1")
///     .environment_credentials()
///     .observer(Doubts::default())
///     .build()?;
/// # let _ = client;
/// # Ok::<(), eastwest::Error>(())
/// ```
pub trait Observer: Send + Sync {
    /// Takes in one event.
    fn observe(&self, event: &Event<'_>);
}

/// What becomes of calls.
///
/// Of one call: any number of attempts, each of which begins and ends, with what comes between them; and one of
/// [`Abandoned`](Event::Abandoned), [`Failed`](Event::Failed) and [`Succeeded`](Event::Succeeded) at the end. A call that is
/// not valid begins nothing and ends in no event. An attempt that cannot be signed, or whose headers turn out too large with the
/// signature, begins and does not end: its call fails, and nothing was sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The call's future was dropped before its end.
    #[non_exhaustive]
    Abandoned {
        /// The call.
        call: CallView<'a>,
        /// Whether the callee may have done the work, or may still be at it.
        may_have_committed: bool,
    },
    /// An attempt is about to be signed and sent.
    #[non_exhaustive]
    AttemptBegins {
        /// The call.
        call: CallView<'a>,
        /// Its number, from 1.
        number: u32,
        /// How long it will be waited for.
        timeout: Duration,
    },
    /// An attempt is over.
    #[non_exhaustive]
    AttemptEnded {
        /// The call, this attempt included.
        call: CallView<'a>,
        /// The attempt.
        attempt: &'a Attempt,
    },
    /// The breaker opened or closed by what an attempt showed. That it lets a probe out, and what is forced by hand, is no event.
    #[non_exhaustive]
    CircuitChanged {
        /// The state before.
        from: State,
        /// The state after.
        to: State,
        /// What brought it about.
        cause: Cause,
        /// How long it stays open, where it was opened.
        open_for: Option<Duration>,
    },
    /// The call was given up, or nothing could be sent.
    #[non_exhaustive]
    Failed {
        /// The call.
        call: CallView<'a>,
        /// Why.
        error: &'a Error,
    },
    /// The client's own limits (rate, calls in flight, a limit shared with others) have held the next attempt back for a millisecond
    /// or more; it may begin now.
    #[non_exhaustive]
    HeldBack {
        /// The call.
        call: CallView<'a>,
        /// For how long.
        wait: Duration,
    },
    /// A further attempt follows, after a wait or at once.
    #[non_exhaustive]
    Retries {
        /// The call.
        call: CallView<'a>,
        /// How long is waited; zero after a recovery.
        wait: Duration,
    },
    /// The call has its answer.
    #[non_exhaustive]
    Succeeded {
        /// The call.
        call: CallView<'a>,
        /// The answer's status.
        status: StatusCode,
    },
}

/// A call as an [`Observer`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct CallView<'a>(pub(crate) &'a Story);

impl<'a> CallView<'a> {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &'a Method {
        &self.0.subject.method
    }

    /// The path with stage or base path, percent-encoded, without the query. It may hold ids: use the
    /// [template](CallView::url_template) where values are counted.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.0.subject.path()
    }

    /// The route as its owner names it, where the call was given one with [`Call::url_template`](crate::Call::url_template).
    #[must_use]
    pub fn url_template(&self) -> Option<&'a str> {
        self.0.subject.url_template.as_deref()
    }

    /// The callee's host.
    #[must_use]
    pub fn server_address(&self) -> &'a str {
        self.0.subject.target.host()
    }

    /// The correlation id.
    #[must_use]
    pub fn correlation_id(&self) -> &'a str {
        self.0.subject.correlation_id()
    }

    /// The idempotency key, if the call carries one.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&'a str> {
        self.0.subject.idempotency_key()
    }

    /// The attempts that are over.
    #[must_use]
    pub fn attempts(&self) -> &'a [Attempt] {
        &self.0.attempts
    }

    /// How long the call took; zero before its end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }
}
