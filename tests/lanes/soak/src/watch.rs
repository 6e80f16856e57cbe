//! Watches from outside the runtime: whether a task is stuck, and what the process holds.

use crate::time::now;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When each task began what it is at; the thread that looks at it; and what the process held, from time to time.
pub struct Watch {
    board: Arc<Board>,
    thread: JoinHandle<Vec<Sample>>,
}

/// What the tasks write on.
pub struct Board {
    since: Vec<Mutex<Option<(Instant, u64)>>>,
    over: AtomicBool,
}

/// What the process held at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Duration,
    pub resident: u64,
    pub files: u64,
}

impl Watch {
    /// Begins to watch. A task that is at one thing for longer than `longest` ends the process with 1.
    pub fn start(tasks: usize, longest: Duration) -> Watch {
        let since = (0..tasks).map(|_| Mutex::default()).collect();
        let board = Arc::new(Board { since, over: AtomicBool::new(false) });
        let seen = Arc::clone(&board);
        Watch { board, thread: std::thread::spawn(move || look(&seen, longest)) }
    }

    pub fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Stops, and gives what was sampled.
    pub fn stop(self) -> Vec<Sample> {
        self.board.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Board {
    pub fn begins(&self, task: usize, reference: u64) {
        *self.since[task].lock().unwrap() = Some((now(), reference));
    }

    pub fn ends(&self, task: usize) {
        *self.since[task].lock().unwrap() = None;
    }

    /// The tasks that are at one thing since before `earliest`.
    fn stuck(&self, now: Instant, longest: Duration) -> Vec<String> {
        let long = |(task, since): (usize, &Mutex<Option<(Instant, u64)>>)| {
            let (began, reference) = (*since.lock().unwrap())?;
            let time = now.saturating_duration_since(began);
            (time > longest).then(|| format!("task {task} is at call {reference} since {time:?}"))
        };
        self.since.iter().enumerate().filter_map(long).collect()
    }
}

fn look(board: &Board, longest: Duration) -> Vec<Sample> {
    let (start, mut samples) = (now(), Vec::new());
    loop {
        let stuck = board.stuck(now(), longest);
        if !stuck.is_empty() {
            eprintln!("soak lane: STUCK:\n{}", stuck.join("\n"));
            std::process::exit(1);
        }
        samples.push(Sample { at: now().duration_since(start), resident: resident(), files: files() });
        if board.over.load(Ordering::Relaxed) {
            return samples;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// How many KiB of this process are in memory.
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}

/// How many files and sockets this process holds open.
pub fn files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map(|entries| entries.count() as u64).unwrap_or_default()
}

/// The medians of the first and the last third of what was measured after the warm-up.
pub fn thirds(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> Option<(u64, u64)> {
    let end = samples.last()?.at;
    let warm = (end / 5).min(Duration::from_secs(60));
    let values: Vec<u64> = samples.iter().filter(|sample| sample.at >= warm).map(of).collect();
    let third = values.len() / 3;
    Some((median(values.get(..third)?)?, median(values.get(values.len() - third..)?)?))
}

fn median(values: &[u64]) -> Option<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, resident: u64) -> Sample {
        Sample { at: Duration::from_secs(second), resident, files: 7 }
    }

    #[test]
    fn the_thirds_are_those_after_the_warm_up_and_single_peaks_do_not_move_them() {
        let mut samples: Vec<_> = (0..100).map(|second| sample(second, 1_000 + second)).collect();
        samples[5].resident = 1_000_000;
        samples[90].resident = 1_000_000;
        assert_eq!(thirds(&samples, |sample| sample.resident), Some((1_033, 1_087)));
        assert_eq!(thirds(&samples, |sample| sample.files), Some((7, 7)));
        assert_eq!(thirds(&[], |sample| sample.files), None);
    }

    #[test]
    fn a_task_that_is_at_one_thing_for_too_long_is_found_and_one_that_ended_it_is_not() {
        let watch = Watch::start(2, Duration::from_secs(3_600));
        let board = watch.board();
        board.begins(0, 7);
        board.begins(1, 8);
        board.ends(1);
        let later = now() + Duration::from_secs(10);
        assert!(board.stuck(later, Duration::from_secs(60)).is_empty());
        let stuck = board.stuck(later, Duration::from_secs(5));
        assert_eq!(stuck.len(), 1);
        assert!(stuck[0].starts_with("task 0 is at call 7"), "{stuck:?}");
        assert!(!watch.stop().is_empty());
    }

    #[test]
    fn this_process_holds_memory_and_files() {
        assert!(resident() > 0 && files() > 2);
    }
}
