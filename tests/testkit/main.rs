//! The test kit as its users see it: what it promises, and that it is short to use.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

mod in_memory;
mod mocks;
mod sdk;
mod stranger;
mod stranger_wiremock;
mod world;

#[test]
fn a_stranger_s_tests_of_three_calls_with_faults_stay_under_sixty_lines() {
    for tests in [include_str!("stranger.rs"), include_str!("stranger_wiremock.rs")] {
        let lines = tests.lines().count();
        assert!(lines < 60, "{lines} lines");
    }
}
