//! What the guard promises, header by header.

use super::demands::Demand;
use super::*;
use crate::context::inbound::Inbound;
use crate::context::{CorrelationId, MAX_HOPS, headers};
use crate::edge::ambient::{Ambient, system};
use crate::policy::moment::{Draw, Moment, some_moment};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::future::{Future, ready};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time stands still.
struct At(Moment);

impl Ambient for At {
    fn now(&self) -> Moment {
        self.0
    }

    fn draw(&self) -> Draw {
        system().draw()
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(ready(()))
    }
}

fn check<N: AsRef<str>, V: AsRef<[u8]>>(
    guard: &Guard,
    headers: impl IntoIterator<Item = (N, V)>,
    now: Moment,
) -> Result<CallContext, Refusal> {
    guard.check(&Inbound::read(headers, &headers::IDEMPOTENCY_KEY), Demand::NoKey, &At(now))
}

fn refused(headers: &[(&str, &str)]) -> Refusal {
    accept(headers.iter().copied()).expect_err("is refused")
}

fn is_fresh(id: &str) -> bool {
    uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)
}

/// What `body` logs, at every level.
fn log_of(body: impl Fn()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        // Another test's thread may have been the first at an event, with nobody listening, and that is remembered.
        body();
        tracing::callsite::rebuild_interest_cache();
        log.0.lock().unwrap().clear();
        body();
    });
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

/// (inbound, what the next call sends or why the request is refused)
const HOPS: [(&str, Result<u8, RefusalKind>); 17] = [
    ("1", Ok(2)),
    ("3", Ok(4)),
    ("6", Ok(7)),
    ("8", Err(RefusalKind::HopBudgetExhausted)),
    ("9", Err(RefusalKind::HopBudgetExhausted)),
    ("99", Err(RefusalKind::HopBudgetExhausted)),
    ("100", Err(RefusalKind::InvalidHopCount)),
    ("0", Err(RefusalKind::InvalidHopCount)),
    ("-1", Err(RefusalKind::InvalidHopCount)),
    ("+3", Err(RefusalKind::InvalidHopCount)),
    ("03", Err(RefusalKind::InvalidHopCount)),
    (" 3", Err(RefusalKind::InvalidHopCount)),
    ("3.0", Err(RefusalKind::InvalidHopCount)),
    ("1e1", Err(RefusalKind::InvalidHopCount)),
    ("abc", Err(RefusalKind::InvalidHopCount)),
    ("", Err(RefusalKind::InvalidHopCount)),
    ("٣", Err(RefusalKind::InvalidHopCount)),
];

#[test]
fn a_hop_count_is_one_more_or_a_refusal_and_never_begins_again() {
    for (inbound, expected) in HOPS {
        for accepted in [accept([("x-hop-count", inbound)]), accept_front_door([("x-hop-count", inbound)])] {
            let next = accepted.map(|context| context.next_hop().unwrap().get());
            assert_eq!(next.map_err(|refusal| refusal.kind()), expected, "{inbound:?}");
        }
    }
}

#[test]
fn the_last_hop_may_work_and_may_not_call() {
    let context = accept([("x-hop-count", "7")]).unwrap();
    assert_eq!(context.hop(), 7);
    assert_eq!(context.next_hop().unwrap_err().hop(), 7);
}

#[test]
fn a_missing_hop_count_begins_a_chain_at_the_front_door_and_nowhere_else() {
    let none: [(&str, &str); 0] = [];
    assert_eq!(accept(none).unwrap_err().kind(), RefusalKind::MissingHopCount);
    let context = accept_front_door(none).unwrap();
    assert_eq!((context.hop(), context.next_hop().unwrap().get()), (0, 1));
}

#[test]
fn two_hop_counts_are_refused_even_if_they_are_equal() {
    for two in [
        [("x-hop-count", "3"), ("x-hop-count", "3")],
        [("x-hop-count", "3"), ("X-Hop-Count", "4")],
        [("X-HOP-COUNT", ""), ("x-hop-count", "4")],
    ] {
        assert_eq!(accept(two).unwrap_err().kind(), RefusalKind::InvalidHopCount);
        assert_eq!(accept_front_door(two).unwrap_err().kind(), RefusalKind::InvalidHopCount);
    }
    assert_eq!(refused(&[("x-hop-count", "3,3")]).kind(), RefusalKind::InvalidHopCount);
}

#[test]
fn an_inbound_correlation_id_is_kept_or_replaced_by_a_fresh_one() {
    let kept = |id: &str| {
        let context = accept([("x-hop-count", "1"), ("X-Correlation-Id", id)]).unwrap();
        context.correlation_id().to_owned()
    };
    let longest = "a".repeat(128);
    for id in ["order-4711", "A.b_c:d", &longest] {
        assert_eq!(kept(id), id);
    }
    for id in ["", "a\r\nx-evil: 1", "a b", "a\0", "é", "a,b", &format!("{longest}a")] {
        assert!(is_fresh(&kept(id)), "{id:?}");
    }
    assert!(is_fresh(accept([("x-hop-count", "1")]).unwrap().correlation_id()));
}

#[test]
fn two_correlation_ids_are_replaced_even_if_they_are_equal() {
    let two = [("x-hop-count", "1"), ("x-correlation-id", "a"), ("x-correlation-id", "a")];
    assert!(is_fresh(accept(two).unwrap().correlation_id()));
}

#[test]
fn a_replaced_correlation_id_is_warned_about_and_never_echoed() {
    let said = log_of(|| {
        accept([("x-hop-count", "1"), ("x-correlation-id", "a\r\nx-evil: 1")]).unwrap();
    });
    assert!(said.contains("WARN") && said.contains("replaced"), "{said}");
    assert!(!said.contains("evil"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let missing = log_of(|| {
        accept([("x-hop-count", "1")]).unwrap();
    });
    assert_eq!(missing, "");
}

#[test]
fn a_refusal_is_an_event_that_repeats_nothing_unchecked() {
    let said = log_of(|| {
        refused(&[("x-hop-count", "evil-hop"), ("x-correlation-id", "order-1")]);
        refused(&[("x-correlation-id", "evil\nid"), ("x-idempotency-key", "evil key"), ("x-hop-count", "2")]);
    });
    assert_eq!(said.matches("an inbound call was refused").count(), 2, "{said}");
    assert!(said.contains("InvalidHopCount") && said.contains("order-1"), "{said}");
    assert!(!said.contains("evil"), "{said}");
}

#[test]
fn an_inbound_idempotency_key_is_kept_or_the_request_refused() {
    let key = |key: &str| {
        accept([("x-hop-count", "1"), ("X-Idempotency-Key", key)])
            .map(|context| context.inbound_idempotency_key().map(ToString::to_string))
            .map_err(|refusal| refusal.kind())
    };
    let longest = "k".repeat(255);
    for valid in ["k", "order/4711", &longest] {
        assert_eq!(key(valid), Ok(Some(valid.to_owned())));
    }
    for invalid in ["", "k\n1", "a key", "ké", &format!("{longest}k")] {
        assert_eq!(key(invalid), Err(RefusalKind::InvalidIdempotencyKey), "{invalid:?}");
    }
    let two = [("x-hop-count", "1"), ("x-idempotency-key", "k"), ("x-idempotency-key", "k")];
    assert_eq!(refused(&two).kind(), RefusalKind::InvalidIdempotencyKey);
    assert_eq!(accept([("x-hop-count", "1")]).unwrap().inbound_idempotency_key(), None);
}

#[test]
fn a_time_budget_is_taken_less_30_ms_and_junk_counts_as_absent() {
    let now = some_moment();
    let left = |budgets: &[&str]| {
        let headers = budgets.iter().map(|budget| ("x-time-budget-ms", *budget));
        check(&Guard::new().front_door(), headers, now)
            .map(|context| context.time_left(now.monotonic).map(|left| left.as_millis()))
            .map_err(|refusal| refusal.kind())
    };
    assert_eq!(left(&["1500"]), Ok(Some(1470)));
    assert_eq!(left(&["0031"]), Ok(Some(1)));
    for spent in ["30", "29", "0", "0000"] {
        assert_eq!(left(&[spent]), Err(RefusalKind::NoTimeLeft), "{spent}");
    }
    for junk in
        ["", "-5", "+500", "1.5", "1e3", " 500", "500 ms", "٣", "99999999999999999999", &"0".repeat(2000)]
    {
        assert_eq!(left(&[junk]), Ok(None), "{junk:?}");
    }
    assert_eq!(left(&["500", "500"]), Ok(None));
    assert_eq!(left(&[]), Ok(None));
    // The most that 64 bits hold is a bound that no clock reaches, and no panic.
    assert!(left(&["18446744073709551615"]).is_ok());
}

#[test]
fn traces_are_passed_on_and_of_two_neither() {
    let headers = [
        ("x-hop-count", "1"),
        ("X-Amzn-Trace-Id", "Root=1-a;Lineage=1:23e64a83:0"),
        ("traceparent", "00-a-b-01"),
        ("tracestate", "b=2"),
        ("TraceState", "a=1"),
    ];
    let sent = |context: &CallContext| -> Vec<_> {
        let owned = context
            .trace_headers()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        owned.collect()
    };
    let expected = [
        ("x-amzn-trace-id", "Root=1-a;Lineage=1:23e64a83:0"),
        ("traceparent", "00-a-b-01"),
        ("tracestate", "b=2"),
        ("tracestate", "a=1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(sent(&accept(headers).unwrap()), expected);

    let twice = headers.into_iter().chain([("traceparent", "00-a-b-01"), ("x-amzn-trace-id", "Root=2")]);
    assert_eq!(sent(&accept(twice).unwrap()), expected[2..]);
}

#[test]
fn headers_are_taken_from_every_kind_of_map() {
    let pairs = [("x-hop-count", "2"), ("x-idempotency-key", "k")];
    let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));

    let mut http = HeaderMap::new();
    for (name, value) in pairs {
        http.insert(name, HeaderValue::from_static(value));
    }
    let by_hash: HashMap<String, String> = owned.iter().cloned().collect();
    let by_tree: BTreeMap<String, String> = owned.iter().cloned().collect();
    let vector: Vec<(&str, &str)> = pairs.to_vec();
    let bytes: Vec<(String, Vec<u8>)> =
        owned.iter().cloned().map(|(name, value)| (name, value.into_bytes())).collect();
    for accepted in
        [accept(&http), accept(&by_hash), accept(by_tree), accept(vector), accept(bytes), accept(owned)]
    {
        let context = accepted.unwrap();
        assert_eq!(context.hop(), 2);
        assert_eq!(context.inbound_idempotency_key().unwrap().as_str(), "k");
    }
    http.append("x-hop-count", HeaderValue::from_static("2"));
    assert_eq!(accept(&http).unwrap_err().kind(), RefusalKind::InvalidHopCount);
}

#[test]
fn the_first_reason_is_told() {
    let mut headers = vec![("x-time-budget-ms", "1"), ("x-idempotency-key", " "), ("x-hop-count", "8")];
    assert_eq!(refused(&headers).kind(), RefusalKind::HopBudgetExhausted);
    headers[2].1 = "1";
    assert_eq!(refused(&headers).kind(), RefusalKind::InvalidIdempotencyKey);
    headers[1].1 = "k";
    assert_eq!(refused(&headers).kind(), RefusalKind::NoTimeLeft);
}

#[test]
fn every_refusal_forbids_a_retry_and_names_its_type() {
    let table = [
        (RefusalKind::HopBudgetExhausted, 508, "HopBudgetExhausted"),
        (RefusalKind::InvalidHopCount, 400, "InvalidHopCount"),
        (RefusalKind::InvalidIdempotencyKey, 400, "InvalidIdempotencyKey"),
        (RefusalKind::MissingHopCount, 400, "MissingHopCount"),
        (RefusalKind::MissingIdempotencyKey, 400, "MissingIdempotencyKey"),
        (RefusalKind::NoTimeLeft, 503, "NoTimeLeft"),
    ];
    for (kind, status, name) in table {
        let refusal = Refusal::new(kind, None);
        let response = refusal.to_response();
        assert_eq!((response.status().as_u16(), refusal.status().as_u16()), (status, status));
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.headers()["x-should-retry"], "false");
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body, serde_json::json!({"type": name, "message": refusal.to_string()}));
    }
}

#[test]
fn a_refusal_repeats_a_valid_correlation_id_and_no_other() {
    let answered = |id: &str| {
        let response = refused(&[("x-correlation-id", id)]).to_response();
        String::from_utf8(response.body().to_vec()).unwrap()
    };
    assert!(answered("order-1").contains(r#""correlation_id":"order-1""#));
    let other = answered("a\r\nx-evil: 1");
    assert!(!other.contains("correlation_id") && !other.contains("evil"), "{other}");
}

#[test]
fn the_message_states_the_hop_limit_that_is_in_force() {
    assert!(RefusalKind::HopBudgetExhausted.message().contains(&format!(" {MAX_HOPS} or more")));
}

fn any_headers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = prop_oneof![
        4 => Just("x-hop-count".to_owned()),
        2 => Just("X-Correlation-ID".to_owned()),
        2 => Just("x-idempotency-key".to_owned()),
        2 => Just("x-time-budget-ms".to_owned()),
        1 => Just("x-amzn-trace-id".to_owned()),
        1 => Just("Traceparent".to_owned()),
        1 => Just("tracestate".to_owned()),
        1 => ".{0,20}",
    ];
    let value = prop_oneof![
        4 => "[0-9]{1,2}".prop_map(String::into_bytes),
        2 => "[0-9]{0,25}".prop_map(String::into_bytes),
        2 => "[!-~]{0,260}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..1100),
    ];
    prop::collection::vec((name, value), 0..8)
}

proptest! {
    #[test]
    fn no_header_set_panics_and_what_is_accepted_can_be_sent_on(headers in any_headers(), front in any::<bool>()) {
        let now = some_moment();
        let guard = if front { Guard::new().front_door() } else { Guard::new() };
        let accepted = check(&guard, headers, now);
        let Ok(context) = accepted else {
            let refusal = accepted.unwrap_err();
            prop_assert_eq!(refusal.to_response().status(), refusal.status());
            return Ok(());
        };
        match context.next_hop() {
            Ok(next) => prop_assert_eq!((next.get(), next.get() < MAX_HOPS), (context.hop() + 1, true)),
            Err(limit) => prop_assert_eq!(limit.hop(), MAX_HOPS - 1),
        }
        let id = context.correlation_id();
        prop_assert!(HeaderValue::from_str(id).is_ok() && CorrelationId::new(id).is_ok());
        if let Some(key) = context.inbound_idempotency_key() {
            prop_assert!(HeaderValue::from_str(key.as_str()).is_ok());
        }
        for (name, value) in context.trace_headers() {
            prop_assert!(!value.is_empty() && value.len() <= 1024, "{}", name);
        }
        prop_assert_ne!(context.time_left(now.monotonic), Some(Duration::ZERO));
    }
}

const HOP: (&str, &str) = ("x-hop-count", "1");

fn kind_of(accepted: Result<CallContext, Refusal>) -> Option<RefusalKind> {
    accepted.err().map(|refusal| refusal.kind())
}

#[test]
fn a_post_or_patch_without_a_key_is_refused_and_no_other_method() {
    let guard = Guard::new();
    for method in [Method::POST, Method::PATCH] {
        assert_eq!(kind_of(guard.accept(&method, [HOP])), Some(RefusalKind::MissingIdempotencyKey));
        assert_eq!(kind_of(guard.accept(&method, [HOP, ("X-Idempotency-Key", "k")])), None);
        assert_eq!(kind_of(guard.clone().without_idempotency_key().accept(&method, [HOP])), None);
    }
    assert_eq!(kind_of(guard.accept("post", [HOP])), Some(RefusalKind::MissingIdempotencyKey));
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "", "POST "] {
        assert_eq!(kind_of(guard.accept(method, [HOP])), None, "{method}");
    }
}

#[test]
fn without_a_demand_for_a_key_one_that_is_there_must_be_valid() {
    let guard = Guard::new().without_idempotency_key();
    let accepted = guard.accept("POST", [HOP, ("x-idempotency-key", "a key")]);
    assert_eq!(kind_of(accepted), Some(RefusalKind::InvalidIdempotencyKey));
}

#[test]
fn the_key_is_read_from_the_header_that_was_named_and_from_no_other() {
    let guard = Guard::new().idempotency_header(HeaderName::from_static("idempotency-key")).unwrap();
    let context = guard.accept("POST", [HOP, ("Idempotency-Key", "k"), ("x-idempotency-key", "")]).unwrap();
    assert_eq!(context.inbound_idempotency_key().unwrap().as_str(), "k");
    let accepted = guard.accept("POST", [HOP, ("x-idempotency-key", "k")]);
    assert_eq!(kind_of(accepted), Some(RefusalKind::MissingIdempotencyKey));
}

#[test]
fn a_header_with_another_meaning_cannot_carry_the_key() {
    for name in
        ["x-hop-count", "authorization", "content-type", "date", "x-amz-date", "connection", "traceparent"]
    {
        let taken = Guard::new().idempotency_header(HeaderName::from_static(name)).unwrap_err();
        assert_eq!(taken.name(), name);
        assert!(taken.to_string().contains(name));
    }
    assert!(Guard::new().idempotency_header(HeaderName::from_static("x-idempotency-key")).is_ok());
}

#[test]
fn a_guard_begins_as_an_inner_one_and_is_told_of_the_front_door() {
    let none: [(&str, &str); 0] = [];
    assert_eq!(kind_of(Guard::default().accept("GET", none)), Some(RefusalKind::MissingHopCount));
    assert_eq!(Guard::new().front_door().accept("GET", none).unwrap().hop(), 0);
    assert_eq!(
        kind_of(Guard::new().front_door().accept("POST", none)),
        Some(RefusalKind::MissingIdempotencyKey)
    );
}

#[test]
fn less_than_the_least_time_is_refused_and_an_unsaid_one_is_not() {
    let now = some_moment();
    let guard = Guard::new().least_time_left(Duration::from_millis(200));
    let budget = |millis| check(&guard, [HOP, ("x-time-budget-ms", millis)], now);
    assert_eq!(kind_of(budget("229")), Some(RefusalKind::NoTimeLeft));
    assert_eq!(budget("230").unwrap().time_left(now.monotonic), Some(Duration::from_millis(200)));
    assert_eq!(kind_of(check(&guard, [HOP], now)), None);
}

#[test]
fn an_event_is_held_to_the_same_demands_in_both_payload_formats() {
    let v1 = |headers: Value| json!({"httpMethod": "POST", "headers": {}, "multiValueHeaders": headers});
    let v2 = |headers: Value| json!({"version": "2.0", "headers": headers, "requestContext": {"http": {"method": "POST"}}});
    let guard = Guard::new();
    let kept = guard.accept_event(&v1(json!({"X-Hop-Count": ["2"], "X-Idempotency-Key": ["k"]}))).unwrap();
    assert_eq!((kept.hop(), kept.inbound_idempotency_key().unwrap().as_str()), (2, "k"));
    let kept = guard.accept_event(&v2(json!({"x-hop-count": "2", "x-idempotency-key": "k"}))).unwrap();
    assert_eq!((kept.hop(), kept.inbound_idempotency_key().unwrap().as_str()), (2, "k"));
    let table = [
        (v1(json!({"x-hop-count": ["2", "2"]})), RefusalKind::InvalidHopCount),
        (v1(json!({"x-hop-count": ["2"], "X-Hop-Count": ["2"]})), RefusalKind::InvalidHopCount),
        (v2(json!({"x-hop-count": "2,2"})), RefusalKind::InvalidHopCount),
        (v1(json!({"x-hop-count": ["8"]})), RefusalKind::HopBudgetExhausted),
        (v2(json!({"x-hop-count": "2"})), RefusalKind::MissingIdempotencyKey),
        (json!({"headers": {"x-hop-count": "2"}}), RefusalKind::MissingIdempotencyKey),
        (v1(json!(null)), RefusalKind::MissingHopCount),
        (json!("junk"), RefusalKind::MissingHopCount),
    ];
    for (event, kind) in table {
        assert_eq!(kind_of(guard.accept_event(&event)), Some(kind), "{event}");
    }
}

#[test]
fn a_junk_hop_count_in_an_event_begins_no_chain_at_the_front_door() {
    let guard = Guard::new().front_door().without_idempotency_key();
    for junk in [json!(null), json!(3), json!([]), json!([8]), json!({})] {
        let event = json!({"httpMethod": "GET", "headers": {"x-hop-count": junk}});
        assert_eq!(kind_of(guard.accept_event(&event)), Some(RefusalKind::InvalidHopCount), "{event}");
    }
}

#[test]
fn a_refusal_s_proxy_reply_is_its_response() {
    let refusal = refused(&[("x-hop-count", "8"), ("x-correlation-id", "order-1")]);
    let (response, reply) = (refusal.to_response(), refusal.to_proxy_reply());
    assert_eq!(reply["body"].as_str().unwrap().as_bytes(), response.body());
    let expected = json!({
        "statusCode": 508,
        "headers": {"content-type": "application/json", "x-should-retry": "false"},
        "body": reply["body"],
        "isBase64Encoded": false,
    });
    assert_eq!(reply, expected);
    assert_eq!(response.headers().len(), 2);
}
