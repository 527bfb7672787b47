//! Plays the library's fuzz targets (`flechtwerk/src/fuzzing`): good bytes, damaged, under an allocator that counts. Here since
//! the choices come from the development broker's fuzzing, which the library itself has no part in.

use allocation_counter::measure;
use flechtwerk::fuzzing::{GROUPS, Target};
use flechtwerk_dev_broker::fuzzing::Entropy;

/// Longest input that is no damaged good one.
const MOST_NOISE: usize = 64;
/// The same byte so many times.
const LONGEST_RUN: usize = 25;
/// One input of so many is a value within a value, and so on.
const NESTED: usize = 400;
/// How deep: deeper than any stack.
const DEPTH: usize = 50_000;
/// With what a value begins and ends that holds another: in JSON, in CBOR (arrays, maps and tags), in Avro and Protobuf (lengths),
/// in a schema, in TOML.
const NESTS: [(&[u8], &[u8]); 11] = [
    (b"[", b"]"),
    (b"{\"parts\":[", b"]}"),
    (&[0x81], &[]),
    (&[0x9f], &[0xff]),
    (&[0xa1, 0x01], &[]),
    (&[0xc1], &[]),
    (&[0x02], &[]),
    (&[0x1a, 0x7f], &[]),
    (b"message A {", b"}"),
    (b"{\"type\":\"array\",\"items\":", b"}"),
    (b"{a=", b"}"),
];

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
    if entropy.below(NESTED) == 0 {
        let (begin, end) = *entropy.pick(&NESTS);
        let depth = entropy.below(DEPTH);
        // TOML's values have a name.
        let name: &[u8] = if entropy.percent(10) { b"stage=" } else { &[] };
        let ends = if entropy.percent(50) { depth } else { 0 };
        return [name, &begin.repeat(depth), &end.repeat(ends)].concat();
    }
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
    if entropy.percent(10) {
        // A number without an end, or with more digits than it has room for.
        let one = *entropy.pick(&[0xff, 0x80, 0, b'0', b'9', b' ']);
        let at = entropy.below(bytes.len() + 1);
        let run = vec![one; entropy.below(LONGEST_RUN)];
        bytes.splice(at..at, run);
        if entropy.percent(50) {
            return bytes;
        }
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
    assert!(used <= most, "{}: {used} bytes of memory for {}", target.name, bytes.len());
    played.memory = played.memory.max(used);
    *if good { &mut played.good } else { &mut played.refused } += 1;
}
