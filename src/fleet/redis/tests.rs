//! The store against a server that plays a script; what the scripts themselves do is shown against a real one.

mod server;

use self::server::{Answer, Server};
use super::*;
use std::net::SocketAddr;

fn field(address: &str, prefix: &str) -> Option<&'static str> {
    RedisStore::open(address, prefix).err().and_then(|error| error.field())
}

#[test]
fn addresses_of_both_names_with_tls_and_without_are_read() {
    for address in [
        "redis://127.0.0.1",
        "valkey://user:secret@cache.internal:6380/2",
        "rediss://cache.internal",
        "valkeys://10.0.0.7:6379",
        "unix:///run/valkey.sock",
    ] {
        let store = RedisStore::open(address, "prod").unwrap();
        assert_eq!(
            store.0.dialer.is_secure(),
            address.starts_with("rediss") || address.starts_with("valkeys"),
            "{address}"
        );
    }
}

#[test]
fn an_address_or_prefix_that_makes_no_sense_is_refused_without_repeating_it() {
    for address in ["cache:6379", "http://cache", "redis://", "rediss:///nowhere", "redis://h:port"] {
        assert_eq!(field(address, "prod"), Some("fleet_store"), "{address}");
    }
    for prefix in ["", "a{b", "a b"] {
        assert_eq!(field("redis://127.0.0.1", prefix), Some("fleet_store"), "{prefix}");
    }
    let secret = RedisStore::open("redis://user:secret@h:port", "prod").unwrap_err();
    assert!(!format!("{secret:?} {secret}").contains("secret"));
}

#[test]
fn what_belongs_to_one_name_is_in_one_slot_of_a_cluster() {
    let store = RedisStore::open("redis://127.0.0.1", "prod").unwrap();
    assert_eq!(store.key("orders", "breaker"), "prod:{orders}:breaker");
    assert_eq!(store.key("orders", "limit"), "prod:{orders}:limit");
    assert!(!format!("{store:?}").contains("127"));
}

#[test]
fn the_script_s_answer_is_read_as_it_is_meant() {
    let view = seen([1, 70_000, 0, -1, 3_000, 1_790_000_000_000_000]);
    let half_open = View { state: State::HalfOpen, demand: 3_000, ..View::default() };
    assert_eq!(view, View { come_back: Duration::from_millis(70), ..half_open });
    let granted = View { probe: true, changed: Some(Duration::from_secs(2)), ..half_open };
    assert_eq!(seen([1, 0, 1, 2_000_000, 3_000, 0]), granted);
    assert_eq!(seen([0, 0, 0, -1, 0, 0]), View::default());
    assert_eq!(seen([2, 1, 0, -1, 0, 0]).state, State::Open);
}

fn store_at(address: SocketAddr) -> RedisStore {
    RedisStore::open(&format!("redis://{address}/2"), "prod").unwrap()
}

async fn look(store: &RedisStore) -> Result<View, StoreError> {
    store.exchange("orders", &FleetSettings::default(), &Report::default()).await
}

/// What the script answers for a closed circuit.
const CLOSED: Answer = Answer::Numbers(&[0, 0, 0, -1, 0, 0]);

#[tokio::test]
async fn an_exchange_is_one_script_with_its_key_and_all_numbers_which_is_given_to_a_server_that_has_it_not() {
    let unknown = Answer::Error("NOSCRIPT No matching script.");
    let half_open = Answer::Numbers(&[1, 70_000, 1, 5, 9, 0]);
    let server = Server::playing(&[unknown, half_open, CLOSED]).await;
    let (store, settings) = (store_at(server.address), FleetSettings::default());
    let report = Report { failures: 3, asks: true, ..Report::default() };
    let view = store.exchange("orders", &settings, &report).await.unwrap();
    assert_eq!((view.state, view.come_back, view.probe), (State::HalfOpen, Duration::from_millis(70), true));
    assert_eq!((view.changed, view.demand), (Some(Duration::from_micros(5)), 9));
    let numbers = settings.as_numbers().into_iter().chain(report.as_numbers());
    let mut call = vec!["EVALSHA".to_owned(), store.0.breaker.get_hash().to_owned()];
    call.extend(["1", "prod:{orders}:breaker"].map(str::to_owned));
    call.extend(numbers.map(|number| number.to_string()));
    let load = ["SCRIPT", "LOAD", BREAKER].map(str::to_owned).to_vec();
    assert_eq!(server.commands(), [call.clone(), load, call]);
    assert_eq!(look(&store).await, Ok(View::default()));
    assert_eq!((server.commands().len(), server.connections()), (4, 1));
}

#[tokio::test]
async fn a_limit_s_answer_is_a_wait_and_less_than_none_is_none() {
    let server = Server::playing(&[Answer::Numbers(&[1_500, 7]), Answer::Numbers(&[-1, 7])]).await;
    let (store, quota) = (store_at(server.address), SharedQuota::per_second(5));
    assert_eq!(store.take("sms", &quota, Priority::Bulk).await, Ok(Duration::from_micros(1_500)));
    assert_eq!(store.take("sms", &quota, Priority::Critical).await, Ok(Duration::ZERO));
    let commands = server.commands();
    for (command, priority) in commands.iter().zip([Priority::Bulk, Priority::Critical]) {
        let numbers: Vec<_> = quota.as_numbers(priority).iter().map(ToString::to_string).collect();
        assert_eq!((command[3].as_str(), &command[4..]), ("prod:{sms}:limit", &numbers[..]));
    }
    assert_ne!(commands[0], commands[1]);
}

#[tokio::test]
async fn a_kept_connection_that_died_is_made_anew_once() {
    let close = Answer::Close;
    let server = Server::playing(&[CLOSED, close, CLOSED, close, close, CLOSED]).await;
    let store = store_at(server.address);
    for (works, connections) in [(true, 1), (true, 2), (false, 3), (true, 4)] {
        assert_eq!((look(&store).await.is_ok(), server.connections()), (works, connections));
    }
    assert_eq!(server.commands().len(), 6);
}

#[tokio::test]
async fn a_connection_that_answers_anything_else_is_not_used_again_and_its_words_are_not_repeated() {
    let refusal = Answer::Error("WRONGPASS secret-mark");
    let server = Server::playing(&[Answer::Numbers(&[0, 0]), CLOSED, refusal, CLOSED]).await;
    let store = store_at(server.address);
    for told in ["", "WRONGPASS"] {
        let error = look(&store).await.unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("secret-mark"), "{error}");
        look(&store).await.unwrap();
    }
    assert_eq!((server.connections(), server.commands().len()), (3, 4));
}

#[tokio::test]
async fn exchanges_at_once_share_the_connection_that_was_made_ahead() {
    let server = Server::playing(&[CLOSED]).await;
    let store = store_at(server.address);
    assert_eq!(tokio::join!(store.warm_up(), store.warm_up()), (Ok(()), Ok(())));
    assert_eq!((server.connections(), server.commands().len()), (1, 0));
    let closed = || Ok(View::default());
    assert_eq!(tokio::join!(look(&store), look(&store)), (closed(), closed()));
    assert_eq!((server.connections(), server.commands().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_a_connection_and_says_nothing_is_given_up() {
    let listener = server::listener();
    let store = store_at(listener.local_addr().unwrap());
    let impatient = tokio::time::timeout(Duration::from_millis(1_900), look(&store)).await;
    assert!(impatient.is_err(), "{impatient:?}");
    for _ in 0..2 {
        assert_eq!(look(&store).await.unwrap_err().to_string(), "connecting took too long");
    }
}

#[tokio::test]
async fn where_nobody_listens_connecting_is_an_error() {
    let listener = server::listener();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let store = store_at(address);
    store.warm_up().await.unwrap_err();
    look(&store).await.unwrap_err();
}

#[test]
fn connecting_that_went_with_its_runtime_is_begun_anew_on_the_next() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = server::listener();
    let store = store_at(listener.local_addr().unwrap());
    runtime().block_on(async {
        tokio::select! {
            biased;
            outcome = look(&store) => panic!("{outcome:?}"),
            () = tokio::task::yield_now() => {}
        }
    });
    runtime().block_on(async {
        let _server = Server::over(listener, &[CLOSED]);
        assert_eq!(look(&store).await, Ok(View::default()));
    });
}
