//! What the simulation must show, each with its limit: the reasons of the shipped defaults.

use super::client::Recipe;
use super::scenario::{BucketSize, Fault, Scenario};
use super::tally::Tally;
use super::world::simulate;
use std::time::Duration;

/// A statement about a run, and what the run says to it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) what: String,
    pub(crate) limit: Limit,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Above(f64),
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Count,
    /// A part of one, told as percent.
    Part,
    /// A difference of two parts, told in points of a percent.
    Points,
    Seconds,
    Times,
}

impl Claim {
    pub(crate) fn holds(&self) -> bool {
        match self.limit {
            Limit::Above(limit) => self.value > limit,
            Limit::AtLeast(limit) => self.value >= limit,
            Limit::AtMost(limit) => self.value <= limit,
        }
    }

    /// The one of two seeds' values that is nearer to breaking the claim, or further beyond.
    pub(crate) fn worse(self, other: Claim) -> Claim {
        let other_is_worse = match self.limit {
            Limit::Above(_) | Limit::AtLeast(_) => other.value < self.value,
            Limit::AtMost(_) => other.value > self.value,
        };
        if other_is_worse { other } else { self }
    }
}

/// A seed, and the claims that have been made of it.
pub(crate) struct Claims {
    seed: u64,
    made: Vec<Claim>,
}

impl Claims {
    /// Plays the runs of a chapter, of [`CHAPTERS`] many, and says what they showed.
    pub(crate) fn of(chapter: usize, seed: u64) -> Vec<Claim> {
        let mut claims = Claims { seed, made: Vec::new() };
        CHAPTERS[chapter](&mut claims);
        claims.made
    }

    fn play(&mut self, recipe: &Recipe, scenario: &Scenario) -> Tally {
        let tally = simulate(recipe, scenario, self.seed);
        let not_once = tally.requests.iter().filter(|request| request.endings != 1).count();
        self.say("requests that did not end exactly once", Limit::AtMost(0.0), Unit::Count, not_once as f64);
        tally
    }

    fn say(&mut self, what: impl Into<String>, limit: Limit, unit: Unit, value: f64) {
        self.made.push(Claim { what: what.into(), limit, unit, value, seed: self.seed });
    }

    fn recovers(&mut self, tally: &Tally, scenario: &Scenario) {
        let what = format!("{}: back to 99 % of normal success", scenario.fault);
        self.say(what, Limit::AtMost(5.0), Unit::Seconds, tally.recovery());
    }
}

/// Parts that can be played at the same time.
pub(crate) const CHAPTERS: [fn(&mut Claims); 13] = [
    the_storm,
    the_order,
    |claims| at_load(claims, 60),
    |claims| at_load(claims, 90),
    small_regions,
    throws,
    |claims| brown_out(claims, 30, Limit::AtLeast(-0.01)),
    |claims| brown_out(claims, 70, Limit::Above(0.0)),
    short_hang,
    long_hang,
    blip,
    small_fleets,
    independent,
];

fn the_storm(claims: &mut Claims) {
    let scenario = Scenario::standard();
    let (ours, naive) = (claims.play(&Recipe::OURS, &scenario), claims.play(&Recipe::NAIVE, &scenario));
    claims.say("tokens over the fault", Limit::AtMost(1.10), Unit::Times, ours.tokens());
    claims.say("tokens in its first 5 s", Limit::AtMost(1.30), Unit::Times, ours.tokens_at_first());
    claims.say("tokens over the fault, naive", Limit::AtLeast(3.5), Unit::Times, naive.tokens());
    claims.say(
        "sandbox-seconds a failing request",
        Limit::AtMost(0.6),
        Unit::Seconds,
        ours.seconds_a_failure(),
    );
    claims.recovers(&ours, &scenario);
    public(claims, "75 % load", (&ours, &naive));
}

/// The order of the table of clients, and the closed form; on a tenth of the stage, for there are many of them.
fn the_order(claims: &mut Claims) {
    let scenario = Scenario::standard().bucket(BucketSize::TENTH);
    let [jitter, naive, caps, budget, marker, breaker] =
        [Recipe::JITTER, Recipe::NAIVE, Recipe::CAPS, Recipe::BUDGET, Recipe::MARKER, Recipe::BREAKER]
            .map(|recipe| claims.play(&recipe, &scenario).tokens());
    claims.say(
        "tokens that five jittered retries add to naive",
        Limit::Above(0.0),
        Unit::Times,
        jitter - naive,
    );
    for recipe in [Recipe::AWS, Recipe::AWS_2026, Recipe::FINAGLE] {
        let change = claims.play(&recipe, &scenario).tokens() / caps - 1.0;
        claims.say(
            format!("{}: change of the tokens", recipe.name),
            Limit::AtMost(0.02),
            Unit::Points,
            change.abs(),
        );
    }
    for (what, more, less) in [
        ("caps by status", naive, caps),
        ("the retry budget", caps, budget),
        ("the marker and the deadline", budget, marker),
        ("the breaker", marker, breaker),
    ] {
        claims.say(format!("tokens saved by {what}"), Limit::Above(0.0), Unit::Times, more - less);
    }
    let off = marker - closed_form(&scenario);
    claims.say("tokens without breaker, off the closed form", Limit::AtMost(0.02), Unit::Times, off.abs());
}

/// `1 + min(a - 1, capacity * g / T) / (H + 1)`: what the marker and a budget that is not refilled leave of a storm. `a`
/// attempts, `g` seconds between two calls of a sandbox, a fault of `T` seconds, `H` hops.
pub(crate) fn closed_form(scenario: &Scenario) -> f64 {
    let terms = Recipe::OURS.terms();
    let capacity = f64::from(eastwest::Profile::standard().retry_budget());
    let emptied = capacity * scenario.seconds_between_calls() / scenario.fault_lasts.as_secs_f64();
    1.0 + f64::from(terms.max_attempts - 1).min(emptied) / (scenario.hops + 1) as f64
}

fn at_load(claims: &mut Claims, percent: u32) {
    let scenario = Scenario::standard().load(percent);
    let (ours, naive) = (claims.play(&Recipe::OURS, &scenario), claims.play(&Recipe::NAIVE, &scenario));
    public(claims, &format!("{percent} % load"), (&ours, &naive));
}

fn small_regions(claims: &mut Claims) {
    for percent in [60, 75, 90] {
        let scenario = Scenario::standard().bucket(BucketSize::SMALL).load(percent);
        let (ours, naive) = (claims.play(&Recipe::OURS, &scenario), claims.play(&Recipe::NAIVE, &scenario));
        public(claims, &format!("2,500/1,250, {percent} % load"), (&ours, &naive));
    }
    // Four times the sandboxes, each as idle as that makes it: the budgets are fuller for the traffic.
    let scenario = Scenario { sandboxes: 10_000, ..Scenario::standard().bucket(BucketSize::SMALL) };
    let ours = claims.play(&Recipe::OURS, &scenario).public_lost();
    let what = "public traffic lost, 2,500/1,250, 75 % load, 10,000 sandboxes";
    claims.say(what, Limit::AtMost(0.001), Unit::Part, ours);
}

fn public(claims: &mut Claims, r#where: &str, (ours, naive): (&Tally, &Tally)) {
    claims.say(format!("public traffic lost, {where}"), Limit::AtMost(0.001), Unit::Part, ours.public_lost());
    let naive = naive.public_refused();
    claims.say(format!("public traffic refused, {where}, naive"), Limit::AtLeast(0.30), Unit::Part, naive);
}

fn throws(claims: &mut Claims) {
    let scenario = Scenario::standard().fault(Fault::Throws);
    let ours = claims.play(&Recipe::OURS, &scenario);
    claims.say("all 502: tokens over the fault", Limit::AtMost(1.10), Unit::Times, ours.tokens());
    claims.recovers(&ours, &scenario);
}

/// The fleet-wide breaker must not make of a brown-out an outage either.
fn brown_out(claims: &mut Claims, percent: u64, limit: Limit) {
    let scenario = Scenario::standard().fault(Fault::BrownOut(percent));
    let [ours, fleet, none] = [Recipe::OURS, Recipe::FLEET, Recipe::NONE].map(|r| claims.play(&r, &scenario));
    for (whose, tally) in [("", &ours), (", fleet-wide breaker", &fleet)] {
        let what = format!("brown-out to {percent} %: success above no retries{whose}");
        claims.say(what, limit, Unit::Points, tally.success() - none.success());
    }
    claims.recovers(&ours, &scenario);
}

/// The last hung execution ends with the fault or 3 s later, so that much longer it may take to recover.
fn short_hang(claims: &mut Claims) {
    let scenario = Scenario::standard().fault(Fault::Hang(Duration::from_secs(3)));
    let ours = claims.play(&Recipe::OURS, &scenario);
    claims.say("hang of 3 s: tokens over the fault", Limit::AtMost(1.0), Unit::Times, ours.tokens());
    claims.say("hang of 3 s: public traffic lost", Limit::AtMost(0.0), Unit::Part, ours.public_lost());
    // Without the breaker, whose part it is not.
    let late = Recipe { deadline: false, ..Recipe::MARKER };
    let [late, bounded] = [late, Recipe::MARKER].map(|r| claims.play(&r, &scenario).tokens());
    claims.say("hang of 3 s: tokens saved by the deadline", Limit::Above(0.1), Unit::Times, late - bounded);
    let after = ours.recovery() - 3.0;
    claims.say(
        "hang of 3 s: back to 99 %, after the last hung execution",
        Limit::AtMost(5.0),
        Unit::Seconds,
        after,
    );
}

fn long_hang(claims: &mut Claims) {
    let scenario = Scenario::standard().fault(Fault::Hang(Duration::from_secs(30)));
    let [ours, fleet] = [Recipe::OURS, Recipe::FLEET].map(|r| claims.play(&r, &scenario).public_lost());
    claims.say(
        "hang of 30 s: public traffic lost, fleet-wide breaker",
        Limit::AtMost(0.0),
        Unit::Part,
        fleet,
    );
    claims.say("hang of 30 s: public traffic that it saves", Limit::AtLeast(0.3), Unit::Part, ours - fleet);
}

/// A small fleet's retries are held as a large one's are: the number of sandboxes cancels.
fn small_fleets(claims: &mut Claims) {
    for sandboxes in [300, 1_000] {
        let scenario = Scenario::standard().fleet_of(sandboxes);
        let ours = claims.play(&Recipe::OURS, &scenario);
        let what = |measure| format!("{sandboxes} sandboxes: {measure}");
        claims.say(what("tokens over the fault"), Limit::AtMost(1.10), Unit::Times, ours.tokens());
        claims.say(what("public traffic lost"), Limit::AtMost(0.001), Unit::Part, ours.public_lost());
    }
}

/// What the small budget costs where failures have no pattern.
fn independent(claims: &mut Claims) {
    for (percent, least) in [(1, 0.999), (5, 0.99), (10, 0.96)] {
        let scenario = Scenario::standard().fleet_of(300).fault(Fault::Independent(percent)).lasting(600);
        let ours = claims.play(&Recipe::OURS, &scenario);
        let what = format!("{percent} % independent failures: success");
        claims.say(what, Limit::AtLeast(least), Unit::Part, ours.success());
    }
}

fn blip(claims: &mut Claims) {
    let scenario = Scenario::standard().lasting(1);
    let (ours, none) = (claims.play(&Recipe::OURS, &scenario), claims.play(&Recipe::NONE, &scenario));
    let more = ours.success() - none.success();
    claims.say("blip of 1 s: success above no retries", Limit::Above(0.3), Unit::Points, more);
}
