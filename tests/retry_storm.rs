//! The simulated storm: the same seed gives the same bytes, nothing gets lost in it, and it agrees with arithmetic.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/retry_storm/main.rs"]
mod retry_storm;

use eastwest::callee;
use eastwest::policy::outcome::Outcome;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{CallContext, ServiceClient};
use retry_storm::claims::{Claim, Limit, Unit, closed_form};
use retry_storm::client::Recipe;
use retry_storm::scenario::{BucketSize, Fault, Scenario};
use retry_storm::wire::{self, Own, Wires};
use retry_storm::world::simulate;
use retry_storm::{hop, picture, report};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A tenth of the standard fleet on a tenth of its bucket.
fn small() -> Scenario {
    Scenario::standard().bucket(BucketSize::TENTH).lasting(10)
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    let table = |seed| {
        let rows = [Recipe::NAIVE, Recipe::FLEET].map(|recipe| (recipe, simulate(&recipe, &small(), seed)));
        report::clients("a storm", &rows)
    };
    assert_eq!(table(7), table(7));
    assert_ne!(table(7), table(8));
    assert_eq!(simulate(&Recipe::OURS, &small(), 7), simulate(&Recipe::OURS, &small(), 7));
}

#[test]
fn the_picture_in_the_tree_is_the_one_that_is_drawn() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/retry_storm.svg");
    let drawn = picture(1).unwrap();
    assert!(
        fs::read_to_string(kept).unwrap() == drawn,
        "draw it again: cargo run --release --example retry_storm -- --quick --svg benches/retry_storm.svg"
    );
}

#[test]
fn every_request_ends_exactly_once_whatever_fails_and_whoever_retries() {
    let three = Duration::from_secs(3);
    for fault in
        [Fault::Refuses, Fault::Throws, Fault::Hang(three), Fault::BrownOut(30), Fault::Independent(10)]
    {
        for recipe in
            [Recipe::NONE, Recipe::NAIVE, Recipe::JITTER, Recipe::FINAGLE, Recipe::OURS, Recipe::FLEET]
        {
            let tally = simulate(&recipe, &small().fault(fault), 3);
            assert!(tally.requests.len() > 2_000, "hardly anything came");
            let once = tally.requests.iter().all(|request| request.endings == 1);
            assert!(once, "{fault}, {}: a request ended twice, or never", recipe.name);
        }
    }
}

#[test]
fn the_gateway_gives_no_more_than_its_burst_and_its_rate() {
    let scenario = small();
    let tally = simulate(&Recipe::NAIVE, &scenario, 5);
    let given: Vec<u64> = tally
        .seconds
        .iter()
        .map(|s| s.fleet_offered - s.fleet_refused + s.public_offered - s.public_refused)
        .collect();
    let refused: u64 = tally.seconds.iter().map(|s| s.fleet_refused + s.public_refused).sum();
    assert!(refused > 1_000, "the bucket was never empty");
    // The last second holds what came after it, too.
    for from in 0..given.len() - 1 {
        for to in from + 1..given.len() {
            let most = scenario.bucket.burst + scenario.bucket.rate * (to - from) as u64;
            let sum: u64 = given[from..to].iter().sum();
            assert!(sum <= most, "{sum} tokens from second {from} to {to}");
        }
    }
}

#[test]
fn without_a_fault_every_request_succeeds_and_draws_a_token_a_hop_and_one_at_the_door() {
    let scenario = small().fault(Fault::Independent(0));
    for recipe in [Recipe::NAIVE, Recipe::OURS, Recipe::FLEET] {
        let tally = simulate(&recipe, &scenario, 9);
        assert!(tally.requests.iter().all(|request| request.succeeded), "{}", recipe.name);
        let offered: u64 = tally.seconds.iter().map(|s| s.fleet_offered).sum();
        assert_eq!(offered, 4 * tally.requests.len() as u64, "{}", recipe.name);
    }
}

#[test]
fn the_tokens_approach_the_closed_form_for_every_length_of_the_chain() {
    for hops in 1..=4 {
        let scenario = Scenario::standard().fleet_of(1_000).hops(hops);
        let tokens = simulate(&Recipe::MARKER, &scenario, 11).tokens();
        let expected = closed_form(&scenario);
        assert!((tokens - expected).abs() < 0.03, "{hops} hops: {tokens} and not {expected}");
    }
}

#[test]
fn a_claim_that_does_not_hold_is_seen_and_the_worse_of_two_seeds_is_kept() {
    let claim = |limit, value, seed| Claim { what: "tokens".into(), limit, unit: Unit::Times, value, seed };
    assert!(claim(Limit::AtMost(1.1), 1.1, 1).holds() && !claim(Limit::AtMost(1.1), 1.11, 1).holds());
    assert!(claim(Limit::AtLeast(3.5), 3.5, 1).holds() && !claim(Limit::AtLeast(3.5), 3.4, 1).holds());
    assert!(!claim(Limit::Above(0.0), 0.0, 1).holds());
    assert!(!claim(Limit::AtMost(1.1), f64::NAN, 1).holds());
    let worse = |limit| claim(limit, 1.0, 1).worse(claim(limit, 2.0, 2)).seed;
    assert_eq!([worse(Limit::AtMost(0.0)), worse(Limit::AtLeast(0.0)), worse(Limit::Above(0.0))], [2, 1, 1]);
    assert!(report::claims(&[claim(Limit::AtMost(1.1), 1.2, 4)]).contains("DOES NOT HOLD"));
}

#[test]
fn without_the_marker_the_public_pays_for_the_same_storm() {
    let unmarked = Recipe { marker: false, ..Recipe::MARKER };
    let scenario = Scenario::standard().bucket(BucketSize::TENTH);
    let [unmarked, marked] = [unmarked, Recipe::MARKER].map(|r| simulate(&r, &scenario, 1).public_lost());
    assert!(unmarked > 0.01, "without the marker the public loses {unmarked}");
    assert!(marked <= 0.001, "with it {marked}");
}

#[tokio::test]
async fn a_simulated_function_answers_for_its_failed_call_as_a_real_one_does() {
    let wires = Wires::new();
    for (reply, forced_open) in [
        (Reply::lambda_rejected(), false),
        (Reply::lambda_failed(), false),
        (Reply::integration_timeout(), false),
        (Reply::throttled(), false),
        (Reply::ok(), true),
    ] {
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials("AKIDEXAMPLE", "secret", None)
            .region("eu-central-1")
            .manual_clock(&clock)
            .route("POST", "/orders", [reply])
            .start()
            .await
            .unwrap();
        let client = ServiceClient::builder(gateway.base_url())
            .region("eu-central-1")
            .static_credentials("AKIDEXAMPLE", "secret", None)
            .ambient(clock.clone())
            .build()
            .unwrap();
        if forced_open {
            client.breaker().force_open();
        }
        let failure = client.post(&CallContext::root(), "/orders").json(&["A-7"]).send().await.unwrap_err();
        let real = failure.to_response();
        let own = Own::of(failure.kind(), failure.retry_after(), true);
        let Outcome::Answered(simulated) = wires.outcome(wire::Reply::Own(own)) else { panic!("no answer") };
        assert_eq!(simulated.status, real.status(), "{failure}");
        for name in ["x-should-retry", "retry-after", "content-type"] {
            assert_eq!(simulated.headers.get(name), real.headers().get(name), "{name} of {failure}");
        }
    }
}

#[test]
fn a_simulated_guard_takes_off_as_much_time_as_the_real_one() {
    let accepted = |millis: u128| {
        callee::accept([("x-hop-count", "1"), ("x-time-budget-ms", &millis.to_string())]).is_ok()
    };
    let way_back = hop::WAY_BACK.as_millis();
    assert!(!accepted(way_back) && accepted(way_back + 1));
}
