//! What the parameters of a stage stand for, put together in a constant.

use std::marker::PhantomData;

use super::{Params, Part, StateInfo};

/// The parts of the parameters from one on.
pub struct PartList {
    /// Those of the first.
    pub parts: &'static [Part],
    /// Those of the others.
    pub next: Option<&'static PartList>,
}

/// The parts of all parameters, at most `MOST`. The more room there is, the longer the compiler takes.
pub struct AllParts<P, const MOST: usize>(PhantomData<P>);

impl<P: Params, const MOST: usize> AllParts<P, MOST> {
    const ALL: ([Part; MOST], usize) = flatten(&P::PARTS);

    /// The parts, in order.
    pub const LIST: &'static [Part] = Self::ALL.0.split_at(Self::ALL.1).0;
}

const fn flatten<const MOST: usize>(list: &PartList) -> ([Part; MOST], usize) {
    // An array needs something to begin with.
    let mut all = [Part::State(StateInfo { type_name: "", version: 0, oldest: 0 }); MOST];
    let mut count = 0;
    let mut rest = Some(list);
    while let Some(list) = rest {
        let mut n = 0;
        while n < list.parts.len() {
            all[count] = list.parts[n];
            count += 1;
            n += 1;
        }
        rest = list.next;
    }
    (all, count)
}
