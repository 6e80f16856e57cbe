//! Comparisons on a machine that others use too: short blocks by turns, and the median of their paired ratios.

use std::fmt;

/// Runs `rounds` rounds in which each of `contenders` is asked for one block, in an order shuffled anew each time.
///
/// A neighbour's load then falls on all of them alike. Returns what the blocks measured, `[contender][round]`.
pub(crate) fn interleave<T>(
    contenders: usize,
    rounds: usize,
    mut block: impl FnMut(usize) -> T,
) -> Vec<Vec<T>> {
    let mut measured: Vec<Vec<T>> = (0..contenders).map(|_| Vec::with_capacity(rounds)).collect();
    let mut order: Vec<usize> = (0..contenders).collect();
    // xorshift: the same order on every machine.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            order.swap(last, usize::try_from(seed % (last as u64 + 1)).unwrap_or(0));
        }
        for &contender in &order {
            measured[contender].push(block(contender));
        }
    }
    measured
}

/// The median of measurements and the quartiles about it.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values.get(values.len() * part / 4).copied().unwrap_or(f64::NAN);
        Spread { low: at(1), median: at(2), high: at(3) }
    }

    /// Of what one contender measured to what another measured in the same round.
    pub(crate) fn of_ratios(of: &[f64], to: &[f64]) -> Spread {
        Spread::of(of.iter().zip(to).map(|(of, to)| of / to))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.low, self.high)
    }
}
