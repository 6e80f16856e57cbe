//! What the gateway's connections share: scripts, settings, clock and record.

use crate::testing::answers::named;
use crate::testing::answers::refusal::refusal;
use crate::testing::answers::reply::{Behaviour, Reply};
use crate::testing::clock::ManualClock;
use crate::testing::gateway::bucket::TokenBucket;
use crate::testing::gateway::record::{Record, RecordedAttempt};
use crate::testing::lock::lock;
use crate::testing::signature::settings::VerifierSettings;
use crate::testing::signature::verification::Verification;
use crate::testing::signature::verifier::verify;
use crate::testing::wire::http::RawRequest;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The method of a route that takes every method, as API Gateway spells it.
pub const ANY: &str = "ANY";

/// The wall clock of the gateway.
pub(crate) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What the gateway's connections share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// The clock, where it is one that is turned by hand.
    pub(crate) by_hand: Option<ManualClock>,
    /// How many seconds the gateway is ahead of its clock.
    pub(crate) offset: AtomicI64,
    pub(crate) stage: String,
    pub(crate) insist: bool,
    pub(crate) settings: Mutex<VerifierSettings>,
    pub(crate) routes: Mutex<Routes>,
    pub(crate) bucket: Option<TokenBucket>,
    pub(crate) record: Record,
    pub(crate) refuses: AtomicBool,
    pub(crate) connections: AtomicUsize,
    pub(crate) malformed: AtomicUsize,
    pub(crate) arrivals: AtomicUsize,
    pub(crate) answers: AtomicUsize,
}

impl Shared {
    pub(crate) fn now(&self) -> SystemTime {
        let (now, offset) = ((self.clock)(), self.offset.load(Ordering::Relaxed));
        let by = Duration::from_secs(offset.unsigned_abs());
        let moved = if offset < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        moved.unwrap_or(now)
    }

    /// The number of the next answer, from 1, of which ids are made.
    pub(crate) fn next_answer(&self) -> usize {
        self.answers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes a reset off the script of this head's route if that is what comes next there.
    pub(crate) fn resets_unread(&self, head: &RawRequest, connection: usize) -> Option<Reply> {
        let path = self.below_stage(head.path())?;
        let reply = lock(&self.routes).script(head.method(), path)?.next_if_unread()?;
        let mut attempt = self.attempt(head.clone(), Verification::not_checked(), connection, self.now());
        attempt.told = reply.told();
        self.record.keep(attempt);
        Some(reply)
    }

    /// Decides what to do with a request and records it.
    pub(crate) fn decide(&self, request: RawRequest, over_limit: bool, connection: usize) -> Reply {
        let received_at = self.now();
        let verification = match over_limit {
            true => Verification::not_checked(),
            false => verify(&request, &lock(&self.settings), received_at),
        };
        let mut attempt = self.attempt(request, verification, connection, received_at);
        let (mut reply, why) = match self.choose(&attempt, over_limit) {
            Ok(scripted) => (scripted.resolve(&attempt), None),
            Err(refused) => (refused.0, Some(refused.1)),
        };
        let why = why.filter(|why| !why.is_empty()).map(|why| format!(": {why}")).unwrap_or_default();
        attempt.told = format!("{}{why}", reply.told());
        if connection != IN_MEMORY && matches!(reply.behaviour, Behaviour::Refuse) {
            (reply, attempt.told) = (named::impossible(REFUSE), format!("501: {REFUSE}"));
        }
        attempt.status = reply.status_code();
        self.record.keep(attempt);
        reply
    }

    /// The part of a path below the stage; `None` if it is of another stage.
    pub(crate) fn below_stage<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let below = match self.stage.as_str() {
            "" => path,
            stage => path.strip_prefix(b"/")?.strip_prefix(stage.as_bytes())?,
        };
        match below.first() {
            None => Some(b"/"),
            Some(b'/') => Some(below),
            Some(_) => None,
        }
    }

    /// The script's reply, or the gateway's own refusal with a word on why.
    fn choose(&self, attempt: &RecordedAttempt, over_limit: bool) -> Result<Reply, Box<(Reply, String)>> {
        let request = attempt.request();
        let refuse = |reply: Reply, why: &str| Err(Box::new((reply, why.to_owned())));
        if request.url_length() > LONGEST_URL {
            return refuse(Reply::uri_too_long(), "");
        }
        if request.header_bytes() > LARGEST_HEADERS {
            return refuse(Reply::headers_too_large(), "");
        }
        if over_limit {
            return refuse(Reply::payload_too_large(), "");
        }
        if self.bucket.as_ref().is_some_and(|bucket| !bucket.take((self.clock)())) {
            return refuse(Reply::throttled(), "the token bucket is empty");
        }
        if !request.target_is_uri() || !request.has_one_host() {
            return refuse(named::bad_request(), "");
        }
        let path = self.below_stage(request.path());
        let routed = path.filter(|path| lock(&self.routes).script(request.method(), path).is_some());
        let Some(path) = routed else {
            let there_are = lock(&self.routes).names();
            return refuse(Reply::no_such_route(), &format!("no such route; there are {there_are}"));
        };
        if let Some(refused) = refusal(attempt.verification()).filter(|_| self.insist) {
            return refuse(refused, "");
        }
        let mut routes = lock(&self.routes);
        Ok(routes.script(request.method(), path).map_or_else(Reply::no_such_route, Script::next))
    }

    fn attempt(
        &self,
        request: RawRequest,
        verification: Verification,
        connection: usize,
        received_at: SystemTime,
    ) -> RecordedAttempt {
        let is_of_stage = self.below_stage(request.path()).is_some() && !self.stage.is_empty();
        RecordedAttempt {
            stage: if is_of_stage { self.stage.len() + 1 } else { 0 },
            request,
            verification,
            received_at,
            connection,
            order: self.arrivals.fetch_add(1, Ordering::Relaxed) + 1,
            status: None,
            told: String::new(),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("stage", &self.stage)
            .field("insist", &self.insist)
            .finish_non_exhaustive()
    }
}

/// The scripts by method and path.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

impl Routes {
    /// Adds a script, or puts it in the place of the one of the same method and path.
    pub(crate) fn set(&mut self, method: &str, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.0.retain(|route| route.method != method || route.path != path);
        let script = Script(replies.into_iter().collect());
        self.0.push(Route { method: method.to_owned(), path: path.to_owned(), script });
    }

    /// All routes, for a test's failure message.
    fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// The script for a request; one for the very method goes before one for any.
    fn script(&mut self, method: &str, path: &[u8]) -> Option<&mut Script> {
        let at = |wanted: &str| {
            self.0.iter().position(|route| route.method == wanted && route.path.as_bytes() == path)
        };
        let found = at(method).or_else(|| at(ANY))?;
        self.0.get_mut(found).map(|route| &mut route.script)
    }
}

#[derive(Debug)]
struct Route {
    method: String,
    path: String,
    script: Script,
}

/// What a route does with one request after the other.
#[derive(Debug)]
struct Script(VecDeque<Reply>);

impl Script {
    /// The next reply; the last one repeats, and an empty script answers [`Reply::ok`].
    fn next(&mut self) -> Reply {
        match self.0.len() {
            0 | 1 => self.0.front().cloned().unwrap_or_else(Reply::ok),
            _ => self.0.pop_front().unwrap_or_else(Reply::ok),
        }
    }

    fn next_if_unread(&mut self) -> Option<Reply> {
        let unread = matches!(self.0.front()?.behaviour, Behaviour::ResetBeforeReading);
        unread.then(|| self.next())
    }
}

const REFUSE: &str = "a connection that is there cannot be refused: FakeGateway::refuse_connections does it, or a gateway \
    without a socket";
/// The number of the connection of what came in memory.
pub(crate) const IN_MEMORY: usize = 0;
/// The longest URL of a Regional API, in characters, and the most bytes of header names, values, line ends and spaces
/// together ("Quotas for configuring and running a REST API in API Gateway").
const LONGEST_URL: usize = 10_240;
const LARGEST_HEADERS: usize = 10_240;
