//! What a run comes to: a table, and what does not hold.

use crate::caller::Office;
use crate::fault::Fault;
use crate::ledger::Sums;
use crate::run::TASKS;
use crate::stage::Seen;
use crate::watch::{Sample, thirds};
use eastwest::Usage;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What was counted, by whom.
pub struct Report {
    pub seed: u64,
    pub time: Duration,
    pub sums: Sums,
    /// What all clients together say that they drew, and what each says.
    pub usage: Usage,
    pub of_each: Vec<Usage>,
    /// Calls that nobody ended.
    pub open: usize,
    pub seen: Seen,
    pub loads: u64,
    pub connections: u64,
    pub ended_unread: u64,
    pub faults_drawn: Vec<(Fault, u64)>,
    pub samples: Vec<Sample>,
    /// At most so many were to be left when all had ended, and so many were.
    pub files: (u64, u64),
    pub tasks: (u64, u64),
    pub office: Arc<Office>,
}

impl Report {
    /// Prints the table and what does not hold.
    pub fn print(&self) -> ExitCode {
        self.table();
        let mut found = self.office.ledger.faults();
        let more = self.sums.faults.saturating_sub(found.len() as u64);
        if more > 0 {
            found.push(format!("and {more} more"));
        }
        found.extend(self.unequal());
        found.extend(self.not_flat());
        found.extend(self.not_seen());
        if found.is_empty() {
            let seconds = self.time.as_secs();
            println!("soak lane: nothing lost, doubled, stuck or leaked in {seconds} s, seed {}", self.seed);
            return ExitCode::SUCCESS;
        }
        for what in &found {
            println!("soak lane: FAILED (seed {}): {what}", self.seed);
        }
        ExitCode::FAILURE
    }

    /// What is counted at both ends is the same.
    fn unequal(&self) -> Vec<String> {
        let (sums, seen, tally) = (&self.sums, &self.seen, &self.office.tally);
        let failures: u64 = tally.failures().values().flatten().sum();
        let refused: u64 = tally.failures().get("CircuitOpen").into_iter().flatten().sum();
        let each = |of: fn(&Usage) -> u64| self.of_each.iter().map(of).sum::<u64>();
        let usage = &self.usage;
        let equal = [
            ("calls begun, and ended", sums.opened, sums.ok + sums.failed + sums.dropped),
            ("calls open at the end, and none", self.open as u64, 0),
            ("answers in the ledger, and at the callers", sums.ok, tally.count("answered")),
            ("errors in the ledger, and at the callers", sums.failed, failures),
            ("drops in the ledger, and at the callers", sums.dropped, tally.count("dropped")),
            ("commits at the callee, and in the calls", sums.commits, sums.commits_judged),
            (
                "attempts at the proxy, and in the calls",
                sums.arrived,
                sums.arrived_told + sums.arrived_dropped,
            ),
            ("requests let through, and at the callee", seen.exchanges - seen.unsigned, sums.reached),
            (
                "requests let through, and its commits, repeats, reads and refusals",
                sums.reached,
                sums.sorted(),
            ),
            ("calls in the ledger, and in the usage", sums.opened, usage.calls),
            (
                "calls that the open circuit refused, at the callers and in the usage",
                refused,
                usage.refused_by_circuit,
            ),
            ("attempts of the account, and of its clients", usage.attempts, each(|usage| usage.attempts)),
            ("tokens of the account, and of its clients", usage.tokens, each(|usage| usage.tokens)),
            ("doubts of the account, and of its clients", usage.in_doubt, each(|usage| usage.in_doubt)),
        ];
        let ordered = [
            ("tokens drawn, at most the requests at the gateway", usage.tokens, seen.exchanges),
            (
                "requests at the gateway, at most the tokens drawn and those in doubt",
                seen.exchanges,
                usage.tokens + usage.in_doubt,
            ),
            ("attempts told as answered, at most the tokens drawn", sums.told_answered, usage.tokens),
            ("attempts told, at most those in the usage", sums.told, usage.attempts),
            ("attempts at the proxy, at most those in the usage", sums.arrived, usage.attempts),
            ("attempts told as answered, at most those that arrived", sums.told_answered, sums.arrived_told),
            (
                "attempts that arrived, at most those told without the never sent",
                sums.arrived_told,
                sums.told - sums.told_never_sent,
            ),
            ("requests at the gateway, at most those at the proxy", seen.exchanges, sums.arrived),
        ];
        let unequal = equal.iter().filter(|(_, one, other)| one != other);
        let disordered = ordered.iter().filter(|(_, less, more)| less > more);
        unequal
            .chain(disordered)
            .map(|(what, one, other)| format!("counters differ: {what}: {one}, {other}"))
            .collect()
    }

    /// Neither memory nor files grow from the first third after the warm-up to the last.
    fn not_flat(&self) -> Vec<String> {
        let mut found = Vec::new();
        let measured = [
            ("KiB in memory", thirds(&self.samples, |sample| sample.resident), MEMORY),
            ("open files", thirds(&self.samples, |sample| sample.files), FILES),
        ];
        for (what, medians, (percent, extra)) in measured {
            match medians {
                Some((first, last)) if last <= first + first * percent / 100 + extra => {}
                Some((first, last)) => found.push(format!("GROWN: {what}, from {first} to {last}")),
                None => found.push(format!("{what}: not measured")),
            }
        }
        for (what, (most, left)) in [("files", self.files), ("tasks of the runtime", self.tasks)] {
            if left > most {
                found.push(format!("LEAKED: {left} {what} after all had ended, {most} were to be expected"));
            }
        }
        found
    }

    /// A run that met none of what it is for shows nothing. A short one need not.
    fn not_seen(&self) -> Vec<String> {
        if self.time < Duration::from_secs(100) {
            return Vec::new();
        }
        let (sums, seen, tally) = (&self.sums, &self.seen, &self.office.tally);
        let reasons = tally.reasons();
        let reason = |name: &str, place: usize| reasons.get(name).map_or(0, |counts| counts[place]);
        let mut counts = vec![
            ("answers", sums.ok),
            ("errors", sums.failed),
            ("dropped calls", sums.dropped),
            ("retries", tally.count("retries")),
            ("stored answers given again", sums.replays),
            ("keys found in progress", sums.in_progress),
            ("errors of calls that were carried out", sums.commits_in_doubt),
            ("restarts", seen.restarts),
            ("rotations", seen.rotations),
            ("refused signatures", seen.unsigned),
            ("refused ports", seen.refusals),
            ("open breakers", reason("circuit open", 0)),
            ("empty retry budgets", reason("retry budget exhausted", 0)),
            ("wide clients that used up their attempts", reason("attempts exhausted", 1)),
        ];
        counts.extend(self.faults_drawn.iter().map(|(fault, count)| (fault.name(), *count)));
        let mut found: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count == 0)
            .map(|(what, _)| format!("the run shows nothing of: {what}"))
            .collect();
        for name in ["circuit open", "retry budget exhausted"] {
            if reason(name, 1) > 0 {
                found.push(format!("a wide client gave up for: {name}"));
            }
        }
        found
    }

    fn resident_over_time(&self) -> Vec<u64> {
        let every = (self.samples.len() / 20).max(1);
        self.samples.iter().step_by(every).map(|sample| sample.resident).collect()
    }

    fn table(&self) {
        let (sums, seen, tally) = (&self.sums, &self.seen, &self.office.tally);
        let row = |what: &str, count: u64| println!("{count:>10}  {what}");
        println!("\n{:>10}  what, with {TASKS} tasks in {} s", "count", self.time.as_secs());
        row("calls", sums.opened);
        row("  answered", sums.ok);
        row("  failed", sums.failed);
        for (kind, [default, wide]) in tally.failures() {
            row(
                &format!("    {kind} ({default} of clients as they come, {wide} of wide ones)"),
                default + wide,
            );
        }
        for (reason, [default, wide]) in tally.reasons() {
            row(&format!("    given up: {reason} ({default}, {wide})"), default + wide);
        }
        row("  dropped by their caller", sums.dropped);
        row("attempts told", sums.told);
        row("  answered", sums.told_answered);
        row("  never sent", sums.told_never_sent);
        row("  retries among them", tally.count("retries"));
        row("attempts in the usage, those of dropped calls among them", self.usage.attempts);
        row("  tokens of the account surely drawn", self.usage.tokens);
        row("  in doubt", self.usage.in_doubt);
        row("attempts seen by the proxy", sums.arrived);
        row("  of calls that were dropped", sums.arrived_dropped);
        row("connections accepted by the proxy", self.connections);
        row("  ended before a byte was read", self.ended_unread);
        for (fault, count) in &self.faults_drawn {
            row(&format!("  {}", fault.name()), *count);
        }
        row("requests seen by the gateway", seen.exchanges);
        row("  refused by their signature", seen.unsigned);
        row("requests that the gateway could not read", seen.malformed);
        row("connections accepted by the gateway", seen.connections);
        row("commits", sums.commits);
        row("  of calls that failed, told as in doubt", sums.commits_in_doubt);
        row("stored answers given again", sums.replays);
        row("keys found in progress", sums.in_progress);
        row("restarts of the gateway", seen.restarts);
        row("refusals of the port", seen.refusals);
        row("rotations of the credentials", seen.rotations);
        row("loads of credentials", self.loads);
        let (memory, files) =
            (thirds(&self.samples, |sample| sample.resident), thirds(&self.samples, |sample| sample.files));
        println!("KiB in memory, medians of the first and the last third: {memory:?}");
        println!("KiB in memory, from beginning to end: {:?}", self.resident_over_time());
        println!("open files, the same as medians: {files:?}; after all had ended: {}", self.files.1);
        println!("tasks of the runtime after all had ended: {}\n", self.tasks.1);
    }
}

/// By so many per cent, and so many more, the median of the last third may be over that of the first: the weather and the
/// gateway's record, which each restart empties, move both. A file that a call leaves open shows in any case: none may be
/// left when all has ended.
const MEMORY: (u64, u64) = (10, 8 * 1_024);
const FILES: (u64, u64) = (50, 64);
