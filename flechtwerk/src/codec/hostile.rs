//! What every codec must do with bytes that nobody wrote: read them or refuse them, without a panic, and without asking for
//! more memory than such bytes are worth.

use allocation_counter::measure;

use super::{Bytes, Codec};

/// Most memory for a few bytes: serde's own limit for what a length claims is one mebibyte.
const MEMORY: u64 = 3 << 20;

/// How often a value is spoilt.
pub(crate) const SPOILT: u64 = 5_000;

/// Numbers that are the same in every run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn byte(&mut self) -> u8 {
        // Where lengths and ends lie.
        const SHARP: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff];
        match self.below(2) {
            0 => SHARP[self.below(SHARP.len())],
            _ => self.below(256) as u8,
        }
    }

    /// Bytes made of those of a value: some changed, added, doubled or cut off. Or any bytes at all.
    pub(crate) fn spoil(&mut self, good: &[u8]) -> Vec<u8> {
        if self.below(4) == 0 {
            return (0..self.below(64)).map(|_| self.byte()).collect();
        }
        let mut bytes = good.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match (self.below(4), bytes.get_mut(at)) {
                (0, Some(byte)) => *byte = self.byte(),
                (1, _) => bytes.truncate(at),
                (2, _) => bytes.insert(at, self.byte()),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    }
}

/// Reads bytes of any kind. True: they are a value, which can be written again.
pub(crate) fn survives<C: Codec>(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut read = None;
    let used = measure(|| read = Some(C::decode(&bytes)));
    assert!(used.bytes_max < MEMORY, "{} bytes of memory for {bytes:?}", used.bytes_max);
    match read {
        Some(Ok(item)) => {
            C::encode(&item, &mut Vec::new()).expect("what was read can be written");
            true
        }
        _ => false,
    }
}

/// Thousands of spoilt values; among them must be some that are read and some that are refused.
pub(crate) fn survives_spoilt<C: Codec>(good: &[u8]) {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..SPOILT {
        match survives::<C>(&Random::new(seed).spoil(good)) {
            true => read += 1,
            false => refused += 1,
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

/// A value that is cut off anywhere is refused.
pub(crate) fn refuses_each_cut<C: Codec>(good: &[u8]) {
    assert!(survives::<C>(good));
    for end in 0..good.len() {
        assert!(!survives::<C>(&good[..end]), "{end} of {} bytes", good.len());
    }
}

/// Every error that spoilt bytes lead to keeps the word to itself.
pub(crate) fn keeps_secret<C: Codec>(good: &[u8], secret: &str) {
    assert!(good.windows(secret.len()).any(|part| part == secret.as_bytes()));
    for seed in 0..2_000 {
        let bytes = Random::new(seed).spoil(good);
        if let Err(error) = C::decode(&bytes.into()) {
            let text = format!("{error} {error:?}");
            assert!(!text.contains(secret), "{text}");
        }
    }
}
