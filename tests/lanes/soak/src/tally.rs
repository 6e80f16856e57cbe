//! Counts what became of calls, by name, for the table at the end.

use crate::caller::Manner;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Counts by name. There are only as many names as there are ways for a call to end.
#[derive(Default)]
pub struct Tally {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    failures: Mutex<BTreeMap<String, [u64; 2]>>,
    reasons: Mutex<BTreeMap<String, [u64; 2]>>,
}

impl Tally {
    pub fn add(&self, what: &'static str) {
        self.add_many(what, 1);
    }

    pub fn add_many(&self, what: &'static str, many: u64) {
        *self.counts.lock().unwrap().entry(what).or_default() += many;
    }

    pub fn count(&self, what: &str) -> u64 {
        self.counts.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    pub fn add_failure(&self, kind: String, manner: Manner) {
        self.failures.lock().unwrap().entry(kind).or_default()[place(manner)] += 1;
    }

    pub fn add_reason(&self, reason: String, manner: Manner) {
        self.reasons.lock().unwrap().entry(reason).or_default()[place(manner)] += 1;
    }

    /// Failures by kind: of clients as they come, and of wide ones.
    pub fn failures(&self) -> BTreeMap<String, [u64; 2]> {
        self.failures.lock().unwrap().clone()
    }

    /// The same by the reason for which the call was given up.
    pub fn reasons(&self) -> BTreeMap<String, [u64; 2]> {
        self.reasons.lock().unwrap().clone()
    }
}

fn place(manner: Manner) -> usize {
    match manner {
        Manner::Default => 0,
        Manner::Wide => 1,
    }
}
