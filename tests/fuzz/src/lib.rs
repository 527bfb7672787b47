//! Plays the library's fuzz targets (`flechtwerk/src/fuzzing`): good bytes, damaged, under an allocator that counts. Here since
//! the choices come from the development broker's fuzzing, which the library itself has no part in.

use allocation_counter::measure;
use flechtwerk::fuzzing::{GROUPS, Target};
use flechtwerk_dev_broker::fuzzing::Entropy;

/// Longest input that is no damaged good one.
const MOST_NOISE: usize = 64;

/// What became of a target's inputs.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Inputs that were taken for good.
    pub good: u64,
    /// Inputs that were refused.
    pub refused: u64,
    /// Most bytes of memory that one of them held.
    pub memory: u64,
}

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    GROUPS.iter().flat_map(|group| group.targets)
}

/// Bytes for a target, the same for the same seed.
pub fn input(target: &Target, seed: u64) -> Vec<u8> {
    let entropy = &mut Entropy::seeded(seed);
    if entropy.percent(10) {
        return entropy.some_bytes(MOST_NOISE);
    }
    let mut bytes = entropy.pick(&(target.good)()).clone();
    if entropy.percent(15) {
        // Behind each other, and one within the other.
        let at = entropy.below(bytes.len() + 1);
        let more = entropy.pick(&(target.good)()).clone();
        bytes.splice(at..at, more);
    }
    entropy.damage(&mut bytes, 0);
    bytes
}

/// Gives these bytes to a target, and counts what it holds meanwhile.
///
/// # Panics
///
/// Where the target finds an error, or takes more memory than it may.
pub fn play(target: &Target, bytes: &[u8], played: &mut Played) {
    let mut good = false;
    let used = measure(|| good = (target.read)(bytes)).bytes_max;
    let (each, beside) = target.memory;
    let most = each * bytes.len() as u64 + beside;
    assert!(used <= most, "{}: {used} bytes of memory for {}: {bytes:?}", target.name, bytes.len());
    played.memory = played.memory.max(used);
    *if good { &mut played.good } else { &mut played.refused } += 1;
}
