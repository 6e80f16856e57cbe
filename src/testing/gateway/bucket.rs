//! A token bucket that really throttles: the account's, which several gateways and everybody else may share.

use crate::testing::lock::lock;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A token bucket. Clones are the same bucket, so that several gateways draw from one account's.
///
/// A request that finds it empty is answered [`Reply::throttled`](crate::testing::Reply::throttled) and uses no reply of a
/// script up. It fills by the gateway's clock, so a test turns a [`ManualClock`](crate::testing::ManualClock) and does not
/// wait.
///
/// ```
/// use eastwest::testing::{FakeGateway, ManualClock, Reply, TokenBucket};
/// use eastwest::CallContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), eastwest::Error> {
/// let (clock, account) = (ManualClock::new(), TokenBucket::new(1, 5));
/// let gateway = FakeGateway::builder()
///     .manual_clock(&clock)
///     .token_bucket(&account)
///     .route("GET", "/orders", [Reply::ok()])
///     .without_socket();
/// let orders = gateway.client().build()?;
///
/// account.draw(5); // the public front door has taken all there was
/// let answer = orders.get(&CallContext::root(), "/orders").send().await?;
/// let statuses: Vec<_> = answer.attempts().iter().map(ToString::to_string).collect();
/// assert_eq!(statuses, ["429", "429", "200"], "0.5 s and 1 s were waited, and one token came in meanwhile");
/// assert_eq!(account.refused(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket(Arc<Mutex<Level>>);

#[derive(Debug)]
struct Level {
    rate: u32,
    burst: u32,
    /// In billionths of a token, so that no part of a second is lost.
    billionths: u128,
    filled_at: Option<SystemTime>,
    drawn: u64,
    refused: u64,
}

impl TokenBucket {
    /// Makes a full bucket of `burst` tokens, which `rate` tokens a second come into.
    #[must_use]
    pub fn new(rate: u32, burst: u32) -> TokenBucket {
        TokenBucket(Arc::new(Mutex::new(Level {
            rate,
            burst,
            billionths: u128::from(burst) * A_TOKEN,
            filled_at: None,
            drawn: 0,
            refused: 0,
        })))
    }

    /// The bucket of an account in most Regions: 10,000 a second, 5,000 at once (*Amazon API Gateway quotas*).
    #[must_use]
    pub fn of_an_account() -> TokenBucket {
        TokenBucket::new(10_000, 5_000)
    }

    /// Draws tokens as somebody else would, the public front door for instance; as many as there are, at most so many.
    pub fn draw(&self, tokens: u32) {
        let mut level = lock(&self.0);
        level.billionths = level.billionths.saturating_sub(u128::from(tokens) * A_TOKEN);
    }

    /// How many requests of gateways got a token.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        lock(&self.0).drawn
    }

    /// How many requests of gateways got none.
    #[must_use]
    pub fn refused(&self) -> u64 {
        lock(&self.0).refused
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&self, now: SystemTime) -> bool {
        let mut level = lock(&self.0);
        level.fill(now);
        let left = level.billionths.checked_sub(A_TOKEN);
        match left {
            Some(left) => {
                level.billionths = left;
                level.drawn += 1;
            }
            None => level.refused += 1,
        }
        left.is_some()
    }
}

impl Level {
    fn fill(&mut self, now: SystemTime) {
        let since = self.filled_at.and_then(|then| now.duration_since(then).ok()).unwrap_or_default();
        let came_in = since.as_nanos().saturating_mul(u128::from(self.rate));
        let most = u128::from(self.burst) * A_TOKEN;
        self.billionths = self.billionths.saturating_add(came_in).min(most);
        self.filled_at = Some(now);
    }
}

const A_TOKEN: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn it_lets_a_burst_through_and_then_the_rate_and_never_holds_more_than_the_burst() {
        let bucket = TokenBucket::new(2, 3);
        let taken = |millis: u64, times: usize| (0..times).filter(|_| bucket.take(at(millis))).count();
        assert_eq!(taken(0, 5), 3);
        assert_eq!(taken(499, 1), 0);
        assert_eq!(taken(500, 2), 1);
        assert_eq!(taken(60_000, 9), 3);
        assert_eq!((bucket.drawn(), bucket.refused()), (7, 10));
    }

    #[test]
    fn no_part_of_a_second_is_lost_and_a_clock_set_back_brings_nothing() {
        let bucket = TokenBucket::new(1, 1);
        assert!(bucket.take(at(10_000)));
        for millis in (10_100..11_000).step_by(100) {
            assert!(!bucket.take(at(millis)));
        }
        assert!(bucket.take(at(11_000)));
        assert!(!bucket.take(at(5_000)));
    }

    #[test]
    fn what_others_draw_is_gone_for_all_clones() {
        let bucket = TokenBucket::new(1, 2);
        bucket.clone().draw(7);
        assert!(!bucket.take(at(0)));
    }
}
