//! I2: outputs, changelog records and offsets of one interval are all committed or all aborted.

use std::collections::{BTreeMap, BTreeSet};

use crate::batches::Fate;
use crate::tiling::Transaction;
use crate::{Check, Partition, Violation};

/// Something that a transaction wrote: an output, or a changelog record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Where it lies.
    pub at: Partition,
    /// Its offset there.
    pub offset: i64,
    /// The input record that it was made of, from a header; for a changelog record the last one of its key in the batch.
    pub input: (Partition, i64),
    /// What became of it.
    pub fate: Fate,
}

/// Checks the effects of one task against its committed transactions. `expected`: how many effects each input record has
/// where its interval is committed; an input that is not named may have any number. `start`: where each input begins.
pub fn check(
    chain: &[Transaction],
    start: &BTreeMap<Partition, i64>,
    effects: &[Effect],
    expected: &BTreeMap<(Partition, i64), usize>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |kind, what: String| violations.push(Violation::new(Check::Whole, kind, what));
    let end = |partition: &Partition| chain.last().and_then(|last| last.after.get(partition)).copied();
    let covered = |partition: &Partition, offset: i64| {
        start.get(partition).is_some_and(|start| *start <= offset)
            && end(partition).is_some_and(|end| offset < end)
    };
    let mut committed: BTreeMap<&(Partition, i64), usize> = BTreeMap::new();
    for effect in effects {
        let (partition, offset) = &effect.input;
        let place = || format!("{} offset {}, made of {partition} offset {offset}", effect.at, effect.offset);
        match effect.fate {
            Fate::Committed if !covered(partition, *offset) => add("effect without offsets", place()),
            Fate::Committed => *committed.entry(&effect.input).or_default() += 1,
            Fate::Open => add("left open", place()),
            Fate::Aborted => {}
        }
    }
    let inputs: BTreeSet<&(Partition, i64)> = expected.keys().collect();
    for input in inputs.into_iter().filter(|(partition, offset)| covered(partition, *offset)) {
        let (wanted, found) = (expected[input], committed.get(input).copied().unwrap_or(0));
        let place = format!("{} offset {}: {found} of {wanted} effects are committed", input.0, input.1);
        if found < wanted {
            add("offsets without effect", place);
        } else if found > wanted {
            add("effect twice", place);
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stamp, kinds};

    fn input() -> Partition {
        Partition::new("words", 0)
    }

    fn chain() -> Vec<Transaction> {
        vec![Transaction {
            stamp: Stamp { owner: "a".into(), counter: 1, changelog: None },
            producer: None,
            after: BTreeMap::from([(input(), 2)]),
            before: BTreeMap::new(),
        }]
    }

    fn effect(of: i64, fate: Fate) -> Effect {
        Effect { at: Partition::new("counts", 0), offset: 9, input: (input(), of), fate }
    }

    fn run(effects: &[Effect]) -> Vec<Violation> {
        let start = BTreeMap::from([(input(), 0)]);
        let expected = (0..3).map(|offset| ((input(), offset), 1)).collect();
        check(&chain(), &start, effects, &expected)
    }

    #[test]
    fn whole_and_aborted_transactions_pass() {
        let effects = [effect(0, Fate::Aborted), effect(0, Fate::Committed), effect(1, Fate::Committed)];
        assert_eq!(run(&effects), []);
    }

    #[test]
    fn each_tear_has_its_name() {
        let (first, second) = (effect(0, Fate::Committed), effect(1, Fate::Committed));
        let bad = [
            ("effect without offsets", vec![first.clone(), second.clone(), effect(2, Fate::Committed)]),
            ("offsets without effect", vec![first.clone(), effect(1, Fate::Aborted)]),
            ("effect twice", vec![first.clone(), first.clone(), second.clone()]),
            ("left open", vec![first, second, effect(2, Fate::Open)]),
        ];
        for (kind, effects) in bad {
            assert_eq!(kinds(&run(&effects)), [kind]);
        }
    }
}
