//! I3 and I7: the read_committed output is, as a multiset and in order per key, what a sequential model gives; and an
//! observer that reads all the time never sees a value go back, twice or out of order.

use std::collections::BTreeMap;

use crate::{Check, Partition, Violation};

/// An output, expected or seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Output {
    /// The topic's partition.
    pub at: Partition,
    /// The key.
    pub key: Vec<u8>,
    /// The value with whatever else counts, such as a header.
    pub value: Vec<u8>,
}

/// Compares what was seen, in log order of each partition, with what the model gives, in the order of each key.
pub fn check(expected: &[Output], seen: &[Output]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |kind, what: String| violations.push(Violation::new(Check::Outputs, kind, what));
    let mut counts: BTreeMap<&Output, i64> = BTreeMap::new();
    for output in expected {
        *counts.entry(output).or_default() += 1;
    }
    for output in seen {
        *counts.entry(output).or_default() -= 1;
    }
    let wrong = counts.iter().any(|(_, count)| *count != 0);
    for (output, count) in counts {
        let place = || format!("{}: key {}", output.at, text(&output.key));
        let known = || expected.contains(output);
        match count {
            1.. => add("missing", format!("{}: {count} missing of {}", place(), text(&output.value))),
            ..=-1 if known() => {
                add("twice", format!("{}: {} too many of {}", place(), -count, text(&output.value)))
            }
            ..=-1 => add("unexpected", format!("{}: {}", place(), text(&output.value))),
            0 => {}
        }
    }
    if !wrong {
        let by_key = |list: &'_ [Output]| {
            let mut by_key: BTreeMap<(Partition, Vec<u8>), Vec<Vec<u8>>> = BTreeMap::new();
            for one in list {
                by_key.entry((one.at.clone(), one.key.clone())).or_default().push(one.value.clone());
            }
            by_key
        };
        let seen = by_key(seen);
        for (key, values) in by_key(expected) {
            if seen.get(&key) != Some(&values) {
                add("out of order", format!("{}: key {}", key.0, text(&key.1)));
            }
        }
    }
    violations
}

/// What an observer read, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The topic's partition.
    pub at: Partition,
    /// The record's offset.
    pub offset: i64,
    /// Its key.
    pub key: Vec<u8>,
    /// What grows by one with each value of the key: the model's count.
    pub version: u64,
    /// The offset of the record that it was made of, where that is known. Then a version may be there again if it was made of a
    /// later record: who writes an input may do so twice, if it does not use transactions.
    pub made_of: Option<i64>,
}

/// Checks what an observer read from the beginning on.
pub fn observer(readings: &[Reading]) -> Vec<Violation> {
    let mut watch = Watch::default();
    readings.iter().flat_map(|one| watch.see(one)).collect()
}

/// The same while the observer reads.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    offsets: BTreeMap<Partition, i64>,
    versions: BTreeMap<Partition, BTreeMap<Vec<u8>, Last>>,
}

/// What was read last of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    version: u64,
    made_of: Option<i64>,
}

impl Watch {
    /// The next that was read.
    pub fn see(&mut self, one: &Reading) -> Vec<Violation> {
        let mut violations = Vec::new();
        let place = || format!("{} offset {}: key {}", one.at, one.offset, text(&one.key));
        let mut add = |kind, what: String| violations.push(Violation::new(Check::Observer, kind, what));
        if let Some(before) = replace(&mut self.offsets, &one.at, one.offset)
            && one.offset <= before
        {
            add("offset goes back", format!("{} after offset {before}", place()));
        }
        if !self.versions.contains_key(&one.at) {
            self.versions.insert(one.at.clone(), BTreeMap::new());
        }
        let Some(versions) = self.versions.get_mut(&one.at) else { return violations };
        let last = Last { version: one.version, made_of: one.made_of };
        let before = replace(versions, &one.key, last).unwrap_or_default();
        let later = before.made_of.zip(one.made_of).map(|(before, now)| now > before);
        let before = before.version;
        if later == Some(false) {
            add("seen twice", format!("{} was made of a record that is done with", place()));
        } else if one.version == before {
            if later.is_none() {
                add("seen twice", format!("{} has version {} again", place(), one.version));
            }
        } else if one.version < before {
            add("value goes back", format!("{} goes from version {before} to {}", place(), one.version));
        } else if one.version > before + 1 {
            add("left out", format!("{} goes from version {before} to {}", place(), one.version));
        }
        violations
    }
}

/// Inserts without a copy of a key that is there.
fn replace<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: &K, value: V) -> Option<V> {
    match map.get_mut(key) {
        Some(place) => Some(std::mem::replace(place, value)),
        None => map.insert(key.clone(), value),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn output(key: &str, value: &str) -> Output {
        Output { at: Partition::new("counts", 0), key: key.into(), value: value.into() }
    }

    #[test]
    fn the_same_multiset_in_the_order_of_each_key_passes() {
        let expected = [output("a", "1"), output("a", "2"), output("b", "1")];
        let seen = [output("b", "1"), output("a", "1"), output("a", "2")];
        assert_eq!(check(&expected, &seen), []);
    }

    #[test]
    fn each_wrong_output_has_its_name() {
        let expected = [output("a", "1"), output("a", "2")];
        let bad = [
            ("missing", vec![output("a", "1")]),
            ("twice", vec![output("a", "1"), output("a", "1"), output("a", "2")]),
            ("unexpected", vec![output("a", "1"), output("a", "2"), output("a", "3")]),
            ("out of order", vec![output("a", "2"), output("a", "1")]),
        ];
        for (kind, seen) in bad {
            assert_eq!(kinds(&check(&expected, &seen)), [kind]);
        }
    }

    fn reading(offset: i64, version: u64) -> Reading {
        Reading { at: Partition::new("counts", 0), offset, key: b"a".to_vec(), version, made_of: None }
    }

    #[test]
    fn an_input_may_hold_a_record_twice_and_an_output_not() {
        let made = |offset, version, made_of| Reading { made_of: Some(made_of), ..reading(offset, version) };
        assert_eq!(observer(&[made(0, 1, 7), made(1, 2, 8), made(2, 2, 9), made(3, 3, 12)]), []);
        let bad = [
            ("seen twice", vec![made(0, 1, 7), made(1, 1, 7)]),
            ("seen twice", vec![made(0, 1, 7), made(1, 2, 7)]),
            ("seen twice", vec![made(0, 1, 7), made(1, 2, 6)]),
            ("value goes back", vec![made(0, 1, 7), made(1, 2, 8), made(2, 1, 9)]),
            ("left out", vec![made(0, 1, 7), made(1, 3, 8)]),
        ];
        for (kind, readings) in bad {
            assert_eq!(kinds(&observer(&readings)), [kind]);
        }
    }

    #[test]
    fn an_observer_sees_each_version_once_and_in_order() {
        assert_eq!(observer(&[reading(0, 1), reading(4, 2), reading(5, 3)]), []);
        let bad = [
            ("offset goes back", vec![reading(3, 1), reading(3, 2)]),
            ("seen twice", vec![reading(0, 1), reading(1, 1)]),
            ("value goes back", vec![reading(0, 1), reading(1, 2), reading(2, 1)]),
            ("left out", vec![reading(0, 1), reading(1, 3)]),
        ];
        for (kind, readings) in bad {
            assert_eq!(kinds(&observer(&readings)), [kind]);
        }
    }
}
