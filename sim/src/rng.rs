//! The only source of chance: SplitMix64, so that a seed means the same on every machine and in every release.

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True so many times in a thousand.
    pub(crate) fn per_mille(&mut self, times: u64) -> bool {
        self.next() % 1000 < times
    }

    /// One of these.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut one, mut two) = (Rng::new(7), Rng::new(7));
        assert!((0..100).all(|_| one.between(3, 9) == two.between(3, 9)));
        assert_eq!(Rng::new(0).next(), 0xe220_a839_7b1d_cdaf);
    }
}
