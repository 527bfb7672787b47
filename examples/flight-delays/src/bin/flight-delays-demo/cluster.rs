//! What the demo asks of the cluster, as an outsider: positions of partitions, and their records.

use std::time::{Duration, Instant};

use anyhow::Context;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

/// For single requests.
const LIMIT: Duration = Duration::from_secs(10);

/// Which records are shown.
#[derive(Clone, Copy)]
pub(crate) enum Isolation {
    /// Those of committed transactions.
    Committed,
    /// All that lie in the log.
    Everything,
}

/// Where a partition ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// For those who read committed records only: here the first open transaction begins.
    pub(crate) stable: i64,
    pub(crate) high: i64,
}

/// Two clients that see the same partitions, with and without open transactions.
pub(crate) struct Cluster {
    committed: BaseConsumer,
    everything: BaseConsumer,
}

impl Cluster {
    pub(crate) fn new(brokers: &str) -> anyhow::Result<Self> {
        Ok(Self {
            committed: consumer(brokers, Isolation::Committed)?,
            everything: consumer(brokers, Isolation::Everything)?,
        })
    }

    pub(crate) fn partitions(&self, topic: &str) -> anyhow::Result<Vec<i32>> {
        let metadata = self
            .committed
            .fetch_metadata(Some(topic), LIMIT)
            .with_context(|| format!("asking for topic {topic}"))?;
        let found = metadata.topics().first().context("no answer about the topic")?;
        Ok(found.partitions().iter().map(|partition| partition.id()).collect())
    }

    /// Asks for the stable end first, so that a transaction that ends in between is taken for an open one at worst.
    pub(crate) fn ends(&self, topic: &str, partition: i32) -> anyhow::Result<Ends> {
        let end = |client: &BaseConsumer| {
            let start = Instant::now();
            loop {
                match client.fetch_watermarks(topic, partition, LIMIT) {
                    Ok((_, end)) => return Ok(end),
                    // Partitions of a topic that was just made have no leader yet.
                    Err(_) if start.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(50)),
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("asking for the end of {topic}[{partition}]"));
                    }
                }
            }
        };
        Ok(Ends { stable: end(&self.committed)?, high: end(&self.everything)? })
    }
}

/// A consumer that belongs to no group; it is named all the same, as the client demands.
fn consumer(brokers: &str, isolation: Isolation) -> anyhow::Result<BaseConsumer> {
    let level = match isolation {
        Isolation::Committed => "read_committed",
        Isolation::Everything => "read_uncommitted",
    };
    let consumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "flight-delays-demo")
        .set("isolation.level", level)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.wait.max.ms", "100")
        .create()?;
    Ok(consumer)
}

/// Reads a topic from its beginning.
pub(crate) struct Reader {
    consumer: BaseConsumer,
    topic: String,
    partitions: usize,
}

/// What [`Reader::next`] came upon.
pub(crate) enum Read {
    /// A record: key and value.
    Record(Vec<u8>, Vec<u8>),
    /// The end of this partition, for now.
    End(i32),
    /// Nothing within the time.
    Nothing,
}

impl Reader {
    pub(crate) fn new(
        brokers: &str,
        topic: &str,
        partitions: &[i32],
        isolation: Isolation,
    ) -> anyhow::Result<Self> {
        let consumer = consumer(brokers, isolation)?;
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition_offset(topic, *partition, Offset::Beginning)?;
        }
        consumer.assign(&list)?;
        Ok(Self { consumer, topic: topic.to_owned(), partitions: partitions.len() })
    }

    pub(crate) fn next(&self, limit: Duration) -> anyhow::Result<Read> {
        match self.consumer.poll(limit) {
            None => Ok(Read::Nothing),
            Some(Ok(record)) => {
                let bytes = |part: Option<&[u8]>| part.unwrap_or_default().to_vec();
                Ok(Read::Record(bytes(record.key()), bytes(record.payload())))
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => Ok(Read::End(partition)),
            Some(Err(error)) => Err(error).with_context(|| format!("reading topic {}", self.topic)),
        }
    }

    /// Hands over all records up to the end. For topics that nobody writes to any more.
    pub(crate) fn read_all(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut ended = std::collections::BTreeSet::new();
        let mut last = Instant::now();
        while ended.len() < self.partitions {
            match self.next(Duration::from_millis(500))? {
                Read::Record(key, value) => each(&key, &value)?,
                Read::End(partition) => drop(ended.insert(partition)),
                Read::Nothing if last.elapsed() < LIMIT => continue,
                Read::Nothing => anyhow::bail!("topic {} could not be read to its end", self.topic),
            }
            last = Instant::now();
        }
        Ok(())
    }
}
