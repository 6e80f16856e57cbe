//! The rate limit of a client behind its lock, its limit on calls in flight, and the slots that give back what a dropped call held.
//!
//! The places in flight are tokio's semaphores, one within the other: what is bulk needs a place among the bulk's, then one among
//! those of all that is not critical, then one of all. So a queue that is fair to those in it never lets the bulk have all.

use crate::edge::ambient::Ambient;
use crate::fleet::SharedLimit;
use crate::pace::places::{HeldPlace, Places};
use crate::policy::bucket::Bucket;
use crate::policy::classify::Class;
use crate::policy::line::Place;
use crate::policy::moment::Moment;
use crate::policy::outcome::Outcome;
use crate::policy::quota_headers::QuotaHeaders;
use crate::policy::rate_limit::{Priority, RateLimit};
use crate::policy::shared_limit::Taken;
use crate::policy::time_budget::TimeBudget;
use crate::sync::{Mutex, MutexGuard};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;

/// How fast, and how many at once, the attempts of a client may be made.
pub(crate) struct Pace {
    rate: Option<Rate>,
    places: Option<Places>,
    shared: Option<Arc<dyn SharedLimit>>,
}

impl Pace {
    pub(crate) fn new(rate: Option<RateLimit>, in_flight: Option<u32>, now: Moment) -> Pace {
        let (rate, places) = (rate.map(|limit| Rate::new(limit, now)), in_flight.map(Places::new));
        Pace { rate, places, shared: None }
    }

    /// The same with a limit that others draw from too.
    pub(crate) fn shared_with_others(self, shared: Option<Arc<dyn SharedLimit>>) -> Pace {
        Pace { shared, ..self }
    }

    /// Whether no limit is set, so that there is nothing to ask and nothing to wait for.
    pub(crate) fn is_off(&self) -> bool {
        self.rate.is_none() && self.places.is_none() && self.shared.is_none()
    }

    /// Waits until an attempt may start, if that is within the time.
    ///
    /// The place comes first, so that nobody holds a token of the rate limit while it waits for a place. But whom the rate limit
    /// keeps too long in any case is told so at once.
    pub(crate) async fn admit(
        &self,
        ambient: &dyn Ambient,
        time: TimeBudget,
        priority: Priority,
    ) -> Result<Slot<'_>, Late> {
        let now = ambient.now();
        if let Some(rate) = &self.rate {
            let wait = rate.lock().wait(now, priority);
            if !time.fits(wait, now.monotonic) {
                return Err(Late::Rate(wait));
            }
        }
        let place = match &self.places {
            Some(places) => Some(places.enter(ambient, time, priority).await.ok_or(Late::InFlight)?),
            None => None,
        };
        let token = match &self.rate {
            Some(rate) => Some(rate.admit(ambient, time, priority).await.map_err(Late::Rate)?),
            None => None,
        };
        self.admit_among_others(ambient, time, priority).await?;
        Ok(Slot { token, _place: place })
    }

    /// Asked last, for what it admits is not given back: whoever shares it may have it next.
    async fn admit_among_others(
        &self,
        ambient: &dyn Ambient,
        time: TimeBudget,
        priority: Priority,
    ) -> Result<(), Late> {
        while let Some(shared) = &self.shared {
            let now = ambient.now().monotonic;
            // Not all are as quick as they promise.
            let taken = tokio::time::timeout(time.left(now), shared.take(priority, time.longest_wait(now)));
            match taken.await.map_err(|_| Late::Others)? {
                Taken::Admitted => break,
                Taken::Wait(wait) if !wait.is_zero() && time.fits(wait, ambient.now().monotonic) => {
                    ambient.sleep(wait).await;
                }
                Taken::Refused(wait) | Taken::Wait(wait) => return Err(Late::Rate(wait)),
            }
        }
        Ok(())
    }

    /// How many tokens, and how many places, there are to be had.
    #[cfg(test)]
    pub(crate) fn rests(&self, now: Moment) -> (u32, usize) {
        let tokens = self.rate.as_ref().map_or(0, |rate| {
            let mut bucket = rate.lock();
            bucket.wait(now, Priority::Critical);
            bucket.available()
        });
        (tokens, self.places.as_ref().map_or(0, |places| places.all.available_permits()))
    }

    /// Takes in what an attempt showed: a 429, and what the callee says is left of its own quota.
    pub(crate) fn told(
        &self,
        outcome: &Outcome<'_>,
        class: Option<Class>,
        asked: Option<Duration>,
        now: Moment,
    ) {
        let Some(rate) = &self.rate else { return };
        if class == Some(Class::Throttled) {
            rate.lock().drain(now, asked);
        }
        if let (Some(headers), Outcome::Answered(answer)) = (&rate.headers, outcome)
            && let Some(left) = headers.read(answer.headers, answer.gateway_now)
        {
            rate.lock().lower(now, left.remaining, left.begins_anew);
        }
    }
}

/// Why an attempt was not admitted in its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// As many attempts as may be are in flight, and none ended in time.
    InFlight,
    /// A limit that others draw from did not answer in time.
    Others,
    /// The rate limit admits it after so long, which is too late.
    Rate(Duration),
}

impl Late {
    /// When to come back, where that is known.
    pub(crate) fn come_back(self) -> Option<Duration> {
        match self {
            Late::InFlight | Late::Others => None,
            Late::Rate(wait) => Some(wait),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Late::InFlight => "too many calls are in flight, nothing was sent",
            Late::Others => "the limit that others draw from did not answer in time, nothing was sent",
            Late::Rate(_) => "the rate limit admits it too late, nothing was sent",
        }
    }
}

/// The right to start one attempt. Dropped, it gives its place back, and its token unless the attempt was sent.
pub(crate) struct Slot<'a> {
    token: Option<Token<'a>>,
    _place: Option<HeldPlace<'a>>,
}

impl Slot<'_> {
    /// Where no limit is set.
    pub(crate) fn free() -> Slot<'static> {
        Slot { token: None, _place: None }
    }

    /// The attempt is on its way.
    pub(crate) fn sends(&mut self, now: Moment) {
        if let Some(token) = &mut self.token {
            token.spend(now);
        }
    }

    /// It could not be signed, and is not on its way after all.
    pub(crate) fn unsent(&mut self) {
        if let Some(token) = self.token.take() {
            token.unspend();
        }
    }
}

/// A bucket behind its lock.
struct Rate {
    bucket: Mutex<Bucket>,
    headers: Option<QuotaHeaders>,
    /// Somebody left the line without a token: those behind may start sooner.
    left: Notify,
}

impl Rate {
    fn new(limit: RateLimit, now: Moment) -> Rate {
        let headers = limit.quota_headers.clone();
        Rate { headers, bucket: Mutex::new(Bucket::new(limit, now)), left: Notify::new() }
    }

    async fn admit(
        &self,
        ambient: &dyn Ambient,
        time: TimeBudget,
        priority: Priority,
    ) -> Result<Token<'_>, Duration> {
        let now = ambient.now();
        let taken = self.lock().take(now, priority);
        let Err(wait) = taken else { return Ok(Token::of(self)) };
        if !time.fits(wait, now.monotonic) {
            return Err(wait);
        }
        let place = self.lock().line_up(priority);
        let mut waiting = InLine { rate: self, place, served: false };
        loop {
            // Before the bucket is asked, so that nobody leaves unnoticed.
            let somebody_left = self.left.notified();
            let now = ambient.now();
            let taken = self.lock().take_at(now, &waiting.place);
            let Err(wait) = taken else {
                waiting.served = true;
                return Ok(Token::of(self));
            };
            // Others may have come who go first.
            if !time.fits(wait, now.monotonic) {
                return Err(wait);
            }
            either(ambient.sleep(wait), somebody_left).await;
        }
    }

    /// A poisoned lock means that a thread panicked between two plain assignments; what it guards is still sound.
    fn lock(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the line, left on drop.
struct InLine<'a> {
    rate: &'a Rate,
    place: Place,
    served: bool,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.rate.lock().leave(&self.place);
        if !self.served {
            self.rate.left.notify_waiters();
        }
    }
}

/// A token of the rate limit.
struct Token<'a> {
    rate: &'a Rate,
    spent: bool,
}

impl Token<'_> {
    fn of(rate: &Rate) -> Token<'_> {
        Token { rate, spent: false }
    }

    fn spend(&mut self, now: Moment) {
        if !std::mem::replace(&mut self.spent, true) {
            self.rate.lock().spend(now);
        }
    }

    fn unspend(self) {
        if self.spent {
            self.rate.lock().unspend();
        }
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        if !self.spent {
            self.rate.lock().give_back();
        }
    }
}

/// Waits for whichever comes first.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|task| match one.as_mut().poll(task) {
        Poll::Pending => other.as_mut().poll(task),
        ready => ready,
    })
    .await;
}

mod places;
#[cfg(test)]
mod tests;
