//! What a gateway is made of.

use crate::edge::ambient::{self, Ambient};
use crate::testing::answers::reply::Reply;
use crate::testing::clock::ManualClock;
use crate::testing::gateway::bucket::TokenBucket;
use crate::testing::gateway::fake::FakeGateway;
use crate::testing::gateway::record::Record;
use crate::testing::gateway::shared::{Clock, Routes, Shared};
use crate::testing::signature::settings::{PathEncoding, VerifierSettings};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// What a [`FakeGateway`] is made of.
#[must_use]
pub struct GatewayBuilder {
    settings: VerifierSettings,
    stage: String,
    clock: Clock,
    by_hand: Option<ManualClock>,
    offset: i64,
    insist: bool,
    bucket: Option<TokenBucket>,
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
        (self.clock, self.by_hand) = (clock, None);
        self
    }

    /// Sets a clock that is turned by hand, the client's for instance: then both sides agree on the time. See
    /// [`GatewayBuilder::clock`].
    pub fn manual_clock(mut self, clock: &ManualClock) -> Self {
        let read = clock.clone();
        self = self.clock(Arc::new(move || read.wall()));
        self.by_hand = Some(clock.clone());
        self
    }

    /// Puts the gateway's clock so many seconds ahead; behind, if negative. Default: 0. Signatures are judged and answers
    /// dated by it; over 5 minutes, a fresh signature does not stand.
    pub fn clock_offset(mut self, seconds: i64) -> Self {
        self.offset = seconds;
        self
    }

    /// Draws a token for each request, and throttles where there is none. Default: nothing throttles.
    pub fn token_bucket(mut self, bucket: &TokenBucket) -> Self {
        self.bucket = Some(bucket.clone());
        self
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
        FakeGateway::on_loopback(self.shared()).await
    }

    /// Makes a gateway without a socket, for clients that exchange with it in memory: [`FakeGateway::client`] begins one.
    ///
    /// It needs no runtime, and its faults take no time where the client's clock is a [`ManualClock`].
    #[must_use]
    pub fn without_socket(self) -> FakeGateway {
        FakeGateway::without_socket(self.shared())
    }

    fn shared(self) -> Arc<Shared> {
        Arc::new(Shared {
            clock: self.clock,
            by_hand: self.by_hand,
            offset: AtomicI64::new(self.offset),
            stage: self.stage,
            insist: self.insist,
            settings: Mutex::new(self.settings),
            routes: Mutex::new(self.routes),
            bucket: self.bucket,
            record: Record::default(),
            refuses: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            malformed: AtomicUsize::new(0),
            arrivals: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
        })
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

impl FakeGateway {
    /// Begins with: stage `prod`, Region `eu-central-1`, service `execute-api`, no credentials, no routes, the process's own
    /// clock, no token bucket, signatures insisted on.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder {
            settings: VerifierSettings::new("eu-central-1", "execute-api"),
            stage: "prod".to_owned(),
            clock: Arc::new(|| ambient::system().now().wall),
            by_hand: None,
            offset: 0,
            insist: true,
            bucket: None,
            routes: Routes::default(),
        }
    }
}
