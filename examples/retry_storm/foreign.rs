//! Retry budgets of other libraries, for comparison: made for servers, kept by each process.

use std::collections::VecDeque;

/// A budget that is asked after the shipped policy has said *retry*.
#[derive(Clone, Debug)]
pub(crate) enum Quota {
    Aws(AwsQuota),
    Finagle(Finagle),
    None,
}

impl Quota {
    /// A call begins.
    pub(crate) fn begins(&mut self, now: u64) {
        if let Quota::Finagle(finagle) = self {
            finagle.deposits.push_back(now);
        }
    }

    /// Whether a retry may be made; it is paid for, if so.
    pub(crate) fn pay(&mut self, now: u64, throttled: bool) -> bool {
        match self {
            Quota::Aws(aws) => aws.pay(throttled),
            Quota::Finagle(finagle) => finagle.pay(now),
            Quota::None => true,
        }
    }

    /// A call succeeded, after a retry or at once.
    pub(crate) fn succeeded(&mut self, retried: bool) {
        if let Quota::Aws(aws) = self {
            aws.level = AWS_CAPACITY.min(aws.level + if retried { aws.last_cost } else { 1 });
        }
    }
}

/// The token bucket of the AWS SDKs (*AWS SDKs and Tools Reference Guide*, retry behavior): 500 tokens, starts full.
#[derive(Clone, Debug)]
pub(crate) struct AwsQuota {
    level: u32,
    cost: u32,
    throttled_cost: u32,
    last_cost: u32,
}

impl AwsQuota {
    pub(crate) fn new(cost: u32, throttled_cost: u32) -> AwsQuota {
        AwsQuota { level: AWS_CAPACITY, cost, throttled_cost, last_cost: 0 }
    }

    fn pay(&mut self, throttled: bool) -> bool {
        let cost = if throttled { self.throttled_cost } else { self.cost };
        match self.level.checked_sub(cost) {
            Some(left) => {
                (self.level, self.last_cost) = (left, cost);
                true
            }
            None => false,
        }
    }
}

/// Finagle's and tower's default: 20 % of the calls of the last 10 s, and 10 retries a second besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finagle {
    deposits: VecDeque<u64>,
    retries: VecDeque<u64>,
}

impl Finagle {
    fn pay(&mut self, now: u64) -> bool {
        let since = now.saturating_sub(10 * 1_000_000_000);
        for queue in [&mut self.deposits, &mut self.retries] {
            while queue.front().is_some_and(|at| *at < since) {
                queue.pop_front();
            }
        }
        // In fifths of a retry: a call earns one, a second earns fifty.
        let earned = self.deposits.len() + 10 * 50;
        let allowed = (self.retries.len() + 1) * 5 <= earned;
        if allowed {
            self.retries.push_back(now);
        }
        allowed
    }
}

const AWS_CAPACITY: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_aws_quota_pays_a_hundred_retries_and_no_more() {
        let mut quota = Quota::Aws(AwsQuota::new(5, 5));
        assert_eq!((0..200).filter(|_| quota.pay(0, false)).count(), 100);
        quota.succeeded(true);
        assert!(quota.pay(0, true) && !quota.pay(0, true));
    }

    #[test]
    fn finagle_s_budget_pays_ten_a_second_and_a_fifth_of_the_calls() {
        let mut quota = Quota::Finagle(Finagle::default());
        for _ in 0..50 {
            quota.begins(0);
        }
        assert_eq!((0..200).filter(|_| quota.pay(0, false)).count(), 110);
        let later = 10_000_000_001;
        assert_eq!((0..200).filter(|_| quota.pay(later, false)).count(), 100);
    }
}
