//! The embedded gateway: the handle that a test holds.

use crate::network::NO_SOCKET;
use crate::testing::answers::reply::Reply;
use crate::testing::gateway::record::RecordedAttempt;
use crate::testing::gateway::shared::Shared;
use crate::testing::lock::lock;
use crate::testing::wire::connection::serve;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// A gateway which answers and fails on script and keeps what it saw: on a loopback port, or in memory.
///
/// Before any script is looked at, it refuses what API Gateway refuses: a URL over 10,240 characters
/// ([`Reply::uri_too_long`]), headers over 10,240 bytes in all ([`Reply::headers_too_large`]), a body over 10 MiB
/// ([`Reply::payload_too_large`]), a request for which its [token bucket](crate::testing::TokenBucket) has nothing left, an
/// unknown route, and a signature that does not stand.
///
/// Dropping it, or [`FakeGateway::shutdown`], ends it with all its connections. What was lent of it in memory lives on after a
/// drop, and refuses after a shutdown.
///
/// ```
/// use eastwest::testing::{FakeGateway, ManualClock, Reply};
/// use eastwest::CallContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let gateway = FakeGateway::builder()
///     .manual_clock(&clock)
///     .route("POST", "/orders", [Reply::integration_timeout(), Reply::reset(), Reply::json(201, r#"{"id":"o-1"}"#)])
///     .start() // or without_socket()
///     .await?;
/// let orders = gateway.client().build()?;
///
/// orders.post(&CallContext::root(), "/orders").json(&["A-7"]).send().await?;
///
/// gateway.assert_attempts(3).assert_same_key().assert_resigned();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FakeGateway {
    pub(crate) shared: Arc<Shared>,
    addr: SocketAddr,
    listening: Mutex<Option<Listening>>,
}

#[derive(Debug)]
struct Listening {
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl FakeGateway {
    /// A gateway in memory.
    pub(crate) fn without_socket(shared: Arc<Shared>) -> FakeGateway {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        FakeGateway { shared, addr, listening: Mutex::new(None) }
    }

    /// A gateway on a loopback port of the system's choice.
    pub(crate) async fn on_loopback(shared: Arc<Shared>) -> io::Result<FakeGateway> {
        let mut gateway = FakeGateway::without_socket(shared);
        let listener = TcpListener::bind(gateway.addr).await?;
        gateway.addr = listener.local_addr()?;
        gateway.listen_on(listener);
        Ok(gateway)
    }

    fn listen_on(&self, listener: TcpListener) {
        let stop = Arc::new(Notify::new());
        let task = tokio::spawn(listen(listener, Arc::clone(&self.shared), Arc::clone(&stop)));
        *lock(&self.listening) = Some(Listening { stop, task });
    }

    /// The base URL, stage included: `http://127.0.0.1:PORT/prod`; without a socket `https://in-memory.test/prod`, a name
    /// that never resolves.
    #[must_use]
    pub fn base_url(&self) -> String {
        let origin = match self.addr.port() {
            0 => format!("https://{NO_SOCKET}"),
            _ => format!("http://{}", self.addr),
        };
        match self.shared.stage.as_str() {
            "" => origin,
            stage => format!("{origin}/{stage}"),
        }
    }

    /// The address it listens on; of port 0 without a socket.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Cuts all connections and refuses new ones, in memory too, until [`FakeGateway::accept_connections`].
    ///
    /// A client that is cut off may still find out on its next attempt that a connection of its pool is gone.
    pub async fn refuse_connections(&self) {
        self.shutdown().await;
    }

    /// Accepts connections again, at the same address.
    ///
    /// # Errors
    /// Where the port cannot be had again.
    pub async fn accept_connections(&self) -> io::Result<()> {
        if self.addr.port() != 0 && lock(&self.listening).is_none() {
            self.listen_on(TcpListener::bind(self.addr).await?);
        }
        self.shared.refuses.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Sets how many seconds the gateway's clock is ahead; behind, if negative. See
    /// [`GatewayBuilder::clock_offset`](crate::testing::GatewayBuilder::clock_offset).
    pub fn set_clock_offset(&self, seconds: i64) {
        self.shared.offset.store(seconds, Ordering::Relaxed);
    }

    /// Adds a script, or puts it in the place of the one of the same method and path; see
    /// [`GatewayBuilder::route`](crate::testing::GatewayBuilder::route).
    pub fn script(&self, method: &str, path: &str, replies: impl IntoIterator<Item = Reply>) {
        // Collected first: the iterator is the caller's and may look at the gateway.
        let replies: Vec<Reply> = replies.into_iter().collect();
        lock(&self.shared.routes).set(method, path, replies);
    }

    /// Accepts one more set of credentials from now on; a set that was revoked stands again.
    pub fn accept(
        &self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) {
        let (key, secret) = (access_key_id.into(), secret_access_key.into());
        lock(&self.shared.settings).accept(key, secret, session_token.map(str::to_owned));
    }

    /// Refuses an access key from now on: of a session as expired, else as invalid.
    pub fn revoke(&self, access_key_id: &str) {
        lock(&self.shared.settings).revoke(access_key_id);
    }

    /// All exchanges so far, in the order of arrival.
    #[must_use]
    pub fn attempts(&self) -> Vec<RecordedAttempt> {
        self.shared.record.attempts()
    }

    /// The exchanges on a path below the stage, in the order of arrival.
    #[must_use]
    pub fn attempts_on(&self, path: &str) -> Vec<RecordedAttempt> {
        let mut attempts = self.attempts();
        attempts.retain(|attempt| self.shared.below_stage(attempt.request().path()) == Some(path.as_bytes()));
        attempts
    }

    /// Waits until there were so many exchanges, and answers all of them. It waits for ever if they do not come.
    pub async fn wait_for_attempts(&self, count: usize) -> Vec<RecordedAttempt> {
        self.shared.record.wait_for(count).await
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// How many requests could not be read at all; they were answered 400 or 431 and are not among the exchanges.
    #[must_use]
    pub fn malformed_requests(&self) -> usize {
        self.shared.malformed.load(Ordering::Relaxed)
    }

    /// Stops listening, cuts all connections, and returns when that is done; in memory, refuses from now on. What was recorded
    /// stays.
    pub async fn shutdown(&self) {
        self.shared.refuses.store(true, Ordering::Relaxed);
        let listening = lock(&self.listening).take();
        if let Some(Listening { stop, task }) = listening {
            stop.notify_one();
            let _ = task.await;
        }
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.task.abort();
        }
    }
}

/// Accepts until told to stop; all connections end with it, for their tasks are owned here.
async fn listen(listener: TcpListener, shared: Arc<Shared>, stop: Arc<Notify>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.notified() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                // Pieces of a reply go out one by one, as the script has them.
                let _ = stream.set_nodelay(true);
                let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
                let shared = Arc::clone(&shared);
                connections.spawn(async move { serve(&shared, stream, number).await });
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}
