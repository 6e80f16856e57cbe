//! The store in Valkey or Redis: one script an exchange, over one connection that is made anew when it fails.

use crate::edge::tls::{Roots, TlsSettings};
use crate::error::Error;
use crate::fleet::store::{FleetStore, LimitStore, StoreError, StoreFuture, is_name};
use crate::policy::breaker::State;
use crate::policy::fleet::{FleetSettings, Report, View};
use crate::policy::shared_limit::{Priority, SharedQuota};
use ::redis::aio::MultiplexedConnection;
use ::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError, Script, ScriptInvocation};
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// A fleet's store in Valkey (7.2 or later) or Redis (6 or later), single or as a cluster's one shard.
///
/// It connects when it is first needed, in a task of its own that outlives the call that needed it, and again when the
/// connection fails. A clone shares the connection: one store does for all breakers and limits of a process.
///
/// Keys are `<prefix>:{<name>}:breaker` and `<prefix>:{<name>}:limit`, all that belongs to one name in one slot of a
/// cluster. Each expires: a breaker's about a minute after its last write, a limit's when its bucket is full.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    info: ConnectionInfo,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    prefix: String,
    breaker: Script,
    limit: Script,
    link: Mutex<Link>,
}

enum Link {
    None,
    /// A task is at it; what it comes to is told here.
    Coming(watch::Receiver<Option<Result<Line, StoreError>>>),
    There(Line),
}

/// A connection, and the task that drives it for as long as anybody holds it.
#[derive(Clone)]
struct Line {
    connection: MultiplexedConnection,
    driver: Arc<Driver>,
}

struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RedisStore {
    /// Reads the address; nothing is connected yet. `prefix` begins every key and keeps environments apart: 1 to 128
    /// visible ASCII characters without braces.
    ///
    /// The address is `redis://[user:password@]host[:port][/db]`, `rediss://` with TLS, or `unix:///path`; `valkey` and
    /// `valkeys` mean the same as `redis` and `rediss`. TLS trusts Mozilla's bundled roots, Amazon's among them.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) with the field `fleet_store`; the address, which may
    /// hold a password, is not repeated.
    pub fn open(address: &str, prefix: impl Into<String>) -> Result<RedisStore, Error> {
        RedisStore::over(address, prefix.into(), Roots::bundled())
    }

    /// The same, where TLS trusts the authorities in this PEM text and nobody else.
    ///
    /// # Errors
    /// As [`open`](RedisStore::open), and for text that holds no certificate.
    pub fn open_trusting(address: &str, prefix: impl Into<String>, pem: &[u8]) -> Result<RedisStore, Error> {
        RedisStore::over(address, prefix.into(), Roots::none().and_pem(pem)?)
    }

    fn over(address: &str, prefix: String, roots: Roots) -> Result<RedisStore, Error> {
        let wrong = |reason| Error::configuration("fleet_store", reason);
        if !is_name(&prefix) {
            return Err(wrong("the prefix must be visible ASCII without braces"));
        }
        let (scheme, rest) = address.split_once("://").ok_or_else(|| wrong("the address has no scheme"))?;
        let (secure, plain) = match scheme {
            "redis" | "valkey" => (false, format!("redis://{rest}")),
            "rediss" | "valkeys" => (true, format!("redis://{rest}")),
            "unix" | "redis+unix" | "valkey+unix" => (false, format!("unix://{rest}")),
            _ => return Err(wrong("the scheme is none of redis, rediss, valkey, valkeys and unix")),
        };
        let info = plain.into_connection_info().map_err(|_| wrong("not an address of Valkey or Redis"))?;
        let tls = match (secure, info.addr()) {
            (false, _) => None,
            (true, ConnectionAddr::Tcp(host, _)) => {
                let name =
                    ServerName::try_from(host.clone()).map_err(|_| wrong("TLS needs a host's name"))?;
                let settings = TlsSettings { roots, ..TlsSettings::default() };
                let mut config = settings.client_config()?;
                config.alpn_protocols.clear();
                Some((TlsConnector::from(Arc::new(config)), name))
            }
            (true, _) => return Err(wrong("TLS needs a host")),
        };
        Ok(RedisStore(Arc::new(Inner {
            info,
            tls,
            prefix,
            breaker: Script::new(BREAKER),
            limit: Script::new(LIMIT),
            link: Mutex::new(Link::None),
        })))
    }

    /// Runs a script. A kept connection may have died while nobody looked, in a frozen sandbox above all: then it is
    /// made anew, once.
    async fn run<const N: usize>(&self, call: &ScriptInvocation<'_>) -> Result<[i64; N], StoreError> {
        let (line, kept) = self.line().await?;
        let outcome = self.run_over::<N>(line, call).await;
        match outcome {
            Err(error) if kept && error.is_connection_dropped() => {
                let (line, _) = self.line().await?;
                self.run_over(line, call).await
            }
            outcome => outcome,
        }
        .map_err(|error| told(&error))
    }

    async fn run_over<const N: usize>(
        &self,
        mut line: Line,
        call: &ScriptInvocation<'_>,
    ) -> Result<[i64; N], RedisError> {
        let mut suspect = Suspect { store: self, line: Some(line.clone()) };
        let outcome: Result<Vec<i64>, RedisError> = call.invoke_async(&mut line.connection).await;
        if outcome.as_ref().is_ok_and(|numbers| numbers.len() == N) {
            suspect.line = None;
        }
        let numbers = outcome?;
        numbers
            .try_into()
            .map_err(|_| RedisError::from((::redis::ErrorKind::Parse, "another count of numbers")))
    }

    /// The connection, and whether it was there already.
    async fn line(&self) -> Result<(Line, bool), StoreError> {
        let mut coming = match &mut *self.link() {
            Link::There(line) => return Ok((line.clone(), true)),
            Link::Coming(coming) if coming.has_changed().is_ok() => coming.clone(),
            // Nobody is at it, or whoever was is gone with its runtime.
            link => {
                let coming = self.connect();
                *link = Link::Coming(coming.clone());
                coming
            }
        };
        let gone = || StoreError::new("connecting was given up");
        let outcome = coming.wait_for(Option::is_some).await.map_err(|_| gone())?.clone();
        outcome.unwrap_or_else(|| Err(gone())).map(|line| (line, false))
    }

    /// Connects in a task of its own.
    fn connect(&self) -> watch::Receiver<Option<Result<Line, StoreError>>> {
        let (tell, coming) = watch::channel(None);
        let store = self.clone();
        tokio::spawn(async move {
            let outcome = match tokio::time::timeout(CONNECTING, store.0.dial()).await {
                Ok(outcome) => outcome.map_err(|error| told(&error)),
                Err(_) => Err(StoreError::new("connecting took too long")),
            };
            *store.link() = match &outcome {
                Ok(line) => Link::There(line.clone()),
                Err(_) => Link::None,
            };
            // Whoever needed it may be gone.
            let _ = tell.send(Some(outcome));
        });
        coming
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.0.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, name: &str, what: &str) -> String {
        format!("{}:{{{name}}}:{what}", self.0.prefix)
    }
}

/// A connection over which an exchange is on its way: unless that ends well it is not used again, for a connection that
/// does not answer may never do.
struct Suspect<'a> {
    store: &'a RedisStore,
    line: Option<Line>,
}

impl Drop for Suspect<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            let mut link = self.store.link();
            if matches!(&*link, Link::There(there) if Arc::ptr_eq(&there.driver, &line.driver)) {
                *link = Link::None;
            }
        }
    }
}

impl Inner {
    async fn dial(&self) -> Result<Line, RedisError> {
        match (self.info.addr(), &self.tls) {
            (ConnectionAddr::Tcp(host, port), tls) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match tls {
                    None => self.speak(stream).await,
                    Some((tls, name)) => self.speak(tls.connect(name.clone(), stream).await?).await,
                }
            }
            #[cfg(unix)]
            (ConnectionAddr::Unix(path), _) => self.speak(tokio::net::UnixStream::connect(path).await?).await,
            _ => Err(RedisError::from((::redis::ErrorKind::InvalidClientConfig, "no such address here"))),
        }
    }

    async fn speak<S>(&self, stream: S) -> Result<Line, RedisError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        // Whoever runs an exchange bounds its time.
        let config = ::redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let info = self.info.redis_settings();
        let (connection, driver) = MultiplexedConnection::new_with_config(info, stream, config).await?;
        let driver = Arc::new(Driver(tokio::spawn(driver).abort_handle()));
        Ok(Line { connection, driver })
    }
}

impl FleetStore for RedisStore {
    fn exchange<'a>(
        &'a self,
        callee: &'a str,
        settings: &'a FleetSettings,
        report: &'a Report,
    ) -> StoreFuture<'a, View> {
        Box::pin(async move {
            let mut call = self.0.breaker.prepare_invoke();
            call.key(self.key(callee, "breaker"));
            for number in settings.as_numbers().into_iter().chain(report.as_numbers()) {
                call.arg(number);
            }
            self.run(&call).await.map(seen)
        })
    }

    fn warm_up(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.line().await.map(|_| ()) })
    }
}

impl LimitStore for RedisStore {
    fn take<'a>(
        &'a self,
        name: &'a str,
        quota: &'a SharedQuota,
        priority: Priority,
    ) -> StoreFuture<'a, Duration> {
        Box::pin(async move {
            let mut call = self.0.limit.prepare_invoke();
            call.key(self.key(name, "limit"));
            for number in quota.as_numbers(priority) {
                call.arg(number);
            }
            self.run(&call)
                .await
                .map(|[wait, _]: [i64; 2]| Duration::from_micros(wait.try_into().unwrap_or(0)))
        })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.0.prefix).finish_non_exhaustive()
    }
}

/// The script's answer, whose last number is the server's time.
fn seen([state, come_back, probe, changed, demand, _]: [i64; 6]) -> View {
    let micros = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    View {
        state: match state {
            0 => State::Closed,
            1 => State::HalfOpen,
            _ => State::Open,
        },
        come_back: micros(come_back),
        probe: probe > 0,
        changed: (changed >= 0).then(|| micros(changed)),
        demand: u64::try_from(demand).unwrap_or(0),
    }
}

/// What went wrong, without what a server may have put into its text.
fn told(error: &RedisError) -> StoreError {
    match error.code() {
        Some(code) => StoreError::new(format!("{}: {code}", error.category())),
        None => StoreError::new(error.category()),
    }
}

const BREAKER: &str = include_str!("breaker.lua");
const LIMIT: &str = include_str!("limit.lua");

/// The most that connecting takes.
const CONNECTING: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

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
                store.0.tls.is_some(),
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
}
