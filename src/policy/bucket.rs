//! The bucket of a rate limit: who may start now, and how long the others wait.
//!
//! It is of our own, for none of the well-kept ones does what is asked of it: `governor` takes no token back, cannot be drained
//! by a 429 and knows no shares; nor do `leaky-bucket` and tower's limit, which read a clock of their own besides. This is
//! integer arithmetic on times that are handed in.

use crate::policy::line::{Line, Place};
use crate::policy::moment::Moment;
use crate::policy::rate_limit::{Priority, RateLimit};
use std::time::Duration;

/// A token bucket in which those who wait stand in line, the more important ones in front.
///
/// A token that is taken and not yet spent keeps its place in the bucket, so that giving it back can never make more than
/// the bucket holds, and no refill takes its place meanwhile.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: RateLimit,
    /// In units: a token is the period's nanoseconds, and a nanosecond earns the attempts of a period. Nothing is rounded.
    level: u128,
    /// Tokens that are taken and neither spent nor given back.
    out: u32,
    /// Nothing is admitted, and nothing earned, for so long.
    closed: Duration,
    /// The last reading.
    at: Moment,
    /// The time that has passed, as far as it was counted.
    passed: Duration,
    line: Line,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub(crate) fn new(limit: RateLimit, now: Moment) -> Bucket {
        let mut bucket = Bucket {
            limit,
            level: 0,
            out: 0,
            closed: Duration::ZERO,
            at: now,
            passed: Duration::ZERO,
            line: Line::default(),
        };
        bucket.level = bucket.most();
        bucket
    }

    /// Takes a token, without standing in line; whoever waits already, and is not less important, goes first.
    ///
    /// # Errors
    /// How long it takes until there is one, if nobody else comes.
    pub(crate) fn take(&mut self, now: Moment, priority: Priority) -> Result<(), Duration> {
        self.advance(now);
        let ahead = self.line.ahead_of(priority, u64::MAX, self.passed);
        self.take_behind(ahead, priority)
    }

    /// How long it takes until there is a token; zero if there is one.
    pub(crate) fn wait(&mut self, now: Moment, priority: Priority) -> Duration {
        self.advance(now);
        self.missing(self.line.ahead_of(priority, u64::MAX, self.passed), priority)
    }

    /// Stands in line.
    pub(crate) fn line_up(&mut self, priority: Priority) -> Place {
        self.line.join(priority, self.passed)
    }

    /// Takes the token that this place in the line gives a right to. The place is kept until it is left.
    ///
    /// # Errors
    /// How long it takes until its turn, if nobody more important comes. Who does not come back by then is passed over.
    pub(crate) fn take_at(&mut self, now: Moment, place: &Place) -> Result<(), Duration> {
        self.advance(now);
        let ahead = self.line.ahead_of(place.priority, place.number, self.passed);
        let taken = self.take_behind(ahead, place.priority);
        if let Err(wait) = taken {
            self.line.expect(place, self.passed.saturating_add(wait));
        }
        taken
    }

    /// Leaves the line.
    pub(crate) fn leave(&mut self, place: &Place) {
        self.line.leave(place);
    }

    /// The attempt that a token was taken for is on its way.
    pub(crate) fn spend(&mut self, now: Moment) {
        // What was earned while it was out had the less room.
        self.advance(now);
        self.out = self.out.saturating_sub(1);
    }

    /// The attempt that a token was taken for is not made.
    pub(crate) fn give_back(&mut self) {
        self.out = self.out.saturating_sub(1);
        self.level = self.level.saturating_add(self.token()).min(self.room());
    }

    /// The attempt that a token was spent for was not made after all.
    pub(crate) fn unspend(&mut self) {
        self.level = self.level.saturating_add(self.token()).min(self.room());
    }

    /// Empties the bucket after a 429 and closes it for as long as was asked for, an hour at most.
    pub(crate) fn drain(&mut self, now: Moment, asked: Option<Duration>) {
        self.advance(now);
        self.level = 0;
        let asked = asked.unwrap_or(Duration::ZERO).min(LONGEST_CLOSED);
        self.closed = self.closed.max(asked);
    }

    /// Lowers the bucket to what a callee says is left of its own. If that is nothing, the bucket is closed until the
    /// callee begins anew, where that is known and within an hour: what is further off is not believed.
    pub(crate) fn lower(&mut self, now: Moment, remaining: u64, begins_anew: Option<Duration>) {
        self.advance(now);
        self.level = self.level.min(u128::from(remaining).saturating_mul(self.token()));
        if remaining == 0 {
            let closed = begins_anew.filter(|reset| *reset <= LONGEST_CLOSED).unwrap_or(Duration::ZERO);
            self.closed = self.closed.max(closed);
        }
    }

    /// How many whole tokens are there to be taken.
    #[cfg(test)]
    pub(crate) fn available(&self) -> u32 {
        u32::try_from(self.level / self.token().max(1)).unwrap_or(u32::MAX)
    }

    fn take_behind(&mut self, ahead: u32, priority: Priority) -> Result<(), Duration> {
        let wait = self.missing(ahead, priority);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.level = self.level.saturating_sub(self.token());
        self.out = self.out.saturating_add(1);
        Ok(())
    }

    /// The time until the level is so high that those ahead and this one have theirs and the reserved part is untouched.
    fn missing(&self, ahead: u32, priority: Priority) -> Duration {
        let tokens = u128::from(self.limit.kept_from(priority)) + u128::from(ahead) + 1;
        let units = tokens.saturating_mul(self.token()).saturating_sub(self.level);
        if units == 0 {
            return self.closed;
        }
        // Rounded up, so that who comes then does not come too soon.
        let nanos = units.saturating_sub(1).checked_div(u128::from(self.limit.attempts));
        let nanos = nanos.and_then(|nanos| u64::try_from(nanos.saturating_add(1)).ok());
        nanos.map_or(Duration::MAX, |nanos| self.closed.saturating_add(Duration::from_nanos(nanos)))
    }

    /// Counts the time since the last reading: what is left of the closed time first, and then what it earns.
    fn advance(&mut self, now: Moment) {
        // Threads that race for the lock hand in readings out of order; an older one says nothing new.
        if now.monotonic < self.at.monotonic {
            return;
        }
        let passed = elapsed(&self.at, &now);
        self.at = now;
        self.passed = self.passed.saturating_add(passed);
        let open = passed.saturating_sub(self.closed);
        self.closed = self.closed.saturating_sub(passed);
        let earned = open.as_nanos().saturating_mul(u128::from(self.limit.attempts));
        self.level = self.level.saturating_add(earned).min(self.room());
    }

    fn token(&self) -> u128 {
        self.limit.period.as_nanos()
    }

    fn most(&self) -> u128 {
        u128::from(self.limit.burst).saturating_mul(self.token())
    }

    /// What the bucket holds beside the tokens that are out.
    fn room(&self) -> u128 {
        self.most().saturating_sub(u128::from(self.out).saturating_mul(self.token()))
    }
}

/// The time between two readings by the monotonic clock; by the wall clock only where that one stood still, as it may in a
/// frozen sandbox: small differences between the two would add up.
fn elapsed(earlier: &Moment, now: &Moment) -> Duration {
    let monotonic = now.monotonic.saturating_duration_since(earlier.monotonic);
    let wall = now.wall.duration_since(earlier.wall).unwrap_or(Duration::ZERO);
    if wall > monotonic.saturating_add(FREEZE) { wall } else { monotonic }
}

/// What a callee asks for beyond this is taken for a mistake: nobody could tell a client that is shut from one that is broken.
pub(crate) const LONGEST_CLOSED: Duration = Duration::from_secs(3_600);
/// A wall clock that is ahead by more than this has seen a freeze.
const FREEZE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
