//! A rate limit that processes share, and what becomes of it when its store is gone.

use crate::edge::ambient::{Ambient, shared_system};
use crate::error::Error;
use crate::fleet::store::{LimitStore, StoreError, asked, is_name};
use crate::observe;
use crate::policy::fleet::rest::{Aloud, Rest};
use crate::policy::rate_limit::Priority;
use crate::policy::shared_limit::{SharedQuota, Taken};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What asking a shared limit will come to.
pub type TakeFuture<'a> = Pin<Box<dyn Future<Output = Taken> + Send + 'a>>;

/// A limit that others draw from too, as a retry loop sees it.
pub trait SharedLimit: fmt::Debug + Send + Sync + 'static {
    /// Asks for one attempt of a priority that has so much time left to wait in. It never takes longer than the
    /// store's budget, and never fails: a limit that cannot be asked has decided what that means.
    fn take(&self, priority: Priority, within: Duration) -> TakeFuture<'_>;
}

/// A rate limit that all processes of a fleet draw from, in a store.
///
/// For processes that drink from one quota: a partner's API, an API key's usage plan. Each attempt waits for one exchange
/// with the store, so it is for those that must share, not for all. A clone draws from the same.
///
/// ```
/// # async fn sync() -> Result<(), eastwest::Error> {
/// use eastwest::fleet::{Priority, RedisStore, SharedQuota, SharedRateLimit, Taken};
/// use std::time::Duration;
///
/// let store = RedisStore::open("redis://127.0.0.1:6379", "prod")?;
/// let limit = SharedRateLimit::new("partner-api", store, SharedQuota::per_second(50))?;
/// match limit.take(Priority::Bulk, Duration::from_secs(2)).await {
///     Taken::Admitted => { /* send */ }
///     Taken::Wait(wait) => { /* wait, and ask again */ }
///     Taken::Refused(come_back) => { /* give up, or put it off */ }
///     _ => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedRateLimit(Arc<Inner>);

struct Inner {
    name: String,
    store: Arc<dyn LimitStore>,
    quota: SharedQuota,
    budget: Duration,
    fails_closed: bool,
    ambient: Arc<dyn Ambient>,
    trouble: Mutex<Trouble>,
}

#[derive(Default)]
struct Trouble {
    rest: Rest,
    aloud: Aloud,
}

impl SharedRateLimit {
    /// Names the bucket, which all that share it must name alike, and its size.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration): a name that is not 1 to 128 visible ASCII
    /// characters without braces, or a quota that makes no sense.
    pub fn new(
        name: impl Into<String>,
        store: impl LimitStore,
        quota: SharedQuota,
    ) -> Result<SharedRateLimit, Error> {
        let name = name.into();
        if !is_name(&name) {
            return Err(Error::configuration(
                "shared_rate_limit",
                "the name must be visible ASCII without braces",
            ));
        }
        quota.check().map_err(|(field, reason)| Error::configuration(field, reason))?;
        Ok(SharedRateLimit(Arc::new(Inner {
            name,
            store: Arc::new(store),
            quota,
            budget: BUDGET,
            fails_closed: false,
            ambient: shared_system(),
            trouble: Mutex::default(),
        })))
    }

    /// Refuses attempts while the store cannot be asked, where going over the quota is worse than not calling. By
    /// default they are admitted.
    #[must_use]
    pub fn fail_closed(self) -> SharedRateLimit {
        self.changed(|inner| inner.fails_closed = true)
    }

    /// Sets the most that an attempt waits for the store; 50 ms by default, at least 1 ms.
    #[must_use]
    pub fn store_budget(self, budget: Duration) -> SharedRateLimit {
        self.changed(|inner| inner.budget = budget.max(Duration::from_millis(1)))
    }

    /// Replaces clock and dice; for tests.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn ambient(self, ambient: impl Ambient) -> SharedRateLimit {
        self.changed(|inner| inner.ambient = Arc::new(ambient))
    }

    /// Asks for one attempt of a priority that has so much time left to wait in.
    ///
    /// It never takes longer than the store's budget. A wait that it answers is spread, so that those who wait do not come
    /// back as one, and reserves nothing: ask again after it.
    pub async fn take(&self, priority: Priority, within: Duration) -> Taken {
        let inner = &*self.0;
        let rest = inner.trouble().rest;
        if let Some(left) = rest.left(inner.ambient.now()) {
            return inner.unasked(left);
        }
        let taking = async { inner.store.take(&inner.name, &inner.quota, priority).await };
        match asked(inner.budget, taking).await {
            Ok(wait) => {
                inner.trouble().rest.ended();
                match Taken::of(wait, within) {
                    Taken::Wait(wait) => {
                        let spread = wait.saturating_add(inner.ambient.draw().up_to(wait));
                        Taken::Wait(spread.min(within))
                    }
                    taken => taken,
                }
            }
            Err(why) => inner.unasked(inner.failed(&why)),
        }
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> SharedRateLimit {
        if Arc::get_mut(&mut self.0).is_none() {
            // It is shared already: this one is set apart, and draws from the same bucket all the same.
            self.0 = Arc::new(self.0.apart());
        }
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }
}

impl SharedLimit for SharedRateLimit {
    fn take(&self, priority: Priority, within: Duration) -> TakeFuture<'_> {
        Box::pin(SharedRateLimit::take(self, priority, within))
    }
}

impl fmt::Debug for SharedRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRateLimit")
            .field("name", &self.0.name)
            .field("quota", &self.0.quota)
            .field("fails_closed", &self.0.fails_closed)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn apart(&self) -> Inner {
        Inner {
            name: self.name.clone(),
            store: Arc::clone(&self.store),
            quota: self.quota,
            budget: self.budget,
            fails_closed: self.fails_closed,
            ambient: Arc::clone(&self.ambient),
            trouble: Mutex::default(),
        }
    }

    /// What an attempt gets that the store could not be asked about.
    fn unasked(&self, come_back: Duration) -> Taken {
        if self.fails_closed { Taken::Refused(come_back) } else { Taken::Admitted }
    }

    /// Leaves the store alone for a while, longer each time; answers how long.
    fn failed(&self, why: &StoreError) -> Duration {
        let (now, draw) = (self.ambient.now(), self.ambient.draw());
        let (rest, aloud) = {
            let mut trouble = self.trouble();
            let rest = trouble.rest.begin(REST, now, draw);
            (rest, trouble.aloud.may_be_told(now))
        };
        observe::fleet_store_failed(&self.name, &why.to_string(), aloud);
        rest
    }

    /// A poisoned lock means that a thread panicked between two plain assignments; what it guards is still sound.
    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const BUDGET: Duration = Duration::from_millis(50);

/// How long a store that failed once is left alone.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::ambient::System;
    use crate::fleet::store::StoreFuture;
    use crate::policy::moment::{Draw, Moment};
    use crate::policy::shared_limit::SharedBucket;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const MS: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(10);

    #[derive(Clone, Copy)]
    enum Mood {
        Fails,
        Hangs,
        Works,
    }

    struct Fake {
        mood: Mood,
        bucket: Mutex<SharedBucket>,
        start: Moment,
        asked: Arc<AtomicUsize>,
    }

    impl LimitStore for Fake {
        fn take<'a>(
            &'a self,
            _: &'a str,
            quota: &'a SharedQuota,
            priority: Priority,
        ) -> StoreFuture<'a, Duration> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                match self.mood {
                    Mood::Fails => Err(StoreError::new("it is gone")),
                    Mood::Hangs => pending().await,
                    Mood::Works => {
                        let now = LONG + System.now().since(&self.start);
                        Ok(self.bucket.lock().unwrap().take(quota, priority, now))
                    }
                }
            })
        }
    }

    struct World;

    impl Ambient for World {
        fn now(&self) -> Moment {
            System.now()
        }

        fn draw(&self) -> Draw {
            Draw::HIGHEST
        }

        fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
            System.sleep(wait)
        }
    }

    fn limit(mood: Mood) -> (SharedRateLimit, Arc<AtomicUsize>) {
        let asked = Arc::<AtomicUsize>::default();
        let store = Fake { mood, bucket: Mutex::default(), start: System.now(), asked: Arc::clone(&asked) };
        let limit = SharedRateLimit::new("partner", store, SharedQuota::per_second(10)).unwrap();
        (limit.changed(|inner| inner.ambient = Arc::new(World)), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn bulk_waits_while_what_is_left_is_kept_for_others_and_refuses_what_cannot_wait() {
        let (limit, _) = limit(Mood::Works);
        for _ in 0..7 {
            assert_eq!(limit.take(Priority::Bulk, LONG).await, Taken::Admitted);
        }
        assert!(matches!(limit.take(Priority::Bulk, LONG).await, Taken::Wait(wait) if wait > 100 * MS));
        assert!(matches!(limit.take(Priority::Bulk, MS).await, Taken::Refused(_)));
        for _ in 0..2 {
            assert_eq!(limit.take(Priority::Normal, LONG).await, Taken::Admitted);
        }
        assert_eq!(limit.take(Priority::Critical, LONG).await, Taken::Admitted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_spread_and_never_longer_than_the_attempt_has() {
        let (limit, _) = limit(Mood::Works);
        for _ in 0..10 {
            limit.take(Priority::Critical, LONG).await;
        }
        assert!(matches!(limit.take(Priority::Critical, LONG).await, Taken::Wait(wait) if wait > 150 * MS));
        let taken = limit.take(Priority::Critical, 120 * MS).await;
        assert!(matches!(taken, Taken::Wait(wait) if wait <= 120 * MS), "{taken:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_costs_50_ms_once_and_admits() {
        let (limit, asked) = limit(Mood::Hangs);
        let start = System.now();
        for _ in 0..100 {
            assert_eq!(limit.take(Priority::Normal, LONG).await, Taken::Admitted);
        }
        assert_eq!(System.now().monotonic - start.monotonic, 50 * MS);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn where_it_is_asked_to_it_refuses_while_the_store_is_gone() {
        let (limit, asked) = limit(Mood::Fails);
        let limit = limit.fail_closed();
        for _ in 0..10 {
            assert!(matches!(limit.take(Priority::Critical, LONG).await, Taken::Refused(_)));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_name_or_quota_that_makes_no_sense_is_refused_by_name() {
        let field = |name: &str, attempts| {
            let store = Fake {
                mood: Mood::Works,
                bucket: Mutex::default(),
                start: System.now(),
                asked: Arc::default(),
            };
            SharedRateLimit::new(name, store, SharedQuota::per_second(attempts)).err().and_then(|e| e.field())
        };
        assert_eq!(field("a}b", 5), Some("shared_rate_limit"));
        assert_eq!(field("partner", 0), Some("shared_quota"));
    }
}
