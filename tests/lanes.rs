//! The proofs that need parts from elsewhere. A plain `cargo test` names them and does not run them; the script of each lane
//! installs what it needs and does.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn lanes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lanes")
}

/// Runs the script of a lane, with its own output.
fn run(lane: &str) {
    let status = Command::new(lanes().join(lane).join("run")).status().expect("the lane has a script");
    assert!(status.success(), "{lane}");
}

#[test]
#[ignore = "SKIPPED: it needs botocore from PyPI; tests/lanes/botocore/run installs and runs it"]
fn botocore_recomputes_every_signature() {
    run("botocore");
}

#[test]
#[ignore = "SKIPPED: it needs valgrind and an optimized build; tests/lanes/cost/run builds and runs it"]
fn a_call_costs_no_more_than_its_ceilings() {
    run("cost");
}

#[test]
#[ignore = "SKIPPED: it builds lambda_http; tests/lanes/lambda_http/run builds and runs it"]
fn lambda_http_takes_the_guard_s_layer() {
    run("lambda_http");
}

#[test]
#[ignore = "SKIPPED: it needs nginx; tests/lanes/nginx/run installs and runs it"]
fn nginx_stands_in_front_of_the_embedded_gateway() {
    run("nginx");
}

#[test]
#[ignore = "SKIPPED: it builds OpenTelemetry's SDK; tests/lanes/telemetry/run builds and runs it"]
fn opentelemetry_and_a_recorder_see_a_call_with_its_attempts() {
    run("telemetry");
}

#[test]
#[ignore = "SKIPPED: it needs redis and Powertools from PyPI; tests/lanes/powertools/run installs and runs it"]
fn powertools_commits_exactly_once() {
    run("powertools");
}

#[test]
#[ignore = "SKIPPED: it needs redis-server; tests/lanes/redis/run installs and runs it"]
fn redis_is_what_a_fleet_shares() {
    run("redis");
}

#[test]
#[ignore = "SKIPPED: it takes two minutes; tests/lanes/soak/run runs it, and deep for an hour"]
fn under_real_faults_nothing_is_lost_doubled_stuck_or_leaked() {
    run("soak");
}

#[test]
fn every_lane_is_named_here() {
    // A packaged crate has no lanes.
    let Ok(entries) = std::fs::read_dir(lanes()) else { return };
    let there: BTreeSet<String> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let named = ["botocore", "cost", "lambda_http", "nginx", "powertools", "redis", "soak", "telemetry"]
        .map(str::to_owned);
    assert_eq!(there, BTreeSet::from(named));
}
