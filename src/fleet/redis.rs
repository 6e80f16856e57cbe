//! The store in Valkey or Redis: one script an exchange.

use crate::edge::tls::{Roots, TlsSettings};
use crate::error::Error;
use crate::fleet::line::{Dialer, Line, told};
use crate::fleet::store::{FleetStore, LimitStore, StoreError, StoreFuture, is_name};
use crate::policy::breaker::State;
use crate::policy::fleet::{FleetSettings, Report, View};
use crate::policy::rate_limit::Priority;
use crate::policy::shared_limit::SharedQuota;
use ::redis::{ConnectionAddr, IntoConnectionInfo, RedisError, Script, ScriptInvocation};
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// A fleet's store in Valkey or Redis (5 or later; the proofs are run on Debian's 7.0).
///
/// It connects when it is first needed, in a task of its own that outlives the call that needed it, and again when the
/// connection fails. A clone shares the connection: one store does for all breakers and limits of a process.
///
/// Keys are `<prefix>:{<name>}:breaker` and `<prefix>:{<name>}:limit`, all that belongs to one name in one slot of a
/// cluster. Each expires: a breaker's about a minute after its last write, a limit's when its bucket is full.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    prefix: String,
    breaker: Script,
    limit: Script,
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
            dialer: Dialer::new(info, tls),
            prefix,
            breaker: Script::new(BREAKER),
            limit: Script::new(LIMIT),
        })))
    }

    /// Runs a script. A kept connection may have died while nobody looked, in a frozen sandbox above all: then it is
    /// made anew, once.
    async fn run<const N: usize>(&self, call: &ScriptInvocation<'_>) -> Result<[i64; N], StoreError> {
        let (line, kept) = self.0.dialer.line().await?;
        let outcome = self.run_over::<N>(line, call).await;
        match outcome {
            Err(error) if kept && error.is_connection_dropped() => {
                let (line, _) = self.0.dialer.line().await?;
                self.run_over(line, call).await
            }
            outcome => outcome,
        }
        .map_err(|error| told(&error))
    }

    async fn run_over<const N: usize>(
        &self,
        line: Line,
        call: &ScriptInvocation<'_>,
    ) -> Result<[i64; N], RedisError> {
        let mut suspect = self.0.dialer.suspect(line);
        let outcome: Result<Vec<i64>, RedisError> = call.invoke_async(suspect.connection()).await;
        if outcome.as_ref().is_ok_and(|numbers| numbers.len() == N) {
            suspect.is_well();
        }
        let numbers = outcome?;
        numbers
            .try_into()
            .map_err(|_| RedisError::from((::redis::ErrorKind::Parse, "another count of numbers")))
    }

    fn key(&self, name: &str, what: &str) -> String {
        format!("{}:{{{name}}}:{what}", self.0.prefix)
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
        Box::pin(async move { self.0.dialer.line().await.map(|_| ()) })
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

const BREAKER: &str = include_str!("breaker.lua");
const LIMIT: &str = include_str!("limit.lua");

#[cfg(test)]
mod tests;
