//! A retry storm, simulated with the code that ships: what a client does to the account's token bucket while a callee fails.
//!
//! `cargo run --release --example retry_storm` plays seeds 1 to 20, prints the tables and the worst of each claim, and ends
//! with 0 only if every claim holds. `--quick` plays one seed; `--seed N` says which; `--svg PATH` writes the picture.
//! The same seed gives the same bytes, on any machine.
//!
//! A request comes in at the front door and is served by a chain of functions, each of which calls the next through the
//! gateway; the last of them fails. *Tokens* are what the fleet asked the gateway for, had or refused, divided by what the
//! same requests draw without a retry: one at the front door and one at each hop. The sandboxes of all functions but the
//! last are reserved; it and the public share the rest of the account's pool of executions, as many as there are sandboxes.
// ci-args: --quick
// ci-seconds: 240
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::indexing_slicing, reason = "what is indexed is a table of the simulation's own")]

pub(crate) mod claims;
pub(crate) mod client;
pub(crate) mod crew;
pub(crate) mod dice;
pub(crate) mod fleet;
pub(crate) mod foreign;
pub(crate) mod function;
pub(crate) mod gateway;
pub(crate) mod hop;
pub(crate) mod picture;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod scenario;
pub(crate) mod tally;
pub(crate) mod wire;
pub(crate) mod world;

use claims::{CHAPTERS, Claim, Claims};
use client::Recipe;
use plotters::style::RGBColor;
use scenario::{Fault, Scenario};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use tally::Tally;
use world::simulate;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let asked = Asked::read(std::env::args().skip(1))?;
    if let Some(path) = &asked.svg {
        std::fs::write(path, picture(asked.seeds[0])?)?;
        println!("the picture is in {path}");
    }
    for table in tables(asked.seeds[0], asked.quick) {
        print!("{table}");
    }
    let worst = worst(&asked.seeds);
    print!("{}", report::claims(&worst));
    let broken = worst.iter().filter(|claim| !claim.holds()).count();
    println!("\n{} claims, {broken} of them broken; seeds {:?}", worst.len(), asked.seeds);
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the command line asks for.
struct Asked {
    quick: bool,
    seeds: Vec<u64>,
    svg: Option<String>,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
        let (mut quick, mut seed, mut svg) = (false, None, None);
        while let Some(word) = words.next() {
            let value =
                |words: &mut dyn Iterator<Item = String>| words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => quick = true,
                "--seed" => seed = Some(value(&mut words)?.parse().map_err(|_| "a seed is a whole number")?),
                "--svg" => svg = Some(value(&mut words)?),
                _ => return Err(format!("{word} is not known: --quick, --seed N, --svg PATH are")),
            }
        }
        let seeds = match (seed, quick) {
            (Some(seed), _) => vec![seed],
            (None, true) => vec![1],
            (None, false) => (1..=20).collect(),
        };
        Ok(Asked { quick, seeds, svg })
    }
}

/// The tables of one seed.
fn tables(seed: u64, quick: bool) -> Vec<String> {
    let storm = Scenario::standard();
    let table = |title: &str, recipes: &[Recipe], scenario: &Scenario| {
        let runs = crew::each(recipes.len(), |n| (recipes[n], simulate(&recipes[n], scenario, seed)));
        report::clients(title, &runs)
    };
    if quick {
        return vec![table(
            "10,000 sandboxes, 3 hops, 75 % load, 30 s of all 500",
            &[Recipe::NONE, Recipe::NAIVE, Recipe::OURS],
            &storm,
        )];
    }
    let all: Vec<Recipe> = Recipe::LADDER.into_iter().chain(Recipe::WITHOUT).collect();
    let mut tables = vec![table("10,000 sandboxes, 3 hops, 75 % load, 30 s of all 500", &all, &storm)];
    let few = [Recipe::NONE, Recipe::NAIVE, Recipe::OURS, Recipe::FLEET];
    for fault in [
        Fault::Throws,
        Fault::Hang(Duration::from_secs(3)),
        Fault::Hang(Duration::from_secs(30)),
        Fault::BrownOut(30),
        Fault::BrownOut(70),
    ] {
        tables.push(table(&format!("the same, {fault}"), &few, &storm.fault(fault)));
    }
    tables.push(table("the same, a blip of 1 s", &few, &storm.lasting(1)));
    for percent in [1, 5, 10] {
        let long = storm.fleet_of(300).fault(Fault::Independent(percent)).lasting(600);
        tables.push(table(&format!("300 sandboxes, 600 s of {percent} % independent 500"), &few, &long));
    }
    for sandboxes in [300, 1_000] {
        tables.push(table(&format!("{sandboxes} sandboxes, all 500"), &few, &storm.fleet_of(sandboxes)));
    }
    for hops in [1, 2, 4] {
        tables.push(table(&format!("10,000 sandboxes, {hops} hops, all 500"), &few, &storm.hops(hops)));
    }
    let short = Scenario { sandbox_lives: Some(Duration::from_secs(30)), ..storm };
    tables.push(table("sandboxes that live 30 s, all 500", &[Recipe::OURS], &short));
    tables
}

/// Each claim with the value of the seed that comes nearest to breaking it.
pub(crate) fn worst(seeds: &[u64]) -> Vec<Claim> {
    let played = crew::each(seeds.len() * CHAPTERS.len(), |n| {
        Claims::of(n % CHAPTERS.len(), seeds[n / CHAPTERS.len()])
    });
    let mut worst: Vec<Claim> = Vec::new();
    for claim in played.into_iter().flatten() {
        match worst.iter_mut().find(|known| known.what == claim.what) {
            Some(known) => *known = known.clone().worse(claim),
            None => worst.push(claim),
        }
    }
    worst
}

/// The picture of one seed.
pub(crate) fn picture(seed: u64) -> Result<String, Box<dyn Error>> {
    let storm = Scenario::standard();
    let recipes = [Recipe::NAIVE, Recipe::NONE, Recipe::OURS];
    let runs: Vec<Tally> = crew::each(recipes.len(), |n| simulate(&recipes[n], &storm, seed));
    let names = [
        ("naive, 3 retries a hop", RGBColor(200, 60, 45)),
        ("no retries", RGBColor(165, 165, 165)),
        ("this client", RGBColor(30, 100, 180)),
    ];
    let curves: Vec<_> = names
        .into_iter()
        .zip(&runs)
        .map(|((name, colour), tally)| picture::Curve { name, tally, colour })
        .collect();
    picture::draw(&storm, &curves)
}
