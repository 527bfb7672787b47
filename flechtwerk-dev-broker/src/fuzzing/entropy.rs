//! Where a target's choices come from.

/// A source of choices: endless from a seed, or as long as some bytes last and zeroes after that.
#[derive(Debug)]
pub struct Entropy<'a> {
    from: From<'a>,
}

#[derive(Debug)]
enum From<'a> {
    Seed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Entropy<'a> {
    /// The same choices for the same seed.
    pub fn seeded(seed: u64) -> Entropy<'static> {
        Entropy { from: From::Seed(seed) }
    }

    /// The choices that these bytes say.
    pub fn bytes(bytes: &'a [u8]) -> Entropy<'a> {
        Entropy { from: From::Bytes(bytes) }
    }

    /// Whether every further choice would be zero.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.from, From::Bytes([]))
    }

    pub(super) fn byte(&mut self) -> u8 {
        match &mut self.from {
            From::Seed(_) => (self.next() >> 56) as u8,
            From::Bytes(bytes) => match bytes.split_first() {
                Some((first, rest)) => {
                    *bytes = rest;
                    *first
                }
                None => 0,
            },
        }
    }

    pub(super) fn next(&mut self) -> u64 {
        if let From::Seed(state) = &mut self.from {
            // SplitMix64.
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = *state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            return mixed ^ (mixed >> 31);
        }
        (0..8).fold(0, |value, _| (value << 8) | u64::from(self.byte()))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = match bound {
            0..=256 => usize::from(self.byte()),
            _ => (self.next() >> 16) as usize,
        };
        drawn % bound
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of them; there is at least one.
    pub fn pick<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[self.below(of.len())]
    }

    /// Any bytes, at most so many.
    pub fn some_bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.byte()).collect()
    }

    /// Changes a few bytes from `from` on, or the length.
    pub fn damage(&mut self, bytes: &mut Vec<u8>, from: usize) {
        for _ in 0..=self.below(4) {
            if bytes.len() <= from {
                return;
            }
            let at = from + self.below(bytes.len() - from);
            match self.below(8) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.byte(),
                2 => bytes[at] = 0xff,
                3 => bytes[at] = 0x7f,
                4 => bytes[at] = 0,
                5 => bytes.truncate(at),
                6 => {
                    let more = self.some_bytes(16);
                    bytes.splice(at..at, more);
                }
                _ => {
                    let end = at + self.below(bytes.len() - at).min(16);
                    bytes.drain(at..end);
                }
            }
        }
    }
}
