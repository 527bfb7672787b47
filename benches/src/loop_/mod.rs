//! The yardstick: counting per key, exactly once, written by hand on rdkafka and tuned for throughput.
//!
//! It does the work of the stage `count` with the same guarantee and the same bytes on the wire: one
//! transactional producer per partition, each batch's outputs, changelog records and input offset in one
//! transaction, state in a `HashMap` that a restart restores from the changelog. What it leaves out is what a
//! program for one job does without: it ends at any error and lets its supervisor start it again, and one
//! rebalance restarts all its partitions.
//!
//! What makes it fast: up to 5,000 records a transaction, the next batch computed while the last one commits,
//! records taken and produced in batches through librdkafka's C functions, one buffer per batch instead of
//! allocations per record, and a linger that leaves the sending of a batch to the commit's flush.
#![allow(unsafe_code)]

mod bare;
mod batch;
mod member;
mod native;
mod restore;
mod task;

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

pub use bare::{Bare, read_bare};
pub use member::run;
pub use native::commit;

/// What the loop is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the cluster is.
    pub bootstrap_servers: String,
    /// The topic whose records are counted.
    pub input: String,
    /// Gets one record per input record: the key and its count so far.
    pub output: String,
    /// Compacted, as many partitions as the input.
    pub changelog: String,
    /// The consumer group, and the prefix of the transactional ids.
    pub group: String,
    /// At most one commit of a partition in this time, unless a batch is full.
    pub commit_interval: Duration,
    /// A batch with this many records is full.
    pub max_poll_records: usize,
    /// Settings of librdkafka, `consumer.` or `producer.` before the name.
    pub overrides: Vec<(String, String)>,
}

impl Settings {
    fn client(&self, kind: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap_servers);
        config.set_log_level(RDKafkaLogLevel::Warning);
        match kind {
            "consumer" => {
                config.set("enable.auto.commit", "false");
                config.set("enable.auto.offset.store", "false");
                config.set("isolation.level", "read_committed");
                config.set("auto.offset.reset", "error");
                config.set("session.timeout.ms", "10000");
                config.set("fetch.queue.backoff.ms", "10");
            }
            _ => {
                config.set("partitioner", "murmur2_random");
                config.set("delivery.report.only.error", "true");
                config.set("transaction.timeout.ms", "15000");
                // AddPartitions answers CONCURRENT_TRANSACTIONS right after a commit and backs off by this.
                config.set("retry.backoff.ms", "1");
                // A commit flushes at once; until then records collect into one request a partition.
                config.set("linger.ms", "100");
            }
        }
        for (key, value) in &self.overrides {
            if let Some(key) = key.strip_prefix(kind).and_then(|key| key.strip_prefix('.')) {
                config.set(key, value);
            }
        }
        config
    }
}
