//! A writer of dead letters that is killed loses no letter that it was told is safe. A process of its own is killed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use eastwest::dead_letter::{DeadLetter, DeadLetterSink, FileSink};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILE: &str = "EASTWEST_CRASH_FILE";
const WRITER: &str = "EASTWEST_CRASH_WRITER";
/// How many letters a writer would write if it were let live, and after how many it is killed.
const LETTERS: usize = 1_000;
const KILLED_AFTER: [usize; 4] = [1, 100, 400, 499];

fn letter(id: &str) -> DeadLetter {
    let json = serde_json::json!({
        "schema_version": 1, "id": id, "created_at_ms": 1_790_000_000_000_u64, "base_url": "https://orders.example.test",
        "method": "POST", "path": "/orders", "body": "eyJza3UiOiJBLTcifQ==", "correlation_id": "c-1", "hop": 1,
        "may_have_committed": false, "message": "x".repeat(500),
    });
    serde_json::from_value(json).unwrap()
}

#[tokio::test]
#[ignore = "run by the test below, which kills it"]
async fn child_that_writes_until_it_is_killed() {
    let sink = FileSink::open(PathBuf::from(std::env::var_os(FILE).unwrap())).unwrap();
    let writer = std::env::var(WRITER).unwrap();
    for number in 0..LETTERS {
        let id = format!("{writer}-{number}");
        sink.store(letter(&id)).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {id}").unwrap();
        out.flush().unwrap();
    }
}

/// Lets a writer work, kills it, and answers the ids that it was told are safe.
fn killed_after(count: usize, writer: usize, file: &Path) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(FILE, file)
        .env(WRITER, writer.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The test harness may have begun the line.
    let id = |line: String| line.split_once("acknowledged ").map(|(_, id)| id.to_owned());
    let mut acknowledged = lines.filter_map(id);
    let mut ids: Vec<_> = acknowledged.by_ref().take(count).collect();
    child.kill().unwrap();
    // What it said before it died counts too.
    ids.extend(acknowledged);
    child.wait().unwrap();
    ids
}

#[tokio::test]
async fn a_writer_that_is_killed_loses_no_letter_that_was_acknowledged() {
    let file = std::env::temp_dir().join(format!("eastwest-crash-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let mut acknowledged = BTreeSet::new();
    for (writer, count) in KILLED_AFTER.into_iter().enumerate() {
        let ids = killed_after(count, writer, &file);
        assert!(ids.len() >= count, "the writer ended by itself after {} letters", ids.len());
        acknowledged.extend(ids);
    }
    assert!(acknowledged.len() >= KILLED_AFTER.into_iter().sum());
    // The file goes on after the crashes, too.
    let sink = FileSink::open(&file).unwrap();
    sink.store(letter("after")).await.unwrap();
    acknowledged.insert("after".to_owned());
    let listing = sink.list().await.unwrap();
    let found: BTreeSet<_> = listing.letters.into_iter().map(|letter| letter.id).collect();
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // At the most, each crash tore the one line that was being written.
    assert!(listing.skipped_lines <= KILLED_AFTER.len(), "{}", listing.skipped_lines);
    std::fs::remove_file(file).unwrap();
}
