//! What a store has to do, so that others than Valkey and Redis can be one.

use crate::policy::fleet::{FleetSettings, Report, View};
use crate::policy::rate_limit::Priority;
use crate::policy::shared_limit::SharedQuota;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What an exchange with a store will come to.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where a fleet keeps the state of its breakers.
///
/// An exchange takes in what one process tells and answers it, in one atomic step, by the store's own clock. The rules
/// are [`SharedState`](crate::fleet::SharedState)'s, which a store may run as it is. A report that
/// [is silent](Report::is_silent) and asks for nothing is a mere look and need not write.
///
/// An exchange is bounded from outside: it is dropped when its time is over. A late answer is of no use.
pub trait FleetStore: Send + Sync + 'static {
    /// Makes one exchange about a callee.
    fn exchange<'a>(
        &'a self,
        callee: &'a str,
        settings: &'a FleetSettings,
        report: &'a Report,
    ) -> StoreFuture<'a, View>;

    /// Connects, where that takes longer than an exchange may: in a Lambda's init phase. By default it does nothing.
    fn warm_up(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Where a fleet keeps its shared rate limits. The rules are
/// [`SharedBucket`](crate::fleet::SharedBucket)'s.
pub trait LimitStore: Send + Sync + 'static {
    /// Takes one attempt out of the bucket of this name, or answers how long until there will be one; zero means taken.
    fn take<'a>(
        &'a self,
        name: &'a str,
        quota: &'a SharedQuota,
        priority: Priority,
    ) -> StoreFuture<'a, Duration>;
}

impl<S: FleetStore + ?Sized> FleetStore for Arc<S> {
    fn exchange<'a>(
        &'a self,
        callee: &'a str,
        settings: &'a FleetSettings,
        report: &'a Report,
    ) -> StoreFuture<'a, View> {
        (**self).exchange(callee, settings, report)
    }

    fn warm_up(&self) -> StoreFuture<'_, ()> {
        (**self).warm_up()
    }
}

impl<S: LimitStore + ?Sized> LimitStore for Arc<S> {
    fn take<'a>(
        &'a self,
        name: &'a str,
        quota: &'a SharedQuota,
        priority: Priority,
    ) -> StoreFuture<'a, Duration> {
        (**self).take(name, quota, priority)
    }
}

/// Why an exchange with a store came to nothing. It reaches a log, so it holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(String);

impl StoreError {
    /// An error in a few words.
    #[must_use]
    pub fn new(what: impl Into<String>) -> StoreError {
        StoreError(what.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// Asks a store within its budget. One that panics is as good as gone, and takes no call with it.
pub(crate) async fn asked<T>(
    budget: Duration,
    exchange: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut exchange = pin!(exchange);
    let caught = poll_fn(|task| {
        let polled = catch_unwind(AssertUnwindSafe(|| exchange.as_mut().poll(task)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(StoreError::new("it panicked"))))
    });
    match tokio::time::timeout(budget, caught).await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::new("no answer within its budget")),
    }
}

/// Whether a name can be part of a key: visible ASCII without the braces that a cluster hashes by, 1 to 128 characters.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'{' && byte != b'}';
    (1..=128).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_break_a_key_is_none() {
        assert!(is_name("orders") && is_name("orders/v2:eu-central-1"));
        for bad in ["", "two words", "or{ders", "or}ders", "or\nders", "bestellungen-für-morgen"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"x".repeat(129)));
    }
}
