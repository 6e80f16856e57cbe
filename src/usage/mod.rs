//! What a client draws from the account that its calls share with everybody: counters to be read, and to be summed over a fleet.

mod meter;
mod reading;

pub(crate) use self::meter::{Came, Counted, RefusedBy};
pub use self::reading::Usage;

use self::meter::Meter;
use crate::edge::ambient::{Ambient, system};
use crate::observe;
use crate::policy::account_quota::{AccountBucket, Marks};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The throttle bucket of an account in a Region, as several clients of a process draw from it.
///
/// Every attempt that reaches a gateway is one token of the *API owner's* account and Region, so clients of one owner's APIs
/// report to one quota; a clone is the same quota. A client that is given none has one of its own.
///
/// Where a share of the bucket or an amplification is passed, both over the last ten seconds, there is a warning, at most once a
/// minute: by default at half of the bucket, and at 1.5 attempts a call (of ten calls or more).
///
/// ```
/// use eastwest::{AccountQuota, ServiceClient};
///
/// let account = AccountQuota::of_region("eu-central-1").rate(8_000).warn_at_share(0.25);
/// let client = |url| ServiceClient::builder(url).region("eu-central-1").environment_credentials();
/// let orders = client("https://abc123.execute-api.eu-central-1.amazonaws.com/prod").account_quota(account.clone()).build()?;
/// let stock = client("https://def456.execute-api.eu-central-1.amazonaws.com/prod").account_quota(account.clone()).build()?;
/// assert_eq!(account.usage().tokens, orders.usage().tokens + stock.usage().tokens);
/// # Ok::<(), eastwest::Error>(())
/// ```
#[derive(Clone)]
pub struct AccountQuota {
    region: Arc<str>,
    bucket: AccountBucket,
    marks: Marks,
    meter: Arc<Meter>,
}

impl AccountQuota {
    /// The bucket that a Region's accounts begin with: 10,000 requests a second, in thirteen Regions 2,500 (*Amazon API Gateway
    /// quotas*).
    #[must_use]
    pub fn of_region(region: impl AsRef<str>) -> AccountQuota {
        AccountQuota {
            region: region.as_ref().into(),
            bucket: AccountBucket::of_region(region.as_ref()),
            marks: Marks::default(),
            meter: Arc::new(Meter::new(system_now())),
        }
    }

    /// Sets the rate in requests a second, where AWS raised it, or lowered it for an integration timeout over 29 s.
    #[must_use]
    pub fn rate(mut self, requests_a_second: u32) -> AccountQuota {
        self.bucket = self.bucket.with_rate(requests_a_second);
        self
    }

    /// Sets the share of the bucket at which there is a warning; 0.5 by default, `f64::INFINITY` for never.
    #[must_use]
    pub fn warn_at_share(mut self, share: f64) -> AccountQuota {
        self.marks.share = share;
        self
    }

    /// Sets the attempts a call at which there is a warning; 1.5 by default, `f64::INFINITY` for never.
    #[must_use]
    pub fn warn_at_amplification(mut self, amplification: f64) -> AccountQuota {
        self.marks.amplification = amplification;
        self
    }

    /// The bucket: rate and burst.
    #[must_use]
    pub fn bucket(&self) -> AccountBucket {
        self.bucket
    }

    /// What all clients that report here drew so far, as of now by the process's own clock.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage_at(system_now())
    }

    /// The same, by a client's clock.
    pub(crate) fn usage_at(&self, now: Instant) -> Usage {
        self.meter.read(self.bucket, now)
    }

    fn watch(&self, now: Instant) {
        let window = &self.meter.window;
        let recent = window.recent(now);
        if self.marks.are_passed(recent, self.bucket) && window.may_warn(now) {
            observe::quota_mark_passed(&self.region, recent, self.bucket);
        }
    }
}

impl fmt::Debug for AccountQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountQuota")
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("marks", &self.marks)
            .field("usage", &self.usage())
            .finish()
    }
}

/// Where a client reports to: its own counters, and those of its account.
pub(crate) struct Reporter {
    own: Arc<Meter>,
    account: AccountQuota,
}

impl Reporter {
    /// A client without a quota of others counts once.
    pub(crate) fn new(shared: Option<AccountQuota>, region: &str, now: Instant) -> Reporter {
        match shared {
            Some(account) => Reporter { own: Arc::new(Meter::new(now)), account },
            None => {
                let meter = Arc::new(Meter::new(now));
                let account = AccountQuota { meter: Arc::clone(&meter), ..AccountQuota::of_region(region) };
                Reporter { own: meter, account }
            }
        }
    }

    pub(crate) fn account(&self) -> &AccountQuota {
        &self.account
    }

    /// What the client drew so far.
    pub(crate) fn usage(&self, now: Instant) -> Usage {
        self.own.read(self.account.bucket, now)
    }

    /// A call begins, or is refused before it does.
    pub(crate) fn call(&self) {
        self.each(Meter::call);
    }

    /// A call ends with nothing sent.
    pub(crate) fn refused(&self, by: RefusedBy) {
        self.each(|meter| meter.refused(by));
    }

    /// An attempt is over; `ended` is none where its call was dropped, for then nobody looked at the clock.
    pub(crate) fn attempt(&self, attempt: Counted, ended: Option<Instant>) {
        self.each(|meter| meter.attempt(attempt, ended));
        if let Some(now) = ended {
            self.account.watch(now);
        }
    }

    /// Something that is no attempt is about to draw a token.
    pub(crate) fn aside(&self) -> Aside<'_> {
        Aside(Some(self))
    }

    fn each(&self, count: impl Fn(&Meter)) {
        count(&self.own);
        if !Arc::ptr_eq(&self.own, &self.account.meter) {
            count(&self.account.meter);
        }
    }
}

/// A request that is no attempt. Dropped, it is in doubt.
#[must_use = "dropped at once, it counts as in doubt"]
pub(crate) struct Aside<'a>(Option<&'a Reporter>);

impl Aside<'_> {
    /// It was answered.
    pub(crate) fn answered(mut self, now: Instant) {
        if let Some(reporter) = self.0.take() {
            reporter.each(|meter| meter.token(now));
        }
    }

    /// It was never sent.
    pub(crate) fn unsent(mut self) {
        self.0 = None;
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(reporter) = self.0.take() {
            reporter.each(Meter::doubt);
        }
    }
}

fn system_now() -> Instant {
    system().now().monotonic
}

#[cfg(test)]
mod tests;
