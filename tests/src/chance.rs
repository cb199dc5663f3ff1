//! Chance, for moments at which something is killed. Who uses it prints what it drew, so that a failure tells its story.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Numbers that differ from run to run, unless they are seeded.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// Another sequence for each call.
    #[expect(clippy::new_without_default, reason = "two of the same kind are not equal, as defaults would be")]
    pub fn new() -> Self {
        Self(RandomState::new().hash_one("chance"))
    }

    /// The same sequence for the same seed, so that what was found can be looked at again.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 up to, not including, `end`.
    ///
    /// # Panics
    ///
    /// When `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Lets a time of any length up to this one pass, in whole milliseconds, and tells it. Nothing is waited for here: what
    /// is wanted is a moment that nobody chose.
    pub async fn moment(&mut self, longest: Duration) -> Duration {
        let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX - 1);
        let moment = Duration::from_millis(self.below(millis + 1));
        tokio::time::sleep(moment).await;
        moment
    }

    /// One step of SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_end_comes_and_no_other() {
        let mut chance = Chance::new();
        let drawn: std::collections::BTreeSet<u64> = (0..1000).map(|_| chance.below(5)).collect();
        assert_eq!(Vec::from_iter(drawn), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_seed_tells_what_comes() {
        let drawn = |seed| {
            let mut chance = Chance::seeded(seed);
            [(); 8].map(|()| chance.below(1000))
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
