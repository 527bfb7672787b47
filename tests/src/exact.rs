//! Whether the stage `tally` has done everything exactly once: what the cluster and the disk have of it, against a sequential
//! model, by the functions that the simulations use as well.
//!
//! Its topics have one number of partitions, and words go where their keys send them: so the words of a task and its outputs
//! lie in partitions of one number.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use flechtwerk_checkers::ends::{self, Ends, Progress};
use flechtwerk_checkers::outputs::{self, Output};
use flechtwerk_checkers::state::{self, Entries};
use flechtwerk_checkers::tiling::{self, OffsetRecord};
use flechtwerk_checkers::{Partition, Violation};
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde::Serialize;

use crate::case::transaction_sizes;
use crate::job::read_all;
use crate::{Case, DEADLINE, Seen, Stamp, wait_for};

/// Where a real cluster keeps what groups commit; the development broker has no such topic.
const OFFSETS: &str = "__consumer_offsets";

/// Looks at a stage from outside.
pub struct Exact {
    partitions: i32,
    committed: BaseConsumer,
    uncommitted: BaseConsumer,
}

/// Both ends of a topic, over all partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What a read_committed reader gets at most.
    pub stable: i64,
    /// All that is there.
    pub high: i64,
}

/// What the stage does with the words, one after the other.
#[derive(Default)]
struct Model {
    outputs: Vec<Output>,
    /// By task.
    state: BTreeMap<i32, Entries>,
}

impl Exact {
    /// Of a case whose topics have so many partitions.
    pub fn new(case: &Case, partitions: i32) -> Exact {
        let consumer = |isolation| case.kafka.consumer(isolation);
        Exact { partitions, committed: consumer("read_committed"), uncommitted: consumer("read_uncommitted") }
    }

    fn ends(&self, topic: &str) -> Vec<Ends> {
        let end = |consumer: &BaseConsumer, partition| {
            consumer.fetch_watermarks(topic, partition, DEADLINE).expect("watermarks").1
        };
        // The stable end first: it can only be less than the other one then.
        let one = |partition| Ends {
            at: Partition::new(topic, partition),
            stable: end(&self.committed, partition),
            high: end(&self.uncommitted, partition),
        };
        (0..self.partitions).map(one).collect()
    }

    /// Both ends of these topics, added up.
    pub fn end(&self, topics: &[&str]) -> End {
        let ends = topics.iter().flat_map(|topic| self.ends(topic));
        ends.fold(End { stable: 0, high: 0 }, |sum, one| End {
            stable: sum.stable + one.stable,
            high: sum.high + one.high,
        })
    }

    /// Waits until all that was written is processed and committed.
    #[track_caller]
    pub fn wait_processed(&self, case: &Case) {
        let ends = self.ends(case.topic("words"));
        wait_for("all words are committed", || {
            let committed = case.kafka.committed(&case.application_id(), case.topic("words"));
            ends.iter().all(|end| {
                end.high == 0 || committed.get(&end.at.number).is_some_and(|(at, _)| *at >= end.high)
            })
        });
    }

    /// Waits until all topics of the case are stable up to their ends, and all outputs are there. Transactions that nobody ends
    /// must have more time than [`DEADLINE`], or this waits for their end.
    #[track_caller]
    pub fn wait_settled(&self, case: &Case) {
        let joined = case.topic("joined");
        let expected = model(&read_all(&case.kafka, case.topic("words")), joined).outputs.len();
        wait_for(&format!("{expected} outputs, and no open transaction"), || {
            let End { stable, high } = self.end(&[joined, &case.changelog()]);
            stable == high && read_all(&case.kafka, joined).len() == expected
        });
    }

    /// All checks, once the instances have stopped cleanly; transactions that nobody ends as above. `state_dirs`: those of the instances that keep state on disk.
    #[track_caller]
    pub fn check(&self, case: &Case, state_dirs: &[PathBuf]) {
        let topics = [case.topic("words"), case.topic("joined"), &case.changelog()];
        // The last markers may come a moment after the answer that the transaction is committed.
        wait_for("no open transaction", || {
            let End { stable, high } = self.end(&topics);
            stable == high
        });
        let [words, joined, changelog] = topics.map(|topic| read_all(&case.kafka, topic));
        let model = model(&words, case.topic("joined"));
        let seen: Vec<Output> = joined.iter().map(|one| output(case.topic("joined"), one)).collect();
        let mut violations = outputs::check(&model.outputs, &seen);

        let ends: Vec<Ends> = topics.iter().flat_map(|topic| self.ends(topic)).collect();
        violations.extend(ends::hanging(&ends, &[]));
        let group = case.application_id();
        let committed = case.kafka.committed(&group, case.topic("words"));
        for number in 0..self.partitions {
            let of_task = |list: &[Seen]| -> Vec<Seen> {
                list.iter().filter(|one| one.partition == number).cloned().collect()
            };
            let (words, changes) = (of_task(&words), of_task(&changelog));
            let position = committed.get(&number);
            violations.extend(ends::liveness(
                &[Progress {
                    at: Partition::new(case.topic("words"), number),
                    last: words.last().map(|last| last.offset),
                    committed: position.map(|(offset, _)| *offset),
                }],
                &[],
                Duration::ZERO,
            ));
            let folded = state::folded(
                changes.iter().map(|one| (one.key.as_deref().expect("a key"), one.value.as_deref())),
            );
            let empty = Entries::new();
            let expected = model.state.get(&number).unwrap_or(&empty);
            let task = number.to_string();
            let stores = stores(state_dirs, &group, number, position.map(|(_, stamp)| stamp.as_str()));
            assert!(
                state_dirs.is_empty() || !stores.is_empty(),
                "no store has the last stamp of task {task}"
            );
            violations.extend(state::check(&task, None, &folded, expected));
            for store in &stores {
                violations.extend(state::check(&task, Some(store), &folded, expected));
            }
            // One for the positions of the start, and one for each transaction, all of which have changed some state.
            let (_, stamp) = position.expect("a committed position");
            let transactions = transaction_sizes(&changes).len() as u64;
            assert_eq!(Stamp::parse(stamp).counter, 1 + transactions, "the counter of task {task}");
        }
        assert_none(&violations);
    }

    /// I1, where the cluster lets it be seen: the stamps of all that was ever committed form one chain for each task.
    #[track_caller]
    pub fn check_chain(&self, case: &Case) {
        if case.kafka.partitions(OFFSETS) == 0 {
            return;
        }
        let group = case.application_id();
        let records: Vec<OffsetRecord> = read_all(&case.kafka, OFFSETS)
            .iter()
            .filter_map(|record| offset_record(record, &group))
            .collect();
        for number in 0..self.partitions {
            let (chain, mut violations) = tiling::transactions(&records, number);
            assert!(!chain.is_empty(), "task {number} of {group} has committed nothing");
            let start = BTreeMap::from([(Partition::new(case.topic("words"), number), 0)]);
            violations.extend(tiling::check(&chain, &start));
            assert_none(&violations);
        }
    }
}

#[track_caller]
fn assert_none(violations: &[Violation]) {
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} violations:\n{}", lines.len(), lines.join("\n"));
}

/// What `tally` keeps of a key.
#[derive(Clone, Default, Serialize)]
struct Sum {
    n: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    padding: String,
}

/// Does what `tally` does, with those commands that a test of it uses.
fn model(words: &[Seen], joined: &str) -> Model {
    let (mut model, mut sums) = (Model::default(), BTreeMap::<(i32, Vec<u8>), Sum>::new());
    for word in words {
        let key = word.key.clone().expect("a key");
        let place = (word.partition, key.clone());
        match word.value_text().split_once(':').unwrap_or((&word.value_text(), "")) {
            ("delete", _) => drop(sums.remove(&place)),
            ("grow", size) => {
                sums.entry(place).or_default().padding = "p".repeat(size.parse().expect("a size"));
            }
            _ => {
                let sum = sums.entry(place).or_default();
                sum.n += 1;
                let at = Partition::new(joined, word.partition);
                model.outputs.push(Output { at, key, value: sum.n.to_string().into_bytes() });
            }
        }
    }
    // The format that the semantics fix: a kind before the key, a version before the value.
    for ((task, key), sum) in sums {
        let value = serde_json::to_vec(&sum).expect("JSON");
        model.state.entry(task).or_default().insert([vec![0], key].concat(), [vec![1], value].concat());
    }
    model
}

/// An output as it lies in the topic.
fn output(topic: &str, seen: &Seen) -> Output {
    let part = |part: &Option<Vec<u8>>| part.clone().unwrap_or_default();
    Output { at: Partition::new(topic, seen.partition), key: part(&seen.key), value: part(&seen.value) }
}

/// What the stores of a task hold that bear this stamp; others are older, and nobody uses them any more.
#[cfg(feature = "rocksdb")]
fn stores(state_dirs: &[PathBuf], group: &str, number: i32, stamp: Option<&str>) -> Vec<Entries> {
    let mut found = Vec::new();
    for folder in state_dirs.iter().map(|dir| dir.join(group).join(number.to_string())) {
        if !folder.exists() {
            continue;
        }
        let db = rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), &folder, false)
            .unwrap_or_else(|error| panic!("open {}: {error}", folder.display()));
        let named = db.get(b"\xffstamp").expect("read the stamp");
        if named.as_deref() == stamp.map(str::as_bytes) {
            let entries = db.iterator(rocksdb::IteratorMode::Start).map(|entry| entry.expect("an entry"));
            // The store's own entries begin with one of the two largest bytes.
            let entries = entries.filter(|(key, _)| key[0] < 0xfe);
            found.push(entries.map(|(key, value)| (key.into_vec(), value.into_vec())).collect());
        }
    }
    found
}

#[cfg(not(feature = "rocksdb"))]
fn stores(_: &[PathBuf], _: &str, _: i32, _: Option<&str>) -> Vec<Entries> {
    Vec::new()
}

/// Reads a record of Kafka's own topic of committed offsets; `None` for one of another group, and for those of other kinds.
fn offset_record(record: &Seen, group: &str) -> Option<OffsetRecord> {
    let (mut key, mut value) = (Fields(record.key.as_deref()?), Fields(record.value.as_deref()?));
    // 2 and above: the group's members.
    key.number::<2>().filter(|version| (0..2).contains(version))?;
    key.text().filter(|name| name == group)?;
    let partition = Partition::new(key.text()?, i32::try_from(key.number::<4>()?).ok()?);
    let version = value.number::<2>()?;
    let offset = value.number::<8>()?;
    if version >= 3 {
        // The leader's epoch.
        value.number::<4>()?;
    }
    // From version 4 on texts are compact.
    let metadata = if version >= 4 { value.compact_text()? } else { value.text()? };
    Some(OffsetRecord { partition, offset, metadata, producer: None })
}

/// Kafka's encoding of fields, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number<const N: usize>(&mut self) -> Option<i64> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        let negative = bytes[0] & 0x80 != 0;
        Some(bytes.iter().fold(if negative { -1 } else { 0 }, |sum, byte| sum << 8 | i64::from(*byte)))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number::<2>()?).ok()?;
        self.take(length)
    }

    fn compact_text(&mut self) -> Option<String> {
        let (mut length, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            length |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                // One more than it is; zero is null.
                return self.take(length.checked_sub(1)?);
            }
        }
    }

    fn take(&mut self, length: usize) -> Option<String> {
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(key: &[u8], value: &[u8]) -> Seen {
        let (key, value) = (Some(key.to_vec()), Some(value.to_vec()));
        Seen { partition: 0, offset: 0, timestamp: 0, key, value, headers: Vec::new() }
    }

    #[test]
    fn committed_offsets_are_read_as_kafka_writes_them() {
        let key = b"\0\x01\0\x01g\0\x05words\0\0\0\x03";
        let value = b"\0\x03\0\0\0\0\0\0\x01\x02\xff\xff\xff\xff\0\x05x:7:-\0\0\0\0\0\0\0\0";
        let read = offset_record(&seen(key, value), "g").expect("an offset");
        assert_eq!((read.partition, read.offset), (Partition::new("words", 3), 258));
        assert_eq!(read.metadata, "x:7:-");
        let compact = b"\0\x04\0\0\0\0\0\0\x01\x02\xff\xff\xff\xff\x06x:7:-\0\0\0\0\0\0\0\0\0";
        let read = offset_record(&seen(key, compact), "g").expect("an offset");
        assert_eq!((read.offset, &*read.metadata), (258, "x:7:-"));
        assert_eq!(offset_record(&seen(key, value), "other"), None);
        assert_eq!(offset_record(&seen(b"\0\x02\0\x01g", value), "g"), None);
    }

    #[test]
    fn the_model_adds_up_and_deletes() {
        let word = |offset, key: &str, value: &str| Seen { offset, ..seen(key.as_bytes(), value.as_bytes()) };
        let words = [word(0, "a", "x"), word(1, "a", "x"), word(2, "b", "x"), word(3, "b", "delete")];
        let model = model(&words, "joined");
        let values: Vec<&[u8]> = model.outputs.iter().map(|one| &one.value[..]).collect();
        assert_eq!(values, [b"1", b"2", b"1"]);
        let state = BTreeMap::from([(b"\0a".to_vec(), b"\x01{\"n\":2}".to_vec())]);
        assert_eq!(model.state, BTreeMap::from([(0, state)]));
    }
}
