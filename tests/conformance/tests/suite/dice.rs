//! Chance that can be repeated.

/// Numbers that look random and are the same for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `limit`.
    pub(crate) fn roll(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
}
