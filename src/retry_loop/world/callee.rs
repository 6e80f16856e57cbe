//! A callee behind a gateway, and a provider of credentials, that fail in every way.

use super::scenes::{Scene, scene};
use super::*;
use crate::edge::kept::Kept;
use crate::edge::{Seen, Shown};
use crate::error_kind::ErrorKind;
use crate::policy::classify::Recovery;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Answers attempts out of the dice.
pub(super) struct Callee {
    clock: Clock,
    records: Records,
    /// Of a thousand attempts, how many go well whatever else may be.
    health: u32,
    identities: AtomicU32,
    unused: Mutex<HashSet<u32>>,
    at_work: Arc<AtomicU32>,
    gauge: Mutex<Gauge>,
}

/// Who signs one attempt and no other.
pub(super) struct Identity {
    number: u32,
    made: Instant,
}

impl Callee {
    pub(super) fn new(clock: Clock, records: Records, health: u32, gauge: Gauge) -> Callee {
        let (identities, at_work) = (AtomicU32::new(0), Arc::default());
        let (unused, gauge) = (Mutex::default(), Mutex::new(gauge));
        Callee { clock, records, health, identities, unused, at_work, gauge }
    }

    pub(super) fn gauge(&self) -> std::sync::MutexGuard<'_, Gauge> {
        self.gauge.lock().unwrap()
    }

    pub(super) fn check_rest(&self) {
        assert_eq!(self.at_work.load(Ordering::Relaxed), 0, "an attempt is still at work");
    }

    /// A wait of up to `most`, which is sometimes none at all.
    async fn pass_up_to(&self, most: Duration) {
        let wait = most.mul_f64(f64::from(self.clock.roll(1_001)) / 1_000.0);
        if !wait.is_zero() {
            self.clock.sleep(wait).await;
        }
    }
}

impl Exchange for Callee {
    type Identity = Identity;

    async fn identity(&self, _: &Order, within: Duration) -> Result<Identity, Error> {
        match self.clock.roll(100) {
            0 => {
                self.pass_up_to(within).await;
                return Err(Error::of(ErrorKind::Credentials, None, "no credentials".into()));
            }
            1..20 => self.pass_up_to(within).await,
            _ => {}
        }
        let number = self.identities.fetch_add(1, Ordering::Relaxed);
        self.unused.lock().unwrap().insert(number);
        Ok(Identity { number, made: self.clock.now().monotonic })
    }

    async fn attempt(
        &self,
        order: &Order,
        identity: &Identity,
        (number, sent): (u32, Moment),
        timeout: Duration,
    ) -> Result<Seen, Error> {
        assert_eq!(sent.monotonic, self.clock.now().monotonic, "it is signed as of now");
        assert_eq!(identity.made, sent.monotonic, "nothing waits between identity and signature");
        assert!(self.unused.lock().unwrap().remove(&identity.number), "every attempt is signed anew");
        let id = order.subject.correlation_id();
        self.records.with(id, Record::begins);
        let _working = Working::new(&self.at_work);
        if self.clock.roll(200) == 0 {
            // Nothing could be signed, so nothing arrives.
            return Err(Error::of(ErrorKind::Credentials, None, "not signable".into()));
        }
        let Scene { shown, takes, commits, mut ended } = scene(&self.clock, self.health, timeout, sent);
        self.records.with(id, |record| {
            record.arrives(order, (number, timeout), sent.monotonic);
            // The caller may be gone when the work is done; done it is.
            record.committed |= commits;
        });
        self.gauge().arrives();
        if !takes.is_zero() {
            self.clock.sleep(takes).await;
        }
        let now = self.clock.now();
        ended.at = now.monotonic;
        self.records.with(id, |record| {
            let thawed = matches!(shown, Shown::Lost { thawed: true, .. });
            record.free_retry = thawed && !record.thawed_before;
            record.thawed_before |= thawed;
            self.gauge().ended(&ended, &record.ended);
            record.ended.push(ended);
        });
        let gap = self.clock.roll(3).checked_sub(1).map(|more| i64::from(more) * 400);
        Ok(Seen {
            shown,
            sent,
            received: now,
            ended: now,
            clock_gap: gap,
            signature_age: gap,
            gateway_now: now.wall,
        })
    }

    fn keep(&self, seen: Seen, _: &Identity) -> Kept {
        Kept::of(seen)
    }

    async fn recover(
        &self,
        recovery: Recovery,
        order: &Order,
        _: &Identity,
        seen: Option<&Kept>,
        within: Duration,
    ) -> Result<(), &'static str> {
        assert!(seen.is_some(), "a recovery follows an answer");
        let id = order.subject.correlation_id();
        self.records.with(id, |record| record.recovers(recovery));
        if self.clock.roll(3) == 0 {
            self.pass_up_to(within).await;
        }
        if self.clock.roll(4) == 0 {
            return Err("nothing else can be had");
        }
        self.records.with(id, |record| record.recovering = true);
        Ok(())
    }
}

/// Counts attempts that are at work, dropped ones not.
struct Working(Arc<AtomicU32>);

impl Working {
    fn new(count: &Arc<AtomicU32>) -> Working {
        count.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(count))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
