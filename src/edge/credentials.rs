//! Credentials: cached, refreshed once for all, dropped when the gateway says expired.

use crate::edge::ambient::Ambient;
use crate::edge::credential_state::{CacheSettings, CredentialsFault, Loaded, Refreshed, State, Step, same};
use crate::sync::{self, Mutex, MutexGuard, watch};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Keeps the credentials of one provider.
///
/// The providers of the AWS SDK do not cache. This does: one load at a time for all callers, which goes on when the
/// caller that began it is dropped; a refresh ahead of expiry while all use the old set, which stays in use until it
/// expires should the refresh fail; and a failure is kept for a moment, so that a provider in trouble is not asked by
/// every caller in turn.
#[derive(Clone)]
pub(crate) struct CredentialCache {
    shared: Arc<Shared>,
}

impl CredentialCache {
    /// Makes an empty cache; nothing is loaded before it is asked.
    pub(crate) fn new(
        provider: SharedCredentialsProvider,
        ambient: Arc<dyn Ambient>,
        settings: CacheSettings,
    ) -> CredentialCache {
        CredentialCache { shared: Arc::new(Shared { provider, ambient, settings, state: Mutex::default() }) }
    }

    /// The credentials to sign with now, waiting at most `within` for the provider.
    ///
    /// # Errors
    /// The provider failed, or failed a moment ago, or did not answer in time.
    pub(crate) async fn get(&self, within: Duration) -> Result<Credentials, CredentialsFault> {
        let result = match self.shared.ask() {
            Asked::Answer(answer) => return answer,
            Asked::Wait(result) => result,
        };
        // Boxed, so that who finds credentials pays for no wait.
        let waited = Box::pin(tokio::time::timeout(within, async {
            let loaded = wait(result).await;
            if !matches!(loaded, Err(CredentialsFault::Abandoned)) {
                return loaded;
            }
            // Another runtime was loading and was shut down; this one lives.
            match self.shared.ask() {
                Asked::Answer(answer) => answer,
                Asked::Wait(result) => wait(result).await,
            }
        }));
        waited.await.unwrap_or(Err(CredentialsFault::TimedOut(within)))
    }

    /// Forgets the credentials that were refused, if they are still the ones in use.
    pub(crate) fn refuse(&self, refused: &Credentials) {
        self.shared.lock().forget(refused);
    }

    /// Other credentials than those that were refused, if there are any, waiting at most `within` for the provider.
    ///
    /// The provider is not asked where another caller has already brought new ones, nor where it gave the refused ones
    /// again a moment ago: a Lambda's environment never changes.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn refresh(
        &self,
        refused: &Credentials,
        within: Duration,
    ) -> Result<Refreshed, CredentialsFault> {
        let now = self.shared.ambient.now();
        if let Some(known) = self.shared.lock().known(refused, now, &self.shared.settings) {
            return Ok(known);
        }
        self.refuse(refused);
        let credentials = self.get(within).await?;
        let changed = !same(&credentials, refused);
        if !changed {
            self.shared.lock().note_unchanged(self.shared.ambient.now(), &credentials);
        }
        Ok(Refreshed { credentials, changed })
    }

    /// Other credentials than those that are suspected, if the provider has any, waiting at most `within` for it.
    ///
    /// Unlike [`refresh`](Self::refresh), for an answer that may be about something else: the set in use stays in use
    /// until another is there, so that one refused call takes nothing from the others.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn renew(
        &self,
        suspected: &Credentials,
        within: Duration,
    ) -> Result<Refreshed, CredentialsFault> {
        let result = match self.shared.ask_beside(suspected) {
            Beside::Known(known) => return Ok(known),
            Beside::Asked(Asked::Answer(Err(fault))) => return Err(fault),
            Beside::Asked(Asked::Answer(Ok(credentials))) => {
                let changed = !same(&credentials, suspected);
                return Ok(Refreshed { credentials, changed });
            }
            Beside::Asked(Asked::Wait(result)) => result,
        };
        let late = |_| Err(CredentialsFault::TimedOut(within));
        let credentials = tokio::time::timeout(within, wait(result)).await.unwrap_or_else(late)?;
        let changed = !same(&credentials, suspected);
        if !changed {
            self.shared.lock().note_unchanged(self.shared.ambient.now(), &credentials);
        }
        Ok(Refreshed { credentials, changed })
    }

    /// Whether these credentials were loaded so lately that asking the provider again would only be a burden.
    pub(crate) fn is_young(&self, credentials: &Credentials) -> bool {
        let now = self.shared.ambient.now();
        self.shared.lock().is_young(credentials, now, &self.shared.settings)
    }
}

impl fmt::Debug for CredentialCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialCache").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

struct Shared {
    provider: SharedCredentialsProvider,
    ambient: Arc<dyn Ambient>,
    settings: CacheSettings,
    state: Mutex<State>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers from what is held, or says which load to wait for; begins it where nobody has.
    fn ask(self: &Arc<Self>) -> Asked {
        let now = self.ambient.now();
        let mut state = self.lock();
        let step = state.step(now, &self.settings);
        let flight =
            step.begins_a_load().then(|| state.take_off(now, matches!(step, Step::UseAndRefresh(_))));
        drop(state);
        let begun = flight.map(|(id, sender)| {
            let result = sender.subscribe();
            self.spawn(Landing { shared: Arc::clone(self), id, sender, landed: false });
            result
        });
        match (step, begun) {
            (Step::Use(credentials) | Step::UseAndRefresh(credentials), _) => Asked::Answer(Ok(credentials)),
            (Step::Fail(fault), _) => Asked::Answer(Err(fault)),
            (Step::Join(result), _) | (Step::Load, Some(result)) => Asked::Wait(result),
            (Step::Load, None) => Asked::Answer(Err(CredentialsFault::Abandoned)),
        }
    }

    /// Finds the load that brings other credentials beside those in use; begins it where nobody has.
    fn ask_beside(self: &Arc<Self>, suspected: &Credentials) -> Beside {
        let now = self.ambient.now();
        let mut state = self.lock();
        if let Some(known) = state.known(suspected, now, &self.settings) {
            return Beside::Known(known);
        }
        let step = state.step_beside(now, &self.settings);
        let begun = step.begins_a_load().then(|| state.take_off(now, true));
        drop(state);
        Beside::Asked(match (step, begun) {
            (Step::Fail(fault), _) => Asked::Answer(Err(fault)),
            (Step::Join(result), _) => Asked::Wait(result),
            (Step::Use(credentials) | Step::UseAndRefresh(credentials), _) => Asked::Answer(Ok(credentials)),
            (Step::Load, Some((id, sender))) => {
                let result = sender.subscribe();
                self.spawn(Landing { shared: Arc::clone(self), id, sender, landed: false });
                Asked::Wait(result)
            }
            (Step::Load, None) => Asked::Answer(Err(CredentialsFault::Abandoned)),
        })
    }

    /// Loads in a task of its own, so that no caller's end is the end of the load.
    fn spawn(&self, landing: Landing) {
        // Without a runtime the landing is dropped, and says so to all who wait for it.
        sync::spawn(load(landing));
    }

    fn settle(&self, id: u64, loaded: &Loaded) {
        let (now, draw) = (self.ambient.now(), self.ambient.draw());
        let early = self.lock().land(id, loaded, now, draw, &self.settings);
        if let (true, Err(fault)) = (early, loaded) {
            tracing::warn!(%fault, "credentials were not refreshed; the old ones are used while they last");
        }
    }
}

enum Asked {
    Answer(Loaded),
    Wait(watch::Receiver<Option<Loaded>>),
}

enum Beside {
    Asked(Asked),
    Known(Refreshed),
}

async fn wait(mut result: watch::Receiver<Option<Loaded>>) -> Loaded {
    let loaded = result.wait_for(Option::is_some).await;
    let loaded = loaded.ok().and_then(|loaded| loaded.clone());
    loaded.unwrap_or(Err(CredentialsFault::Abandoned))
}

async fn load(landing: Landing) {
    let limit = landing.shared.settings.load_timeout;
    let provider = landing.shared.provider.as_ref();
    let loaded = match tokio::time::timeout(limit, provider.provide_credentials()).await {
        Ok(Ok(credentials)) => Ok(credentials),
        Ok(Err(error)) => Err(CredentialsFault::Provider(Arc::new(error))),
        Err(_) => provider.fallback_on_interrupt().ok_or(CredentialsFault::ProviderTimedOut(limit)),
    };
    landing.land(loaded);
}

/// The end of a load, which comes whatever becomes of it.
struct Landing {
    shared: Arc<Shared>,
    id: u64,
    sender: watch::Sender<Option<Loaded>>,
    landed: bool,
}

impl Landing {
    fn land(mut self, loaded: Loaded) {
        self.settle(loaded);
    }

    fn settle(&mut self, loaded: Loaded) {
        self.landed = true;
        self.shared.settle(self.id, &loaded);
        self.sender.send_replace(Some(loaded));
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if !self.landed {
            let panicked = std::thread::panicking();
            self.settle(Err(if panicked { CredentialsFault::Panicked } else { CredentialsFault::Abandoned }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::hand::Hand;
    use crate::policy::moment::{Draw, some_moment};
    use aws_credential_types::provider::error::CredentialsError;
    use aws_credential_types::provider::{self, ProvideCredentials, future};
    use std::error::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;
    use tokio::sync::Semaphore;
    use tokio::task::{JoinSet, yield_now};

    const PLENTY: Duration = Duration::from_secs(3_600);
    const HOUR: Duration = Duration::from_secs(3_600);

    type Script = Box<dyn Fn(usize) -> Answer + Send + Sync>;

    enum Answer {
        Fail,
        Give(Credentials),
        Hang,
        Panic,
    }

    /// A provider that answers by script, counts how often it is asked and, if told so, waits for leave.
    struct Scripted {
        asked: AtomicUsize,
        script: Script,
        leave: Option<Semaphore>,
        fallback: Option<Credentials>,
    }

    impl fmt::Debug for Scripted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Scripted")
        }
    }

    impl Scripted {
        async fn answer(&self) -> provider::Result {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            if let Some(leave) = &self.leave {
                leave.acquire().await.unwrap().forget();
            }
            match (self.script)(asked) {
                Answer::Fail => Err(CredentialsError::provider_error("out of order")),
                Answer::Give(credentials) => Ok(credentials),
                Answer::Hang => std::future::pending().await,
                Answer::Panic => panic!("scripted"),
            }
        }
    }

    impl ProvideCredentials for Scripted {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::new(self.answer())
        }

        fn fallback_on_interrupt(&self) -> Option<Credentials> {
            self.fallback.clone()
        }
    }

    struct Rig {
        cache: CredentialCache,
        clock: Arc<Hand>,
        provider: Arc<Scripted>,
    }

    impl Rig {
        fn new(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Rig {
            Rig::of(Scripted {
                asked: AtomicUsize::new(0),
                script: Box::new(script),
                leave: None,
                fallback: None,
            })
        }

        fn waiting(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Rig {
            Rig::of(Scripted {
                asked: AtomicUsize::new(0),
                script: Box::new(script),
                leave: Some(Semaphore::new(0)),
                fallback: None,
            })
        }

        fn of(provider: Scripted) -> Rig {
            let clock = Hand::new();
            let provider = Arc::new(provider);
            let shared =
                SharedCredentialsProvider::from(Arc::clone(&provider) as Arc<dyn ProvideCredentials>);
            Rig {
                cache: CredentialCache::new(shared, Arc::clone(&clock) as _, CacheSettings::default()),
                clock,
                provider,
            }
        }

        fn asked(&self) -> usize {
            self.provider.asked.load(Ordering::SeqCst)
        }

        async fn id(&self) -> String {
            self.cache.get(PLENTY).await.unwrap().access_key_id().to_owned()
        }

        async fn settle(&self) {
            for _ in 0..10 {
                yield_now().await;
            }
        }
    }

    fn set(number: usize, expiry: Option<SystemTime>) -> Credentials {
        Credentials::new(format!("AKID{number}"), "secret", Some("token".into()), expiry, "test")
    }

    fn lasting(number: usize, time: Duration) -> Credentials {
        set(number, Some(some_moment().wall + time))
    }

    /// Set number `n` of a provider that gives a new one each hour.
    fn hourly(asked: usize) -> Answer {
        let hours = u32::try_from(asked + 1).unwrap();
        Answer::Give(lasting(asked, HOUR * hours))
    }

    async fn get_at_once(rig: &Rig, callers: usize) -> Vec<Result<Credentials, CredentialsFault>> {
        let mut calls = JoinSet::new();
        for _ in 0..callers {
            let cache = rig.cache.clone();
            calls.spawn(async move { cache.get(PLENTY).await });
        }
        calls.join_all().await
    }

    #[tokio::test]
    async fn a_hundred_calls_in_a_row_ask_the_provider_once() {
        let rig = Rig::new(hourly);
        for _ in 0..100 {
            assert_eq!(rig.id().await, "AKID0");
        }
        assert_eq!(rig.asked(), 1);
    }

    #[tokio::test]
    async fn a_hundred_callers_at_once_ask_the_provider_once_when_cold_and_when_expired() {
        let rig = Rig::new(hourly);
        assert!(get_at_once(&rig, 100).await.iter().all(Result::is_ok));
        assert_eq!(rig.asked(), 1);
        rig.clock.advance(HOUR);
        for found in get_at_once(&rig, 100).await {
            assert_eq!(found.unwrap().access_key_id(), "AKID1");
        }
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn credentials_without_an_expiry_are_never_loaded_again() {
        let rig = Rig::new(|asked| Answer::Give(set(asked, None)));
        for _ in 0..5 {
            assert_eq!(rig.id().await, "AKID0");
            rig.clock.advance(HOUR * 24 * 365);
        }
        assert_eq!(rig.asked(), 1);
    }

    #[tokio::test]
    async fn a_sandbox_that_wakes_after_expiry_does_not_use_the_old_set() {
        let rig = Rig::new(hourly);
        assert_eq!(rig.id().await, "AKID0");
        rig.clock.thaw_after(HOUR);
        assert_eq!(rig.id().await, "AKID1");
    }

    #[tokio::test]
    async fn a_load_goes_on_when_the_caller_that_began_it_is_dropped() {
        let rig = Rig::waiting(hourly);
        let cache = rig.cache.clone();
        let first = tokio::spawn(async move { cache.get(PLENTY).await });
        rig.settle().await;
        assert_eq!(rig.asked(), 1);
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        rig.provider.leave.as_ref().unwrap().add_permits(1);
        assert_eq!(rig.id().await, "AKID0");
        assert_eq!(rig.asked(), 1);
    }

    #[tokio::test]
    async fn all_use_the_old_set_while_one_load_refreshes_it_early() {
        let rig = Rig::waiting(hourly);
        rig.provider.leave.as_ref().unwrap().add_permits(1);
        assert_eq!(rig.id().await, "AKID0");
        rig.clock.advance(HOUR - Duration::from_secs(301));
        assert_eq!(rig.id().await, "AKID0");
        rig.settle().await;
        assert_eq!(rig.asked(), 1);
        rig.clock.advance(Duration::from_secs(1));
        for _ in 0..50 {
            assert_eq!(rig.id().await, "AKID0");
        }
        rig.settle().await;
        assert_eq!(rig.asked(), 2);
        rig.provider.leave.as_ref().unwrap().add_permits(1);
        rig.settle().await;
        assert_eq!(rig.id().await, "AKID1");
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn jitter_gives_away_at_most_a_fifth_of_the_early_window() {
        let rig = Rig::new(hourly);
        rig.clock.throw(Draw::HIGHEST);
        assert_eq!(rig.id().await, "AKID0");
        rig.clock.advance(HOUR - Duration::from_secs(241));
        rig.id().await;
        rig.settle().await;
        assert_eq!(rig.asked(), 1);
        rig.clock.advance(Duration::from_secs(1));
        rig.id().await;
        rig.settle().await;
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn a_failed_early_refresh_keeps_the_old_set_and_backs_off_until_it_expires() {
        let rig = Rig::new(|asked| match asked {
            0 => Answer::Give(lasting(0, Duration::from_secs(60))),
            _ => Answer::Fail,
        });
        assert_eq!(rig.id().await, "AKID0");
        let mut asked = Vec::new();
        for _ in 0..59 {
            for _ in 0..10 {
                assert_eq!(rig.id().await, "AKID0");
                rig.settle().await;
            }
            asked.push(rig.asked());
            rig.clock.advance(Duration::from_secs(1));
        }
        // Tried at 0, then after 2, 4, 8, 16 and 32 more seconds less what is left.
        assert_eq!((asked[0], asked[1], asked[2], asked[6], asked[14], asked[30]), (2, 2, 3, 4, 5, 6));
        assert_eq!(rig.asked(), 6);
        rig.clock.advance(Duration::from_secs(1));
        let fault = rig.cache.get(PLENTY).await.unwrap_err();
        assert!(matches!(fault, CredentialsFault::Provider(_)));
        assert_eq!(fault.source().unwrap().to_string(), CredentialsError::provider_error("").to_string());
    }

    #[tokio::test]
    async fn a_provider_whose_sets_are_always_due_is_not_asked_at_every_call() {
        let rig = Rig::new(|asked| Answer::Give(lasting(asked, Duration::from_secs(60))));
        for _ in 0..50 {
            rig.id().await;
            rig.settle().await;
        }
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn a_failure_is_shared_by_all_callers_and_kept_for_a_second() {
        let rig = Rig::new(|asked| if asked < 2 { Answer::Fail } else { hourly(asked) });
        assert!(get_at_once(&rig, 20).await.iter().all(Result::is_err));
        assert!(rig.cache.get(PLENTY).await.is_err());
        rig.clock.advance(Duration::from_millis(999));
        assert!(rig.cache.get(PLENTY).await.is_err());
        assert_eq!(rig.asked(), 1);
        rig.clock.advance(Duration::from_millis(1));
        assert!(rig.cache.get(PLENTY).await.is_err());
        assert_eq!(rig.asked(), 2);
        rig.clock.advance(Duration::from_secs(1));
        assert_eq!(rig.id().await, "AKID2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_no_longer_than_it_has_for_a_provider_that_never_answers() {
        let rig = Rig::new(|asked| if asked == 0 { Answer::Hang } else { hourly(asked) });
        let budget = Duration::from_millis(500);
        let fault = rig.cache.get(budget).await.unwrap_err();
        assert!(matches!(fault, CredentialsFault::TimedOut(time) if time == budget));
        // The load itself ends too, and the next one has a chance.
        let fault = rig.cache.get(PLENTY).await.unwrap_err();
        assert!(matches!(fault, CredentialsFault::ProviderTimedOut(time) if time == Duration::from_secs(5)));
        rig.clock.advance(Duration::from_secs(1));
        assert_eq!(rig.id().await, "AKID1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_is_interrupted_may_fall_back_on_what_it_had() {
        let rig = Rig::of(Scripted {
            asked: AtomicUsize::new(0),
            script: Box::new(|_| Answer::Hang),
            leave: None,
            fallback: Some(set(7, None)),
        });
        assert_eq!(rig.id().await, "AKID7");
    }

    #[tokio::test]
    async fn a_provider_that_panics_is_a_typed_fault_and_is_asked_again_later() {
        let rig = Rig::new(|asked| if asked == 0 { Answer::Panic } else { hourly(asked) });
        assert!(matches!(rig.cache.get(PLENTY).await.unwrap_err(), CredentialsFault::Panicked));
        assert!(matches!(rig.cache.get(PLENTY).await.unwrap_err(), CredentialsFault::Panicked));
        assert_eq!(rig.asked(), 1);
        rig.clock.advance(Duration::from_secs(1));
        assert_eq!(rig.id().await, "AKID1");
    }

    #[test]
    fn a_runtime_that_is_shut_down_takes_its_load_with_it_and_no_other() {
        let rig = Rig::new(|asked| if asked == 0 { Answer::Hang } else { hourly(asked) });
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = runtime();
        let cache = rig.cache.clone();
        first.spawn(async move { cache.get(PLENTY).await });
        first.block_on(rig.settle());
        assert_eq!(rig.asked(), 1);
        drop(first);
        assert_eq!(runtime().block_on(rig.id()), "AKID1");
    }

    #[test]
    fn a_caller_that_waited_for_the_load_of_a_dying_runtime_begins_its_own() {
        let rig = Rig::new(|asked| if asked == 0 { Answer::Hang } else { hourly(asked) });
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (dying, living) = (runtime(), runtime());
        let get = |cache: CredentialCache| async move { cache.get(PLENTY).await };
        dying.spawn(get(rig.cache.clone()));
        dying.block_on(rig.settle());
        let waiting = living.spawn(get(rig.cache.clone()));
        living.block_on(rig.settle());
        assert_eq!(rig.asked(), 1);
        drop(dying);
        assert_eq!(living.block_on(waiting).unwrap().unwrap().access_key_id(), "AKID1");
    }

    #[test]
    fn a_load_that_nobody_drives_any_more_is_replaced() {
        let rig = Rig::new(|asked| if asked == 0 { Answer::Hang } else { hourly(asked) });
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let idle = runtime();
        let cache = rig.cache.clone();
        idle.spawn(async move { cache.get(PLENTY).await });
        idle.block_on(rig.settle());
        rig.clock.advance(Duration::from_secs(7));
        assert_eq!(runtime().block_on(rig.id()), "AKID1");
        drop(idle);
        assert_eq!(runtime().block_on(rig.id()), "AKID1");
    }

    #[tokio::test]
    async fn a_set_that_is_expired_by_our_clock_is_used_while_it_is_fresh_from_the_provider() {
        let rig = Rig::new(|asked| Answer::Give(set(asked, Some(some_moment().wall - HOUR))));
        assert_eq!(rig.id().await, "AKID0");
        for _ in 0..20 {
            rig.id().await;
            rig.settle().await;
        }
        assert_eq!(rig.asked(), 2);
        rig.clock.advance(Duration::from_secs(1));
        assert_eq!(rig.id().await, "AKID2");
    }

    #[tokio::test]
    async fn only_the_set_that_was_refused_is_forgotten() {
        let rig = Rig::new(hourly);
        let old = rig.cache.get(PLENTY).await.unwrap();
        rig.cache.refuse(&set(9, None));
        assert_eq!(rig.id().await, "AKID0");
        rig.cache.refuse(&old);
        assert_eq!(rig.id().await, "AKID1");
        rig.cache.refuse(&old);
        assert_eq!(rig.id().await, "AKID1");
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn of_many_refused_callers_one_load_serves_all() {
        let rig = Rig::new(hourly);
        let old = rig.cache.get(PLENTY).await.unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..50 {
            let (cache, old) = (rig.cache.clone(), old.clone());
            calls.spawn(async move { cache.refresh(&old, PLENTY).await.unwrap() });
        }
        for refreshed in calls.join_all().await {
            assert!(refreshed.changed);
            assert_eq!(refreshed.credentials.access_key_id(), "AKID1");
        }
        assert_eq!(rig.asked(), 2);
    }

    #[tokio::test]
    async fn the_same_set_again_is_told_and_not_asked_for_at_every_refusal() {
        let rig = Rig::new(|_| Answer::Give(set(0, None)));
        let old = rig.cache.get(PLENTY).await.unwrap();
        for _ in 0..10 {
            let refreshed = rig.cache.refresh(&old, PLENTY).await.unwrap();
            assert!(!refreshed.changed);
            assert_eq!(rig.id().await, "AKID0");
        }
        assert_eq!(rig.asked(), 2);
        rig.clock.advance(Duration::from_secs(1));
        assert!(!rig.cache.refresh(&old, PLENTY).await.unwrap().changed);
        assert_eq!(rig.asked(), 3);
    }

    #[tokio::test]
    async fn a_new_expiry_alone_is_not_a_new_set() {
        let rig = Rig::new(|asked| Answer::Give(lasting(0, HOUR * u32::try_from(asked + 1).unwrap())));
        let old = rig.cache.get(PLENTY).await.unwrap();
        assert!(!rig.cache.refresh(&old, PLENTY).await.unwrap().changed);
    }

    #[tokio::test]
    async fn no_debug_of_the_cache_shows_a_key() {
        let rig = Rig::new(hourly);
        rig.id().await;
        assert!(!format!("{:?}", rig.cache).contains("AKID"));
    }
}
