//! Records sent at a steady pace, and when their outputs are seen by a `read_committed` reader.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{Offset, TopicPartitionList};

use crate::cluster::Cluster;
use crate::load;

/// One record's way through a contestant.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// When the record was made.
    pub created: Instant,
    /// When its output was seen.
    pub seen: Instant,
}

impl Passage {
    /// The time between.
    pub fn latency(&self) -> Duration {
        self.seen.saturating_duration_since(self.created)
    }
}

/// A sender and a reader at work.
pub struct Paced {
    sender: Sending,
    reader: JoinHandle<anyhow::Result<()>>,
    stop_reader: Arc<AtomicBool>,
    seen: Receiver<(usize, Instant)>,
    passed: HashMap<usize, Instant>,
}

impl Paced {
    /// Sends `rate` records a second into `input`, each with a key of its own, and reads `output`.
    pub fn start(cluster: &Cluster, input: &str, output: &str, rate: u32) -> anyhow::Result<Paced> {
        let stop_reader = Arc::new(AtomicBool::new(false));
        let consumer = reader(cluster, output)?;
        let (to, seen) = channel();
        let reader = thread::spawn({
            let stop = stop_reader.clone();
            move || read(&consumer, &to, &stop)
        });
        let sender = Sending::start(cluster, input, rate)?;
        Ok(Paced { sender, reader, stop_reader, seen, passed: HashMap::new() })
    }

    /// Waits until outputs were seen, `count` of them.
    pub fn wait_for_outputs(&mut self, count: usize, limit: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        while self.passed.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            let (number, at) = self
                .seen
                .recv_timeout(left)
                .with_context(|| format!("{} outputs within {limit:?}", self.passed.len()))?;
            self.passed.entry(number).or_insert(at);
        }
        Ok(())
    }

    /// Stops sending, waits for the outputs of everything sent, and returns all passages in order of creation.
    pub fn finish(mut self, limit: Duration) -> anyhow::Result<Vec<Passage>> {
        let created = self.sender.finish()?;
        let deadline = Instant::now() + limit;
        while self.passed.len() < created.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((number, at)) = self.seen.recv_timeout(left) else {
                bail!("only {} of {} outputs were seen", self.passed.len(), created.len());
            };
            self.passed.entry(number).or_insert(at);
        }
        self.stop_reader.store(true, Ordering::Release);
        self.reader.join().map_err(|_| anyhow!("the reader panicked"))??;
        created
            .into_iter()
            .enumerate()
            .map(|(number, created)| {
                let seen = *self.passed.get(&number).context("an output has another key than any input")?;
                Ok(Passage { created, seen })
            })
            .collect()
    }
}

/// A sender at work.
pub struct Sending {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Vec<Instant>>>,
}

impl Sending {
    /// Sends `rate` records a second into `input`; the key of each is its number.
    pub fn start(cluster: &Cluster, input: &str, rate: u32) -> anyhow::Result<Sending> {
        let mut config = cluster.client();
        config.set("partitioner", "murmur2_random").set("linger.ms", "0").set("socket.nagle.disable", "true");
        let producer: BaseProducer = config.create()?;
        // So that the first record does not wait for a connection.
        producer.client().fetch_metadata(Some(input), Duration::from_secs(10))?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (stop, input) = (stop.clone(), input.to_owned());
            move || send(&producer, &input, Duration::from_secs(1) / rate, &stop)
        });
        Ok(Sending { stop, thread })
    }

    /// Ends it and says when each record was made.
    pub fn finish(self) -> anyhow::Result<Vec<Instant>> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().map_err(|_| anyhow!("the sender panicked"))?
    }
}

fn send(
    producer: &BaseProducer,
    input: &str,
    period: Duration,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Instant>> {
    let filler = "x".repeat(load::RECORD_SIZE);
    let mut created = Vec::new();
    let mut due = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let key = created.len().to_string();
        created.push(Instant::now());
        load::send(
            producer,
            BaseRecord::to(input).key(key.as_str()).payload(&filler[..load::RECORD_SIZE - key.len()]),
        )?;
        producer.poll(Duration::ZERO);
        due += period;
        // In steps, so that a slow pace hears of the end soon.
        while !stop.load(Ordering::Acquire) && Instant::now() < due {
            thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }
    producer.flush(Duration::from_secs(30))?;
    Ok(created)
}

fn reader(cluster: &Cluster, output: &str) -> anyhow::Result<BaseConsumer> {
    let consumer = cluster.consumer("flechtwerk-benches-paced")?;
    let mut all = TopicPartitionList::new();
    for partition in 0..cluster.partitions(output)? as i32 {
        all.add_partition_offset(output, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    Ok(consumer)
}

fn read(consumer: &BaseConsumer, to: &Sender<(usize, Instant)>, stop: &AtomicBool) -> anyhow::Result<()> {
    while !stop.load(Ordering::Acquire) {
        match consumer.poll(Duration::from_millis(100)) {
            None | Some(Err(KafkaError::PartitionEOF(_))) => {}
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(message)) => {
                let seen = Instant::now();
                let key = message.key().and_then(|key| std::str::from_utf8(key).ok());
                let number =
                    key.and_then(|key| key.parse().ok()).context("an output has a key that no input has")?;
                if to.send((number, seen)).is_err() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The smallest value that `share` of all values do not exceed.
pub fn percentile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    let index = (values.len() as f64 * share).ceil() as usize;
    values.get(index.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut values, 0.5), Duration::from_millis(100));
        assert_eq!(percentile(&mut values, 0.99), Duration::from_millis(198));
        assert_eq!(percentile(&mut values, 1.0), Duration::from_millis(200));
        assert_eq!(percentile(&mut [], 0.5), Duration::ZERO);
    }
}
