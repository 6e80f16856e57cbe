//! The dice of the simulation: a seed gives the same throws on every machine.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014).
///
/// Whole numbers alone: a logarithm may differ in its last bit from one C library to the next.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one purpose. Each purpose has its own, so that two clients meet the same arrivals.
    pub(crate) fn new(seed: u64, purpose: u64) -> Dice {
        let mut dice = Dice(seed ^ purpose.wrapping_mul(0xD1B5_4A32_D192_ED03));
        dice.throw();
        dice
    }

    /// A throw, uniform over all of `u64`.
    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `most`, which is above zero.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        scale(most, self.throw())
    }

    /// Between half and three halves of `mean`, uniformly.
    pub(crate) fn about(&mut self, mean: Duration) -> u64 {
        let mean = nanos(mean);
        mean / 2 + self.below(mean.max(1))
    }

    /// The gap before the next arrival of a Poisson stream, by von Neumann's comparisons (*Various Techniques Used in
    /// Connection with Random Digits*, 1951).
    pub(crate) fn gap(&mut self, mean: u64) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.throw();
            let (mut last, mut falling) = (first, 1_u32);
            loop {
                let next = self.throw();
                if next >= last {
                    break;
                }
                (last, falling) = (next, falling + 1);
            }
            if falling % 2 == 1 {
                return mean * whole + scale(mean, first);
            }
            whole += 1;
        }
    }
}

fn scale(most: u64, throw: u64) -> u64 {
    let scaled = (u128::from(most) * u128::from(throw)) >> 64;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds, the unit of the simulated time.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gaps_of_a_poisson_stream_have_their_mean_and_its_spread() {
        let mut dice = Dice::new(7, 1);
        let gaps: Vec<f64> = (0..200_000).map(|_| dice.gap(1_000_000) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn the_dice_of_two_purposes_and_of_two_seeds_fall_differently() {
        let throws = |seed, purpose| {
            let mut dice = Dice::new(seed, purpose);
            [dice.throw(), dice.throw()]
        };
        assert_eq!(throws(1, 1), throws(1, 1));
        assert_ne!(throws(1, 1), throws(1, 2));
        assert_ne!(throws(1, 1), throws(2, 1));
    }
}
