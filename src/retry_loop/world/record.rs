//! What a world knows of each call, and what of it must hold when the call is over.

use super::*;
use crate::policy::attempts::StopReason;
use crate::policy::moment::Moment;
use crate::usage::Usage;
use http::StatusCode;
use std::collections::HashMap;

/// All calls that are at work, by their correlation id.
#[derive(Clone, Default)]
pub(super) struct Records(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    open: HashMap<String, Record>,
    /// Of calls that are over.
    calls: u64,
    paid_retries: u64,
    answered: u64,
    lost: u64,
    never_sent: u64,
    /// Attempts whose call was dropped meanwhile.
    dropped: u64,
}

impl Records {
    pub(super) fn begin(&self, id: &str, record: Record) {
        assert!(self.0.lock().unwrap().open.insert(id.to_owned(), record).is_none(), "{id} twice");
    }

    pub(super) fn end(&self, id: &str) -> Record {
        let mut book = self.0.lock().unwrap();
        let record = book.open.remove(id).unwrap();
        let of = |came| record.ended.iter().filter(|ended| ended.came == came).count() as u64;
        book.calls += 1;
        book.paid_retries += u64::from(record.paid_retries);
        book.answered += of(Came::Answer);
        book.lost += of(Came::Loss);
        book.never_sent += of(Came::Nothing);
        book.dropped += u64::from(record.arrived) - record.ended.len() as u64;
        record
    }

    pub(super) fn with<T>(&self, id: &str, look: impl FnOnce(&mut Record) -> T) -> T {
        look(self.0.lock().unwrap().open.get_mut(id).unwrap())
    }

    pub(super) fn paid_in_all(&self) -> u64 {
        self.0.lock().unwrap().paid_retries
    }

    /// The client's own counters tell the same.
    pub(super) fn check(&self, usage: &Usage) {
        let book = self.0.lock().unwrap();
        assert_eq!(usage.calls, book.calls, "calls");
        assert_eq!(usage.attempts, book.answered + book.lost + book.never_sent + book.dropped, "attempts");
        assert_eq!(usage.tokens, book.answered, "tokens");
        assert_eq!(usage.in_doubt, book.lost + book.dropped, "in doubt");
    }
}

/// One call, from the callee's side.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) max_attempts: u32,
    pub(super) repeatable: bool,
    pub(super) is_read: bool,
    pub(super) began: Instant,
    pub(super) ends: Instant,
    pub(super) least: Duration,
    /// How each finished attempt ended.
    pub(super) ended: Vec<Ended>,
    /// How many attempts arrived, finished or not.
    pub(super) arrived: u32,
    pub(super) committed: bool,
    /// What the next attempt is: a recovery, or a retry that costs nothing.
    pub(super) recovering: bool,
    pub(super) thawed_before: bool,
    pub(super) free_retry: bool,
    pub(super) paid_retries: u32,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Answer,
    Loss,
    Nothing,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) came: Came,
    pub(super) status: Option<StatusCode>,
    pub(super) at: Instant,
    /// Whether the callee may have done the work.
    pub(super) in_doubt: bool,
    pub(super) forbids: bool,
    pub(super) never_again: bool,
    pub(super) hint: Option<Duration>,
}

impl Record {
    pub(super) fn new(terms: &Terms, method: &Method, bounds: Bounds, begun: Moment) -> Record {
        let total = begun.monotonic + bounds.total;
        Record {
            max_attempts: terms.max_attempts,
            repeatable: terms.repeatable,
            is_read: method.is_safe(),
            began: begun.monotonic,
            ends: bounds.deadline.map_or(total, |deadline| deadline.min(total)),
            least: bounds.min_attempt_time,
            ended: Vec::new(),
            arrived: 0,
            committed: false,
            recovering: false,
            thawed_before: false,
            free_retry: false,
            paid_retries: 0,
        }
    }

    /// An attempt begins, which may be a retry that has to be paid for.
    pub(super) fn begins(&mut self) {
        let is_retry = !self.ended.is_empty() && !self.recovering;
        if is_retry && !std::mem::take(&mut self.free_retry) {
            self.paid_retries += 1;
        }
    }

    /// An attempt arrives: may it?
    pub(super) fn arrives(&mut self, number: u32, timeout: Duration, now: Instant) {
        self.arrived += 1;
        assert_eq!(number, self.arrived, "attempts are counted from 1");
        assert!(number <= self.max_attempts, "{number} attempts, {} allowed", self.max_attempts);
        let left = self.ends.saturating_duration_since(now);
        assert!(left >= self.least, "begun with {left:?} left");
        assert!(timeout <= left, "it would be waited for {timeout:?}, {left:?} is left");
        if let Some(last) = self.ended.last() {
            assert!(!last.forbids, "the callee forbade it");
            assert!(!last.never_again, "no row of the table sends this again: {last:?}");
            let may_repeat = self.repeatable || !self.ended.iter().any(|ended| ended.in_doubt);
            assert!(may_repeat, "sent again without a key after a doubt: {self:?}");
            let waited = now.saturating_duration_since(last.at);
            assert!(self.recovering || waited >= last.hint.unwrap_or_default(), "{waited:?} after {last:?}");
        }
        self.recovering = false;
    }

    /// The call is over. `lost` is the time that passed while the sandbox was frozen.
    pub(super) fn check(&self, fate: Option<&Result<Response, Error>>, now: Moment, lost: Duration) {
        let Some(result) = fate else { return };
        let took = now.monotonic.saturating_duration_since(self.began);
        let allowed = self.ends.saturating_duration_since(self.began) + lost + TICK;
        assert!(took <= allowed, "it took {took:?}, {allowed:?} was allowed: {self:?}");
        let statuses: Vec<_> = self.ended.iter().map(|ended| ended.status).collect();
        match result {
            Ok(response) => {
                let told: Vec<_> = response.attempts().iter().map(crate::story::Attempt::status).collect();
                assert_eq!(told, statuses);
                assert!(response.status().is_success() && statuses.last() == Some(&Some(response.status())));
            }
            Err(error) => self.check_error(error, &statuses),
        }
    }

    fn check_error(&self, error: &Error, statuses: &[Option<StatusCode>]) {
        let told: Vec<_> = error.attempts().iter().map(crate::story::Attempt::status).collect();
        assert_eq!(told, statuses, "{error}");
        assert!(
            error.may_have_committed() || !self.committed || self.is_read,
            "it did commit: {error}, {self:?}"
        );
        let last = self.ended.last();
        if let Some(hint) = last.and_then(|last| last.hint).filter(|_| error.status().is_some()) {
            assert!(error.retry_after() >= Some(hint), "{error}: {:?}, {hint:?}", error.retry_after());
        }
        let attempts = u32::try_from(statuses.len()).unwrap();
        match error.stop_reason() {
            Some(StopReason::AttemptsExhausted) => assert_eq!(attempts, self.max_attempts, "{error}"),
            Some(StopReason::CalleeForbids) => assert!(last.unwrap().forbids, "{error}"),
            Some(StopReason::NoIdempotencyKey) => {
                assert!(!self.repeatable && last.unwrap().in_doubt, "{error}")
            }
            Some(StopReason::NotRetryable) => assert!(last.unwrap().never_again, "{error}: {last:?}"),
            Some(_) | None => {}
        }
        if error.is_circuit_open() {
            assert!(error.stop_reason() == Some(StopReason::CircuitOpen), "{error}");
        }
        if error.kind() == crate::error_kind::ErrorKind::CircuitOpen {
            assert_eq!(attempts, 0, "{error}");
        }
    }
}

/// What a clock of a world cannot tell apart.
const TICK: Duration = Duration::from_millis(1);
