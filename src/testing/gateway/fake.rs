//! The embedded gateway: its builder, and the handle that a test holds.

use crate::edge::ambient::{self, Ambient};
use crate::testing::answers::reply::Reply;
use crate::testing::clock::ManualClock;
use crate::testing::gateway::record::RecordedAttempt;
use crate::testing::gateway::shared::{Clock, Routes, Shared};
use crate::testing::lock::lock;
use crate::testing::signature::settings::{PathEncoding, VerifierSettings};
use crate::testing::wire::connection::serve;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// A gateway on a loopback port, which answers and fails on script and keeps what it saw.
///
/// Before any script is looked at, it refuses what API Gateway refuses: a URL over 10,240 characters
/// ([`Reply::uri_too_long`]), headers over 10,240 bytes in all ([`Reply::headers_too_large`]), a body over 10 MiB
/// ([`Reply::payload_too_large`]), an unknown route, and a signature that does not stand.
///
/// Dropping it, or [`FakeGateway::shutdown`], ends it with all its connections.
#[derive(Debug)]
pub struct FakeGateway {
    shared: Arc<Shared>,
    addr: SocketAddr,
    stop: Arc<Notify>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl FakeGateway {
    /// Begins with: stage `prod`, Region `eu-central-1`, service `execute-api`, no credentials, no routes, the process's own
    /// clock, signatures insisted on.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder {
            settings: VerifierSettings::new("eu-central-1", "execute-api"),
            stage: "prod".to_owned(),
            clock: Arc::new(|| ambient::system().now().wall),
            insist: true,
            routes: Routes::default(),
        }
    }

    /// The base URL, stage included: `http://127.0.0.1:PORT/prod`.
    #[must_use]
    pub fn base_url(&self) -> String {
        match self.shared.stage.as_str() {
            "" => format!("http://{}", self.addr),
            stage => format!("http://{}/{stage}", self.addr),
        }
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Adds a script, or puts it in the place of the one of the same method and path; see [`GatewayBuilder::route`].
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

    /// Stops listening, cuts all connections, and returns when that is done. What was recorded stays.
    pub async fn shutdown(&self) {
        self.stop.notify_one();
        let listening = lock(&self.listening).take();
        if let Some(listening) = listening {
            let _ = listening.await;
        }
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.abort();
        }
    }
}

/// What a [`FakeGateway`] is made of.
#[must_use]
pub struct GatewayBuilder {
    settings: VerifierSettings,
    stage: String,
    clock: Clock,
    insist: bool,
    routes: Routes,
}

impl GatewayBuilder {
    /// Accepts one more set of credentials. With none, every signed request is refused as one of an unknown key.
    pub fn credentials(
        mut self,
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<&str>,
    ) -> Self {
        self.settings = self.settings.credentials(access_key_id, secret_access_key, session_token);
        self
    }

    /// Sets the Region that signatures must be scoped to.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.settings.region = region.into();
        self
    }

    /// Sets the service that signatures must be scoped to.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.settings.service = service.into();
        self
    }

    /// Sets the stage, the first part of every path. Empty for none, as behind a custom domain.
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = stage.into().trim_matches('/').to_owned();
        self
    }

    /// Sets the clock by which signatures are judged and answers dated.
    pub fn clock(mut self, clock: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets a clock that is turned by hand, the client's for instance: then both sides agree on the time. See
    /// [`GatewayBuilder::clock`].
    pub fn manual_clock(self, clock: &ManualClock) -> Self {
        let clock = clock.clone();
        self.clock(Arc::new(move || clock.wall()))
    }

    /// Sets whether a request whose signature does not stand is refused. Default: yes. The verdict is recorded in any case.
    pub fn verify_signatures(mut self, verify: bool) -> Self {
        self.insist = verify;
        self
    }

    /// Sets how often paths are percent-encoded for signing. Default: [`PathEncoding::Double`].
    pub fn path_encoding(mut self, encoding: PathEncoding) -> Self {
        self.settings = self.settings.path_encoding(encoding);
        self
    }

    /// Accepts `x-amz-content-sha256: UNSIGNED-PAYLOAD`, as VPC Lattice does. Default: no.
    pub fn allow_unsigned_payload(mut self, allow: bool) -> Self {
        self.settings = self.settings.allow_unsigned_payload(allow);
        self
    }

    /// Says what happens to requests of this method ([`ANY`](crate::testing::ANY) for all) on exactly this raw path below the stage.
    ///
    /// The replies are used in order, the last one for ever; none at all means [`Reply::ok`]. Only a request that verifies
    /// uses one up: to a signature that does not stand the gateway gives its own answer first. A second script for the same
    /// method and path replaces the first. Where there is no route, the answer is [`Reply::no_such_route`].
    pub fn route(mut self, method: &str, path: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.routes.set(method, path, replies);
        self
    }

    /// Starts to listen, on a loopback port of the system's choice.
    ///
    /// # Errors
    /// Where the port cannot be had.
    pub async fn start(self) -> io::Result<FakeGateway> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Shared::new(self.clock, self.stage, self.insist, self.settings, self.routes);
        let (shared, stop) = (Arc::new(shared), Arc::new(Notify::new()));
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared), Arc::clone(&stop)));
        Ok(FakeGateway { shared, addr, stop, listening: Mutex::new(Some(listening)) })
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder")
            .field("settings", &self.settings)
            .field("stage", &self.stage)
            .field("verify_signatures", &self.insist)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
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
