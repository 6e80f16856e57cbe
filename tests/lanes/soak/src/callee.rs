//! The callee behind the gateway: idempotent by key, moody by a seed, and honest in the ledger.

use crate::exchange::REFERENCE;
use crate::ledger::{Ledger, Taken};
use crate::time::up_to;
use eastwest::testing::{RecordedAttempt, Reply};
use fastrand::Rng;
use serde_json::json;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One callee for the whole run, whichever gateway stands before it.
pub struct Callee {
    ledger: Arc<Ledger>,
    rng: Mutex<Rng>,
    percent: AtomicU32,
    /// Requests since the gateway began.
    since: AtomicU64,
}

impl Callee {
    pub fn new(ledger: Arc<Ledger>, seed: u64) -> Arc<Callee> {
        let (percent, since) = (AtomicU32::new(0), AtomicU64::new(0));
        Arc::new(Callee { ledger, rng: Mutex::new(Rng::with_seed(seed)), percent, since })
    }

    /// The script of its one route.
    pub fn script(self: &Arc<Self>) -> Reply {
        let callee = Arc::clone(self);
        Reply::dynamic(move |attempt| callee.reply(attempt))
    }

    /// Sets how many requests in a hundred meet it in a mood.
    pub fn moods(&self, percent: u32) {
        self.percent.store(percent, Ordering::Relaxed);
    }

    /// How many requests came since this was asked last.
    pub fn count(&self) -> u64 {
        self.since.swap(0, Ordering::Relaxed)
    }

    fn reply(&self, attempt: &RecordedAttempt) -> Reply {
        self.since.fetch_add(1, Ordering::Relaxed);
        let mut rng = self.rng.lock().unwrap().fork();
        let mood = match rng.u32(0..100) < self.percent.load(Ordering::Relaxed) {
            true => rng.u32(1..=12),
            false => 0,
        };
        // Refusals before any work.
        let refused = match mood {
            1 => Some(Reply::throttled()),
            2 => Some(Reply::lambda_rejected()),
            3 => Some(Reply::unavailable()),
            4 => Some(Reply::status(503).header("retry-after", "1")),
            _ => None,
        };
        if let Some(refused) = refused {
            self.ledger.refused();
            return refused;
        }
        let reference = attempt.header(REFERENCE).and_then(|value| value.parse().ok()).unwrap_or_default();
        let busy = if mood == 5 { rng.u32(0..3) } else { 0 };
        let (commit, key) = match self.ledger.take(reference, attempt.header("x-idempotency-key"), busy) {
            Taken::Done { commit, key } => (Some(commit), key),
            Taken::InProgress => return Reply::json(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#),
            Taken::Read => (None, None),
            Taken::Refused => return Reply::json(422, r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#),
        };
        let status = if commit.is_some() { 201 } else { 200 };
        let padding = "p".repeat(padding(reference));
        let body = json!({ "reference": reference, "commit": commit, "key": key, "padding": padding });
        let answer = Reply::json(status, body.to_string());
        // What becomes of the answer, after the work.
        match mood {
            5 => Reply::integration_timeout(),
            6 => Reply::lambda_failed(),
            7 => Reply::lambda_rejected(),
            8 => Reply::reset(),
            9 => Reply::close(),
            10 => answer.truncate_after(rng.usize(0..40)),
            11 => answer.delay(up_to(&mut rng, 1_400)),
            12 => answer.keep_alive(false),
            _ => answer,
        }
    }
}

/// How long a call's answer is beyond what it says, in bytes: mostly short, and by its reference alone.
pub fn padding(reference: u64) -> usize {
    match reference % 50 {
        0 => 60_000,
        few => (few * few) as usize,
    }
}
