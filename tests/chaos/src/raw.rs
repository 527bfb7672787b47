//! Logs as they lie on the brokers, with producers and markers: what no consumer shows.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::time::Duration;

use anyhow::{Context, anyhow};
use flechtwerk_checkers::Producer;
use flechtwerk_checkers::batches::{Batch, Content, Fate, fates};
use flechtwerk_conformance::read::ReadBatch;
use flechtwerk_conformance::{Client, EARLIEST, LATEST, Record, UNCOMMITTED};
use flechtwerk_tests::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};

/// How long the metadata may take.
const METADATA: Duration = Duration::from_secs(20);
/// How often a read is tried when leaders move.
const TRIES: u32 = 30;

/// Reads partitions from their leaders.
pub struct Reader {
    consumer: BaseConsumer,
    clients: BTreeMap<i32, Client>,
}

/// Where a log begins, is stable to, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Of the first record that is still there.
    pub start: i64,
    /// The last stable offset.
    pub stable: i64,
    /// The high watermark.
    pub high: i64,
}

impl Reader {
    /// Of a cluster whose brokers all run.
    pub fn new(kafka: &Kafka) -> anyhow::Result<Reader> {
        Ok(Reader { consumer: kafka.config().create()?, clients: BTreeMap::new() })
    }

    /// A connection to the leader of a partition.
    fn leader(&mut self, topic: &str, partition: i32) -> anyhow::Result<&mut Client> {
        let metadata = self.consumer.fetch_metadata(Some(topic), METADATA)?;
        let of_topic = metadata.topics().iter().find(|one| one.name() == topic);
        let leader = of_topic
            .and_then(|topic| topic.partitions().iter().find(|one| one.id() == partition))
            .map(|one| one.leader());
        let broker = metadata.brokers().iter().find(|one| Some(one.id()) == leader);
        let broker = broker.ok_or_else(|| anyhow!("{topic}/{partition} has no leader"))?;
        let address = (broker.host(), broker.port() as u16).to_socket_addrs()?.next();
        let address = address.ok_or_else(|| anyhow!("{}:{} is no address", broker.host(), broker.port()))?;
        Ok(self.clients.entry(broker.id()).or_insert_with(|| Client::connect(address)))
    }

    /// Both ends of a log, and how far it is stable.
    pub fn extent(&mut self, topic: &str, partition: i32) -> anyhow::Result<Extent> {
        patiently(|| {
            let client = self.leader(topic, partition)?;
            let mut ask = |which, isolation| {
                let answer = client.list_offset(topic, partition, which, isolation);
                answer.map_err(|error| anyhow!("the ends of {topic}/{partition}: {error:?}"))
            };
            Ok(Extent {
                start: ask(EARLIEST, UNCOMMITTED)?,
                stable: ask(LATEST, flechtwerk_conformance::COMMITTED)?,
                high: ask(LATEST, UNCOMMITTED)?,
            })
        })
    }

    /// Hands all batches of a partition to `take`, in their order.
    pub fn read(
        &mut self,
        topic: &str,
        partition: i32,
        take: &mut dyn FnMut(ReadBatch),
    ) -> anyhow::Result<Extent> {
        let extent = self.extent(topic, partition)?;
        self.read_from(topic, partition, extent.start, extent, take)?;
        Ok(extent)
    }

    fn read_from(
        &mut self,
        topic: &str,
        partition: i32,
        start: i64,
        extent: Extent,
        take: &mut dyn FnMut(ReadBatch),
    ) -> anyhow::Result<()> {
        let mut next = start;
        while next < extent.high {
            let fetched = patiently(|| {
                let client = self.leader(topic, partition)?;
                let answer = client.fetch(topic, partition, next, UNCOMMITTED);
                answer.map_err(|error| anyhow!("read {topic}/{partition} from {next} on: {error:?}"))
            })?;
            let before = next;
            for batch in fetched.batches {
                next = batch.last_offset + 1;
                // The first may begin before what was asked for.
                if batch.last_offset >= before {
                    take(batch);
                }
            }
            if next == before {
                return Err(anyhow!("{topic}/{partition} ends at {next} and not at {}", extent.high));
            }
        }
        Ok(())
    }

    /// Offset of the last record that is committed, in a log that nobody writes to.
    pub fn last(&mut self, topic: &str, partition: i32) -> anyhow::Result<Option<i64>> {
        let mut window = 1000;
        loop {
            let mut batches = Vec::new();
            let extent = self.extent(topic, partition)?;
            let start = (extent.high - window).max(extent.start);
            self.read_from(topic, partition, start, extent, &mut |batch| {
                batches.extend(checked(batch, &|_, _| Ok(())));
            })?;
            let last = fates(&batches).into_iter().rev().find(|one| one.fate == Fate::Committed);
            if last.is_some() || start == extent.start {
                return Ok(last.map(|one| one.offset));
            }
            window *= 4;
        }
    }

    /// All batches of a partition, with each record as `of` reads it: one for the checkers.
    pub fn batches<T>(
        &mut self,
        topic: &str,
        partition: i32,
        of: &dyn Fn(i64, Record) -> anyhow::Result<T>,
    ) -> anyhow::Result<Log<T>> {
        let (mut batches, mut ends, mut failed) = (Vec::new(), Vec::new(), None);
        let extent = self.read(topic, partition, &mut |batch| {
            let time = batch.max_timestamp;
            match checked(batch, of) {
                Ok(batch) => {
                    if let (Content::Marker { commit }, Some(producer)) = (&batch.content, batch.producer) {
                        ends.push(End { time, producer, commit: *commit });
                    }
                    batches.push(batch);
                }
                Err(error) => failed = Some(error),
            }
        })?;
        match failed {
            Some(error) => Err(error).with_context(|| format!("{topic}/{partition}")),
            None => Ok(Log { batches, ends, extent }),
        }
    }
}

/// The end of a transaction, as its marker tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When it was written: milliseconds since 1970.
    pub time: i64,
    /// Whose transaction.
    pub producer: Producer,
    /// Committed, otherwise aborted.
    pub commit: bool,
}

/// A partition's log.
#[derive(Debug)]
pub struct Log<T> {
    /// Records and markers.
    pub batches: Vec<Batch<T>>,
    /// The markers with their times.
    pub ends: Vec<End>,
    /// How far it goes.
    pub extent: Extent,
}

/// A batch for the checkers.
fn checked<T>(batch: ReadBatch, of: &dyn Fn(i64, Record) -> anyhow::Result<T>) -> anyhow::Result<Batch<T>> {
    anyhow::ensure!(batch.crc_is_right, "the batch at {} has a wrong checksum", batch.base_offset);
    let producer = Producer { id: batch.producer_id, epoch: batch.producer_epoch };
    let content = if batch.is_control() {
        Content::Marker { commit: batch.is_commit() }
    } else {
        let records = batch.records.iter().map(|(offset, record)| {
            let read =
                of(*offset, record.clone()).with_context(|| format!("the record at offset {offset}"))?;
            Ok((*offset, read))
        });
        Content::Records(records.collect::<anyhow::Result<_>>()?)
    };
    let producer = batch.is_transactional().then_some(producer);
    Ok(Batch { base_offset: batch.base_offset, producer, content })
}

/// Tries again for a while: leaders move when brokers come back.
fn patiently<T>(mut ask: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut tries = 0;
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use flechtwerk_dev_broker::{DevBroker, NewTopic};
    use flechtwerk_tests::kafka::{Write, send};
    use rdkafka::producer::Producer as _;

    use super::*;

    #[test]
    fn raw_batches_tell_what_was_aborted_and_by_whom() {
        let broker = DevBroker::builder().start().expect("a broker");
        broker.create_topic(NewTopic::new("raw", 1)).expect("a topic");
        let kafka = Kafka { brokers: broker.bootstrap() };
        let limit = Duration::from_secs(20);
        let producer = kafka.open_transaction("t");
        send(&producer, "raw", &Write::new("a", "aborted"));
        producer.flush(limit).expect("flush");
        producer.abort_transaction(limit).expect("abort");
        producer.begin_transaction().expect("begin");
        send(&producer, "raw", &Write::new("a", "committed"));
        producer.commit_transaction(limit).expect("commit");
        kafka.write("raw", [Write::new("a", "plain")]);

        let mut reader = Reader::new(&kafka).expect("a reader");
        let value = |_, record: Record| Ok(record.value.unwrap_or_default());
        let log = reader.batches("raw", 0, &value).expect("the log");
        let found: Vec<_> = fates(&log.batches)
            .into_iter()
            .map(|one| (one.record, one.fate, one.producer.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                (b"aborted".to_vec(), Fate::Aborted, true),
                (b"committed".to_vec(), Fate::Committed, true),
                (b"plain".to_vec(), Fate::Committed, false),
            ]
        );
        assert_eq!(log.ends.iter().map(|end| end.commit).collect::<Vec<_>>(), [false, true]);
        assert!(log.ends.iter().all(|end| end.time > 1_500_000_000_000), "{:?}", log.ends);
        assert_eq!((log.extent.start, log.extent.stable, log.extent.high), (0, 5, 5));
        assert_eq!(reader.last("raw", 0).expect("the last record"), Some(4));
        let fails = |_, _| -> anyhow::Result<()> { Err(anyhow!("unreadable")) };
        assert!(reader.batches("raw", 0, &fails).is_err());
    }
}
