//! The truth about every call: what its caller asked for and was told, what passed the proxy, what the callee committed.

use crate::judge::judge;
use crate::proxy::{Passage, Witness};
use crate::record::{Arrival, End, Kind, Record};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Calls that are under way or not judged yet, and the sums of those that are.
#[derive(Default)]
pub struct Ledger {
    next: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    calls: HashMap<u64, Record>,
    keys: HashMap<String, u64>,
    ended: VecDeque<(Instant, u64)>,
    faults: Vec<String>,
    sums: Sums,
}

/// Sums over all calls, counted at both ends by different hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub opened: u64,
    pub ok: u64,
    pub failed: u64,
    pub dropped: u64,
    /// Attempts that answers and errors tell of.
    pub told: u64,
    pub told_answered: u64,
    pub told_never_sent: u64,
    /// Attempts whose head the proxy saw.
    pub arrived: u64,
    /// Those of calls that ended, and of calls that were dropped.
    pub arrived_told: u64,
    pub arrived_dropped: u64,
    /// Requests that reached the callee, as the callee counts them.
    pub reached: u64,
    /// Commits as the callee counts them, and as the judged calls hold them.
    pub commits: u64,
    pub commits_judged: u64,
    /// Commits of calls that ended with an error, each of which said that it may have been carried out.
    pub commits_in_doubt: u64,
    pub replays: u64,
    pub reads: u64,
    pub refused: u64,
    pub in_progress: u64,
    pub faults: u64,
}

/// What the callee has to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is carried out for the first time (this one is the so-manieth commit), or was before.
    Done { commit: u64, key: Option<String> },
    /// The key is in progress.
    InProgress,
    /// Nothing is written.
    Read,
    /// The key belongs to another call, or the call is not known: a fault, and it is noted.
    Refused,
}

impl Sums {
    /// Requests at the callee, by what it did for them.
    pub fn sorted(&self) -> u64 {
        self.commits + self.replays + self.reads + self.in_progress + self.refused
    }
}

impl Ledger {
    /// The reference of a call that is going to be opened, of which its caller may make a key.
    pub fn reference(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins a call; `key` is the one that its caller sets.
    pub fn open(&self, reference: u64, kind: Kind, key: Option<&str>) {
        let mut book = self.lock();
        book.sums.opened += 1;
        book.calls.insert(reference, Record::new(kind, key));
    }

    /// A request of this call reached the callee; `busy` more find its key in progress if this one is the first.
    pub fn take(&self, reference: u64, key: Option<&str>, busy: u32) -> Taken {
        self.lock().take(reference, key, busy)
    }

    /// A request reached the callee, which does nothing for it.
    pub fn refused(&self) {
        let mut book = self.lock();
        book.sums.reached += 1;
        book.sums.refused += 1;
    }

    /// Ends a call for its caller. It is judged later: what is on its way may still be carried out.
    pub fn close(&self, reference: u64, now: Instant, end: End) {
        let mut book = self.lock();
        if let Some(record) = book.calls.get_mut(&reference) {
            record.end = Some(end);
            book.ended.push_back((now, reference));
        }
    }

    /// Judges the calls that ended so long ago that nothing of them can be on its way.
    pub fn settle(&self, now: Instant, after: Duration) {
        let mut book = self.lock();
        while let Some((ended, reference)) = book.ended.front().copied() {
            if now.saturating_duration_since(ended) < after {
                break;
            }
            book.ended.pop_front();
            book.settle(reference);
        }
    }

    /// Notes a fault.
    pub fn fault(&self, what: String) {
        self.lock().fault(what);
    }

    /// The sums so far, and how many calls are open or not judged yet.
    pub fn sums(&self) -> (Sums, usize) {
        let book = self.lock();
        (book.sums, book.calls.len())
    }

    /// The first of the faults, in words.
    pub fn faults(&self) -> Vec<String> {
        self.lock().faults.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }
}

impl Witness for Ledger {
    fn arrived(&self, exchange: &Passage) {
        let mut book = self.lock();
        book.sums.arrived += 1;
        let arrival = Arrival { attempt: exchange.attempt, status: None, delivered: false };
        match book.calls.get_mut(&exchange.reference) {
            Some(record) => record.arrivals.push(arrival),
            None => book.fault(format!("{exchange:?} arrived, and no such call is open or fresh")),
        }
    }

    fn answering(&self, exchange: &Passage, status: u16) {
        self.lock().arrival(exchange, |arrival| arrival.status = Some(status));
    }

    fn delivered(&self, exchange: &Passage) {
        self.lock().arrival(exchange, |arrival| arrival.delivered = true);
    }
}

impl Book {
    fn take(&mut self, reference: u64, key: Option<&str>, busy: u32) -> Taken {
        self.sums.reached += 1;
        let Some(record) = self.calls.get_mut(&reference) else {
            self.fault(format!("{reference} reached the callee, and no such call is open or fresh"));
            return Taken::Refused;
        };
        record.saw_key(key);
        if record.kind == Kind::Get {
            self.sums.reads += 1;
            return Taken::Read;
        }
        if let Some(key) = key {
            let owner = *self.keys.entry(key.to_owned()).or_insert(reference);
            if owner != reference {
                self.fault(format!("{reference} came with the key of {owner}"));
                return Taken::Refused;
            }
        }
        let known = key.and_then(|key| record.commits.iter().find(|done| done.key.as_deref() == Some(key)));
        if let Some(done) = known {
            if record.busy > 0 {
                record.busy -= 1;
                self.sums.in_progress += 1;
                return Taken::InProgress;
            }
            self.sums.replays += 1;
            return Taken::Done { commit: done.commit, key: done.key.clone() };
        }
        self.sums.commits += 1;
        let done = crate::record::Commit { commit: self.sums.commits, key: key.map(str::to_owned) };
        record.commits.push(done.clone());
        record.busy = busy;
        Taken::Done { commit: done.commit, key: done.key }
    }

    fn arrival(&mut self, exchange: &Passage, note: impl FnOnce(&mut Arrival)) {
        let record = self.calls.get_mut(&exchange.reference);
        let arrivals = record.and_then(|record| {
            record.arrivals.iter_mut().rev().find(|arrival| arrival.attempt == exchange.attempt)
        });
        if let Some(arrival) = arrivals {
            note(arrival);
        }
    }

    fn settle(&mut self, reference: u64) {
        let Some(record) = self.calls.remove(&reference) else { return };
        for key in record.keys.iter().chain(&record.given) {
            self.keys.remove(key);
        }
        self.sum(&record);
        for what in judge(&record) {
            self.fault(format!("call {reference}: {what}: {record:?}"));
        }
    }

    fn sum(&mut self, record: &Record) {
        let sums = &mut self.sums;
        let (arrived, commits) = (record.arrivals.len() as u64, record.commits.len() as u64);
        sums.commits_judged += commits;
        match &record.end {
            None => {}
            Some(End::Dropped) => {
                sums.dropped += 1;
                sums.arrived_dropped += arrived;
            }
            Some(End::Answered { told, .. } | End::Failed { told, .. }) => {
                sums.arrived_told += arrived;
                sums.told += told.len() as u64;
                sums.told_answered += told.iter().filter(|told| told.status.is_some()).count() as u64;
                sums.told_never_sent += told.iter().filter(|told| told.never_sent).count() as u64;
            }
        }
        match &record.end {
            Some(End::Answered { .. }) => sums.ok += 1,
            Some(End::Failed { .. }) => {
                sums.failed += 1;
                sums.commits_in_doubt += commits;
            }
            Some(End::Dropped) | None => {}
        }
    }

    fn fault(&mut self, what: String) {
        self.sums.faults += 1;
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(what);
        }
    }
}

/// So many faults are kept in words.
const MOST_FAULTS: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Told;

    const PASSAGE: Passage = Passage { reference: 1, attempt: 1 };

    fn opened() -> Ledger {
        let ledger = Ledger::default();
        ledger.open(1, Kind::KeyedPost, Some("k"));
        ledger
    }

    #[test]
    fn a_key_is_committed_once_and_its_commit_given_again() {
        let ledger = opened();
        let done = Taken::Done { commit: 1, key: Some("k".into()) };
        assert_eq!(ledger.take(1, Some("k"), 1), done);
        assert_eq!(ledger.take(1, Some("k"), 0), Taken::InProgress);
        assert_eq!(ledger.take(1, Some("k"), 0), done);
        let (sums, _) = ledger.sums();
        assert_eq!((sums.commits, sums.replays, sums.in_progress, sums.faults), (1, 1, 1, 0));
    }

    #[test]
    fn a_call_is_judged_when_nothing_of_it_can_be_on_its_way_and_then_forgotten() {
        let (ledger, start) = (opened(), crate::time::now());
        ledger.arrived(&PASSAGE);
        ledger.take(1, Some("k"), 0);
        ledger.answering(&PASSAGE, 201);
        ledger.delivered(&PASSAGE);
        let told = vec![Told { status: Some(201), never_sent: false, timed_out: false }];
        let end = End::Answered { told, key: Some("k".into()), commit: Some(1) };
        ledger.close(1, start, end);
        ledger.settle(start + Duration::from_secs(9), Duration::from_secs(10));
        assert_eq!(ledger.sums().1, 1);
        ledger.settle(start + Duration::from_secs(10), Duration::from_secs(10));
        let (sums, open) = ledger.sums();
        assert_eq!((open, sums.ok, sums.arrived_told, sums.commits_judged), (0, 1, 1, 1));
        assert_eq!(ledger.faults(), Vec::<String>::new());
        ledger.arrived(&PASSAGE);
        assert!(ledger.faults()[0].contains("no such call"), "{:?}", ledger.faults());
    }

    #[test]
    fn a_key_of_another_call_is_a_fault() {
        let ledger = opened();
        ledger.open(2, Kind::Put, None);
        ledger.take(1, Some("k"), 0);
        assert_eq!(ledger.take(2, Some("k"), 0), Taken::Refused);
        assert_eq!(ledger.faults(), ["2 came with the key of 1"]);
    }
}
