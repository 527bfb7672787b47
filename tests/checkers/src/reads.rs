//! I5 and I8: nothing aborted is ever read, and what was read is what was written, by Jepsen's names for anomalies.

use std::collections::{BTreeMap, BTreeSet};

use crate::batches::Fate;
use crate::{Check, Partition, Violation};

/// A value that is written once in all the run, so that it names its writing.
pub type Value = Vec<u8>;

/// I5: records that were written only inside transactions which were then aborted (and never again) must not show up.
/// `place` names where: an observer, a store.
pub fn canaries<'a>(
    aborted: &BTreeSet<Value>,
    place: &str,
    seen: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Violation> {
    seen.into_iter()
        .filter(|value| aborted.contains(*value))
        .map(|value| {
            let what = format!("{} in {place}", String::from_utf8_lossy(value));
            Violation::new(Check::Canaries, "canary seen", what)
        })
        .collect()
}

/// A value in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where it lies.
    pub at: Partition,
    /// Its offset.
    pub offset: i64,
    /// The value.
    pub value: Value,
    /// What became of it.
    pub fate: Fate,
}

/// A value that a read_committed reader got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which reader.
    pub reader: String,
    /// Where it read it.
    pub at: Partition,
    /// The offset.
    pub offset: i64,
    /// The value.
    pub value: Value,
    /// The transaction was still open when the value was read, as far as the recorder knows.
    pub open: bool,
}

/// I8: compares what readers got with what lies in the log. `ends`: how far each reader has read each partition; committed
/// values below must have been read.
pub fn anomalies(
    written: &[Written],
    read: &[Read],
    ends: &BTreeMap<(String, Partition), i64>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |kind, what: String| violations.push(Violation::new(Check::Anomalies, kind, what));
    let log: BTreeMap<(&Partition, i64), &Written> =
        written.iter().map(|one| ((&one.at, one.offset), one)).collect();
    let mut got: BTreeSet<(&str, &Partition, i64)> = BTreeSet::new();
    for one in read {
        let place = format!("{} read {} offset {}", one.reader, one.at, one.offset);
        match log.get(&(&one.at, one.offset)) {
            None => add("phantom", place.clone()),
            Some(written) if written.value != one.value => add("other value", place.clone()),
            Some(written) if written.fate == Fate::Aborted => add("aborted read", place.clone()),
            Some(written) if written.fate == Fate::Open || one.open => add("dirty read", place.clone()),
            Some(_) => {}
        }
        if !got.insert((&one.reader, &one.at, one.offset)) {
            add("duplicate", place);
        }
    }
    for ((reader, at), end) in ends {
        for one in
            written.iter().filter(|one| one.at == *at && one.offset < *end && one.fate == Fate::Committed)
        {
            if !got.contains(&(reader.as_str(), at, one.offset)) {
                add("lost", format!("{reader} did not read {at} offset {}", one.offset));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn at() -> Partition {
        Partition::new("counts", 0)
    }

    #[test]
    fn canaries_are_found_where_they_sing() {
        let aborted = BTreeSet::from([b"tweet".to_vec()]);
        assert_eq!(canaries(&aborted, "a store", [&b"fine"[..]]), []);
        assert_eq!(kinds(&canaries(&aborted, "a store", [&b"fine"[..], b"tweet"])), ["canary seen"]);
    }

    fn written(offset: i64, fate: Fate) -> Written {
        Written { at: at(), offset, value: vec![offset as u8], fate }
    }

    fn read(offset: i64) -> Read {
        Read { reader: "r".into(), at: at(), offset, value: vec![offset as u8], open: false }
    }

    fn run(read: &[Read]) -> Vec<&'static str> {
        let written = [
            written(0, Fate::Committed),
            written(1, Fate::Aborted),
            written(2, Fate::Committed),
            written(3, Fate::Open),
        ];
        kinds(&anomalies(&written, read, &BTreeMap::from([(("r".to_owned(), at()), 3)])))
    }

    #[test]
    fn each_anomaly_has_its_name() {
        assert!(run(&[read(0), read(2)]).is_empty());
        assert_eq!(run(&[read(0)]), ["lost"]);
        assert_eq!(run(&[read(0), read(0), read(2)]), ["duplicate"]);
        assert_eq!(run(&[read(0), read(1), read(2)]), ["aborted read"]);
        assert_eq!(run(&[read(0), read(2), read(3)]), ["dirty read"]);
        assert_eq!(run(&[read(0), Read { open: true, ..read(2) }]), ["dirty read"]);
        assert_eq!(run(&[read(0), read(2), read(9)]), ["phantom"]);
        assert_eq!(run(&[read(0), Read { value: vec![7], ..read(2) }]), ["other value"]);
    }
}
