//! What reads bytes that come from outside, as targets for a fuzzer: changelogs and stores, stamps, codecs, settings.
//!
//! A target reads any bytes and says whether they were good. It panics where a reader does something that it must never do:
//! panic, take two encodings for one value where there may be only one, write something else than it read, or repeat a
//! payload in an error. How much memory a read may take is for the runner to measure, which has an allocator that counts.
//! Runners are `tests/fuzz`, with a short run in its tests and a long one, and `fuzz/`, which is guided by coverage.

mod codecs;
mod formats;
mod settings;

use std::fmt::{Debug, Display};

/// Stands in the payload of good bytes, and must never stand in an error.
const SECRET: &str = "p4yl0ad";

/// Something that reads bytes.
#[derive(Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Good bytes to begin with.
    pub good: fn() -> Vec<Vec<u8>>,
    /// Reads any bytes. True: they were good.
    pub read: fn(&[u8]) -> bool,
    /// Most bytes of memory that a read may hold at once, for each byte that is read and beside.
    pub memory: (u64, u64),
}

/// The targets of one fuzzer: they share its corpus.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// In an order that stays, since the first byte of an input chooses among them.
    pub targets: &'static [Target],
}

/// All targets.
pub const GROUPS: &[Group] = &[
    Group { name: "formats", targets: formats::TARGETS },
    Group { name: "codecs", targets: codecs::TARGETS },
    Group { name: "settings", targets: settings::TARGETS },
];

/// Bytes of a fuzzer: the first one chooses the target.
pub fn read(group: &str, bytes: &[u8]) {
    let targets = GROUPS.iter().find(|one| one.name == group).expect("a group of this name").targets;
    if let Some((which, bytes)) = bytes.split_first() {
        (targets[usize::from(*which) % targets.len()].read)(bytes);
    }
}

/// Errors are logged and shown.
fn quiet(error: &(impl Display + Debug)) {
    let text = format!("{error} {error:?}");
    assert!(!text.contains(SECRET), "an error repeats what it read: {text}");
}
