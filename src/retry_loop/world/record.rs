//! What a world knows of each call, and what of it must hold when the call is over.

use super::*;
use crate::policy::backoff::Backoff;
use crate::policy::classify::Recovery;
use crate::policy::moment::Moment;
use crate::usage::Usage;
use bytes::Bytes;
use http::{HeaderName, StatusCode};
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
    /// How often it may be sent again after a 500, and after a 502.
    pub(super) caps: (u32, u32),
    pub(super) backoff: Backoff,
    first: Option<Sent>,
    recoveries: Vec<Recovery>,
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

impl Ended {
    pub(super) fn code(&self) -> Option<u16> {
        self.status.map(|status| status.as_u16())
    }
}

/// What all attempts of a call have in common: ids and method, hop, headers, body.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    method: Method,
    url: String,
    correlation_id: String,
    idempotency_key: Option<String>,
    hop: u8,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Record {
    pub(super) fn new(terms: &Terms, method: &Method, bounds: Bounds, begun: Moment) -> Record {
        let total = begun.monotonic + bounds.total;
        Record {
            max_attempts: terms.max_attempts,
            repeatable: terms.repeatable,
            is_read: crate::policy::method::is_safe(method),
            began: begun.monotonic,
            ends: bounds.deadline.map_or(total, |deadline| deadline.min(total)),
            least: bounds.min_attempt_time,
            caps: (terms.server_error_retries, terms.bad_gateway_retries),
            backoff: terms.backoff,
            first: None,
            recoveries: Vec::new(),
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
    pub(super) fn arrives(&mut self, order: &Order, (number, timeout): (u32, Duration), now: Instant) {
        let sent = Sent {
            method: order.subject.method.clone(),
            url: order.subject.target.as_str().to_owned(),
            correlation_id: order.subject.correlation_id().to_owned(),
            idempotency_key: order.subject.idempotency_key().map(str::to_owned),
            hop: order.hop,
            headers: order.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: order.body.clone(),
        };
        assert_eq!(self.first.get_or_insert_with(|| sent.clone()), &sent, "every attempt sends the same");
        self.arrived += 1;
        assert_eq!(number, self.arrived, "attempts are counted from 1");
        assert!(number <= self.max_attempts, "{number} attempts, {} allowed", self.max_attempts);
        let left = self.ends.saturating_duration_since(now);
        assert!(left >= self.least, "begun with {left:?} left");
        assert!(timeout <= left, "it would be waited for {timeout:?}, {left:?} is left");
        if let Some(last) = self.ended.last() {
            assert!(!last.forbids, "the callee forbade it");
            assert!(!last.never_again, "no row of the table sends this again: {last:?}");
            assert!(!self.is_capped(), "more often than the status's cap allows: {self:?}");
            let may_repeat = self.repeatable || !self.ended.iter().any(|ended| ended.in_doubt);
            assert!(may_repeat, "sent again without a key after a doubt: {self:?}");
            let waited = now.saturating_duration_since(last.at);
            assert!(self.recovering || waited >= last.hint.unwrap_or_default(), "{waited:?} after {last:?}");
        }
        self.recovering = false;
    }

    /// Something is put right before a further attempt: once a call, and twice in all.
    pub(super) fn recovers(&mut self, recovery: Recovery) {
        assert!(!self.recoveries.contains(&recovery), "{recovery:?} again: {self:?}");
        assert!(self.recoveries.len() < 2, "a third recovery, {recovery:?}: {self:?}");
        self.recoveries.push(recovery);
    }

    /// Whether the last outcome is one too many of those with a cap of their own.
    pub(super) fn is_capped(&self) -> bool {
        let is_server_error = |ended: &Ended| matches!(ended.code(), Some(500 | 599));
        let is_bad_gateway = |ended: &Ended| ended.code() == Some(502);
        let so_many = |is: fn(&Ended) -> bool| self.ended.iter().filter(|ended| is(ended)).count();
        self.ended.last().is_some_and(|last| {
            is_server_error(last) && so_many(is_server_error) > self.caps.0 as usize
                || is_bad_gateway(last) && so_many(is_bad_gateway) > self.caps.1 as usize
        })
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
