//! Instructions and allocations of one call, counted by valgrind: the same on a busy machine as on an idle one.

use crate::bare::BoxError;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

/// What one call costs.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Instructions outside SHA-256's compression. Valgrind hides the CPU's own instructions for it, so that a program
    /// under valgrind runs the portable code, ten times as long; counted in, it would drown all else.
    pub(crate) instructions: f64,
    /// Instructions of that portable code: how many blocks were hashed.
    pub(crate) sha256: f64,
    /// Heap blocks that were asked for.
    pub(crate) allocations: f64,
    /// Bytes of them.
    pub(crate) bytes: f64,
}

/// Counts the calls of a contender against a server in a process of its own: 2N calls less N calls, over N.
pub(crate) fn cost(contender: &str, calls: usize, server: &Server) -> Result<Cost, BoxError> {
    let (once, twice) = (total(contender, calls, server)?, total(contender, 2 * calls, server)?);
    let per_call = |of: fn(&Cost) -> f64| (of(&twice) - of(&once)) / calls as f64;
    Ok(Cost {
        instructions: per_call(|cost| cost.instructions),
        sha256: per_call(|cost| cost.sha256),
        allocations: per_call(|cost| cost.allocations),
        bytes: per_call(|cost| cost.bytes),
    })
}

/// This program as a server, ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Result<Server, BoxError> {
        let mut child = Command::new(env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the server says nothing")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        let address = address.trim().to_owned();
        Ok(Server { child, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn total(contender: &str, calls: usize, server: &Server) -> Result<Cost, BoxError> {
    let file = env::temp_dir().join(format!("eastwest-callgrind-{}", process::id()));
    let out = format!("--callgrind-out-file={}", file.display());
    valgrind(["--tool=callgrind", &out], contender, calls, server)?;
    let (all, sha256) = instructions(&file)?;
    fs::remove_file(&file)?;
    let told = valgrind(HEAP, contender, calls, server)?;
    // "==7== Total:     1,106 bytes in 12 blocks"
    let line = told.lines().find_map(|line| line.split_once("Total:"));
    let (bytes, blocks) =
        line.and_then(|(_, line)| line.split_once(" bytes in ")).ok_or("dhat gives no total")?;
    Ok(Cost { instructions: all - sha256, sha256, allocations: number(blocks)?, bytes: number(bytes)? })
}

/// Makes the calls under a tool of valgrind; what it has to say.
pub(crate) fn valgrind(
    tool: [&str; 2],
    contender: &str,
    calls: usize,
    server: &Server,
) -> Result<String, BoxError> {
    let told = Command::new("valgrind")
        .args(tool)
        .arg(env::current_exe()?)
        .args(["calls", contender, &calls.to_string(), &server.address])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    if told.status.success() { Ok(words) } else { Err(words.into()) }
}

/// All instructions of a run, and those of SHA-256's compression.
fn instructions(file: &PathBuf) -> Result<(f64, f64), BoxError> {
    let told = Command::new("callgrind_annotate")
        .args(["--auto=no", "--threshold=100", "--show-percs=no"])
        .arg(file)
        .output()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let all = text.lines().find(|line| line.contains("PROGRAM TOTALS"));
    let mut sha256 = 0.0;
    for line in text.lines().filter(|line| line.contains("sha256") && line.contains("compress")) {
        sha256 += number(line).unwrap_or(0.0);
    }
    Ok((number(all.ok_or("callgrind gives no total")?)?, sha256))
}

/// What valgrind is told to look at the heap.
pub(crate) const HEAP: [&str; 2] = ["--tool=dhat", "--dhat-out-file=/dev/null"];

/// The number that a text begins with, as in "8,205,312 (100 %)".
pub(crate) fn number(text: &str) -> Result<f64, BoxError> {
    let word = text.split_whitespace().next().ok_or("a number is missing")?;
    Ok(word.replace(',', "").parse()?)
}
