//! Every order in which callers meet at the credential cache, and at the loads that they begin.

use crate::edge::ambient::Ambient;
use crate::edge::credential_state::{CacheSettings, CredentialsFault};
use crate::edge::credentials::CredentialCache;
use crate::interleavings::task::{Wanted, all_ended, beside, block_on, none_yet};
use crate::interleavings::{Still, at_once};
use crate::policy::moment::{Draw, Moment, some_moment};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider, future};
use loom::sync::atomic::{AtomicU64, AtomicUsize};
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PLENTY: Duration = Duration::from_secs(3_600);

#[test]
fn two_callers_of_an_empty_cache_ask_the_provider_once_and_both_get_its_set() {
    model(|| {
        let cache = empty(give);
        let other = cache.clone();
        beside(move || assert_eq!(get(&other), "0"));
        assert_eq!(get(&cache), "0");
        assert_eq!(get_at_once(&cache), "0");
        assert_eq!(all_ended(), 1);
    });
}

#[test]
fn a_caller_that_gives_up_takes_nothing_from_another_that_waits() {
    model(|| {
        let cache = empty(give);
        let other = cache.clone();
        beside(move || assert_eq!(get(&other), "0"));
        drop(at_once(cache.get(PLENTY)));
        assert_eq!(all_ended(), 1);
        assert_eq!(get_at_once(&cache), "0");
    });
}

#[test]
fn a_load_lands_though_all_who_waited_for_it_gave_up() {
    model(|| {
        let cache = empty(give);
        let other = cache.clone();
        beside(move || drop(at_once(other.get(PLENTY))));
        drop(at_once(cache.get(PLENTY)));
        assert_eq!(all_ended(), 1);
        assert_eq!(get_at_once(&cache), "0");
    });
}

#[test]
fn a_caller_whose_load_is_abandoned_begins_the_next_one_beside_another_that_is_told() {
    model(|| {
        let cache = empty(|asked| if asked == 0 { Answer::Hang } else { give(asked) });
        let other = cache.clone();
        // It is told of the load that it waited for; whoever needs a set to sign with waits once more.
        beside(move || match block_on(other.renew(&set(9), PLENTY)) {
            Ok(renewed) => assert_eq!(renewed.credentials.access_key_id(), "1"),
            Err(fault) => assert!(matches!(fault, CredentialsFault::Abandoned)),
        });
        assert_eq!(get(&cache), "1");
        assert_eq!(all_ended(), 2);
    });
}

#[test]
fn whoever_waits_for_a_load_that_is_abandoned_is_told_so() {
    model(|| {
        let cache = empty(|_| Answer::Hang);
        let other = cache.clone();
        let abandoned = |cache: &CredentialCache| {
            let fault = block_on(cache.renew(&set(9), PLENTY)).unwrap_err();
            assert!(matches!(fault, CredentialsFault::Abandoned));
        };
        beside(move || abandoned(&other));
        abandoned(&cache);
        assert!((1..=2).contains(&all_ended()));
    });
}

#[test]
fn whoever_waits_for_a_provider_that_panics_is_told_so_and_the_next_caller_begins_a_new_load() {
    model(|| {
        let (cache, clock) =
            turned(|asked| if asked == 0 { resume_unwind(Box::new(Wanted)) } else { give(asked) });
        let panicked = |cache: &CredentialCache| {
            let fault = block_on(cache.get(PLENTY)).unwrap_err();
            assert!(matches!(fault, CredentialsFault::Panicked));
        };
        let other = cache.clone();
        beside(move || panicked(&other));
        panicked(&cache);
        assert_eq!(all_ended(), 1);
        clock.advance(1);
        assert_eq!(get(&cache), "1");
    });
}

#[test]
fn two_callers_whose_set_was_refused_ask_for_another_once() {
    model(|| {
        let cache = holding(give);
        let refresh = |cache: &CredentialCache| {
            let refreshed = block_on(cache.refresh(&set(0), PLENTY)).unwrap();
            assert!(refreshed.changed);
            assert_eq!(refreshed.credentials.access_key_id(), "1");
        };
        let other = cache.clone();
        beside(move || refresh(&other));
        refresh(&cache);
        assert_eq!(get_at_once(&cache), "1");
        assert_eq!(all_ended(), 1);
    });
}

#[test]
fn two_callers_that_suspect_a_set_ask_for_another_once_while_a_third_uses_what_is_held() {
    model(|| {
        let cache = holding(give);
        let renew = |cache: &CredentialCache| {
            let renewed = block_on(cache.renew(&set(0), PLENTY)).unwrap();
            assert!(renewed.changed);
            assert_eq!(renewed.credentials.access_key_id(), "1");
        };
        let other = cache.clone();
        beside(move || renew(&other));
        let used = get_at_once(&cache);
        assert!(["0", "1"].contains(&&*used));
        renew(&cache);
        assert_eq!(all_ended(), 1);
        assert_eq!(get_at_once(&cache), "1");
    });
}

#[test]
fn nobody_waits_for_an_early_refresh_and_one_load_brings_it() {
    model(|| {
        let cache = holding(|asked| Answer::Give(if asked == 0 { due(0) } else { set(asked) }));
        let other = cache.clone();
        beside(move || assert!(["0", "1"].contains(&&*get_at_once(&other))));
        let here = get_at_once(&cache);
        assert!(["0", "1"].contains(&&*here));
        assert_eq!(all_ended(), 1);
        assert_eq!(get_at_once(&cache), "1");
    });
}

#[test]
fn an_early_refresh_that_fails_takes_the_old_set_from_nobody_and_is_not_repeated() {
    model(|| {
        let cache = holding(|asked| if asked == 0 { Answer::Give(due(0)) } else { Answer::Fail });
        let other = cache.clone();
        beside(move || assert_eq!(get_at_once(&other), "0"));
        assert_eq!(get_at_once(&cache), "0");
        assert_eq!(all_ended(), 1);
        assert_eq!(get_at_once(&cache), "0");
        assert_eq!(all_ended(), 0);
    });
}

#[test]
fn an_overdue_load_that_lands_late_never_takes_the_place_of_a_newer_one() {
    model(|| {
        let (cache, clock) = turned(give);
        let other = cache.clone();
        beside(move || drop(get(&other)));
        clock.advance(7);
        let newest = get(&cache);
        assert!((1..=2).contains(&all_ended()));
        assert_eq!(get_at_once(&cache), newest);
        assert_eq!(all_ended(), 0);
    });
}

#[test]
fn an_overdue_load_that_is_abandoned_late_takes_no_caller_from_a_newer_one() {
    model(|| {
        let (cache, clock) = turned(|asked| if asked == 0 { Answer::Hang } else { give(asked) });
        drop(at_once(cache.get(PLENTY)));
        clock.advance(7);
        let here = get(&cache);
        all_ended();
        assert_eq!(get_at_once(&cache), here);
        assert_eq!(all_ended(), 0);
    });
}

/// Tries every order. Time limits ask for a timer of the runtime; it never fires.
fn model(case: impl Fn() + Send + Sync + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    // Not dropped: where a model fails, the stacks of its threads are gone, and with them the timers that this would look at.
    let runtime = ManuallyDrop::new(runtime);
    let _entered = runtime.enter();
    loom::model(move || {
        none_yet();
        case();
    });
}

fn get(cache: &CredentialCache) -> String {
    block_on(cache.get(PLENTY)).unwrap().access_key_id().to_owned()
}

fn get_at_once(cache: &CredentialCache) -> String {
    at_once(cache.get(PLENTY)).expect("nobody waits").unwrap().access_key_id().to_owned()
}

fn empty(script: fn(usize) -> Answer) -> CredentialCache {
    cache(script, Arc::new(Still(some_moment())))
}

/// A cache that holds the first set. The orders of that first load are not tried again.
fn holding(script: fn(usize) -> Answer) -> CredentialCache {
    let cache = empty(script);
    loom::stop_exploring();
    assert_eq!(get(&cache), "0");
    assert_eq!(all_ended(), 1);
    loom::explore();
    cache
}

fn turned(script: fn(usize) -> Answer) -> (CredentialCache, Arc<Turned>) {
    let clock = Arc::new(Turned { began: some_moment(), seconds: AtomicU64::new(0) });
    (cache(script, Arc::clone(&clock) as _), clock)
}

fn cache(script: fn(usize) -> Answer, ambient: Arc<dyn Ambient>) -> CredentialCache {
    let provider = SharedCredentialsProvider::new(Scripted { asked: AtomicUsize::new(0), script });
    CredentialCache::new(provider, ambient, CacheSettings::default())
}

/// A clock that is turned while others look at it.
struct Turned {
    began: Moment,
    seconds: AtomicU64,
}

impl Turned {
    fn advance(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::AcqRel);
    }
}

impl Ambient for Turned {
    fn now(&self) -> Moment {
        let passed = Duration::from_secs(self.seconds.load(Ordering::Acquire));
        Moment { monotonic: self.began.monotonic + passed, wall: self.began.wall + passed }
    }

    fn draw(&self) -> Draw {
        Draw::LOWEST
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(std::future::pending())
    }
}

/// A provider that answers by the number of times it was asked before.
#[derive(Debug)]
struct Scripted {
    asked: AtomicUsize,
    script: fn(usize) -> Answer,
}

enum Answer {
    Fail,
    Give(Credentials),
    /// Until the runtime is shut down.
    Hang,
}

impl ProvideCredentials for Scripted {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.answer())
    }
}

impl Scripted {
    async fn answer(&self) -> provider::Result {
        match (self.script)(self.asked.fetch_add(1, Ordering::AcqRel)) {
            Answer::Fail => Err(CredentialsError::provider_error("out of order")),
            Answer::Give(credentials) => Ok(credentials),
            Answer::Hang => std::future::pending().await,
        }
    }
}

fn give(asked: usize) -> Answer {
    Answer::Give(set(asked))
}

fn set(number: usize) -> Credentials {
    Credentials::new(number.to_string(), "secret", None, None, "test")
}

/// A set that is to be refreshed at once.
fn due(number: usize) -> Credentials {
    let expiry = some_moment().wall + Duration::from_secs(60);
    Credentials::new(number.to_string(), "secret", None, Some(expiry), "test")
}
