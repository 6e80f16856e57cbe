//! What it costs to sign one further attempt, against `aws-sigv4` asked for the same.
//!
//! The body's hash is given to both, as it is from the second attempt on. `README.md` beside this file has the figures.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench reads the clock, prints, and may panic"
)]

#[path = "support/bare.rs"]
mod bare;
#[path = "support/pairs.rs"]
mod pairs;

use aws_sigv4::http_request::SignableBody;
use aws_smithy_runtime_api::client::identity::Identity;
use bare::BoxError;
use eastwest::AttemptSigner;
use http::{HeaderMap, HeaderValue};
use pairs::Spread;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Instant, SystemTime};

fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Run by `cargo test`, and not by `cargo bench`: only that it runs is of interest.
    let quick =
        !arguments.iter().any(|word| word == "--bench") || arguments.iter().any(|word| word == "--quick");
    let (rounds, signatures) = if quick { (21, 20) } else { (1_001, 20) };
    println!("{rounds} rounds of {signatures} signatures each; medians of paired ratios and their quartiles");
    println!("| body | its hash, once a call | `aws-sigv4` | eastwest | eastwest to `aws-sigv4` |");
    println!("|---|---|---|---|---|");
    for (size, name) in [(0, "none"), (1 << 10, "1 KiB"), (1 << 16, "64 KiB"), (1 << 20, "1 MiB")] {
        let one = Attempt::of(size)?;
        let blocks = pairs::interleave(3, rounds, |contender| match contender {
            0 => nanos(1, || _ = black_box(Sha256::digest(&one.body))),
            1 => nanos(signatures, || drop(black_box(one.bare().expect("it can be signed")))),
            _ => nanos(signatures, || drop(black_box(one.ours().expect("it can be signed")))),
        });
        let [hash, bare, ours] = [&blocks[0], &blocks[1], &blocks[2]];
        let median = |of: &Vec<f64>| Spread::of(of.iter().copied()).median;
        println!(
            "| {name} | {:.0} ns | {:.0} ns | {:.0} ns | {} |",
            median(hash),
            median(bare),
            median(ours),
            Spread::of_ratios(ours, bare)
        );
    }
    Ok(())
}

/// What both signers are asked to sign.
struct Attempt {
    body: Vec<u8>,
    hash: String,
    unsigned: HeaderMap,
    identity: Identity,
    signer: AttemptSigner,
}

impl Attempt {
    fn of(size: usize) -> Result<Attempt, BoxError> {
        let body = vec![b'a'; size];
        let mut hash = String::new();
        for byte in Sha256::digest(&body) {
            write!(hash, "{byte:02x}")?;
        }
        Ok(Attempt {
            signer: AttemptSigner::new(BASE, (PATH, &[]), bare::REGION, bare::credentials(), &body)?,
            unsigned: unsigned(),
            identity: bare::credentials().into(),
            body,
            hash,
        })
    }

    /// All headers of the attempt, by `aws-sigv4`.
    fn bare(&self) -> Result<HeaderMap, BoxError> {
        let mut headers = self.unsigned.clone();
        let body = SignableBody::Precomputed(self.hash.clone());
        let signed = bare::instructions(&self.identity, URL, &headers, body, SystemTime::now())?;
        bare::apply(signed, &mut headers)?;
        Ok(headers)
    }

    /// The same, by the signer of this crate.
    fn ours(&self) -> Result<HeaderMap, BoxError> {
        Ok(self.signer.sign(&self.unsigned, SystemTime::now())?)
    }
}

/// The headers of a call's second attempt, before it is signed.
fn unsigned() -> HeaderMap {
    let lines = [
        ("content-type", "application/json"),
        ("x-attempt-count", "2"),
        ("x-correlation-id", "6b3a1e6e-51a4-4f5c-8f3e-0d5c8d1f9a10"),
        ("x-hop-count", "1"),
        ("x-idempotency-key", "1f0a7c52-9d8b-4c61-b1f7-3a54e0c2d7be"),
        ("x-time-budget-ms", "4000"),
    ];
    lines
        .into_iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

/// The mean time of one run of `work`, in nanoseconds.
fn nanos(runs: usize, mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..runs {
        work();
    }
    begun.elapsed().as_secs_f64() * 1e9 / runs as f64
}

const BASE: &str = "https://orders.example.test/prod";
const PATH: &str = "/orders";
const URL: &str = "https://orders.example.test/prod/orders";
