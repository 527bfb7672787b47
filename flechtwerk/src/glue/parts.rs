//! What the parameters of a stage stand for, put together in a constant.

use super::{Part, StateInfo};

/// The parts of all parameters, in order. The more room there is, the longer the compiler takes.
pub struct AllParts<const MOST: usize> {
    parts: [Part; MOST],
    /// Of which parameter each is.
    parameters: [u8; MOST],
    count: usize,
}

impl<const MOST: usize> AllParts<MOST> {
    /// Puts them together.
    pub const fn new(parameters: &[&'static [Part]]) -> Self {
        // An array needs something to begin with.
        let nothing = Part::State(StateInfo { type_name: "", version: 0 });
        let mut all = AllParts { parts: [nothing; MOST], parameters: [0; MOST], count: 0 };
        let mut n = 0;
        while n < parameters.len() {
            let mut m = 0;
            while m < parameters[n].len() {
                all.parts[all.count] = parameters[n][m];
                all.parameters[all.count] = n as u8;
                all.count += 1;
                m += 1;
            }
            n += 1;
        }
        all
    }

    /// The parts.
    pub const fn as_slice(&self) -> &[Part] {
        self.parts.split_at(self.count).0
    }

    /// The parameter of a part.
    pub(super) const fn parameter(&self, part: usize) -> usize {
        self.parameters[part] as usize
    }
}
