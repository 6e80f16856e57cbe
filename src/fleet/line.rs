//! One connection to Valkey or Redis, made by a task of its own and made anew when it fails.

use crate::fleet::store::StoreError;
use ::redis::aio::MultiplexedConnection;
use ::redis::{ConnectionAddr, ConnectionInfo, RedisError};
use rustls::pki_types::ServerName;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// Keeps one connection, which all share who use this.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<Dial>);

struct Dial {
    info: ConnectionInfo,
    tls: Option<(TlsConnector, ServerName<'static>)>,
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
pub(crate) struct Line {
    connection: MultiplexedConnection,
    driver: Arc<Driver>,
}

struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Dialer {
    pub(crate) fn new(info: ConnectionInfo, tls: Option<(TlsConnector, ServerName<'static>)>) -> Dialer {
        Dialer(Arc::new(Dial { info, tls, link: Mutex::new(Link::None) }))
    }

    /// The connection, and whether it was there already.
    pub(crate) async fn line(&self) -> Result<(Line, bool), StoreError> {
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
        let dialer = self.clone();
        tokio::spawn(async move {
            let outcome = match tokio::time::timeout(CONNECTING, dialer.0.dial()).await {
                Ok(outcome) => outcome.map_err(|error| told(&error)),
                Err(_) => Err(StoreError::new("connecting took too long")),
            };
            *dialer.link() = match &outcome {
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

    /// Looks after a connection while an exchange is on its way.
    pub(crate) fn suspect(&self, line: Line) -> Suspect<'_> {
        Suspect { dialer: self, line, well: false }
    }

    #[cfg(test)]
    pub(crate) fn is_secure(&self) -> bool {
        self.0.tls.is_some()
    }
}

/// A connection over which an exchange is on its way: unless that ends well it is not used again, for a connection that
/// does not answer may never do.
pub(crate) struct Suspect<'a> {
    dialer: &'a Dialer,
    line: Line,
    well: bool,
}

impl Suspect<'_> {
    pub(crate) fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.line.connection
    }

    /// The exchange ended well.
    pub(crate) fn is_well(&mut self) {
        self.well = true;
    }
}

impl Drop for Suspect<'_> {
    fn drop(&mut self) {
        let mut link = self.dialer.link();
        let is_kept = matches!(&*link, Link::There(there) if Arc::ptr_eq(&there.driver, &self.line.driver));
        if is_kept && !self.well {
            *link = Link::None;
        }
    }
}

impl Dial {
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

/// What went wrong, without what a server may have put into its text.
pub(crate) fn told(error: &RedisError) -> StoreError {
    match error.code() {
        Some(code) => StoreError::new(format!("{}: {code}", error.category())),
        None => StoreError::new(error.category()),
    }
}

/// The most that connecting takes.
const CONNECTING: Duration = Duration::from_secs(2);
