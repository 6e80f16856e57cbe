//! The account's two shared things: the gateway's token bucket and the pool of concurrent executions.

use super::scenario::BucketSize;

/// The token bucket that every request to the gateway draws from.
#[derive(Debug)]
pub(crate) struct Bucket {
    size: BucketSize,
    /// In billionths of a token.
    level: u64,
    filled: u64,
}

impl Bucket {
    pub(crate) fn new(size: BucketSize) -> Bucket {
        Bucket { size, level: size.burst * TOKEN, filled: 0 }
    }

    /// Draws a token, if there is a whole one. `now` is in nanoseconds, so a second's rate fills one by one.
    pub(crate) fn draw(&mut self, now: u64) -> bool {
        let gained = (now - self.filled).saturating_mul(self.size.rate);
        self.level = self.level.saturating_add(gained).min(self.size.burst * TOKEN);
        self.filled = now;
        match self.level.checked_sub(TOKEN) {
            Some(left) => {
                self.level = left;
                true
            }
            None => false,
        }
    }
}

/// The account's executions at a time that are reserved for nobody. The sandboxes of the chain's callers are reserved;
/// the last callee and the public requests live from this.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: u64,
    taken: u64,
}

impl Pool {
    pub(crate) fn new(limit: u64) -> Pool {
        Pool { limit, taken: 0 }
    }

    pub(crate) fn take(&mut self) -> bool {
        let free = self.taken < self.limit;
        self.taken += u64::from(free);
        free
    }

    pub(crate) fn give_back(&mut self) {
        self.taken -= 1;
    }
}

const TOKEN: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_any_stretch_of_time_the_bucket_gives_no_more_than_its_burst_and_its_rate() {
        let mut bucket = Bucket::new(BucketSize::USUAL);
        assert_eq!((0..9_000).filter(|_| bucket.draw(0)).count(), 5_000);
        assert_eq!((0..30_000).filter(|n| bucket.draw(n * 100_000)).count(), 29_999);
        assert_eq!((0..9_000).filter(|_| bucket.draw(60 * TOKEN)).count(), 5_000);
    }

    #[test]
    fn a_drained_pool_refuses_until_something_comes_back() {
        let mut pool = Pool::new(1);
        assert!(pool.take() && !pool.take());
        pool.give_back();
        assert!(pool.take());
    }
}
