//! The architecture, held by reading the source as text: who may import whom, what policy may not name, how long is too long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The layers from the roof to the ground. A module imports only from layers below its own; within one layer nobody
/// imports anybody. `edge::ambient` stands apart from the rest of `edge`: it is ground to build on.
const LAYERS: [&[&str]; 24] = [
    &["lib"],
    &["threat_model"],
    &["testing"],
    &["builder", "describe", "replay"],
    &["client"],
    &["call"],
    &["template"],
    &["shared"],
    &["dead_letter", "retry_loop"],
    &["teller"],
    &["circuit", "pace", "settings"],
    &["fleet"],
    &["edge", "usage"],
    &["observe"],
    &["metrics_observer", "reply", "response"],
    &["observer"],
    &["error"],
    &["error_kind", "json"],
    &["intent", "story"],
    &["callee"],
    &["context", "network", "target"],
    &["edge::ambient"],
    &["iam", "policy"],
    &["sync"],
];

/// The most lines a file of `src` may have without its tests.
const MOST_LINES: usize = 300;

/// Files that may be longer, each with a ceiling of its own and the reason why it is not split.
const LONGER: [(&str, usize, &str); 6] = [
    ("src/call.rs", 360, "a setter a setting, each with its documentation; one of them sends"),
    ("src/error.rs", 340, "an accessor a fact, each with its documentation; nothing is decided here"),
    ("src/builder.rs", 540, "a setter a setting, each with its documentation; what they do is elsewhere"),
    ("src/policy/attempts.rs", 345, "one decision, from what an attempt showed to what is done next"),
    ("src/policy/breaker.rs", 530, "one state machine: its states are right only together"),
    ("src/policy/classify.rs", 400, "the status table, a row for each class; a table is not torn in two"),
];

/// The most lines the retry loop's `run` may have, so that it is read at one glance.
const MOST_LINES_OF_RUN: usize = 60;

/// Words that have no place in policy, with what they would bring in. A `*` stands for any ending.
const IMPURE_WORDS: [(&str, &str); 15] = [
    ("Mutex", "a lock"),
    ("RwLock", "a lock"),
    ("async", "waiting"),
    ("await", "waiting"),
    ("aws_*", "the network"),
    ("fastrand", "chance"),
    ("getrandom", "chance"),
    ("hyper", "the network"),
    ("rand", "chance"),
    ("reqwest", "the network"),
    ("rustls", "the network"),
    ("thread_rng", "chance"),
    ("tokio", "a runtime"),
    ("tracing", "a subscriber"),
    ("uuid", "chance"),
];

/// Neighbours in a path that have no place in policy, with what they would bring in.
const IMPURE_PATHS: [([&str; 2], &str); 8] = [
    (["std", "env"], "the environment"),
    (["std", "fs"], "a disk"),
    (["std", "io"], "input and output"),
    (["std", "net"], "the network"),
    (["std", "process"], "the environment"),
    (["std", "thread"], "threads"),
    (["Instant", "now"], "a clock"),
    (["SystemTime", "now"], "a clock"),
];

/// Neighbours in a path that only `src/edge/ambient.rs` may name.
const CLOCKS_AND_DICE: [[&str; 2]; 11] = [
    ["Instant", "now"],
    ["SystemTime", "now"],
    ["Uuid", "new_v4"],
    ["Uuid", "now_v7"],
    ["rand", "random"],
    ["rand", "random_range"],
    ["rand", "rng"],
    ["rand", "thread_rng"],
    ["thread", "sleep"],
    ["time", "sleep"],
    ["time", "sleep_until"],
];

const AMBIENT: &str = "src/edge/ambient.rs";

// ---- the promises, held against the real tree ----

#[test]
fn every_arrow_points_down() {
    assert_none(&arrows_that_point_up(&shipped()));
}

#[test]
fn no_two_files_import_each_other_in_a_circle() {
    assert_none(&circles(&shipped()));
}

#[test]
fn policy_names_no_clock_no_dice_no_socket_no_lock_and_nothing_to_wait_for() {
    let sources = shipped();
    let policy = sources.iter().filter(|source| is_policy(source)).count();
    assert!(policy >= 10, "only {policy} files of src/policy were seen: is this the right tree?");
    assert_none(&impurities(&sources));
}

#[test]
fn only_the_ambient_reads_the_clock_throws_the_dice_and_sleeps() {
    assert_none(&clocks_and_dice(&shipped()));
}

#[test]
fn the_test_kit_verifies_with_nothing_of_the_edge_but_the_ambient() {
    assert_none(&borrowed_from_the_edge(&shipped()));
}

#[test]
fn the_retry_loop_is_read_at_one_glance() {
    assert_none(&long_run(&shipped()));
}

#[test]
fn no_file_is_too_long_to_be_read_at_one_sitting() {
    assert_none(&long_files(&shipped(), &LONGER));
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let sources: Vec<_> = ["src", "tests", "examples", "benches"].iter().flat_map(|dir| read(dir)).collect();
    assert_none(&without_a_purpose(&sources));
}

// ---- the tree ----

#[derive(Clone, Debug)]
struct Source {
    /// From the crate's root, with forward slashes.
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text }
    }

    /// The module this file is: empty for `lib.rs`.
    fn module(&self) -> Vec<String> {
        let path = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let path = path.trim_end_matches("/mod");
        if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
    }

    /// The code without comments, literals and whatever is compiled for tests only.
    fn code(&self) -> Vec<Token> {
        without_tests(&tokens(&self.text)).0
    }
}

/// Every Rust file below a directory of the crate. A directory that is not there has none.
fn read(dir: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut open) = (Vec::new(), vec![root.join(dir)]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.push(Source::new(&name, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The files of `src` that are in a build, so without those declared under `#[cfg(test)]`.
fn shipped() -> Vec<Source> {
    without_test_files(read("src"))
}

fn without_test_files(sources: Vec<Source>) -> Vec<Source> {
    let of_tests: Vec<Vec<String>> = sources
        .iter()
        .flat_map(|source| {
            let names = without_tests(&tokens(&source.text)).1;
            names.into_iter().map(|name| [source.module(), vec![name]].concat())
        })
        .collect();
    let is_test = |source: &Source| of_tests.iter().any(|test| source.module().starts_with(test));
    sources.into_iter().filter(|source| !is_test(source)).collect()
}

fn is_policy(source: &Source) -> bool {
    source.module().first().is_some_and(|first| first == "policy")
}

fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

// ---- the checks ----

/// Imports that do not go to a lower layer.
fn arrows_that_point_up(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for (module, path) in sources.iter().map(|source| (source.module(), &source.path)) {
        if rank(&module).is_none() {
            findings.push(format!(
                "{path}: the module `{}` has no rank; write it into LAYERS in tests/architecture.rs, \
                 above all that it imports and below all that imports it",
                layer(&module)
            ));
        }
    }
    for import in imports(sources) {
        let (from, to) = (layer(&import.from), layer(&import.to));
        let (Some(from_rank), Some(to_rank)) = (rank(&import.from), rank(&import.to)) else {
            continue;
        };
        if from != to && to_rank <= from_rank {
            let place = if to_rank == from_rank { "beside" } else { "above" };
            findings.push(format!("{}: `{from}` imports `{to}`, which stands {place} it", import.place()));
        }
    }
    findings
}

/// The layer a module belongs to: its top-level name, but for the ambient, which is ground of its own.
fn layer(module: &[String]) -> String {
    match module {
        [] => "lib".to_owned(),
        [edge, ambient, ..] if edge == "edge" && ambient == "ambient" => "edge::ambient".to_owned(),
        [first, ..] => first.clone(),
    }
}

/// Counted from the roof.
fn rank(module: &[String]) -> Option<usize> {
    let layer = layer(module);
    LAYERS.iter().position(|names| names.contains(&layer.as_str()))
}

/// The shortest circle of imports through each file. That a parent declares its child is no import.
fn circles(sources: &[Source]) -> Vec<String> {
    let mut arrows: BTreeMap<Vec<String>, BTreeMap<Vec<String>, Import>> = BTreeMap::new();
    for import in imports(sources) {
        arrows.entry(import.from.clone()).or_default().entry(import.to.clone()).or_insert(import);
    }
    let (mut findings, mut told) = (Vec::new(), BTreeSet::new());
    for start in arrows.keys() {
        let Some(circle) = way_back(start, &arrows) else {
            continue;
        };
        // A circle is told once, not again from each of its files.
        if told.insert(circle.iter().map(|import| &import.file).collect::<BTreeSet<_>>()) {
            let stops: Vec<_> = circle.iter().map(|import| import.place()).collect();
            findings.push(format!("a circle: {} -> {}", stops.join(" -> "), circle[0].file));
        }
    }
    findings
}

/// The shortest way from a module back to itself.
fn way_back<'a>(
    start: &Vec<String>,
    arrows: &'a BTreeMap<Vec<String>, BTreeMap<Vec<String>, Import>>,
) -> Option<Vec<&'a Import>> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![vec![]]);
    while !open.is_empty() {
        let mut next = Vec::new();
        for way in &open {
            let at = way.last().map_or(start, |import: &&Import| &import.to);
            for import in arrows.get(at).into_iter().flat_map(BTreeMap::values) {
                let longer = [way.as_slice(), &[import]].concat();
                if import.to == *start {
                    return Some(longer);
                }
                if seen.insert(&import.to) {
                    next.push(longer);
                }
            }
        }
        open = next;
    }
    None
}

/// What policy names though it is pure.
fn impurities(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_policy(source)) {
        let code = source.code();
        for token in &code {
            let is = |word: &str| match word.strip_suffix('*') {
                Some(start) => token.text.starts_with(start),
                None => token.text == word,
            };
            for (word, what) in IMPURE_WORDS.iter().filter(|(word, _)| is(word)) {
                findings.push(format!("{}:{}: policy names `{word}`: {what}", source.path, token.line));
            }
        }
        for named in paths(&code) {
            for (pair, what) in IMPURE_PATHS.iter().filter(|(pair, _)| named.has(pair)) {
                let pair = pair.join("::");
                findings.push(format!("{}:{}: policy names `{pair}`: {what}", source.path, named.line));
            }
        }
    }
    findings
}

/// Clocks, dice and sleeps outside the one file that may have them.
fn clocks_and_dice(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path != AMBIENT) {
        for named in paths(&source.code()) {
            for pair in CLOCKS_AND_DICE.iter().filter(|pair| named.has(pair)) {
                findings.push(format!(
                    "{}:{}: `{}` is for {AMBIENT} alone; take an `Ambient`",
                    source.path,
                    named.line,
                    pair.join("::")
                ));
            }
        }
    }
    findings
}

/// What the test kit takes from the code that it has to judge: anything of the edge, and the crate that signs for it.
fn borrowed_from_the_edge(sources: &[Source]) -> Vec<String> {
    let is_kit = |source: &&Source| layer(&source.module()) == "testing";
    let signers = sources.iter().filter(is_kit).flat_map(|source| {
        let signing = paths(&source.code()).into_iter().filter(|named| named.segments[0] == "aws_sigv4");
        signing.map(|named| (format!("{}:{}", source.path, named.line), named.segments))
    });
    let edge = imports(sources)
        .into_iter()
        .filter(|import| layer(&import.from) == "testing" && layer(&import.to) == "edge");
    let edge = edge.map(|import| (import.place(), import.to));
    let tell = |(place, path): (String, Vec<String>)| {
        format!("{place}: the test kit imports `{}`, which it has to judge", path.join("::"))
    };
    edge.chain(signers).map(tell).collect()
}

/// A retry loop whose `run` is too long, or is not there.
fn long_run(sources: &[Source]) -> Vec<String> {
    let Some(source) = sources.iter().find(|source| source.module() == ["retry_loop"]) else {
        return Vec::new();
    };
    let code = source.code();
    let Some(start) = code.windows(2).position(|pair| pair[0].text == "fn" && pair[1].text == "run") else {
        return vec![format!("{}: there is no function `run`", source.path)];
    };
    let end = end_of_item(&code, start);
    let lines = code[end].line - code[start].line + 1;
    if lines <= MOST_LINES_OF_RUN {
        return Vec::new();
    }
    vec![format!(
        "{}:{}: `run` has {lines} lines, {MOST_LINES_OF_RUN} are the most",
        source.path, code[start].line
    )]
}

/// Files that are longer than they may be, and leave to be so that nobody needs any more.
fn long_files(sources: &[Source], longer: &[(&str, usize, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        let code = tokens(&source.text);
        let tests = code.windows(2).position(|pair| pair[0].text == "mod" && pair[1].text == "tests");
        let of_tests = tests.map_or(0, |at| {
            let attribute = code[..at].iter().rposition(|token| token.text == "#").unwrap_or(at);
            code[end_of_item(&code, at)].line - code[attribute].line + 1
        });
        let lines = source.text.lines().count() - of_tests;
        let leave = longer.iter().find(|(path, ..)| *path == source.path);
        let most = leave.map_or(MOST_LINES, |(_, most, _)| *most);
        if lines > most {
            findings.push(format!("{}: {lines} lines without its tests, {most} are the most", source.path));
        }
        if leave.is_some() && lines <= MOST_LINES {
            findings.push(format!("{}: short enough; take it off LONGER", source.path));
        }
    }
    findings
}

/// Files that do not begin with a sentence of documentation.
fn without_a_purpose(sources: &[Source]) -> Vec<String> {
    let says = |source: &Source| {
        let first = source.text.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_some_and(|sentence| !sentence.trim().is_empty())
    };
    let silent = sources.iter().filter(|source| !says(source));
    silent.map(|source| format!("{}:1: begin with `//!` and what the file is for", source.path)).collect()
}

// ---- who imports whom ----

#[derive(Clone, Debug)]
struct Import {
    file: String,
    from: Vec<String>,
    line: usize,
    to: Vec<String>,
}

impl Import {
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// Every path of the crate's own that leads from one file to another.
fn imports(sources: &[Source]) -> Vec<Import> {
    let modules: BTreeSet<_> = sources.iter().map(Source::module).chain([Vec::new()]).collect();
    let mut found = Vec::new();
    for source in sources {
        let from = source.module();
        for named in paths(&source.code()) {
            if let Some(to) = named.leads_to(&from, &modules).filter(|to| *to != from) {
                found.push(Import { file: source.path.clone(), from: from.clone(), line: named.line, to });
            }
        }
    }
    found
}

/// A path as the code names it, with groups spelt out.
#[derive(Clone, Debug)]
struct Named {
    line: usize,
    /// How many modules written in place stand around it.
    inside: usize,
    segments: Vec<String>,
}

impl Named {
    fn has(&self, neighbours: &[&str; 2]) -> bool {
        self.segments.windows(2).any(|pair| pair == neighbours)
    }

    /// The module, so the file, in which the path ends; `None` for another crate's.
    fn leads_to(&self, from: &[String], modules: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
        let first = self.segments.first()?.as_str();
        let supers = self.segments.iter().take_while(|segment| *segment == "super").count();
        let full = match first {
            _ if self.segments.len() < 2 => return None,
            "crate" => self.segments[1..].to_vec(),
            "self" => [from, &self.segments[1..]].concat(),
            "super" if supers <= self.inside => from.to_vec(),
            "super" => {
                let up = from.len().saturating_sub(supers - self.inside);
                [&from[..up], &self.segments[supers..]].concat()
            }
            child if modules.contains(&[from, &[child.to_owned()]].concat()) => {
                [from, &self.segments].concat()
            }
            _ => return None,
        };
        (0..=full.len()).rev().map(|length| full[..length].to_vec()).find(|module| modules.contains(module))
    }
}

/// Every path in the code, in `use` or in place.
fn paths(code: &[Token]) -> Vec<Named> {
    let (mut found, mut braces, mut at) = (Vec::new(), Vec::new(), 0);
    let text = |at: usize| code.get(at).map_or("", |token| token.text.as_str());
    while at < code.len() {
        let before = |back: usize| at.checked_sub(back).map_or("", &text);
        let continues = before(1) == "." && before(2) != "."
            || before(1) == "::" && (is_word(before(2)) || before(2) == ">");
        let is_visibility = before(1) == "in" && before(3) == "pub";
        match text(at) {
            "{" => braces.push(before(2) == "mod"),
            "}" => drop(braces.pop()),
            word if is_word(word) && !continues && !is_visibility => {
                let inside = braces.iter().filter(|is_module| **is_module).count();
                at = read_path(code, at, &[], inside, &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads one path, or one branch of a group, and says where it ends.
fn read_path(code: &[Token], start: usize, trunk: &[String], inside: usize, found: &mut Vec<Named>) -> usize {
    let (mut segments, mut at) = (trunk.to_vec(), start);
    let text = |at: usize| code.get(at).map_or("", |token| token.text.as_str());
    loop {
        // `self` in a group is the trunk itself.
        if trunk.is_empty() || at > start || text(at) != "self" {
            segments.push(text(at).to_owned());
        }
        at += 1;
        if text(at) != "::" || !(is_word(text(at + 1)) || ["{", "*"].contains(&text(at + 1))) {
            break;
        }
        at += 1;
        if text(at) == "{" {
            at += 1;
            while at < code.len() && text(at) != "}" {
                at = if is_word(text(at)) || text(at) == "*" {
                    read_path(code, at, &segments, inside, found)
                } else {
                    at + 1
                };
            }
            return at + 1;
        }
    }
    if text(at) == "as" {
        at += 2;
    }
    found.push(Named { line: code[start].line, inside, segments });
    at
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

// ---- the text, word by word ----

#[derive(Clone, Debug)]
struct Token {
    line: usize,
    /// A word, a mark, or `"` for any literal in quotes.
    text: String,
}

impl Token {
    fn new(line: usize, text: &str) -> Self {
        let text = text.to_owned();
        Self { line, text }
    }
}

/// Splits a source into words and marks; comments vanish, and what literals say does too.
fn tokens(source: &str) -> Vec<Token> {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, source);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = quoted(rest) {
            found.push(Token::new(line, "\""));
            length
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len());
            found.push(Token::new(line, &rest[..length]));
            length
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                found.push(Token::new(line, &rest[..length]));
            }
            length
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// The length of a block comment, with those inside it.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth + 1, 2),
            [b'*', b'/', ..] => (depth - 1, 2),
            _ => (depth, 1),
        };
        (depth, at) = (step.0, at + step.1);
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string or character literal, if one begins here. A lifetime is none.
fn quoted(rest: &str) -> Option<usize> {
    let marked = rest.trim_start_matches(['b', 'c']);
    let mark = rest.len() - marked.len();
    let raw = marked.strip_prefix('r').filter(|_| mark <= 1);
    if let Some(raw) = raw {
        let body = raw.trim_start_matches('#');
        let hashes = raw.len() - body.len();
        if let Some(body) = body.strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = body.find(&end).map_or(body.len(), |at| at + end.len());
            return Some(mark + 1 + hashes + 1 + length);
        }
    }
    let quote = marked.chars().next().filter(|quote| mark <= 1 && ['"', '\''].contains(quote))?;
    let mut inner = marked.char_indices().skip(1);
    if quote == '\'' {
        let (mut next, second) = (inner.clone().skip(1), inner.clone().next()?.1);
        if second != '\\' && next.next()?.1 != '\'' {
            return None;
        }
    }
    while let Some((at, letter)) = inner.next() {
        match letter {
            '\\' => drop(inner.next()),
            _ if letter == quote => return Some(mark + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// The code without the items under `#[cfg(test)]`, and the names of the modules declared so in files of their own.
fn without_tests(code: &[Token]) -> (Vec<Token>, Vec<String>) {
    let (mut kept, mut files, mut at) = (Vec::new(), Vec::new(), 0);
    let text = |at: usize| code.get(at).map_or("", |token| token.text.as_str());
    while at < code.len() {
        if text(at) != "#" || text(at + 1) != "[" {
            kept.push(code[at].clone());
            at += 1;
            continue;
        }
        let end = closing(code, at + 1);
        let attribute: Vec<_> = code[at..end].iter().map(|token| token.text.as_str()).collect();
        let only_tests = attribute.get(2) == Some(&"cfg")
            && attribute.contains(&"test")
            && !attribute.iter().any(|word| ["any", "not"].contains(word));
        if !only_tests {
            kept.extend_from_slice(&code[at..=end.min(code.len() - 1)]);
            at = end + 1;
            continue;
        }
        let mut item = end + 1;
        while text(item) == "#" {
            item = closing(code, item + 1) + 1;
        }
        let end = end_of_item(code, item);
        if text(end) == ";" && text(end.wrapping_sub(2)) == "mod" {
            files.push(text(end - 1).to_owned());
        }
        at = end + 1;
    }
    (kept, files)
}

/// Where the bracket that opens at `at` closes.
fn closing(code: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (here, token) in code.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return here;
        }
    }
    code.len()
}

/// Where the item, field or statement that begins at `start` ends.
fn end_of_item(code: &[Token], start: usize) -> usize {
    let text = |at: usize| code.get(at).map_or("", |token| token.text.as_str());
    let word = match text(start) {
        "pub" if text(start + 1) == "(" => closing(code, start + 1) + 1,
        "pub" => start + 1,
        _ => start,
    };
    let kind = text(word);
    let by_semicolon = ["const", "let", "static", "type", "use"].contains(&kind) && text(word + 1) != "fn";
    let is_item = by_semicolon
        || [
            "async",
            "const",
            "enum",
            "extern",
            "fn",
            "impl",
            "macro_rules",
            "mod",
            "struct",
            "trait",
            "union",
            "unsafe",
        ]
        .contains(&kind);
    let mut at = start;
    while at < code.len() {
        match text(at) {
            ";" => return at,
            "," if !is_item => return at,
            ")" | "]" | "}" => return at - 1,
            "{" if !by_semicolon => return closing(code, at),
            "(" | "[" | "{" => at = closing(code, at),
            _ => {}
        }
        at += 1;
    }
    code.len() - 1
}

// ---- every check bites ----

mod bites {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Vec<Source> {
        let source = |(path, text): &(&str, &str)| Source::new(&format!("src/{path}"), text);
        files.iter().map(source).collect()
    }

    fn only(findings: &[String], expected: &str) {
        assert_eq!(findings, [expected.to_owned()]);
    }

    #[test]
    fn an_import_from_a_higher_layer_is_found_with_its_line() {
        let call = "//! x\n\nuse std::fmt;\nuse crate::client::Shared;\n";
        let found = arrows_that_point_up(&tree(&[("client.rs", ""), ("call.rs", call)]));
        only(&found, "src/call.rs:4: `call` imports `client`, which stands above it");
    }

    #[test]
    fn an_import_between_neighbours_is_found() {
        let found = arrows_that_point_up(&tree(&[
            ("settings.rs", ""),
            ("circuit.rs", "use crate::settings::Settings;"),
        ]));
        only(&found, "src/circuit.rs:1: `circuit` imports `settings`, which stands beside it");
    }

    #[test]
    fn an_import_in_place_in_a_group_or_by_super_is_found_too() {
        let files = [("edge/mod.rs", ""), ("edge/ambient.rs", "")];
        for code in [
            "fn f() { crate::edge::open() }",
            "fn f() -> Vec<crate::edge::Edge> {}",
            "fn f() { X { a, ..crate::edge::x() } }",
            "use crate::{policy::x, edge::{self, Edge}};",
            "use super::super::edge::Edge;",
            "mod inner { use super::super::super::edge::Edge; }",
            "pub(in crate::policy) use crate::edge::Edge;",
            "fn f() { x(\"{\", '{', '\\'', b'{', r#\"\"{\"#); crate::edge::open() }",
            "fn f<'a>(x: &'a str) { crate::edge::ambient::system() }",
            "/* /* */ */ use crate::edge::Edge as E;",
        ] {
            let files = [&files[..], &[("policy/mod.rs", ""), ("policy/x.rs", code)]].concat();
            assert!(!arrows_that_point_up(&tree(&files)).is_empty(), "{code}");
        }
    }

    #[test]
    fn what_is_said_in_comments_literals_and_tests_is_no_import() {
        let files = [("edge/mod.rs", ""), ("policy/mod.rs", "")];
        for code in [
            "//! [`crate::edge::Edge`]",
            "/* crate::edge::Edge */",
            "const X: &str = \"crate::edge::Edge\";",
            "const X: &str = r#\"\"crate::edge::Edge\"#;",
            "#[cfg(test)] mod tests { use crate::edge::Edge; }",
            "#[cfg(test)]\n#[allow(x, reason = \"y\")]\npub(crate) fn f() { crate::edge::open() }",
            "#[cfg(all(test, feature = \"testing\"))] use crate::edge::{Edge, Seen};",
            "struct X { #[cfg(test)] edge: crate::edge::Edge, other: u8 }",
            "pub(in crate::edge) struct X;",
            "mod inner { use super::X; }",
        ] {
            let files = [&files[..], &[("policy/x.rs", code)]].concat();
            assert_none(&arrows_that_point_up(&tree(&files)));
            assert_none(&circles(&tree(&files)));
        }
    }

    #[test]
    fn code_after_and_beside_tests_is_still_read() {
        for code in [
            "#[cfg(test)] mod tests { fn f() {} }\nuse crate::edge::Edge;",
            "#[cfg(test)] use std::{fmt, io};\nuse crate::edge::Edge;",
            "#[cfg(test)] mod tests;\nuse crate::edge::Edge;",
            "#[cfg(test)] pub(crate) const fn f() -> u8 { 1 }\nuse crate::edge::Edge;",
            "struct X { #[cfg(test)] y: u8 }\nuse crate::edge::Edge;",
            "#[cfg(not(test))]\nuse crate::edge::Edge;",
            "#[cfg(any(test, feature = \"testing\"))]\nuse crate::edge::Edge;",
        ] {
            let files = [("edge/mod.rs", ""), ("policy/x.rs", code)];
            assert_eq!(arrows_that_point_up(&tree(&files)).len(), 1, "{code}");
        }
    }

    #[test]
    fn the_ambient_is_ground_for_all_but_policy() {
        let context = ("context/mod.rs", "use crate::edge::ambient::system;");
        let ambient = ("edge/ambient.rs", "use crate::policy::moment::Moment;");
        let policy = ("policy/moment.rs", "");
        assert_none(&arrows_that_point_up(&tree(&[context, ambient, policy])));
        let context = ("context/mod.rs", "use crate::edge::target::Target;");
        let found = arrows_that_point_up(&tree(&[context, ("edge/target.rs", "")]));
        only(&found, "src/context/mod.rs:1: `context` imports `edge`, which stands above it");
        let policy = ("policy/moment.rs", "use crate::edge::ambient::system;");
        let found = arrows_that_point_up(&tree(&[ambient, policy]));
        only(&found, "src/policy/moment.rs:1: `policy` imports `edge::ambient`, which stands above it");
    }

    #[test]
    fn the_crate_root_may_be_imported_by_nobody() {
        let found = arrows_that_point_up(&tree(&[("lib.rs", ""), ("call.rs", "use crate::Error;")]));
        only(&found, "src/call.rs:1: `call` imports `lib`, which stands above it");
    }

    #[test]
    fn a_module_without_a_rank_is_told_to_get_one() {
        let found =
            arrows_that_point_up(&tree(&[("orphan/mod.rs", "use crate::policy::x;"), ("policy/mod.rs", "")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("src/orphan/mod.rs: the module `orphan` has no rank"), "{found:?}");
    }

    #[test]
    fn a_circle_of_files_is_found_once_and_told_as_a_way() {
        let found = circles(&tree(&[
            ("policy/a.rs", "use crate::policy::b::B;"),
            ("policy/b.rs", "\nuse super::c::C;"),
            ("policy/c.rs", "fn f() { super::a::f() }"),
        ]));
        only(
            &found,
            "a circle: src/policy/a.rs:1 -> src/policy/b.rs:2 -> src/policy/c.rs:1 -> src/policy/a.rs",
        );
    }

    #[test]
    fn a_parent_that_only_declares_its_child_is_in_no_circle_with_it() {
        let child = ("edge/order.rs", "use crate::edge::Seen;");
        assert_none(&circles(&tree(&[("edge/mod.rs", "pub mod order;"), child])));
        for parent in ["pub use self::order::Order;", "pub use order::Order;", "fn f() { order::new() }"] {
            assert_eq!(circles(&tree(&[("edge/mod.rs", parent), child])).len(), 1, "{parent}");
        }
    }

    #[test]
    fn an_impure_name_in_policy_is_found_whatever_it_is_wrapped_in() {
        for code in [
            "async fn f() {}",
            "fn f() { x.await }",
            "use std::sync::{Arc, Mutex};",
            "use std::sync::RwLock as Lock;",
            "use std::{time::Instant, net};",
            "fn f() { std::time::Instant::now() }",
            "fn f() { SystemTime::now() }",
            "use tokio::time;",
            "use aws_sigv4::sign;",
            "fn f() { let x = reqwest::get(y); }",
            "fn f() { rand::random() }",
            "fn f() -> uuid::Uuid {}",
        ] {
            assert_eq!(impurities(&tree(&[("policy/x.rs", code)])).len(), 1, "{code}");
            assert_none(&impurities(&tree(&[("edge/x.rs", code)])));
        }
    }

    #[test]
    fn a_name_that_only_contains_an_impure_one_is_no_finding() {
        let code =
            "fn random_wait(operand: Asynchronous, awaits: u8) { now(Instant::MAX, operand.aws) } // tokio";
        assert_none(&impurities(&tree(&[("policy/x.rs", code)])));
    }

    #[test]
    fn a_clock_dice_or_sleep_outside_the_ambient_is_found() {
        for code in [
            "fn f() { Instant::now() }",
            "fn f() { std::time::SystemTime::now() }",
            "fn f() { tokio::time::sleep(x).await }",
            "use tokio::{net::TcpStream, time::{sleep, Duration}};",
            "use tokio::time; fn f() { time::sleep(x) }",
            "fn f() { std::thread::sleep(x) }",
            "use rand::{RngExt, rng};",
            "fn f() { rand::thread_rng() }",
            "fn f() { Uuid::new_v4() }",
        ] {
            assert_eq!(clocks_and_dice(&tree(&[("edge/transport.rs", code)])).len(), 1, "{code}");
            assert_none(&clocks_and_dice(&tree(&[("edge/ambient.rs", code)])));
            let in_tests = format!("#[cfg(test)] mod tests {{ {code} }}");
            assert_none(&clocks_and_dice(&tree(&[("edge/transport.rs", &in_tests)])));
        }
    }

    #[test]
    fn a_test_kit_that_borrows_the_edge_is_found() {
        let files = [("edge/ambient.rs", ""), ("edge/sigv4.rs", "")];
        let fair = ("testing/gateway.rs", "use crate::edge::ambient::Ambient;");
        assert_none(&borrowed_from_the_edge(&tree(&[&files[..], &[fair]].concat())));
        let unfair = ("testing/verifier.rs", "use crate::edge::sigv4::sign;\nuse aws_sigv4::http_request;");
        let found = borrowed_from_the_edge(&tree(&[&files[..], &[unfair]].concat()));
        let expected = [
            "src/testing/verifier.rs:1: the test kit imports `edge::sigv4`, which it has to judge",
            "src/testing/verifier.rs:2: the test kit imports `aws_sigv4::http_request`, which it has to judge",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_loop_of_one_line_too_many_is_found_and_so_is_a_missing_one() {
        let of_lines = |lines: usize| format!("async fn run() {{\n{}}}\n", "    {}\n".repeat(lines - 2));
        assert_none(&long_run(&tree(&[("retry_loop.rs", &of_lines(60))])));
        let found = long_run(&tree(&[("retry_loop.rs", &of_lines(61))]));
        only(&found, "src/retry_loop.rs:1: `run` has 61 lines, 60 are the most");
        let found = long_run(&tree(&[("retry_loop.rs", "fn running() {}")]));
        only(&found, "src/retry_loop.rs: there is no function `run`");
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = "//! x\n".repeat(301);
        only(
            &long_files(&tree(&[("a.rs", &long)]), &[]),
            "src/a.rs: 301 lines without its tests, 300 are the most",
        );
        let tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "//! x\n".repeat(300), "\n".repeat(99));
        let declared_first = format!("#[cfg(test)]\nmod tests;\n{long}");
        only(
            &long_files(&tree(&[("a.rs", &declared_first)]), &[]),
            "src/a.rs: 301 lines without its tests, 300 are the most",
        );
        assert_none(&long_files(&tree(&[("a.rs", &tests)]), &[]));
        assert_none(&long_files(&tree(&[("a.rs", &long)]), &[("src/a.rs", 301, "why")]));
    }

    #[test]
    fn a_leave_to_be_long_has_an_end_and_does_not_outlive_its_need() {
        let long = "//! x\n".repeat(302);
        let leave = [("src/a.rs", 301, "why")];
        only(
            &long_files(&tree(&[("a.rs", &long)]), &leave),
            "src/a.rs: 302 lines without its tests, 301 are the most",
        );
        only(
            &long_files(&tree(&[("a.rs", "//! x\n")]), &leave),
            "src/a.rs: short enough; take it off LONGER",
        );
    }

    #[test]
    fn a_file_that_does_not_say_first_what_it_is_for_is_found() {
        for text in
            ["", "\n//! A file.", "// A file.", "//!", "//!  ", "#![allow(x)]\n//! A file.", "use std::fmt;"]
        {
            let found = without_a_purpose(&tree(&[("a.rs", text)]));
            only(&found, "src/a.rs:1: begin with `//!` and what the file is for");
        }
        assert_none(&without_a_purpose(&tree(&[("a.rs", "//! What a failed call tells its caller.")])));
    }

    #[test]
    fn a_file_declared_for_tests_only_is_not_shipped() {
        let parent = "#[cfg(test)]\n#[allow(x)]\nmod wire_tests;\nmod gateway;";
        let files = [("testing/mod.rs", parent), ("testing/wire_tests.rs", ""), ("testing/gateway.rs", "")];
        let kept: Vec<_> = without_test_files(tree(&files)).into_iter().map(|source| source.path).collect();
        assert_eq!(kept, ["src/testing/mod.rs", "src/testing/gateway.rs"]);
    }
}
