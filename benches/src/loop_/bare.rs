//! The fastest that a changelog can be read: one consumer, all partitions, nothing kept.

use std::time::{Duration, Instant};

use anyhow::ensure;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::native::{Kind, Queue, Taken};

/// See [`read_bare`].
#[derive(Clone, Copy, Debug)]
pub struct Bare {
    /// Records read.
    pub records: u64,
    /// From the assignment to the last partition's end.
    pub time: Duration,
}

/// Reads a topic to its end, `read_committed`, with a consumer that is connected already.
pub fn read_bare(bootstrap_servers: &str, topic: &str, partitions: i32) -> anyhow::Result<Bare> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap_servers).set("group.id", "flechtwerk-benches-bare");
    config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
    config
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .set("fetch.queue.backoff.ms", "10");
    let consumer: BaseConsumer = config.create()?;
    let limit = Duration::from_secs(10);
    for partition in 0..partitions {
        consumer.fetch_watermarks(topic, partition, limit)?;
    }
    // SAFETY: the queue is dropped before the consumer.
    let queue = unsafe { Queue::of_consumer(consumer.client().native_ptr())? };
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    let started = Instant::now();
    consumer.assign(&all)?;
    let (mut records, mut ended) = (0, 0);
    let mut taken = Taken::default();
    while ended < partitions {
        ensure!(started.elapsed() < Duration::from_secs(120), "the changelog can't be read to its end");
        for message in queue.take(Duration::from_millis(100), 5000, &mut taken) {
            match message.kind()? {
                Kind::Record => records += 1,
                Kind::EndOfPartition => ended += 1,
            }
        }
    }
    let time = started.elapsed();
    drop(taken);
    drop(queue);
    Ok(Bare { records, time })
}
