//! What is checked while the faults go on: a reader of the output sees no value go back, twice or out of order (I7), and the
//! committed positions of each task form one chain (I1). The first violation ends the run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use flechtwerk_checkers::outputs::{Reading, Watch};
use flechtwerk_checkers::tiling::{Follower, OffsetRecord, Transaction, transactions};
use flechtwerk_checkers::{Partition, Violation};
use flechtwerk_tests::Kafka;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Headers;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::json;

use crate::feed::place;
use crate::journal::Journal;
use crate::names::Names;
use crate::offsets;
use crate::pipeline::{AT, BY, SEQ};

/// Between two looks at positions and ends.
const LOOK: Duration = Duration::from_secs(1);
/// How long one request may take: a broker may be down.
const REQUEST: Duration = Duration::from_secs(5);

/// A name of a call, as two numbers.
pub type Call = (u64, u64);

/// Reads the header `by`.
pub fn call(text: &[u8]) -> Option<Call> {
    let (process, count) = std::str::from_utf8(text).ok()?.split_once('.')?;
    Some((u64::from_str_radix(process, 16).ok()?, count.parse().ok()?))
}

/// What is found while it runs.
#[derive(Clone, Default)]
pub struct Found {
    violations: Arc<Mutex<Vec<Violation>>>,
}

impl Found {
    /// Adds some.
    pub fn add(&self, violations: impl IntoIterator<Item = Violation>) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).extend(violations);
    }

    /// All so far.
    pub fn all(&self) -> Vec<Violation> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Threads that watch until they are told to quit.
pub struct Watchers {
    found: Found,
    quit: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Outputs that were read.
    pub outputs: Arc<AtomicU64>,
    /// The offset behind the last output that was read, by partition.
    pub ends: Arc<Mutex<BTreeMap<i32, i64>>>,
    /// Transactions that were seen to be committed.
    pub commits: Arc<AtomicU64>,
    /// The last positions, by stage and partition.
    pub positions: Arc<Mutex<BTreeMap<(usize, i32), i64>>>,
    folder: PathBuf,
}

impl Watchers {
    /// Starts them. `folder`: what was read is kept there. `offsets_topic`: the cluster lets the committed offsets be read.
    pub fn start(
        kafka: &Kafka,
        names: &Names,
        partitions: i32,
        folder: &Path,
        journal: &Journal,
        offsets_topic: bool,
    ) -> anyhow::Result<Watchers> {
        let mut watchers = Watchers {
            found: Found::default(),
            quit: Arc::default(),
            threads: Vec::new(),
            outputs: Arc::default(),
            ends: Arc::default(),
            commits: Arc::default(),
            positions: Arc::default(),
            folder: folder.to_owned(),
        };
        watchers.observe(kafka, names.tallies(), partitions, journal)?;
        if offsets_topic {
            watchers.follow(kafka, names)?;
        }
        watchers.look(kafka, names, partitions, journal, !offsets_topic)?;
        Ok(watchers)
    }

    /// What was found so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Ends all, so that the files are whole.
    pub fn quit(&mut self) {
        self.quit.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.found.add([Violation::new(
                    flechtwerk_checkers::Check::Observer,
                    "the rig",
                    "a watcher has panicked",
                )]);
            }
        }
    }

    /// What the observer has read of a partition: offsets and calls.
    pub fn observed(&self, partition: i32) -> anyhow::Result<Vec<(i64, Call)>> {
        let path = observed_path(&self.folder, partition);
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .with_context(|| format!("read {}", path.display()))?;
        let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap_or_default());
        let chunks = bytes.chunks_exact(24);
        Ok(chunks.map(|one| (number(&one[..8]) as i64, (number(&one[8..16]), number(&one[16..])))).collect())
    }

    /// I7: reads the output as a user would.
    fn observe(
        &mut self,
        kafka: &Kafka,
        topic: &str,
        partitions: i32,
        journal: &Journal,
    ) -> anyhow::Result<()> {
        let consumer = reading(kafka, topic, partitions)?;
        let mut files = BTreeMap::new();
        for partition in 0..partitions {
            let path = observed_path(&self.folder, partition);
            let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
            files.insert(partition, BufWriter::new(file));
        }
        let (quit, found, topic) = (self.quit.clone(), self.found.clone(), topic.to_owned());
        let (outputs, ends) = (self.outputs.clone(), self.ends.clone());
        let (mut watch, journal) = (Watch::default(), journal.clone());
        let places: Vec<Partition> = (0..partitions).map(|number| Partition::new(&topic, number)).collect();
        self.threads.push(std::thread::spawn(move || {
            each(&consumer, &quit, |message| {
                let header = |name: &str| {
                    let headers = message.headers()?;
                    headers.iter().find(|header| header.key == name).and_then(|header| header.value)
                };
                let seq = header(SEQ).and_then(|seq| std::str::from_utf8(seq).ok()?.parse().ok());
                let reading = Reading {
                    at: places[message.partition() as usize].clone(),
                    offset: message.offset(),
                    key: message.key().unwrap_or_default().to_vec(),
                    version: seq.unwrap_or(0),
                    made_of: header(AT).and_then(place).map(|(_, offset)| offset),
                };
                found.add(watch.see(&reading));
                let call = header(BY).and_then(call).unwrap_or_default();
                if let Some(file) = files.get_mut(&message.partition()) {
                    let numbers = [message.offset() as u64, call.0, call.1];
                    let written = numbers.iter().try_for_each(|one| file.write_all(&one.to_be_bytes())).err();
                    journal.failed(written);
                }
                outputs.fetch_add(1, Ordering::SeqCst);
                let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                ends.insert(message.partition(), message.offset() + 1);
            });
        }));
        Ok(())
    }

    /// I1, from the log of the committed offsets.
    fn follow(&mut self, kafka: &Kafka, names: &Names) -> anyhow::Result<()> {
        // The topic is there as soon as a group was asked for.
        let probe: BaseConsumer = kafka.config().set("group.id", &names.stages[0].group).create()?;
        let mut partitions = 0;
        flechtwerk_tests::wait_for("the topic of the committed offsets", || {
            let mut list = TopicPartitionList::new();
            list.add_partition(names.events(), 0);
            let _ = probe.committed_offsets(list, REQUEST);
            partitions = kafka.partitions(offsets::TOPIC);
            partitions > 0
        });
        let consumer = reading(kafka, offsets::TOPIC, partitions)?;
        let (quit, found, commits) = (self.quit.clone(), self.found.clone(), self.commits.clone());
        let names = names.clone();
        let mut followers: BTreeMap<Partition, Follower> = BTreeMap::new();
        self.threads.push(std::thread::spawn(move || {
            each(&consumer, &quit, |message| {
                let Some(commit) = offsets::commit(message.key(), message.payload()) else { return };
                let ours = |stage: &&crate::names::Stage| {
                    stage.group == commit.group && stage.input == commit.partition.topic
                };
                if names.stages.iter().find(ours).is_none() {
                    return;
                }
                commits.fetch_add(1, Ordering::SeqCst);
                let record = OffsetRecord {
                    partition: commit.partition,
                    offset: commit.offset,
                    metadata: commit.metadata,
                    producer: None,
                };
                found.add(next(&mut followers, record, false));
            });
        }));
        Ok(())
    }

    /// Asks for committed positions and ends now and then: the lag, and I1 where the log can't be read.
    fn look(
        &mut self,
        kafka: &Kafka,
        names: &Names,
        partitions: i32,
        journal: &Journal,
        check: bool,
    ) -> anyhow::Result<()> {
        let mut clients = Vec::new();
        for stage in &names.stages {
            let mut config = kafka.config();
            config.set("group.id", &stage.group).set("enable.auto.commit", "false");
            // What is committed, though a transaction is about to replace it: under load one always is.
            config.set("isolation.level", "read_uncommitted");
            let client: BaseConsumer = config.create()?;
            clients.push(client);
        }
        let (quit, found, commits) = (self.quit.clone(), self.found.clone(), self.commits.clone());
        let (names, journal, positions) = (names.clone(), journal.clone(), self.positions.clone());
        let mut followers: BTreeMap<Partition, Follower> = BTreeMap::new();
        self.threads.push(std::thread::spawn(move || {
            while !quit.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK);
                let mut sum = 0;
                for (number, (stage, client)) in names.stages.iter().zip(&clients).enumerate() {
                    let mut list = TopicPartitionList::new();
                    for partition in 0..partitions {
                        list.add_partition(&stage.input, partition);
                    }
                    // A coordinator may be moving.
                    let Ok(committed) = client.committed_offsets(list, REQUEST) else { continue };
                    let (mut numbers, mut lags, mut offsets, mut stamps) =
                        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
                    for one in committed.elements() {
                        let Offset::Offset(offset) = one.offset() else { continue };
                        let end = client.fetch_watermarks(&stage.input, one.partition(), REQUEST);
                        lags.push(end.ok().map(|(_, end)| (end - offset).max(0)));
                        numbers.push(one.partition());
                        offsets.push(offset);
                        stamps.push(one.metadata().to_owned());
                        positions
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .insert((number, one.partition()), offset);
                        if check {
                            let record = OffsetRecord {
                                partition: Partition::new(&stage.input, one.partition()),
                                offset,
                                metadata: one.metadata().to_owned(),
                                producer: None,
                            };
                            found.add(next(&mut followers, record, true));
                        }
                    }
                    sum += stamps.iter().filter_map(|stamp| counter(stamp)).sum::<u64>();
                    let data = json!({
                        "stage": stage.name, "partition": numbers, "lag": lags, "offset": offsets, "stamp": stamps,
                    });
                    journal.write("positions", data);
                }
                if check {
                    commits.fetch_max(sum, Ordering::SeqCst);
                }
            }
        }));
        Ok(())
    }
}

fn counter(stamp: &str) -> Option<u64> {
    flechtwerk_checkers::Stamp::parse(stamp).map(|stamp| stamp.counter)
}

/// Hands one record of the committed offsets to its task's chain.
fn next(
    followers: &mut BTreeMap<Partition, Follower>,
    record: OffsetRecord,
    sampled: bool,
) -> Vec<Violation> {
    let partition = record.partition.clone();
    let (chain, mut violations) = transactions(std::slice::from_ref(&record), partition.number);
    let follower = followers.entry(partition.clone()).or_insert_with(|| {
        let start = BTreeMap::from([(partition, 0)]);
        if sampled { Follower::sampled(start) } else { Follower::new(start) }
    });
    // A request that a client has sent again stands in the log twice. Whether that was in one transaction, only its markers can tell,
    // which are read at the end.
    let again = |one: &&Transaction| {
        follower.last().is_some_and(|last| last.stamp == one.stamp && last.after == one.after)
    };
    if chain.first().as_ref().is_some_and(again) {
        return violations;
    }
    for one in &chain {
        violations.extend(follower.follow(one));
    }
    violations
}

pub(crate) fn observed_path(folder: &Path, partition: i32) -> PathBuf {
    folder.join(format!("observed-{partition}.bin"))
}

/// A read_committed consumer of a whole topic.
fn reading(kafka: &Kafka, topic: &str, partitions: i32) -> anyhow::Result<BaseConsumer> {
    let consumer = kafka.consumer("read_committed");
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    Ok(consumer)
}

/// Hands each message to `take`, until it is told to quit.
fn each(
    consumer: &BaseConsumer,
    quit: &AtomicBool,
    mut take: impl FnMut(&rdkafka::message::BorrowedMessage<'_>),
) {
    while !quit.load(Ordering::SeqCst) {
        // Errors are of brokers that are killed on purpose, and come back.
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
            take(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        assert_eq!(call(b"00000000000000ff.12"), Some((255, 12)));
        for text in [&b""[..], b"12", b"x.1", b"1.x", b"\xff.1"] {
            assert_eq!(call(text), None);
        }
    }

    #[test]
    fn a_chain_that_forks_is_seen_at_once() {
        let mut followers = BTreeMap::new();
        let mut feed = |offset, metadata: &str| {
            let partition = Partition::new("events", 3);
            let record = OffsetRecord { partition, offset, metadata: metadata.into(), producer: None };
            next(&mut followers, record, false).into_iter().map(|one| one.kind).collect::<Vec<_>>()
        };
        assert!(feed(4, "a:1:-").is_empty());
        assert!(feed(9, "a:2:-").is_empty());
        assert!(feed(9, "a:2:-").is_empty(), "sent again");
        assert_eq!(feed(12, "b:2:-"), ["fork"]);
        assert_eq!(feed(12, "resetting"), ["no stamp"]);
    }
}
