//! Settings that were meant to be something, and it is not known what: a value that is none, a misspelt name, a file
//! that can't be read. They go on with their defaults, so that everything else is still looked at; but what follows
//! from such a default is no mistake of anybody, and is not told as one.

use std::collections::BTreeSet;

/// What is in doubt.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    settings: BTreeSet<String>,
    /// Whatever no stronger place says may stand in a file that was not read.
    file: bool,
}

impl Doubts {
    /// Something was said about this setting, and it was not understood.
    pub(super) fn add(&mut self, key: &str) {
        self.settings.insert(key.to_owned());
    }

    /// The settings file was not understood.
    pub(super) fn add_file(&mut self) {
        self.file = true;
    }

    /// True where a setting is not what was meant, or may not be: the file could say something about it.
    pub(super) fn about(&self, key: &str, from_file: bool) -> bool {
        self.settings.contains(key) || (self.file && from_file)
    }
}
