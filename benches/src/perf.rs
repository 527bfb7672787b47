//! Kafka's own ProducerPerformance: how fast this machine and this broker are, to scale by.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// The script that started the cluster, which knows where Kafka's tools are.
#[derive(Clone)]
pub struct KafkaScript {
    /// Its path.
    pub script: PathBuf,
    /// The cluster's folder.
    pub folder: PathBuf,
}

impl KafkaScript {
    /// Records of 100 bytes a second into `topic`, through Kafka's own producer.
    pub fn producer_performance(&self, topic: &str, records: u64) -> anyhow::Result<f64> {
        let output = Command::new(&self.script)
            .env("KAFKA_DIR", &self.folder)
            .args(["tool", "producer-perf"])
            .args(["--topic", topic, "--record-size", "100", "--throughput", "-1"])
            .args(["--num-records", &records.to_string()])
            .output()
            .with_context(|| format!("can't start {}", self.script.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "ProducerPerformance failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        parse(&text).with_context(|| format!("can't read what ProducerPerformance says: {text}"))
    }
}

/// The last line sums up: `1000000 records sent, 514403.3 records/sec (49.06 MB/sec), ...`.
fn parse(text: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.contains("records/sec"))?;
    let (_, rest) = line.split_once("records sent, ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_summary_is_the_last_line() {
        let text = "251 records sent, 50.1 records/sec (0.00 MB/sec), 1.0 ms avg latency\n\
                    1000000 records sent, 514403.3 records/sec (49.06 MB/sec), 300.1 ms avg latency\n";
        assert_eq!(super::parse(text), Some(514403.3));
        assert_eq!(super::parse("usage: producer-performance"), None);
    }
}
