//! A cluster to test against, and short cuts to write tests with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::glue::{Cause, OutputRecord, Outputs, RawRecord};
use crate::kafka::{ClientSettings, Kafka, ReaderKind};
use crate::port::{
    BrokerError, Cluster, ErrorKind, Group, GroupEvent, NewTopic, OffsetCommit, Producer, Queue, Reader,
    TopicPartition, Wake,
};
use crate::record::Headers;

/// Far more than anything takes; only failures wait for it.
pub(super) const LONG: Duration = Duration::from_secs(30);

pub(super) fn brokers() -> String {
    std::env::var("FLECHTWERK_TEST_BROKERS")
        .unwrap_or_else(|_| panic!("FLECHTWERK_TEST_BROKERS is not set: start one with scripts/kafka"))
}

pub(super) fn settings() -> ClientSettings {
    ClientSettings { session_timeout: Duration::from_secs(6), ..ClientSettings::new(brokers()) }
}

pub(super) fn kafka() -> Kafka {
    Kafka::new(settings())
}

/// A name that no other test, and no earlier run, has used.
pub(super) fn unique(name: &str) -> Arc<str> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Arc::from(format!("{name}-{since}-{}-{}", std::process::id(), COUNT.fetch_add(1, SeqCst)))
}

pub(super) fn new_topic(name: &Arc<str>, partitions: i32, config: &[(&str, &str)]) -> NewTopic {
    let config: BTreeMap<String, String> =
        config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    NewTopic { name: Arc::clone(name), partitions, replication_factor: 1, config }
}

/// Creates a topic of its own for a test.
pub(super) fn topic(kafka: &Kafka, name: &str, partitions: i32) -> Arc<str> {
    let name = unique(name);
    create(&*kafka.cluster().unwrap(), &new_topic(&name, partitions, &[]));
    name
}

pub(super) fn create(cluster: &dyn Cluster, topic: &NewTopic) {
    for (name, outcome) in cluster.create_topics(std::slice::from_ref(topic), LONG).unwrap() {
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

pub(super) fn at(topic: &Arc<str>, partition: i32) -> TopicPartition {
    TopicPartition { topic: Arc::clone(topic), partition }
}

/// Repeats `ask` until it answers something; fails with `what` when that takes too long.
pub(super) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LONG;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Repeats a call as its error asks for.
pub(super) fn persist<T>(mut call: impl FnMut() -> Result<T, BrokerError>) -> Result<T, BrokerError> {
    let until = Instant::now() + LONG;
    loop {
        match call() {
            Err(error)
                if matches!(error.kind, ErrorKind::Retriable | ErrorKind::TimedOut)
                    && Instant::now() < until => {}
            result => return result,
        }
    }
}

/// Outputs for one topic with these values, to one partition.
pub(super) fn outputs(partition: i32, values: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Outputs {
    let mut outputs = Outputs::default();
    for (index, value) in values.into_iter().enumerate() {
        let start = outputs.bytes.len();
        outputs.bytes.extend_from_slice(value.as_ref());
        outputs.records.push(OutputRecord {
            topic: 0,
            key: None,
            value: Some(start..outputs.bytes.len()),
            timestamp: 1_700_000_000_000 + index as i64,
            partition: Some(partition),
            headers: Headers::default(),
            cause: Cause { input: 0, partition: 0, offset: index as i64 },
        });
    }
    outputs
}

/// A producer that has fenced its id.
pub(super) fn producer(kafka: &Kafka, id: &str, warm_up: &str) -> Box<dyn Producer> {
    persist(|| {
        let mut producer = kafka.producers().create(id, warm_up)?;
        producer.fence(Duration::from_millis(500))?;
        Ok(producer)
    })
    .unwrap()
}

pub(super) fn commit(producer: &mut dyn Producer) -> Result<(), BrokerError> {
    persist(|| producer.commit(Duration::from_millis(200)))
}

/// One committed transaction with these values.
pub(super) fn write(
    producer: &mut dyn Producer,
    topic: &Arc<str>,
    partition: i32,
    values: impl IntoIterator<Item = impl AsRef<[u8]>>,
) {
    producer.begin().unwrap();
    producer.produce(&outputs(partition, values), std::slice::from_ref(topic)).unwrap();
    commit(producer).unwrap();
}

pub(super) fn offset(topic: &Arc<str>, partition: i32, offset: i64, metadata: &str) -> OffsetCommit {
    OffsetCommit { at: at(topic, partition), offset, metadata: metadata.to_owned() }
}

pub(super) fn reader(kafka: &Kafka) -> Arc<dyn Reader> {
    kafka.reader(&unique("reader"), ReaderKind::Inputs { headers: true }).unwrap()
}

pub(super) fn no_wake() -> Wake {
    Arc::new(|| {})
}

/// Reads until the end of the partition is seen at `end` or beyond.
pub(super) fn read_to(queue: &mut dyn Queue, end: i64) -> Vec<RawRecord> {
    let mut records = Vec::new();
    let mut position = 0;
    eventually("the end of the partition", || {
        let before = records.len();
        let taken = queue.take(1000, usize::MAX, &mut records).unwrap();
        assert_eq!(records.len() - before, taken.records);
        position = position.max(taken.end.unwrap_or(0)).max(records.last().map_or(0, |last| last.offset + 1));
        (position >= end).then_some(())
    });
    records
}

pub(super) fn values(records: &[RawRecord]) -> Vec<Bytes> {
    records.iter().map(|record| record.value.clone().unwrap()).collect()
}

/// A member and what was said to it.
pub(super) struct Joined {
    pub(super) group: Arc<dyn Group>,
    events: std::sync::mpsc::Receiver<GroupEvent>,
}

pub(super) fn join(kafka: &Kafka, group: &str, topic: &Arc<str>, instance: Option<&str>) -> Joined {
    let (send, events) = std::sync::mpsc::channel();
    let send = std::sync::Mutex::new(send);
    let told = Box::new(move |event| drop(send.lock().unwrap().send(event)));
    Joined { group: kafka.join(group, std::slice::from_ref(topic), instance, told).unwrap(), events }
}

impl Joined {
    pub(super) fn next(&self) -> GroupEvent {
        self.events.recv_timeout(LONG).expect("an event of the group")
    }

    /// The partitions of the next assignment; whatever comes before it is passed over.
    pub(super) fn assigned(&self) -> Vec<i32> {
        loop {
            if let GroupEvent::Assigned(partitions) = self.next() {
                let mut numbers: Vec<i32> = partitions.iter().map(|at| at.partition).collect();
                numbers.sort_unstable();
                return numbers;
            }
        }
    }

    pub(super) fn leave(self) {
        self.group.leave(false, LONG).unwrap();
    }
}
