//! Sends generated requests through the client to the embedded gateway, and writes down what arrived, a JSON line each.

mod case;
mod path;
mod record;
mod send;
mod text;

use case::{Case, Service, any_case};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: eastwest-lane-botocore FILE")?;
    let mut out = BufWriter::new(File::create(file)?);
    let mut number = 0;
    for (service, cases) in CASES {
        for case in generate(service, cases)? {
            number += 1;
            let arrived = send::send(&case)
                .await
                .map_err(|error| told(number, &case, &*error))?;
            writeln!(out, "{}", record::line(number, &case, &arrived))?;
        }
    }
    out.flush()?;
    println!("{number} requests were sent, and accepted by the embedded gateway");
    Ok(())
}

/// The same cases on every run.
fn generate(service: Service, cases: usize) -> Result<Vec<Case>, Box<dyn Error>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &SEED);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = any_case(service);
    (0..cases)
        .map(|_| {
            Ok(strategy
                .new_tree(&mut runner)
                .map_err(|reason| reason.to_string())?
                .current())
        })
        .collect()
}

/// What went wrong with which case; its body is only bytes.
fn told(number: usize, case: &Case, error: &dyn Error) -> String {
    let length = case.body.len();
    let case = Case {
        body: Vec::new(),
        ..case.clone()
    };
    format!("request {number}: {error}\nwith a body of {length} bytes: {case:#?}")
}

const CASES: [(Service, usize); 3] = [
    (Service::ExecuteApi, 480),
    (Service::Lambda, 120),
    (Service::VpcLattice, 120),
];
const SEED: [u8; 32] = *b"eastwest, signed by two hands ..";
