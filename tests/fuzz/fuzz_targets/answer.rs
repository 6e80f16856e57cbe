//! Feeds anything to the target `answer`.
#![no_main]

#[allow(dead_code, reason = "one target of several")]
#[path = "../../support/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::answer(data));
