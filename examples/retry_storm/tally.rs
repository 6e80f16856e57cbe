//! What was counted in a run, second by second.

use super::scenario::Scenario;
use std::ops::Range;

/// The counts of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) seconds: Vec<Second>,
    pub(crate) requests: Vec<Request>,
    /// Tokens that a request draws without a retry: one at the front door and one at each hop.
    tokens_a_request: u64,
    fault: Range<usize>,
}

/// The counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Tokens that the fleet asked the gateway for, had or refused.
    pub(crate) fleet_offered: u64,
    pub(crate) fleet_refused: u64,
    pub(crate) public_offered: u64,
    /// Unrelated public requests that the gateway answered with 429.
    pub(crate) public_refused: u64,
    /// Unrelated public requests that found the account's pool drained.
    pub(crate) public_starved: u64,
    /// Requests of the chain that came.
    pub(crate) requests: u64,
    /// Of these, how many were answered with success.
    pub(crate) successes: u64,
}

/// One request of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) second: u32,
    pub(crate) endings: u32,
    pub(crate) succeeded: bool,
    /// The time of sandboxes that was spent for it, in nanoseconds, zombies included.
    pub(crate) sandbox_nanos: u64,
}

impl Tally {
    pub(crate) fn new(scenario: &Scenario) -> Tally {
        let second = |at: std::time::Duration| usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        Tally {
            seconds: vec![Second::default(); second(scenario.arrivals_end())],
            requests: Vec::new(),
            tokens_a_request: scenario.hops + 1,
            fault: second(scenario.fault_begins())..second(scenario.fault_ends()),
        }
    }

    /// The counts of the second that `now`, in nanoseconds, is in. What comes after the last arrival counts to the last.
    pub(crate) fn at(&mut self, now: u64) -> &mut Second {
        let last = self.seconds.len() - 1;
        let second = usize::try_from(now / 1_000_000_000).unwrap_or(usize::MAX);
        &mut self.seconds[second.min(last)]
    }

    /// A request of the chain has come; the answer is its number.
    pub(crate) fn request_comes(&mut self, now: u64) -> u32 {
        self.at(now).requests += 1;
        let second = u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX);
        self.requests.push(Request { second, ..Request::default() });
        u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn request_ends(&mut self, number: u32, succeeded: bool) {
        let request = &mut self.requests[number as usize];
        request.endings += 1;
        request.succeeded = succeeded;
        self.seconds[request.second as usize].successes += u64::from(succeeded);
    }

    /// Tokens that the fleet offered over the fault, in units of what the same requests draw without a retry.
    pub(crate) fn tokens(&self) -> f64 {
        self.tokens_over(self.fault.clone())
    }

    /// The same over the first five seconds of the fault.
    pub(crate) fn tokens_at_first(&self) -> f64 {
        self.tokens_over(self.fault.start..self.fault.start + 5)
    }

    /// The part of the unrelated public requests that got a 429 during the fault.
    pub(crate) fn public_refused(&self) -> f64 {
        self.part(self.fault.clone(), |s| s.public_refused, |s| s.public_offered)
    }

    /// The part of the unrelated public requests that were lost, to a 429 or to a drained pool: during the fault, or in
    /// the ten seconds after it, where zombies may still be at work; whichever is more.
    pub(crate) fn public_lost(&self) -> f64 {
        let lost = |range| self.part(range, |s| s.public_refused + s.public_starved, |s| s.public_offered);
        lost(self.fault.clone()).max(lost(self.fault.end..self.fault.end + 10))
    }

    /// The part of the requests that came during the fault and succeeded.
    pub(crate) fn success(&self) -> f64 {
        self.success_over(self.fault.clone())
    }

    /// The part of the requests that came in these seconds and succeeded.
    pub(crate) fn success_over(&self, seconds: Range<usize>) -> f64 {
        self.part(seconds, |s| s.successes, |s| s.requests)
    }

    /// How many seconds after the fault success is back to 99 % of what it was before, second by second, for good.
    pub(crate) fn recovery(&self) -> f64 {
        // What comes in the last second before the fault may run into it.
        let normal = self.success_over(0..self.fault.start - 1);
        let still_low = |second: &usize| self.success_over(*second..second + 1) < 0.99 * normal;
        let last = (self.fault.end..self.seconds.len()).rev().find(still_low);
        last.map_or(0.0, |second| (second + 1 - self.fault.end) as f64)
    }

    /// Mean sandbox-seconds of the requests that came during the fault and failed.
    pub(crate) fn seconds_a_failure(&self) -> f64 {
        let counted = |r: &&Request| self.fault.contains(&(r.second as usize)) && !r.succeeded;
        let (mut nanos, mut number) = (0_u64, 0_u64);
        for request in self.requests.iter().filter(counted) {
            (nanos, number) = (nanos + request.sandbox_nanos, number + 1);
        }
        nanos as f64 / 1e9 / number.max(1) as f64
    }

    fn tokens_over(&self, seconds: Range<usize>) -> f64 {
        self.part(seconds, |s| s.fleet_offered, |s| s.requests) / self.tokens_a_request as f64
    }

    fn part(&self, seconds: Range<usize>, some: fn(&Second) -> u64, all: fn(&Second) -> u64) -> f64 {
        let seconds = &self.seconds[seconds];
        let (some, all): (u64, u64) = (seconds.iter().map(some).sum(), seconds.iter().map(all).sum());
        some as f64 / all.max(1) as f64
    }
}
