//! I1: the transactions of a task form one chain of stamps without gap or fork, and their input intervals join exactly.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Check, Partition, Producer, Stamp, Violation};

/// A record of the group's committed offsets, in the order of their log, or of the calls of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetRecord {
    /// The input partition.
    pub partition: Partition,
    /// The committed position.
    pub offset: i64,
    /// The metadata beside it.
    pub metadata: String,
    /// Who wrote it, from the raw batch; `None` where that is not known.
    pub producer: Option<Producer>,
}

/// A committed transaction of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its name.
    pub stamp: Stamp,
    /// Who committed it.
    pub producer: Option<Producer>,
    /// The position behind it, for each input.
    pub after: BTreeMap<Partition, i64>,
    /// Where its computation started, for each input; empty where no hook of the runtime told.
    pub before: BTreeMap<Partition, i64>,
}

/// From the group's offset records to the transactions of one task, whose input partitions have this number. Records that
/// bear no stamp are violations.
pub fn transactions(records: &[OffsetRecord], number: i32) -> (Vec<Transaction>, Vec<Violation>) {
    let (mut found, mut violations) = (Vec::<Transaction>::new(), Vec::new());
    for record in records.iter().filter(|record| record.partition.number == number) {
        let Some(stamp) = Stamp::parse(&record.metadata) else {
            let what = format!(
                "{} offset {} has the metadata {:?}",
                record.partition, record.offset, record.metadata
            );
            violations.push(Violation::new(Check::Tiling, "no stamp", what));
            continue;
        };
        // The records of one transaction lie beside each other, each partition once.
        let last = found.last_mut().filter(|last| {
            last.stamp == stamp
                && last.producer == record.producer
                && !last.after.contains_key(&record.partition)
        });
        match last {
            Some(last) => {
                last.after.insert(record.partition.clone(), record.offset);
            }
            None => found.push(Transaction {
                stamp,
                producer: record.producer,
                after: BTreeMap::from([(record.partition.clone(), record.offset)]),
                before: BTreeMap::new(),
            }),
        }
    }
    (found, violations)
}

/// Checks the chain of one task, in the order of commit. `start`: where each input begins.
pub fn check(chain: &[Transaction], start: &BTreeMap<Partition, i64>) -> Vec<Violation> {
    let mut follower = Follower::new(start.clone());
    chain.iter().flat_map(|one| follower.follow(one)).collect()
}

/// The same while the chain grows.
#[derive(Clone, Debug)]
pub struct Follower {
    start: BTreeMap<Partition, i64>,
    position: BTreeMap<Partition, i64>,
    last: Option<Transaction>,
    gone: BTreeSet<String>,
    producers: BTreeMap<String, Producer>,
    sampled: bool,
}

impl Follower {
    /// Of a task whose inputs begin here.
    pub fn new(start: BTreeMap<Partition, i64>) -> Follower {
        Follower {
            position: start.clone(),
            start,
            last: None,
            gone: BTreeSet::new(),
            producers: BTreeMap::new(),
            sampled: false,
        }
    }

    /// Of a task of whose transactions only some are seen, as by somebody who asks for the committed offsets now and then: the same
    /// one again and those that are left out are no violations.
    pub fn sampled(start: BTreeMap<Partition, i64>) -> Follower {
        Follower { sampled: true, ..Follower::new(start) }
    }

    /// The last transaction.
    pub fn last(&self) -> Option<&Transaction> {
        self.last.as_ref()
    }

    /// The next transaction.
    pub fn follow(&mut self, one: &Transaction) -> Vec<Violation> {
        if self.sampled && self.last.as_ref() == Some(one) {
            return Vec::new();
        }
        let mut violations = Vec::new();
        let mut add = |kind, what: String| violations.push(Violation::new(Check::Tiling, kind, what));
        let last = self.last.take();
        let (stamp, expected) = (&one.stamp, last.as_ref().map_or(0, |last| last.stamp.counter) + 1);
        if stamp.counter < expected {
            add("fork", format!("{stamp} comes where the counter is {expected}"));
        } else if stamp.counter > expected && !self.sampled {
            add("gap", format!("{stamp} comes where the counter is {expected}"));
        }
        if let Some(last) = &last
            && last.stamp.owner != stamp.owner
        {
            self.gone.insert(last.stamp.owner.clone());
            if let (Some(before), Some(now)) = (last.producer, one.producer)
                && before == now
            {
                add(
                    "owner without fence",
                    format!("{stamp} follows {} on the same producer {now:?}", last.stamp),
                );
            }
        }
        if self.gone.contains(&stamp.owner) {
            add("zombie", format!("{stamp} commits after another owner had"));
        }
        if let Some(now) = one.producer {
            let before = *self.producers.entry(stamp.owner.clone()).or_insert(now);
            if before != now {
                add("two producers", format!("{stamp} commits by {now:?}, its owner was {before:?}"));
            }
            if let Some(last) = last.and_then(|last| last.producer)
                && last.id == now.id
                && now.epoch < last.epoch
            {
                add("fenced producer", format!("{stamp} commits by {now:?} after {last:?}"));
            }
        }
        for (partition, after) in &one.after {
            let at = self.position.insert(partition.clone(), *after);
            if at.is_some_and(|at| *after < at) {
                add("position goes back", format!("{stamp} commits {partition} offset {after} after {at:?}"));
            }
            if let (Some(at), Some(before)) = (at, one.before.get(partition))
                && at != *before
            {
                let kind = if *before < at { "overlap" } else { "hole" };
                add(kind, format!("{stamp} started from {partition} offset {before}, committed was {at}"));
            }
        }
        for partition in self.start.keys().filter(|partition| !one.after.contains_key(partition)) {
            add("input left out", format!("{stamp} does not commit {partition}"));
        }
        self.last = Some(one.clone());
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn input() -> Partition {
        Partition::new("words", 0)
    }

    fn start() -> BTreeMap<Partition, i64> {
        BTreeMap::from([(input(), 0)])
    }

    fn one(owner: &str, counter: u64, epoch: i16, before: i64, after: i64) -> Transaction {
        Transaction {
            stamp: Stamp { owner: owner.into(), counter, changelog: None },
            producer: Some(Producer { id: 7, epoch }),
            after: BTreeMap::from([(input(), after)]),
            before: BTreeMap::from([(input(), before)]),
        }
    }

    #[test]
    fn a_chain_with_a_takeover_tiles() {
        let chain = [one("a", 1, 0, 0, 5), one("a", 2, 0, 5, 9), one("b", 3, 1, 9, 9), one("b", 4, 1, 9, 12)];
        assert_eq!(check(&chain, &start()), []);
    }

    #[test]
    fn each_break_of_the_chain_has_its_name() {
        let bad: [(&str, Vec<Transaction>); 10] = [
            ("fork", vec![one("a", 1, 0, 0, 5), one("a", 1, 0, 5, 9)]),
            ("gap", vec![one("a", 1, 0, 0, 5), one("a", 3, 0, 5, 9)]),
            ("owner without fence", vec![one("a", 1, 0, 0, 5), one("b", 2, 0, 5, 9)]),
            ("zombie", vec![one("a", 1, 0, 0, 5), one("b", 2, 1, 5, 9), one("a", 3, 0, 9, 12)]),
            ("two producers", vec![one("a", 1, 0, 0, 5), one("a", 2, 1, 5, 9)]),
            ("fenced producer", vec![one("a", 1, 1, 0, 5), one("b", 2, 0, 5, 9)]),
            ("position goes back", vec![one("a", 1, 0, 0, 5), one("a", 2, 0, 5, 4)]),
            ("overlap", vec![one("a", 1, 0, 0, 5), one("a", 2, 0, 4, 9)]),
            ("hole", vec![one("a", 1, 0, 0, 5), one("a", 2, 0, 6, 9)]),
            ("input left out", {
                let mut without = one("a", 1, 0, 0, 5);
                without.after.clear();
                vec![without]
            }),
        ];
        for (kind, chain) in bad {
            let found = check(&chain, &start());
            assert!(kinds(&found).contains(&kind), "{kind}: {found:?}");
        }
    }

    #[test]
    fn of_a_chain_that_is_sampled_some_may_be_missed() {
        let follow = |chain: &[Transaction]| -> Vec<Violation> {
            let mut follower = Follower::sampled(start());
            chain.iter().flat_map(|one| follower.follow(one)).collect()
        };
        let fine = [one("a", 1, 0, 0, 5), one("a", 4, 0, 5, 9), one("a", 4, 0, 5, 9), one("b", 9, 1, 9, 9)];
        assert_eq!(follow(&fine).iter().filter(|one| one.kind != "overlap").count(), 0);
        let bad = [
            ("fork", vec![one("a", 3, 0, 0, 5), one("b", 3, 1, 5, 9)]),
            ("zombie", vec![one("a", 1, 0, 0, 5), one("b", 2, 1, 5, 9), one("a", 5, 0, 9, 12)]),
            ("position goes back", vec![one("a", 1, 0, 0, 5), one("a", 7, 0, 5, 4)]),
        ];
        for (kind, chain) in bad {
            assert!(kinds(&follow(&chain)).contains(&kind), "{kind}");
        }
    }

    #[test]
    fn offset_records_become_transactions() {
        let record = |topic: &str, offset, metadata: &str| OffsetRecord {
            partition: Partition::new(topic, 3),
            offset,
            metadata: metadata.into(),
            producer: Some(Producer { id: 1, epoch: 0 }),
        };
        let records = [
            record("a", 4, "x:1:-"),
            record("b", 9, "x:1:-"),
            record("a", 5, "x:2:-"),
            record("b", 9, "x:2:-"),
            record("b", 9, ""),
        ];
        let (found, violations) = transactions(&records, 3);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0].after,
            BTreeMap::from([(Partition::new("a", 3), 4), (Partition::new("b", 3), 9)])
        );
        assert_eq!(kinds(&violations), ["no stamp"]);
        assert_eq!(transactions(&records, 0).0, []);
        // One stamp that was committed twice does not melt into one transaction.
        let twice = [record("a", 4, "x:1:-"), record("a", 4, "x:1:-")];
        assert_eq!(transactions(&twice, 3).0.len(), 2);
    }
}
