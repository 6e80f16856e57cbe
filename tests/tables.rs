//! The tables of the README and the captured gateway answers, held against the code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

use eastwest::policy::account_quota::Marks;
use eastwest::policy::attempts::{Attempts, Decision, StopReason, Terms};
use eastwest::policy::backoff::Base;
use eastwest::policy::breaker::{BreakerSettings, Effect};
use eastwest::policy::classify::{Class, Retried, classify};
use eastwest::policy::moment::Draw;
use eastwest::policy::outcome::{Answer, Outcome};
use eastwest::policy::profile::{self, Profile};
use eastwest::policy::rate_limit::{CRITICAL_PERCENT, NORMAL_PERCENT};
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::policy::time_budget::TimeBudget;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

const README: &str = include_str!("../README.md");
const THREATS: &str = include_str!("../src/threat_model.md");
const CAPTURED: &str = include_str!("data/gateway_responses.json");

/// The rows of the README's table whose header line begins with `head`, as cells.
fn readme_table(head: &str) -> Vec<Vec<String>> {
    let lines = README.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    rows.map(cells).collect()
}

fn row_of(class: Class) -> Vec<String> {
    let rule = class.rule();
    let retried = match rule.retried {
        Retried::After(_) => "once, at once",
        Retried::CappedAsBadGateway => "once",
        Retried::CappedAsServerError => "twice",
        Retried::Never => "no",
        Retried::Yes => "yes",
        other => panic!("{other:?}"),
    };
    let wait = match rule.base {
        Some(Base::Throttled) => "throttled",
        Some(Base::Transient) => "transient",
        None => "-",
    };
    let breaker = match rule.effect {
        Effect::Failure if class == Class::ServerError => "failure, once a call",
        Effect::Failure => "failure",
        Effect::Neutral => "neutral",
        Effect::Success => "success",
    };
    let yes = |yes: bool, word: &str| if yes { word.to_owned() } else { "no".to_owned() };
    vec![
        class.as_str().to_owned(),
        retried.to_owned(),
        yes(rule.needs_key, "yes"),
        wait.to_owned(),
        yes(rule.may_have_committed, if rule.effect == Effect::Success { "yes" } else { "may have" }),
        breaker.to_owned(),
    ]
}

#[test]
fn the_status_table_of_the_readme_is_the_code_s() {
    let rows = readme_table("| what came | class |");
    let in_readme: Vec<Vec<String>> = rows.into_iter().map(|row| row[1..].to_vec()).collect();
    let in_code: Vec<Vec<String>> = Class::ALL.iter().copied().map(row_of).collect();
    assert_eq!(in_readme, in_code);
}

#[test]
fn the_statuses_of_the_readme_s_table_fall_into_the_rows_that_name_them() {
    let mut named = 0;
    for row in readme_table("| what came | class |") {
        // A row that begins with plain statuses is about those statuses alone.
        let Some(statuses) = row[0].split(':').next().filter(|s| !s.contains(|c: char| c.is_alphabetic()))
        else {
            continue;
        };
        for status in statuses.split(',') {
            let status = StatusCode::from_u16(status.trim().parse().unwrap()).unwrap();
            assert_eq!(Class::of_status(status).as_str(), row[1], "{status}");
            named += 1;
        }
    }
    assert!(named >= 25, "the table names {named} statuses");
}

#[test]
fn the_defaults_table_of_the_readme_is_the_code_s() {
    let time = |d: Duration| {
        if d.as_millis().is_multiple_of(1_000) {
            format!("{} s", d.as_secs())
        } else {
            format!("{} ms", d.as_millis())
        }
    };
    let profiles = [Profile::interactive(), Profile::standard(), Profile::background()];
    let row = |name: &str, of: &dyn Fn(&Profile) -> String| {
        let mut row = vec![name.to_owned()];
        row.extend(profiles.iter().map(of));
        row
    };
    let breaker = BreakerSettings::default();
    let same = |name: &str, value: String| row(name, &|_| value.clone());
    let in_code = vec![
        row("total_timeout", &|p| time(p.total_timeout())),
        row("attempt_timeout", &|p| time(p.attempt_timeout())),
        row("connect_timeout", &|p| time(p.connect_timeout())),
        row("min_attempt_time", &|p| time(p.min_attempt_time())),
        row("deadline_reserve", &|p| time(p.deadline_reserve())),
        row("backoff: transient base", &|p| time(p.backoff().transient_base())),
        row("backoff: throttled base", &|p| time(p.backoff().throttled_base())),
        row("backoff: cap of one wait", &|p| time(p.backoff().cap())),
        row("max_attempts", &|p| p.max_attempts().to_string()),
        row("server_error_retries (500)", &|p| p.server_error_retries().to_string()),
        row("bad_gateway_retries (502)", &|p| p.bad_gateway_retries().to_string()),
        row("retry_budget", &|p| p.retry_budget().to_string()),
        same("breaker: failures in a row", breaker.failures_in_row().to_string()),
        same(
            "breaker: failure rate",
            format!(
                "{} % of {} in {}",
                breaker.failure_percent(),
                breaker.minimum_outcomes(),
                time(breaker.window())
            ),
        ),
        same("breaker: open for", time(breaker.open_for())),
        same("breaker: probes at a time", breaker.probes().to_string()),
        same(
            "limits: kept for critical, and for what is not bulk",
            format!("{CRITICAL_PERCENT} % and {NORMAL_PERCENT} %"),
        ),
        same(
            "account_quota: warning over",
            format!(
                "{} % or {} attempts a call",
                Marks::default().share * 100.0,
                Marks::default().amplification
            ),
        ),
        same("credentials refreshed before expiry", time(profile::CREDENTIAL_REFRESH_BEFORE_EXPIRY)),
        same("pool_idle_timeout", time(profile::POOL_IDLE_TIMEOUT)),
        same("request_body_limit", format!("{} bytes", profile::REQUEST_BODY_LIMIT)),
        same("response_body_limit", format!("{} bytes", profile::RESPONSE_BODY_LIMIT)),
        same("error_body_limit", format!("{} bytes", profile::ERROR_BODY_LIMIT)),
        same("first hop that is refused", eastwest::MAX_HOPS.to_string()),
    ];
    assert_eq!(readme_table("| setting | `interactive` |"), in_code);
}

#[test]
fn every_test_that_the_pitfalls_name_is_there() {
    let rows = readme_table("| pitfall |");
    assert_eq!(rows.len(), 8);
    rows.iter().for_each(|row| assert_are_tests(&row[2]));
}

#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let rows =
        THREATS.lines().filter(|line| line.starts_with("| ")).map(|line| line.trim_matches('|').split('|'));
    let shown: Vec<String> =
        rows.filter_map(Iterator::last).map(|cell| cell.trim().replace('`', "")).collect();
    let named: Vec<_> = shown.iter().filter(|cell| cell.contains('_')).collect();
    assert!(named.len() >= 20, "{shown:?}");
    named.into_iter().for_each(|cell| assert_are_tests(cell));
}

/// Each of the names, separated by commas, is a function somewhere in the sources or the tests.
fn assert_are_tests(names: &str) {
    for name in names.split(", ") {
        assert!(SOURCES.contains(&format!("fn {name}(")), "{name}");
    }
}

/// All of `src` and `tests`, but for the crates of their own.
static SOURCES: LazyLock<String> = LazyLock::new(|| {
    let mut open = ["src", "tests"].map(|dir| Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)).to_vec();
    let mut text = String::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("lanes") && !path.ends_with("fuzz") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    text
});

/// The share of calls that succeed, of one sandbox's calls one after the other, where each attempt fails by itself.
fn success_with_independent_failures(percent: u64) -> f64 {
    let terms = Terms {
        max_attempts: 3,
        attempt_timeout: Duration::from_secs(4),
        backoff: Profile::standard().backoff(),
        server_error_retries: 2,
        bad_gateway_retries: 1,
        refinements: Arc::default(),
        repeatable: true,
    };
    #[allow(clippy::disallowed_methods, reason = "some instant to count from")]
    let now = Instant::now();
    let budget = RetryBudget::new(Profile::standard().retry_budget());
    let (ok, bad) = (Captured::plain(200), Captured::plain(503));
    // Knuth's generator of 64 bits, seeded: the same calls fail in every run.
    let mut state = 20_261_002_u64;
    let mut fails = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
    };
    let (calls, mut succeeded) = (200_000, 0);
    for _ in 0..calls {
        let mut run =
            Attempts::new(&terms, TimeBudget::new(now, Duration::from_secs(10), None, Duration::ZERO));
        loop {
            run.begin(now);
            let answer = if fails() { &bad } else { &ok };
            match run.observe(&answer.outcome(), now, Draw::LOWEST, &budget, |_| false) {
                Decision::Retry(_, token) => token.spend(),
                Decision::Return => break succeeded += 1,
                _ => break,
            }
        }
    }
    f64::from(succeeded) / f64::from(calls) * 100.0
}

#[test]
fn the_price_of_the_retry_budget_is_what_the_readme_says() {
    let (at_five, at_ten) = (success_with_independent_failures(5), success_with_independent_failures(10));
    let said = format!("{at_five:.1} % and {at_ten:.1} % of calls succeed");
    assert!(README.contains(&said), "the README should say: {said}");
}

/// A captured answer, ready for policy.
struct Captured {
    id: String,
    status: StatusCode,
    headers: HeaderMap,
    body: String,
    class: String,
    retry: String,
    needs_key: bool,
    clock_gap: i64,
}

impl Captured {
    fn all() -> Vec<Captured> {
        let entries: Vec<Value> = serde_json::from_str(CAPTURED).unwrap();
        entries.iter().map(Captured::read).collect()
    }

    fn read(entry: &Value) -> Captured {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let mut headers = HeaderMap::new();
        for (name, value) in entry["headers"].as_object().unwrap() {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
        }
        let seconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
        let date =
            headers.get("date").map(|d| seconds(httpdate::parse_http_date(d.to_str().unwrap()).unwrap()));
        let local_now = entry["context"]["local_now"].as_str().map(|stamp| {
            // All local times of the file are of one day: only the time of day differs.
            let (hour, minute) =
                (stamp[11..13].parse::<i64>().unwrap(), stamp[14..16].parse::<i64>().unwrap());
            let midnight = date.unwrap() - date.unwrap() % 86_400;
            midnight + hour * 3_600 + minute * 60
        });
        Captured {
            id: text("id"),
            status: StatusCode::from_u16(entry["status"].as_u64().unwrap() as u16).unwrap(),
            clock_gap: local_now.map_or(0, |local| date.unwrap() - local),
            headers,
            body: text("body"),
            class: text("class"),
            retry: text("retry"),
            needs_key: entry["needs_idempotency_key"].as_bool().unwrap(),
        }
    }

    /// An answer that says nothing but its status.
    fn plain(status: u16) -> Captured {
        Captured {
            id: status.to_string(),
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: String::new(),
            class: String::new(),
            retry: String::new(),
            needs_key: false,
            clock_gap: 0,
        }
    }

    fn outcome(&self) -> Outcome<'_> {
        Outcome::Answered(Answer {
            status: self.status,
            headers: &self.headers,
            body: self.body.as_bytes(),
            oversized: false,
            broken: false,
            clock_gap: Some(self.clock_gap),
            signature_age: Some(self.clock_gap),
            gateway_now: SystemTime::UNIX_EPOCH,
        })
    }

    /// What becomes of a call that gets this answer on every attempt: how often it is sent, and why it stops.
    fn drive(&self, repeatable: bool) -> (u32, Option<StopReason>, bool) {
        let terms = Terms {
            max_attempts: 6,
            attempt_timeout: Duration::from_secs(4),
            backoff: Profile::standard().backoff(),
            server_error_retries: 2,
            bad_gateway_retries: 1,
            refinements: Arc::default(),
            repeatable,
        };
        #[allow(clippy::disallowed_methods, reason = "some instant to count from")]
        let now = Instant::now();
        let time = TimeBudget::new(now, Duration::from_secs(3_600), None, Duration::ZERO);
        let (budget, mut run, mut recovered) = (RetryBudget::off(), Attempts::new(&terms, time), false);
        loop {
            run.begin(now);
            match run.observe(&self.outcome(), now, Draw::HIGHEST, &budget, |_| false) {
                Decision::Return => return (run.begun(), None, recovered),
                Decision::Recover(_) => recovered = true,
                Decision::Retry(_, token) => token.spend(),
                Decision::Stop(reason) => return (run.begun(), Some(reason), recovered),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn every_captured_answer_gets_its_class() {
    for answer in Captured::all() {
        let never = answer.retry == "never";
        let expected = match answer.class.as_str() {
            "bad_gateway" => Class::BadGateway,
            "bad_request" | "conflict" | "not_found" => Class::Rejected,
            "clock_skew" => Class::ClockSkewed,
            "denied" if answer.id == "http-403-iam" => Class::ForbiddenUnexplained,
            "denied" => Class::Forbidden,
            "expired_credentials" => Class::CredentialsRefused,
            "gateway_timeout" => Class::GatewayTimeout,
            "in_progress" => Class::InProgress,
            "loop_refused" => Class::LoopRefused,
            "opaque_server" => Class::ServerError,
            "quota_exhausted" => Class::QuotaExhausted,
            "request_timeout" => Class::RequestTimeout,
            "signature_mismatch" if never => Class::BadScope,
            "signature_mismatch" => Class::SignatureMismatch,
            "stale_signature" => Class::SignatureStale,
            "success" => Class::Success,
            "throttled" => Class::Throttled,
            "too_large" => Class::TooLarge,
            "unauthenticated" if answer.id == "rest-403-missing-token" => Class::RouteMissing,
            "unauthenticated" if never => Class::BadScope,
            "unauthenticated" => Class::Unauthenticated,
            "unavailable" => Class::Unavailable,
            other => panic!("{}: unknown class {other}", answer.id),
        };
        assert_eq!(classify(&answer.outcome()), expected, "{}", answer.id);
    }
}

#[test]
fn every_captured_answer_is_sent_again_as_often_as_it_may_be() {
    for answer in Captured::all() {
        let expected = match answer.retry.as_str() {
            "yes" => (6, Some(StopReason::AttemptsExhausted), false),
            "once" => (2, Some(StopReason::StatusCapReached), false),
            "limited" => (3, Some(StopReason::StatusCapReached), false),
            "after_resign" | "after_refresh" => (2, Some(StopReason::RecoveryUsed), true),
            "never" if answer.class == "success" => (1, None, false),
            "never" => (1, Some(StopReason::NotRetryable), false),
            other => panic!("{}: unknown retry {other}", answer.id),
        };
        assert_eq!(answer.drive(true), expected, "{}", answer.id);
        let unkeyed =
            if answer.needs_key { (1, Some(StopReason::NoIdempotencyKey), false) } else { expected };
        assert_eq!(answer.drive(false), unkeyed, "{} without a key", answer.id);
    }
    assert_eq!(Captured::all().len(), 66, "the whole file was walked");
}
