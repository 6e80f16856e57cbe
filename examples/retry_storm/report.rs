//! The tables that are printed.

use super::claims::{Claim, Limit, Unit};
use super::client::Recipe;
use super::tally::Tally;
use std::fmt::Write;

/// Clients below one another.
pub(crate) fn clients(title: &str, rows: &[(Recipe, Tally)]) -> String {
    let mut text = format!(
        "\n{title}\n{:<32} {:>7} {:>9} {:>11} {:>12} {:>9} {:>9} {:>13}\n",
        "client", "tokens", "first 5 s", "public 429", "public lost", "success", "recovery", "s a failure"
    );
    for (recipe, tally) in rows {
        let _ = writeln!(
            text,
            "{:<32} {:>7.2} {:>9.2} {:>9.2} % {:>10.2} % {:>7.2} % {:>7.0} s {:>13.2}",
            recipe.name,
            tally.tokens(),
            tally.tokens_at_first(),
            100.0 * tally.public_refused(),
            100.0 * tally.public_lost(),
            100.0 * tally.success(),
            tally.recovery(),
            tally.seconds_a_failure(),
        );
    }
    text
}

/// Claims below one another, each with the value that is nearest to breaking it.
pub(crate) fn claims(claims: &[Claim]) -> String {
    let mut text = format!("\n{:<62} {:>12} {:>10} {:>5}\n", "claim", "limit", "worst", "seed");
    for claim in claims {
        let (sign, limit) = match claim.limit {
            Limit::Above(limit) => (">", limit),
            Limit::AtLeast(limit) => (">=", limit),
            Limit::AtMost(limit) => ("<=", limit),
        };
        let _ = writeln!(
            text,
            "{:<62} {:>12} {:>10} {:>5}{}",
            claim.what,
            format!("{sign} {}", claim.unit.told(limit)),
            claim.unit.told(claim.value),
            claim.seed,
            if claim.holds() { "" } else { "  DOES NOT HOLD" },
        );
    }
    text
}

impl Unit {
    fn told(self, value: f64) -> String {
        match self {
            Unit::Count => format!("{value:.0}"),
            Unit::Part => format!("{:.3} %", 100.0 * value),
            Unit::Points => format!("{:.2} pt", 100.0 * value),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Times => format!("{value:.3}"),
        }
    }
}
