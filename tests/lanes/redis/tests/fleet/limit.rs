//! A rate limit that two processes share, in the store that ships.

use crate::server::{Server, pause};
use eastwest::fleet::{Priority, SharedQuota, SharedRateLimit, Taken};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(10);

fn limit(server: &Server, quota: SharedQuota) -> SharedRateLimit {
    SharedRateLimit::new("partner", server.store(), quota).unwrap().store_budget(Duration::from_secs(1))
}

/// How many of a priority are admitted before one has to wait.
async fn drains(limit: &SharedRateLimit, priority: Priority) -> usize {
    let mut taken = 0;
    while limit.take(priority, LONG).await == Taken::Admitted {
        taken += 1;
    }
    taken
}

#[tokio::test]
async fn a_nightly_sync_and_the_morning_s_orders_drink_from_one_bucket_and_the_orders_find_their_part() {
    let server = Server::start().await;
    // So slow that nothing comes back while the test runs.
    let quota = SharedQuota::per_minute(1).burst(20);
    let (nightly, orders) = (limit(&server, quota), limit(&server, quota));
    assert_eq!(drains(&nightly, Priority::Bulk).await, 14);
    assert_eq!(drains(&orders, Priority::Normal).await, 4);
    assert_eq!(drains(&orders, Priority::Critical).await, 2);
    assert!(matches!(orders.take(Priority::Critical, LONG).await, Taken::Refused(wait) if wait > LONG));
}

#[tokio::test]
async fn what_time_brings_back_can_be_taken_again() {
    let server = Server::start().await;
    let limit = limit(&server, SharedQuota::per_second(100).burst(1));
    assert_eq!(limit.take(Priority::Critical, LONG).await, Taken::Admitted);
    for _ in 0..5 {
        while let Taken::Wait(wait) = limit.take(Priority::Critical, LONG).await {
            pause(wait).await;
        }
    }
}

#[tokio::test]
async fn a_store_that_is_gone_admits_unless_it_is_asked_to_refuse() {
    let server = Server::start().await;
    let quota = SharedQuota::per_minute(1).burst(1);
    let (open, closed) = (limit(&server, quota), limit(&server, quota).fail_closed());
    assert_eq!(open.take(Priority::Bulk, LONG).await, Taken::Admitted);
    server.kill();
    for _ in 0..10 {
        assert_eq!(open.take(Priority::Bulk, LONG).await, Taken::Admitted);
        assert!(matches!(closed.take(Priority::Critical, LONG).await, Taken::Refused(_)));
    }
}

#[tokio::test]
async fn a_bucket_s_key_is_gone_when_it_is_full() {
    let server = Server::start().await;
    let limit = limit(&server, SharedQuota::per_second(100));
    limit.take(Priority::Critical, LONG).await;
    let left: i64 = redis::cmd("PTTL").arg("lane:{partner}:limit").query(&mut server.look()).unwrap();
    assert!((1..=1_010).contains(&left), "{left}");
}
