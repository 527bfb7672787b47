//! Looks whether a transaction is open on the outputs, so that kills meet one more often than chance would have it.

use std::time::Duration;

use flechtwerk_tests::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::names::Names;

/// One request: a broker may be down.
const REQUEST: Duration = Duration::from_secs(1);
/// Who works ends a transaction within this on an idle machine.
const AGAIN: Duration = Duration::from_millis(40);

/// Sees the stable end and the end of every partition of the outputs.
pub struct Peek {
    topics: Vec<String>,
    partitions: i32,
    committed: BaseConsumer,
    uncommitted: BaseConsumer,
}

impl Peek {
    /// At the outputs of all stages.
    pub fn new(kafka: &Kafka, names: &Names, partitions: i32) -> Peek {
        Peek {
            topics: names.stages.iter().map(|stage| stage.output.clone()).collect(),
            partitions,
            committed: kafka.consumer("read_committed"),
            uncommitted: kafka.consumer("read_uncommitted"),
        }
    }

    /// Both ends of every partition; `None` where a broker does not answer.
    fn ends(&self) -> Option<Vec<(i64, i64)>> {
        let mut ends = Vec::new();
        for topic in &self.topics {
            for partition in 0..self.partitions {
                let end = |consumer: &BaseConsumer| {
                    consumer.fetch_watermarks(topic, partition, REQUEST).ok().map(|(_, end)| end)
                };
                ends.push((end(&self.committed)?, end(&self.uncommitted)?));
            }
        }
        Some(ends)
    }

    /// True if some partition's stable end stands still behind its end, while one instance is stopped. True as well where nobody
    /// can tell.
    pub fn is_transaction_open(&self) -> bool {
        let Some(first) = self.ends() else { return true };
        if first.iter().all(|(stable, high)| stable >= high) {
            return false;
        }
        std::thread::sleep(AGAIN);
        let Some(second) = self.ends() else { return true };
        first.iter().zip(second).any(|(before, after)| before.0 < before.1 && before.0 == after.0)
    }
}
