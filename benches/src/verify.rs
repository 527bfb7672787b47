//! Whether a contestant did the work it was measured at: what it wrote is compared with a recount of its input.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use crate::cluster::Cluster;

type Record<'a> = (&'a [u8], Option<&'a [u8]>, i64);

/// Reads a topic from its beginning to its end, `read_committed`.
pub fn read_all(
    cluster: &Cluster,
    topic: &str,
    mut record: impl FnMut(Record<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let consumer: BaseConsumer = cluster.consumer("flechtwerk-benches-verify")?;
    let partitions = cluster.partitions(topic)? as i32;
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    let (mut ended, mut records) = (0, 0);
    while ended < partitions {
        match consumer.poll(Duration::from_secs(30)).context("nothing more comes and the end was not seen")? {
            Ok(message) => {
                records += 1;
                let timestamp = message.timestamp().to_millis().unwrap_or(-1);
                record((message.key().unwrap_or_default(), message.payload(), timestamp))?;
            }
            Err(KafkaError::PartitionEOF(_)) => ended += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(records)
}

/// What counting `input` must give: per key the timestamps of its records, in order.
pub fn recount(cluster: &Cluster, input: &str) -> anyhow::Result<HashMap<Vec<u8>, Vec<i64>>> {
    let mut expected: HashMap<Vec<u8>, Vec<i64>> = HashMap::new();
    read_all(cluster, input, |(key, _, timestamp)| {
        expected.entry(key.to_vec()).or_default().push(timestamp);
        Ok(())
    })?;
    Ok(expected)
}

/// One output per input, counting up per key, with the input's timestamp; a changelog that ends at the counts.
pub fn verify(
    cluster: &Cluster,
    expected: &HashMap<Vec<u8>, Vec<i64>>,
    output: &str,
    changelog: &str,
) -> anyhow::Result<()> {
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    read_all(cluster, output, |(key, value, timestamp)| {
        let count = counts.entry(key.to_vec()).or_default();
        *count += 1;
        let name = String::from_utf8_lossy(key);
        ensure!(
            value == Some(count.to_string().as_bytes()),
            "the output number {count} of {name} is not {count}"
        );
        let wanted = expected.get(key).and_then(|timestamps| timestamps.get(*count - 1));
        ensure!(
            wanted == Some(&timestamp),
            "the output number {count} of {name} has not the timestamp of its input"
        );
        Ok(())
    })?;
    for (key, timestamps) in expected {
        let (wanted, found) = (timestamps.len(), counts.get(key).copied().unwrap_or_default());
        ensure!(wanted == found, "{} has {found} outputs, not {wanted}", String::from_utf8_lossy(key));
    }
    let mut states: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    read_all(cluster, changelog, |(key, value, _)| {
        states.insert(key.to_vec(), value.unwrap_or_default().to_vec());
        Ok(())
    })?;
    ensure!(
        states.len() == expected.len(),
        "the changelog has {} keys, not {}",
        states.len(),
        expected.len()
    );
    for (key, timestamps) in expected {
        let state = states.get([&[0], key.as_slice()].concat().as_slice());
        let wanted = format!("\u{1}{{\"n\":{}}}", timestamps.len());
        ensure!(
            state.map(Vec::as_slice) == Some(wanted.as_bytes()),
            "the changelog does not end at the count of {}",
            String::from_utf8_lossy(key)
        );
    }
    Ok(())
}
