//! What the fuzzer was given and what it found, played again: every file of `tests/data/corpus/` at its target.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

#[path = "support/targets.rs"]
mod targets;

use proptest::prelude::*;
use std::fs;
use std::path::Path;

#[test]
fn nothing_in_the_corpus_breaks_a_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    for (name, play) in targets::TARGETS {
        let entries: Vec<_> =
            fs::read_dir(root.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(entries.len() >= 5, "{name} has a corpus of {}", entries.len());
        for path in entries {
            eprintln!("{}", path.display());
            play(&fs::read(&path).unwrap());
        }
    }
}

#[test]
fn every_corpus_has_its_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    for entry in fs::read_dir(root).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(targets::TARGETS.iter().any(|(target, _)| name == *target), "{name:?} is nobody's");
    }
}

/// The seeds with a few bytes of them changed: what a machine without the fuzzer can do in a moment.
#[test]
fn nothing_near_the_corpus_breaks_a_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    for (name, play) in targets::TARGETS {
        let seeds: Vec<Vec<u8>> = fs::read_dir(root.join(name))
            .unwrap()
            .map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .filter(|seed| !seed.is_empty())
            .collect();
        let damage = (any::<prop::sample::Index>(), any::<u8>());
        let case = (prop::sample::select(seeds), prop::collection::vec(damage, 1..6));
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
        proptest::test_runner::TestRunner::new(config)
            .run(&case, |(mut bytes, damages)| {
                for (at, byte) in damages {
                    let length = bytes.len();
                    bytes[at.index(length)] = byte;
                }
                play(&bytes);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}
