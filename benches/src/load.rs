//! Fills topics: the same records for every contestant.

use std::time::Duration;

use anyhow::anyhow;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::cluster::Cluster;

/// Bytes of key and value together.
pub const RECORD_SIZE: usize = 100;

/// Random numbers that are the same in every run (splitmix64).
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// A producer as the load generators use it.
pub fn producer(cluster: &Cluster) -> anyhow::Result<BaseProducer> {
    let mut config = cluster.client();
    config.set("partitioner", "murmur2_random").set("enable.idempotence", "true");
    config.set("queue.buffering.max.messages", "1000000").set("linger.ms", "20");
    Ok(config.create()?)
}

/// `records` words of 100 bytes with random keys out of `keys`.
pub fn words(cluster: &Cluster, topic: &str, records: u64, keys: u64) -> anyhow::Result<()> {
    let mut random = Random::new(1);
    fill(cluster, topic, (0..records).map(|_| format!("k{}", random.below(keys))))
}

/// Each of `keys` words once.
pub fn each_key(cluster: &Cluster, topic: &str, keys: u64) -> anyhow::Result<()> {
    fill(cluster, topic, (0..keys).map(|key| format!("k{key}")))
}

fn fill(cluster: &Cluster, topic: &str, keys: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let producer = producer(cluster)?;
    let filler = "x".repeat(RECORD_SIZE);
    for (number, key) in keys.enumerate() {
        let value = &filler[..RECORD_SIZE - key.len()];
        send(&producer, BaseRecord::to(topic).key(key.as_str()).payload(value))?;
        if number % 1000 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(())
}

/// Sends, waiting where the queue is full.
pub fn send(producer: &BaseProducer, record: BaseRecord<'_, str, str>) -> anyhow::Result<()> {
    let mut record = record;
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                producer.poll(Duration::from_millis(5));
                record = back;
            }
            Err((error, _)) => return Err(anyhow!("can't load the input: {error}")),
        }
    }
}
