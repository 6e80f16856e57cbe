//! The breaker's promises, asked of the store that ships.

use crate::server::{Server, pause};
use eastwest::CircuitState;
use eastwest::fleet::{FleetSettings, FleetStore, RedisStore, Report, View};
use std::time::Duration;
use tokio::task::JoinSet;

const MS: Duration = Duration::from_millis(1);

async fn say(store: &RedisStore, settings: &FleetSettings, report: Report) -> View {
    store.exchange("orders", settings, &report).await.unwrap()
}

fn outcomes(failures: u32, successes: u32) -> Report {
    Report::default().with_failures(failures).with_successes(successes).with_stands_for(failures + successes)
}

fn asking() -> Report {
    Report::default().with_asks(true)
}

#[tokio::test]
async fn it_trips_at_ninety_percent_of_fifty_and_not_at_eighty_five_nor_at_forty_nine() {
    let d = FleetSettings::default();
    for (failures, successes, trips) in
        [(45, 5, true), (85, 15, false), (89, 11, false), (49, 0, false), (50, 0, true)]
    {
        let server = Server::start().await;
        let store = server.store();
        // Each outcome is another process's.
        for _ in 0..successes {
            say(&store, &d, outcomes(0, 1)).await;
        }
        let mut last = View::default();
        for _ in 0..failures {
            assert!(!last.is_tripped());
            last = say(&store, &d, outcomes(1, 0)).await;
        }
        assert_eq!(last.is_tripped(), trips, "{failures} and {successes}");
    }
}

#[tokio::test]
async fn it_opens_for_two_seconds_for_every_process() {
    let server = Server::start().await;
    let d = FleetSettings::default();
    let view = say(&server.store(), &d, outcomes(50, 0)).await;
    assert_eq!((view.state, view.come_back), (CircuitState::Open, Duration::from_secs(2)));
    let other = say(&server.store(), &d, asking()).await;
    assert_eq!((other.state, other.probe), (CircuitState::Open, false));
    // By the server's own clock, what has passed and what is left are two seconds.
    assert_eq!(other.changed.unwrap() + other.come_back, Duration::from_secs(2));
}

#[tokio::test]
async fn a_hundred_processes_get_about_ten_probes_a_second_between_them() {
    let server = Server::start().await;
    let settings = FleetSettings::default().with_open_for(MS);
    say(&server.store(), &settings, outcomes(50, 0)).await;
    let mut processes = JoinSet::new();
    for _ in 0..100 {
        let store = server.store();
        processes.spawn(async move {
            let (mut granted, mut asked) = (Vec::new(), 0);
            loop {
                let view = say(&store, &settings, asking()).await;
                asked += 1;
                let age = view.changed.unwrap();
                if view.probe {
                    granted.push(age);
                }
                // By the server's clock, so that a slow machine asks less often and not for longer.
                if age > 450 * MS {
                    return (granted, asked);
                }
            }
        });
    }
    let (granted, asked): (Vec<_>, Vec<_>) = processes.join_all().await.into_iter().unzip();
    let mut granted = granted.concat();
    granted.sort();
    assert!(asked.iter().sum::<u32>() > 100);
    assert!(granted.windows(2).all(|pair| pair[1] - pair[0] >= 100 * MS), "{granted:?}");
    assert!((3..=5).contains(&granted.len()), "{granted:?}");
}

#[tokio::test]
async fn a_successful_probe_closes_it_for_all_and_a_failed_one_opens_it_again() {
    let server = Server::start().await;
    let settings = FleetSettings::default().with_open_for(20 * MS);
    let (one, other) = (server.store(), server.store());
    say(&one, &settings, outcomes(50, 0)).await;
    pause(20 * MS).await;
    assert!(say(&one, &settings, asking()).await.probe);
    let failed = Report::default().with_probe_failures(1).with_stands_for(1);
    assert_eq!(say(&one, &settings, failed).await.come_back, 20 * MS);
    assert_eq!(say(&other, &settings, Report::default()).await.state, CircuitState::Open);
    pause(20 * MS).await;
    assert!(say(&other, &settings, asking()).await.probe);
    let succeeded = Report::default().with_probe_successes(1).with_stands_for(1);
    assert!(!say(&other, &settings, succeeded).await.is_tripped());
    assert!(!say(&one, &settings, asking()).await.is_tripped());
}

#[tokio::test]
async fn every_key_expires_and_a_look_writes_none() {
    let server = Server::start().await;
    let (store, d) = (server.store(), FleetSettings::default());
    let mut look = server.look();
    say(&store, &d, Report::default()).await;
    say(&store, &d, asking()).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut look).unwrap();
    assert_eq!(keys, Vec::<String>::new());
    say(&store, &d, outcomes(1, 0)).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut look).unwrap();
    assert_eq!(keys, ["lane:{orders}:breaker"]);
    let left: u64 = redis::cmd("PTTL").arg(&keys[0]).query(&mut look).unwrap();
    assert!((1..=66_000).contains(&left), "{left}");
    let size: usize = redis::cmd("STRLEN").arg(&keys[0]).query(&mut look).unwrap();
    assert!(size < 1_024, "{size}");
}

#[tokio::test]
async fn another_callee_and_another_prefix_are_another_circuit() {
    let server = Server::start().await;
    let (store, d) = (server.store(), FleetSettings::default());
    say(&store, &d, outcomes(50, 0)).await;
    assert!(!store.exchange("stock", &d, &asking()).await.unwrap().is_tripped());
    let other = RedisStore::open(&server.url(), "test").unwrap();
    assert!(!say(&other, &d, asking()).await.is_tripped());
}

#[tokio::test]
async fn a_script_that_the_server_has_forgotten_is_loaded_again() {
    let server = Server::start().await;
    let (store, d) = (server.store(), FleetSettings::default());
    say(&store, &d, outcomes(1, 0)).await;
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut server.look()).unwrap();
    assert_eq!(say(&store, &d, outcomes(49, 0)).await.state, CircuitState::Open);
}

#[tokio::test]
async fn a_server_that_speaks_tls_is_trusted_for_its_certificate_alone() {
    let server = Server::start_tls().await;
    let d = FleetSettings::default();
    let store = RedisStore::open_trusting(&server.url(), "lane", &server.certificate()).unwrap();
    assert!(say(&store, &d, outcomes(50, 0)).await.is_tripped());
    let stranger = RedisStore::open(&server.url(), "lane").unwrap();
    assert!(stranger.exchange("orders", &d, &Report::default()).await.is_err());
    let look = Report::default();
    let plain = RedisStore::open(&server.url().replace("rediss", "redis"), "lane").unwrap();
    let spoken = tokio::time::timeout(Duration::from_secs(5), plain.exchange("orders", &d, &look));
    assert!(spoken.await.unwrap().is_err());
}

#[tokio::test]
async fn a_user_with_no_more_rights_than_the_documentation_names_will_do() {
    let server = Server::start().await;
    let mut acl = redis::cmd("ACL");
    acl.arg("SETUSER").arg("fleet").arg("on").arg(">secret").arg("~lane:{*}:*");
    acl.arg("+evalsha").arg("+script|load").arg("+get").arg("+set").arg("+time");
    acl.exec(&mut server.look()).unwrap();
    let address = server.url().replace("redis://", "redis://fleet:secret@");
    let (store, d) = (RedisStore::open(&address, "lane").unwrap(), FleetSettings::default());
    assert!(say(&store, &d, outcomes(50, 0)).await.is_tripped());
    let elsewhere = RedisStore::open(&address, "other").unwrap();
    let refused = elsewhere.exchange("orders", &d, &outcomes(1, 0)).await.unwrap_err();
    assert!(!refused.to_string().contains("secret") && !refused.to_string().is_empty());
}
