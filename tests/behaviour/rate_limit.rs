//! The rate limit and the limit on calls in flight: who waits, who is told to come back, and that nothing is sent then.

use crate::rig::{Rig, SHORT};
use eastwest::fleet::{
    LimitStore, SharedLimit, SharedQuota, SharedRateLimit, StoreError, StoreFuture, TakeFuture, Taken,
};
use eastwest::policy::moment::Draw;
use eastwest::testing::Reply;
use eastwest::{
    CallContext, Error, ErrorKind, Priority, QuotaHeaders, RateLimit, Reset, ServiceClient, StopReason,
};
use std::time::Duration;

async fn send(client: &ServiceClient, priority: Priority) -> Result<(), Error> {
    client.post(&CallContext::root(), "/orders").priority(priority).send().await.map(drop)
}

#[tokio::test]
async fn attempts_beyond_the_burst_wait_for_their_turn() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.builder().rate_limit(RateLimit::per_second(2)).build().unwrap();
    for _ in 0..5 {
        send(&client, Priority::Critical).await.unwrap();
    }
    assert_eq!((rig.seen(), rig.waits()), (5, vec![500, 500, 500]));
}

#[tokio::test]
async fn a_call_that_cannot_be_admitted_in_its_time_ends_at_once_with_nothing_sent() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.builder().rate_limit(RateLimit::per_minute(1)).build().unwrap();
    send(&client, Priority::Normal).await.unwrap();
    let error = send(&client, Priority::Critical).await.unwrap_err();
    assert_eq!((rig.seen(), rig.waits()), (1, vec![]));
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::RateLimited, Some(StopReason::RateLimited)));
    assert_eq!((error.attempts().len(), error.retry_after()), (0, Some(Duration::from_secs(60))));
    let answer = error.to_response();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"60".parse().unwrap()));
    assert_eq!(answer.headers()["x-should-retry"], "false");
    assert_eq!(client.usage().refused_by_rate_limit, 1);
}

#[tokio::test]
async fn bulk_gives_way_first_and_critical_may_take_all() {
    let rig = Rig::answering([Reply::ok()]).await;
    let limit = RateLimit::per_minute(1).burst(10);
    let client = rig.builder().rate_limit(limit).build().unwrap();
    let mut admitted = Vec::new();
    for priority in [Priority::Bulk, Priority::Normal, Priority::Critical] {
        let mut count = 0;
        while send(&client, priority).await.is_ok() {
            count += 1;
        }
        admitted.push(count);
    }
    assert_eq!((admitted, rig.seen(), rig.waits()), (vec![7, 2, 1], 10, vec![]));
}

#[tokio::test]
async fn a_429_closes_the_limit_for_as_long_as_it_asks() {
    let throttled = Reply::throttled().header("retry-after", "5");
    let rig = Rig::answering([throttled, Reply::throttled(), Reply::ok()]).await;
    let client = rig.builder().max_attempts(1).rate_limit(RateLimit::per_second(2)).build().unwrap();
    send(&client, Priority::Critical).await.unwrap_err();
    send(&client, Priority::Critical).await.unwrap_err();
    assert_eq!(rig.waits(), [5_500], "five seconds, and the time of one token");
    rig.clock.advance(Duration::from_secs(60));
    send(&client, Priority::Critical).await.unwrap();
    assert_eq!(rig.waits(), [5_500]);
}

#[tokio::test]
async fn what_a_callee_says_is_left_is_obeyed_where_its_owner_asks_for_it() {
    let left = |remaining: &str| {
        Reply::ok().header("x-ratelimit-remaining", remaining).header("x-ratelimit-reset", "7")
    };
    for (asked, waits) in [(true, vec![7_100]), (false, vec![])] {
        let rig = Rig::answering([left("1"), left("0"), Reply::ok()]).await;
        let mut limit = RateLimit::per_second(10);
        if asked {
            limit = limit.quota_headers(QuotaHeaders::x_ratelimit(Reset::SecondsFromNow));
        }
        let client = rig.builder().rate_limit(limit).build().unwrap();
        for _ in 0..3 {
            send(&client, Priority::Critical).await.unwrap();
        }
        assert_eq!((rig.seen(), rig.waits()), (3, waits));
    }
}

#[tokio::test]
async fn no_more_calls_are_in_flight_than_may_be_and_a_dropped_one_makes_room() {
    let rig = Rig::answering([Reply::hang(), Reply::hang(), Reply::ok()]).await;
    let long = Duration::from_secs(300);
    let builder = rig.builder().total_timeout(long).attempt_timeout(long);
    let client = builder.calls_in_flight(2).build().unwrap();
    let hanging = |_| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, Priority::Critical).await })
    };
    let calls: Vec<_> = (0..2).map(hanging).collect();
    rig.gateway.wait_for_attempts(2).await;
    let late = client.post(&CallContext::root(), "/orders").total_timeout(SHORT).send().await.unwrap_err();
    assert_eq!((late.kind(), late.stop_reason()), (ErrorKind::RateLimited, Some(StopReason::RateLimited)));
    assert_eq!((late.retry_after(), late.to_response().status().as_u16()), (None, 503));
    assert_eq!(rig.seen(), 2);
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    send(&client, Priority::Bulk).await.unwrap();
    assert_eq!((rig.seen(), client.usage().in_doubt), (3, 2));
}

#[tokio::test]
async fn a_limit_that_admits_nothing_is_refused_by_name() {
    let rig = Rig::answering([]).await;
    let field = |error: Result<ServiceClient, Error>| error.err().and_then(|error| error.field());
    assert_eq!(field(rig.builder().rate_limit(RateLimit::per_second(0)).build()), Some("rate_limit"));
    assert_eq!(
        field(rig.builder().rate_limit(RateLimit::per_second(1).burst(0)).build()),
        Some("rate_limit")
    );
    assert_eq!(field(rig.builder().calls_in_flight(0).build()), Some("calls_in_flight"));
}

/// A limit of others, which answers from a script, then admits.
#[derive(Debug)]
struct Others(std::sync::Mutex<Vec<Taken>>);

impl SharedLimit for Others {
    fn take(&self, _: Priority, _: Duration) -> TakeFuture<'_> {
        let next = self.0.lock().unwrap().pop().unwrap_or(Taken::Admitted);
        Box::pin(async move { next })
    }
}

#[tokio::test]
async fn an_attempt_waits_for_a_limit_that_others_draw_from_too() {
    let rig = Rig::answering([Reply::ok()]).await;
    let wait = |millis| Taken::Wait(Duration::from_millis(millis));
    let limit = Others(std::sync::Mutex::new(vec![wait(30), wait(400)]));
    let client = rig.builder().shared_rate_limit(limit).build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!((rig.waits(), rig.seen()), (vec![400, 30], 1));
}

#[tokio::test]
async fn what_others_leave_too_late_ends_the_call_and_sends_nothing() {
    let late = Duration::from_secs(60);
    for told in [Taken::Refused(late), Taken::Wait(late)] {
        let rig = Rig::answering([Reply::ok()]).await;
        let limit = Others(std::sync::Mutex::new(vec![told]));
        let client = rig.builder().shared_rate_limit(limit).build().unwrap();
        let error = client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
        assert_eq!(
            (error.kind(), error.stop_reason()),
            (ErrorKind::RateLimited, Some(StopReason::RateLimited))
        );
        assert_eq!((error.retry_after(), rig.seen(), rig.waits()), (Some(late), 0, vec![]));
        assert_eq!(client.usage().refused_by_rate_limit, 1);
    }
}

#[tokio::test]
async fn a_limit_of_others_that_never_answers_keeps_no_call_beyond_its_time() {
    #[derive(Debug)]
    struct Silent;
    impl SharedLimit for Silent {
        fn take(&self, _: Priority, _: Duration) -> TakeFuture<'_> {
            Box::pin(std::future::pending())
        }
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let client = rig.builder().calls_in_flight(1).shared_rate_limit(Silent).build().unwrap();
    for _ in 0..2 {
        let call = client.post(&CallContext::root(), "/orders").total_timeout(SHORT).send();
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await.expect("it ends");
        let error = ended.unwrap_err();
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimited, None));
    }
    assert_eq!((rig.seen(), client.usage().refused_by_rate_limit), (0, 2));
}

/// A store of a shared limit, which answers from a script, then admits.
struct Script(std::sync::Mutex<Vec<Result<Duration, StoreError>>>);

impl LimitStore for Script {
    fn take<'a>(&'a self, _: &'a str, _: &'a SharedQuota, _: Priority) -> StoreFuture<'a, Duration> {
        let next = self.0.lock().unwrap().pop().unwrap_or(Ok(Duration::ZERO));
        Box::pin(async move { next })
    }
}

#[tokio::test]
async fn a_wait_that_fits_is_not_spread_until_no_attempt_fits_after_it() {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.clock.set_draw(Draw::HIGHEST);
    let store = Script(std::sync::Mutex::new(vec![Ok(Duration::from_secs(10))]));
    let limit = SharedRateLimit::new("partner", store, SharedQuota::per_second(1)).unwrap();
    let builder = rig.builder().shared_rate_limit(limit.ambient(rig.clock.clone()));
    let builder = builder.min_attempt_time(Duration::from_secs(5));
    let client = builder.total_timeout(Duration::from_millis(15_500)).build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!((rig.waits(), rig.seen()), (vec![10_500], 1));
}

#[tokio::test]
async fn a_store_that_panics_is_one_that_cannot_be_asked() {
    struct Panics;
    impl LimitStore for Panics {
        fn take<'a>(&'a self, _: &'a str, _: &'a SharedQuota, _: Priority) -> StoreFuture<'a, Duration> {
            panic!("no store")
        }
    }
    let rig = Rig::answering([Reply::ok()]).await;
    let limit = SharedRateLimit::new("partner", Panics, SharedQuota::per_second(1)).unwrap();
    let client = rig.builder().shared_rate_limit(limit.clone()).build().unwrap();
    client.post(&CallContext::root(), "/orders").send().await.unwrap();
    let client = rig.builder().shared_rate_limit(limit.fail_closed()).build().unwrap();
    let error = client.post(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), rig.seen()), (ErrorKind::RateLimited, 1));
}
