//! The loop over a fake exchange on paused time: no socket, no real wait.

mod fleet;
mod restraint;

use super::*;
use crate::context::{CallContext, IdempotencyKey};
use crate::edge::Shown;
use crate::edge::ambient::Ambient;
use crate::edge::base_url::BaseUrl;
use crate::edge::hand::Runtime;
use crate::edge::kept::Kept;
use crate::edge::own_headers::OwnHeaders;
use crate::edge::path::Path;
use crate::edge::sigv4::Signer;
use crate::error_kind::ErrorKind;
use crate::policy::attempts::Terms;
use crate::policy::backoff::Backoff;
use crate::policy::breaker::{BreakerSettings, State};
use crate::policy::classify::{Class, Recovery};
use crate::policy::moment::Draw;
use crate::policy::outcome::Loss;
use crate::retry_loop::bounds::Bounds;
use crate::story::{Story, Subject};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;
use tracing::Span;

/// What the fake does with one attempt.
#[derive(Clone)]
enum Step {
    Answer(u16, &'static [(&'static str, &'static str)]),
    Hang,
    Lose,
    Refuse,
}

/// A world whose dice always fall alike and whose waits are written down. Its clock is tokio's, which stands still.
struct World {
    draw: Draw,
    waits: Mutex<Vec<Duration>>,
}

impl Ambient for World {
    fn now(&self) -> Moment {
        Runtime.now()
    }

    fn draw(&self) -> Draw {
        self.draw
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        self.waits.lock().unwrap().push(wait);
        Runtime.sleep(wait)
    }
}

#[derive(Default)]
struct Fake {
    script: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<(u32, Duration)>>,
    takes: Duration,
    identity_takes: Duration,
    no_identity: bool,
    unrecoverable: bool,
    recoveries: Mutex<Vec<Recovery>>,
}

impl Exchange for Fake {
    type Identity = ();

    async fn identity(&self, _: &Order, within: Duration) -> Result<(), Error> {
        Runtime.sleep(self.identity_takes.min(within)).await;
        if self.no_identity || self.identity_takes > within {
            return Err(Error::of(ErrorKind::Credentials, None, "no credentials".into()));
        }
        Ok(())
    }

    async fn attempt(
        &self,
        _: &Order,
        (): &(),
        (number, _): (u32, Moment),
        timeout: Duration,
    ) -> Result<Seen, Error> {
        self.seen.lock().unwrap().push((number, timeout));
        let step = {
            let mut script = self.script.lock().unwrap();
            if script.len() > 1 { script.pop_front() } else { script.front().cloned() }
        };
        let cause = || std::io::Error::other("fake").into();
        let lost = |how| Shown::Lost { how, thawed: false, cause: cause() };
        let shown = match step.unwrap() {
            Step::Answer(status, headers) => {
                Runtime.sleep(self.takes).await;
                let named = headers.iter().map(|(n, v)| (n.parse().unwrap(), HeaderValue::from_static(v)));
                Shown::Answered {
                    status: StatusCode::from_u16(status).unwrap(),
                    headers: named.collect::<HeaderMap>(),
                    body: Bytes::new(),
                    oversized: false,
                    broken: false,
                }
            }
            Step::Hang => {
                Runtime.sleep(timeout).await;
                lost(Loss::TimedOut)
            }
            Step::Lose => lost(Loss::Connection),
            Step::Refuse => Shown::NeverSent {
                why: crate::policy::outcome::Unsent::Refused,
                reason: "fake".into(),
                cause: cause(),
            },
        };
        let now = Runtime.now();
        Ok(Seen {
            shown,
            sent: now,
            received: now,
            ended: now,
            clock_gap: None,
            signature_age: None,
            gateway_now: now.wall,
        })
    }

    fn keep(&self, seen: Seen, (): &()) -> Kept {
        Kept::of(seen)
    }

    async fn recover(
        &self,
        recovery: Recovery,
        _: &Order,
        (): &(),
        seen: Option<&Kept>,
        _: Duration,
    ) -> Result<(), &'static str> {
        assert!(seen.is_some(), "a recovery follows an answer");
        self.recoveries.lock().unwrap().push(recovery);
        if self.unrecoverable { Err("nothing else can be had") } else { Ok(()) }
    }
}

/// Settings of one test.
struct Rig {
    world: Arc<World>,
    fake: Fake,
    gates: Gates,
    terms: Terms,
    bounds: Bounds,
    key: Option<String>,
    method: Method,
}

impl Rig {
    fn new(script: impl IntoIterator<Item = Step>) -> Rig {
        let world = Arc::new(World { draw: Draw::HIGHEST, waits: Mutex::default() });
        let settings = BreakerSettings::default().with_failures_in_row(1_000).with_minimum_outcomes(1_000);
        let ambient: Arc<dyn Ambient> = world.clone();
        let circuit = CircuitBreaker::new(settings, Arc::clone(&ambient), Arc::default());
        Rig {
            fake: Fake { script: Mutex::new(script.into_iter().collect()), ..Fake::default() },
            gates: Gates {
                pace: Pace::new(None, None, ambient.now()),
                usage: Reporter::new(None, "eu-central-1", ambient.now().monotonic),
                ambient,
                circuit,
                budget: RetryBudget::off(),
                watch: Arc::default(),
            },
            world,
            terms: Terms {
                max_attempts: 4,
                attempt_timeout: Duration::from_secs(1),
                backoff: Backoff::new(
                    Duration::from_millis(100),
                    Duration::from_millis(100),
                    Duration::from_secs(2),
                ),
                server_error_retries: 2,
                bad_gateway_retries: 1,
                refinements: Arc::default(),
                repeatable: true,
            },
            bounds: Bounds {
                priority: Priority::Normal,
                total: Duration::from_secs(10),
                deadline: None,
                min_attempt_time: Duration::from_millis(50),
            },
            key: Some("key-1".into()),
            method: Method::POST,
        }
    }

    fn with_breaker(mut self, settings: BreakerSettings) -> Rig {
        self.gates.circuit = CircuitBreaker::new(settings, Arc::clone(&self.gates.ambient), Arc::default());
        self
    }

    async fn call(&self) -> Result<Response, Error> {
        let base = BaseUrl::parse("https://api.example.test/prod", false).unwrap();
        let order = Order {
            subject: Arc::new(Subject {
                method: self.method.clone(),
                target: base.target(&Path::from("/orders"), &[]).unwrap(),
                url_template: None,
                context: CallContext::root().with_correlation_id("correlation-1").unwrap(),
                idempotency_key: self.key.as_deref().map(|key| IdempotencyKey::new(key).unwrap()),
            }),
            headers: OwnHeaders::default(),
            priority: self.bounds.priority,
            hop: 1,
            body: Bytes::new(),
            body_hash: Signer::new("eu-central-1", "execute-api").unwrap().body_hash(b""),
            user_token: None,
            response_body_limit: 1_000,
        };
        let start = self.gates.ambient.now();
        let eyes = (&self.gates.usage, &*self.gates.watch);
        let story = Story::of(Arc::clone(&order.subject));
        let teller = Teller::new(story, self.terms.repeatable, start.monotonic, eyes, Span::none());
        let attempts = Attempts::new(&self.terms, self.bounds.time_budget(start.monotonic));
        Course::new(&self.fake, &self.gates, &order, attempts, teller).run().await
    }

    fn sent(&self) -> usize {
        self.fake.seen.lock().unwrap().len()
    }

    fn waits(&self) -> Vec<u64> {
        self.world.waits.lock().unwrap().iter().map(|w| u64::try_from(w.as_millis()).unwrap()).collect()
    }

    fn timeouts(&self) -> Vec<u64> {
        let seen = self.fake.seen.lock().unwrap();
        seen.iter().map(|(_, t)| u64::try_from(t.as_millis()).unwrap()).collect()
    }
}

const OK: Step = Step::Answer(200, &[]);
const UNAVAILABLE: Step = Step::Answer(503, &[]);

#[tokio::test(start_paused = true)]
async fn a_503_is_waited_for_and_sent_again() {
    let rig = Rig::new([UNAVAILABLE, OK]);
    let response = rig.call().await.unwrap();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![100]));
    assert_eq!(response.attempts().len(), 2);
    assert_eq!(response.attempts()[0].wait_after(), Some(Duration::from_millis(100)));
    assert_eq!(response.attempts()[1].wait_after(), None);
    assert_eq!(response.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn max_attempts_is_the_number_of_sends_and_nothing_is_waited_for_after_the_last() {
    for (max, waits) in [(1, vec![]), (3, vec![100, 200])] {
        let mut rig = Rig::new([UNAVAILABLE]);
        rig.terms.max_attempts = max;
        let error = rig.call().await.unwrap_err();
        assert_eq!((rig.sent(), rig.waits()), (usize::try_from(max).unwrap(), waits));
        assert_eq!(error.stop_reason(), Some(StopReason::AttemptsExhausted));
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_callee_takes_no_more_than_the_total() {
    let mut rig = Rig::new([Step::Hang]);
    rig.bounds.total = Duration::from_secs(1);
    rig.terms.attempt_timeout = Duration::from_millis(800);
    let error = rig.call().await.unwrap_err();
    assert_eq!(rig.timeouts(), [800, 100], "the second attempt is cut to what is left");
    assert_eq!(error.elapsed(), Duration::from_secs(1));
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert!(error.may_have_committed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_not_begun_and_the_last_outcome_is_kept() {
    let mut rig = Rig::new([UNAVAILABLE]);
    rig.terms.backoff =
        Backoff::new(Duration::from_millis(600), Duration::from_millis(600), Duration::from_secs(2));
    rig.bounds.total = Duration::from_secs(1);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![600]));
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn a_hint_past_the_budget_ends_the_call_at_once_with_the_hint() {
    let mut rig = Rig::new([Step::Answer(429, &[("retry-after", "60")])]);
    rig.bounds.total = Duration::from_secs(3);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), rig.waits()), (1, vec![]));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    let rig = Rig::new([Step::Answer(429, &[("retry-after", "1")]), OK]);
    rig.call().await.unwrap();
    assert_eq!(rig.waits(), [1_500], "the hint is a floor, jitter comes on top");
}

#[tokio::test(start_paused = true)]
async fn enormous_hints_saturate() {
    for hint in ["9223372037", "18446744073709551615", "18446744073709551616", &"9".repeat(40)] {
        let hint: &'static str = Box::leak(hint.to_owned().into_boxed_str());
        let headers: &'static [_] = Box::leak(Box::new([("retry-after", hint)]));
        let rig = Rig::new([Step::Answer(429, headers)]);
        let error = rig.call().await.unwrap_err();
        assert_eq!((rig.sent(), rig.waits()), (1, vec![]), "{hint}");
        assert!(error.retry_after().unwrap() >= Duration::from_secs(9_223_372_037));
    }
}

#[tokio::test(start_paused = true)]
async fn the_context_s_deadline_bounds_the_call_too() {
    let mut rig = Rig::new([Step::Hang]);
    rig.bounds.deadline = Runtime.now().monotonic.checked_add(Duration::from_millis(300));
    let error = rig.call().await.unwrap_err();
    assert_eq!(rig.timeouts(), [300]);
    assert_eq!(error.elapsed(), Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_time_sends_nothing() {
    let mut rig = Rig::new([OK]);
    rig.bounds.deadline = Some(Runtime.now().monotonic);
    let error = rig.call().await.unwrap_err();
    assert_eq!(rig.sent(), 0);
    assert_eq!(
        (error.kind(), error.stop_reason()),
        (ErrorKind::Timeout, Some(StopReason::TimeBudgetExhausted))
    );
    assert!(!error.may_have_committed());
}

#[tokio::test(start_paused = true)]
async fn a_call_without_time_asks_for_no_credentials() {
    let mut rig = Rig::new([OK]);
    rig.fake.no_identity = true;
    rig.bounds.deadline = Some(Runtime.now().monotonic);
    assert_eq!(rig.call().await.unwrap_err().stop_reason(), Some(StopReason::TimeBudgetExhausted));
}

#[tokio::test(start_paused = true)]
async fn slow_credentials_are_paid_for_out_of_the_attempt_s_time() {
    let mut rig = Rig::new([Step::Hang]);
    rig.fake.identity_takes = Duration::from_millis(400);
    rig.bounds.total = Duration::from_secs(1);
    rig.terms.max_attempts = 1;
    let error = rig.call().await.unwrap_err();
    assert_eq!(rig.timeouts(), [600]);
    assert_eq!(error.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_cannot_be_had_are_no_breaker_failure_and_send_nothing() {
    let mut rig = Rig::new([OK]).with_breaker(BreakerSettings::default().with_failures_in_row(1));
    rig.fake.no_identity = true;
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.kind()), (0, ErrorKind::Credentials));
    assert_eq!(rig.gates.circuit.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_ends_the_call_with_the_last_outcome_and_is_never_waited_for() {
    let rig = Rig::new([UNAVAILABLE]).with_breaker(BreakerSettings::default().with_failures_in_row(5));
    let first = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), first.stop_reason()), (4, Some(StopReason::AttemptsExhausted)));
    let waits = rig.waits().len();
    let second = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), second.stop_reason()), (5, Some(StopReason::CircuitOpen)));
    assert_eq!(second.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(rig.waits().len(), waits, "nothing was waited for once it was open");
    let third = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), third.kind()), (5, ErrorKind::CircuitOpen));
    assert!(third.is_circuit_open());
    assert!(third.retry_after().unwrap() > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_recovery_follows_at_once_and_costs_no_retry_token() {
    let mut rig = Rig::new([Step::Answer(403, &[("x-amzn-errortype", "ExpiredTokenException")]), OK]);
    rig.gates.budget = RetryBudget::new(0);
    let response = rig.call().await.unwrap();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![]));
    assert_eq!(*rig.fake.recoveries.lock().unwrap(), [Recovery::Credentials]);
    assert_eq!(response.attempts()[0].wait_after(), Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_recovery_that_changes_nothing_ends_the_call() {
    let mut rig = Rig::new([Step::Answer(401, &[])]);
    rig.fake.unrecoverable = true;
    let error = rig.call().await.unwrap_err();
    assert_eq!(rig.sent(), 1);
    assert!(error.to_string().contains("401 unauthenticated: nothing else can be had"), "{error}");
    assert_eq!(
        (error.kind(), error.stop_reason()),
        (ErrorKind::Unauthorized, Some(StopReason::RecoveryUsed))
    );
}

#[tokio::test(start_paused = true)]
async fn an_unkeyed_post_is_not_sent_again_after_a_lost_reply_but_is_after_a_refused_connection() {
    let mut rig = Rig::new([Step::Lose, OK]);
    rig.terms.repeatable = false;
    rig.key = None;
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.stop_reason()), (1, Some(StopReason::NoIdempotencyKey)));
    assert!(error.to_string().contains("look it up before you send again"), "{error}");
    let mut rig = Rig::new([Step::Refuse, OK]);
    rig.terms.repeatable = false;
    rig.call().await.unwrap();
    assert_eq!(rig.sent(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_zero_wait_is_not_slept() {
    let mut rig = Rig::new([UNAVAILABLE, OK]);
    rig.terms.backoff = Backoff::new(Duration::ZERO, Duration::ZERO, Duration::ZERO);
    rig.call().await.unwrap();
    assert_eq!((rig.sent(), rig.waits()), (2, vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_empty_retry_budget_ends_the_call_with_the_last_outcome() {
    let mut rig = Rig::new([UNAVAILABLE]);
    rig.gates.budget = RetryBudget::new(1);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.stop_reason()), (2, Some(StopReason::RetryBudgetExhausted)));
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_gives_its_token_back() {
    let mut rig = Rig::new([UNAVAILABLE]);
    rig.gates.budget = RetryBudget::new(2);
    rig.terms.backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(2), Duration::from_secs(2));
    let dropped = tokio::time::timeout(Duration::from_secs(1), rig.call()).await;
    assert!(dropped.is_err());
    assert_eq!(rig.sent(), 1);
    assert_eq!(rig.gates.budget.available_tenths(), Some(20));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_gives_its_slot_back() {
    let mut rig = Rig::new([UNAVAILABLE, Step::Hang, OK])
        .with_breaker(BreakerSettings::default().with_failures_in_row(1));
    rig.terms.max_attempts = 1;
    rig.call().await.unwrap_err();
    assert_eq!(rig.gates.circuit.state(), State::Open);
    Runtime.sleep(Duration::from_secs(4)).await;
    assert!(tokio::time::timeout(Duration::from_millis(10), rig.call()).await.is_err());
    rig.call().await.unwrap();
    assert_eq!(rig.gates.circuit.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_ends_neutral_leaves_its_slot_free() {
    let settings = BreakerSettings::default().with_failures_in_row(1);
    for probe in [Step::Answer(404, &[]), Step::Answer(400, &[]), Step::Answer(429, &[])] {
        let mut rig = Rig::new([UNAVAILABLE, probe, OK]).with_breaker(settings);
        rig.terms.max_attempts = 1;
        rig.call().await.unwrap_err();
        Runtime.sleep(Duration::from_secs(4)).await;
        rig.call().await.unwrap_err();
        assert_eq!(rig.gates.circuit.state(), State::HalfOpen);
        rig.call().await.unwrap();
        assert_eq!((rig.sent(), rig.gates.circuit.state()), (3, State::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_credentials_or_without_time_leaves_its_slot_free() {
    let mut rig =
        Rig::new([UNAVAILABLE, OK]).with_breaker(BreakerSettings::default().with_failures_in_row(1));
    rig.terms.max_attempts = 1;
    rig.call().await.unwrap_err();
    Runtime.sleep(Duration::from_secs(4)).await;
    rig.fake.no_identity = true;
    assert_eq!(rig.call().await.unwrap_err().kind(), ErrorKind::Credentials);
    rig.fake.no_identity = false;
    rig.fake.identity_takes = Duration::from_millis(980);
    rig.bounds.total = Duration::from_secs(1);
    let error = rig.call().await.unwrap_err();
    assert_eq!((rig.sent(), error.stop_reason()), (1, Some(StopReason::TimeBudgetExhausted)));
    rig.fake.identity_takes = Duration::ZERO;
    rig.call().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_fifty_callers_at_once_one_probes_and_the_rest_are_told_to_come_back() {
    let mut rig =
        Rig::new([UNAVAILABLE, Step::Hang]).with_breaker(BreakerSettings::default().with_failures_in_row(1));
    rig.terms.max_attempts = 1;
    rig.call().await.unwrap_err();
    Runtime.sleep(Duration::from_secs(4)).await;
    let rig = Arc::new(rig);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let rig = Arc::clone(&rig);
        calls.spawn(async move { rig.call().await.unwrap_err().is_circuit_open() });
    }
    let open = calls.join_all().await.into_iter().filter(|open| *open).count();
    assert_eq!((rig.sent(), open), (2, 49));
}

#[tokio::test(start_paused = true)]
async fn rejections_neither_open_the_breaker_nor_end_a_run_of_failures() {
    let three = || BreakerSettings::default().with_failures_in_row(3);
    let mut rig = Rig::new([Step::Answer(400, &[])]).with_breaker(three());
    rig.terms.max_attempts = 1;
    for _ in 0..10 {
        rig.call().await.unwrap_err();
    }
    assert_eq!(rig.gates.circuit.state(), State::Closed);
    let mut rig =
        Rig::new([UNAVAILABLE, UNAVAILABLE, Step::Answer(400, &[]), UNAVAILABLE]).with_breaker(three());
    rig.terms.max_attempts = 1;
    for _ in 0..4 {
        rig.call().await.unwrap_err();
    }
    assert_eq!(rig.gates.circuit.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn the_error_tells_what_every_attempt_showed() {
    let rig = Rig::new([Step::Answer(504, &[]), Step::Answer(429, &[]), Step::Answer(400, &[])]);
    let error = rig.call().await.unwrap_err();
    let classes: Vec<Class> = error.attempts().iter().map(crate::story::Attempt::class).collect();
    assert_eq!(classes, [Class::GatewayTimeout, Class::Throttled, Class::Rejected]);
    assert_eq!((error.kind(), error.stop_reason()), (ErrorKind::Rejected, Some(StopReason::NotRetryable)));
    assert!(error.may_have_committed(), "the 504 is not forgotten");
    assert_eq!(error.idempotency_key(), Some("key-1"));
    assert_eq!(error.correlation_id(), Some("correlation-1"));
    let text = error.to_string();
    assert!(text.starts_with("POST /prod/orders: 400 rejected; after 3 attempts; not retryable"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_same_status_each_time_is_said() {
    let rig = Rig::new([Step::Answer(500, &[])]);
    let text = rig.call().await.unwrap_err().to_string();
    assert!(text.contains("500 each time: this request may be at fault"), "{text}");
}
