//! A client's settings as data are those that hold.

use crate::rig::builder;
use eastwest::dead_letter::FileSink;
use eastwest::policy::breaker::BreakerSettings;
use eastwest::policy::retry_budget::RetryBudget;
use eastwest::{Backoff, Profile, ServiceClient};
use serde_json::json;
use std::time::Duration;

const URL: &str = "https://abc123.execute-api.eu-central-1.amazonaws.com/prod";

fn bare() -> eastwest::ClientBuilder {
    ServiceClient::builder(URL).region("eu-central-1").static_credentials(
        "AKIDEXAMPLE",
        "secret-mark",
        Some("token-mark"),
    )
}

#[test]
fn by_default_they_are_the_standard_profiles() {
    let told = bare().build().unwrap().describe();
    let standard = Profile::standard();
    assert_eq!((told.profile, told.base_url.as_str()), ("standard", URL));
    assert_eq!((told.region.as_str(), told.service.as_str()), ("eu-central-1", "execute-api"));
    assert_eq!(told.total_timeout, standard.total_timeout());
    assert_eq!(told.attempt_timeout, standard.attempt_timeout());
    assert_eq!(told.max_attempts, standard.max_attempts());
    assert_eq!(told.retry_budget, Some(standard.retry_budget()));
    assert_eq!(told.breaker, BreakerSettings::default());
    assert_eq!(told.idempotency_header, "x-idempotency-key");
    assert!(told.announces_time_budget && !told.has_dead_letter_sink);
}

#[test]
fn single_values_are_told_in_the_place_of_the_profiles() {
    let second = Duration::from_secs(1);
    let told = bare()
        .profile(Profile::background())
        .total_timeout(second * 7)
        .attempt_timeout(second)
        .backoff(Backoff::new(second, second * 2, second * 3))
        .max_attempts(4)
        .retry_budget(RetryBudget::off())
        .breaker(BreakerSettings::default().with_failures_in_row(9))
        .idempotency_header("idempotency-key")
        .without_time_budget_header()
        .build()
        .unwrap()
        .describe();
    assert_eq!((told.profile, told.total_timeout, told.attempt_timeout), ("background", second * 7, second));
    // A connection is not waited for longer than the attempt it is made for.
    assert_eq!(told.connect_timeout, second);
    assert_eq!(
        (told.transient_base, told.throttled_base, told.backoff_cap),
        (second, second * 2, second * 3)
    );
    assert_eq!((told.max_attempts, told.retry_budget), (4, None));
    assert_eq!((told.breaker.failures_in_row(), told.idempotency_header.as_str()), (9, "idempotency-key"));
    assert!(!told.announces_time_budget);
    // 4 x 1 s + 2 s + 3 s + 3 s.
    assert_eq!(told.attempts_and_waits, second * 12);
    assert!(told.total_may_cut_attempts());
}

#[test]
fn limits_are_told_as_they_were_set() {
    let limit = eastwest::RateLimit::per_minute(90).burst(7);
    let told = bare().rate_limit(limit.clone()).calls_in_flight(3).build().unwrap().describe();
    assert_eq!((told.rate_limit.as_ref(), told.calls_in_flight), (Some(&limit), Some(3)));
    assert!(!told.draws_from_shared_limit && !told.has_fleet_breaker);
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["rate_limit"], json!({"attempts": 90, "period_ms": 60_000, "burst": 7}));
    assert!(serde_json::to_value(bare().build().unwrap().describe()).unwrap()["rate_limit"].is_null());
}

#[test]
fn the_longest_call_is_the_total_and_a_second_for_its_letter() {
    for profile in [Profile::interactive(), Profile::standard(), Profile::background()] {
        let told = bare().profile(profile).build().unwrap().describe();
        assert_eq!(told.longest_call(), profile.total_timeout());
        assert!(told.total_may_cut_attempts());
    }
    let path = std::env::temp_dir().join(format!("eastwest-described-{}.jsonl", std::process::id()));
    let told = bare().dead_letter_sink(FileSink::open(&path).unwrap()).build().unwrap().describe();
    std::fs::remove_file(path).unwrap();
    assert_eq!(told.longest_call(), Duration::from_secs(11));
    let once = bare().max_attempts(1).build().unwrap().describe();
    assert!(!once.total_may_cut_attempts());
}

#[test]
fn as_json_it_is_flat_in_milliseconds_and_without_a_secret() {
    let told = builder("http://127.0.0.1:9/prod").build().unwrap().describe();
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["base_url"], "http://127.0.0.1:9/prod");
    assert_eq!(json["total_timeout_ms"], json!(u64::try_from(told.total_timeout.as_millis()).unwrap()));
    assert_eq!(json["breaker"]["open_for_ms"], 2_000);
    assert_eq!(json["breaker"]["growth_from"], json!(null), "it never grows by default");
    let text = serde_json::to_string(&bare().build().unwrap().describe()).unwrap();
    assert!(!text.contains("mark") && !text.contains("AKID"), "{text}");
}
