//! Real faults over real sockets: many callers, a proxy that does harm, credentials that rotate, a gateway that is
//! restarted. Nothing is lost, nothing doubled, no task stuck, nothing leaked, and both ends count the same.
//!
//! `eastwest-lane-soak [--seconds N] [--seed N]`: two minutes and a seed of the clock's if nothing is said.

mod callee;
mod caller;
mod exchange;
mod fault;
mod judge;
mod ledger;
mod message;
mod proxy;
mod record;
mod report;
mod run;
mod stage;
mod tally;
mod time;
mod vault;
mod watch;

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

fn main() -> ExitCode {
    let (seconds, seed) = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("soak lane: {wrong}\nusage: eastwest-lane-soak [--seconds N] [--seed N]");
            return ExitCode::FAILURE;
        }
    };
    println!("soak lane: {seconds} s, seed {seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run::run(Duration::from_secs(seconds), seed)),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(report) => report.print(),
        Err(error) => {
            eprintln!("soak lane: FAILED to run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Seconds and seed.
fn arguments(mut given: impl Iterator<Item = String>) -> Result<(u64, u64), String> {
    let since = time::wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (mut seconds, mut seed) = (120, since.as_millis() as u64);
    while let Some(name) = given.next() {
        let place = match name.as_str() {
            "--seconds" => &mut seconds,
            "--seed" => &mut seed,
            other => return Err(format!("{other} is not known")),
        };
        let value = given.next().and_then(|value| value.parse().ok());
        *place = value.ok_or_else(|| format!("{name} wants a number"))?;
    }
    if seconds < SHORTEST {
        return Err(format!("at least {SHORTEST} s are wanted: shorter runs show nothing"));
    }
    Ok((seconds, seed))
}

const SHORTEST: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_seed_are_read_and_what_is_not_known_is_refused() {
        let read = |given: &[&str]| arguments(given.iter().map(|word| (*word).to_owned()));
        assert_eq!(read(&["--seed", "7", "--seconds", "30"]), Ok((30, 7)));
        assert_eq!(read(&[]).unwrap().0, 120);
        for wrong in [&["--seed"][..], &["--seconds", "x"], &["--seconds", "19"], &["30"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
