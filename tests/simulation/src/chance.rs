//! Chance that can be replayed: numbers that follow from a seed and a place alone, so that leaving one thing out of a history
//! leaves the numbers of the others as they were.

/// A source of numbers for one purpose.
#[derive(Clone, Copy, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Of a seed and a purpose.
    pub fn new(seed: u64, purpose: u64) -> Chance {
        Chance(mix(seed ^ mix(purpose)))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { ((u128::from(self.number()) * u128::from(end)) >> 64) as u64 }
    }

    /// A number of a range.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// SplitMix64's finish.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
