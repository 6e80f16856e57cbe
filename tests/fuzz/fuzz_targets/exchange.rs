//! Feeds anything to the target `exchange`.
#![no_main]

#[allow(dead_code, reason = "one target of several")]
#[path = "../../support/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::exchange(data));
