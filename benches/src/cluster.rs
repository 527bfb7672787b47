//! The cluster as the benchmarks see it: topics come and go, progress is asked from outside.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

const LIMIT: Duration = Duration::from_secs(30);

/// A cluster under measurement.
#[derive(Clone)]
pub struct Cluster {
    /// As clients want it.
    pub bootstrap_servers: String,
}

impl Cluster {
    /// Settings for a client of it.
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap_servers);
        config
    }

    /// A consumer that reads `read_committed` from where it is told, or only asks questions for `group`.
    pub fn consumer(&self, group: &str) -> anyhow::Result<BaseConsumer> {
        let mut config = self.client();
        config.set("group.id", group).set("enable.auto.commit", "false").set("enable.partition.eof", "true");
        config.set("fetch.queue.backoff.ms", "10");
        Ok(config.create()?)
    }

    fn admin(&self) -> anyhow::Result<AdminClient<DefaultClientContext>> {
        Ok(self.client().create()?)
    }

    /// Creates a topic; `compacted` as changelogs are.
    pub fn create_topic(&self, name: &str, partitions: i32, compacted: bool) -> anyhow::Result<()> {
        let policy = if compacted { "compact" } else { "delete" };
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1)).set("cleanup.policy", policy);
        let admin = self.admin()?;
        let results =
            block_on(admin.create_topics([&topic], &AdminOptions::new().operation_timeout(Some(LIMIT))))?;
        for result in results {
            if let Err((topic, error)) = result {
                bail!("can't create topic {topic}: {error}");
            }
        }
        self.wait_for_leaders(name, partitions)
    }

    /// A topic that the controller knows is not yet known to every client, nor led by its broker.
    fn wait_for_leaders(&self, topic: &str, partitions: i32) -> anyhow::Result<()> {
        let consumer = self.consumer("flechtwerk-benches")?;
        let started = Instant::now();
        for partition in 0..partitions {
            while consumer.fetch_watermarks(topic, partition, LIMIT).is_err() {
                if started.elapsed() > LIMIT {
                    bail!("topic {topic} was created and can't be read");
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Deletes topics, so that a run leaves no load for the next.
    pub fn delete_topics(&self, names: &[&str]) -> anyhow::Result<()> {
        block_on(self.admin()?.delete_topics(names, &AdminOptions::new()))?;
        Ok(())
    }

    /// Number of partitions; 0 where there is no such topic.
    pub fn partitions(&self, topic: &str) -> anyhow::Result<usize> {
        let consumer = self.consumer("flechtwerk-benches")?;
        let metadata = consumer.fetch_metadata(Some(topic), LIMIT)?;
        Ok(metadata.topics().first().map_or(0, |topic| topic.partitions().len()))
    }

    /// Asks again and again for a group's committed offsets on `topic`.
    pub fn progress(&self, group: &str, topic: &str, partitions: i32) -> anyhow::Result<Progress> {
        let mut config = self.client();
        // Under read_committed an open transaction would hold the answer back.
        config
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_uncommitted");
        let consumer: BaseConsumer = config.create()?;
        let mut asked = TopicPartitionList::new();
        asked.add_partition_range(topic, 0, partitions - 1);
        Ok(Progress { consumer, asked })
    }
}

/// See [`Cluster::progress`].
pub struct Progress {
    consumer: BaseConsumer,
    asked: TopicPartitionList,
}

impl Progress {
    /// The sum of the committed offsets.
    pub fn committed(&self) -> anyhow::Result<u64> {
        let answer = self
            .consumer
            .committed_offsets(self.asked.clone(), LIMIT)
            .context("can't read the committed offsets")?;
        Ok(answer
            .elements()
            .iter()
            .map(|element| if let Offset::Offset(offset) = element.offset() { offset as u64 } else { 0 })
            .sum())
    }

    /// The sum of the counters in the stamps: `{owner}:{counter}:{changelog}`.
    pub fn transactions(&self) -> anyhow::Result<u64> {
        let answer = self
            .consumer
            .committed_offsets(self.asked.clone(), LIMIT)
            .context("can't read the committed offsets")?;
        let elements = answer.elements();
        let counters =
            elements.iter().filter_map(|element| element.metadata().split(':').nth(1)?.parse::<u64>().ok());
        Ok(counters.sum())
    }

    /// Waits until the sum is at least `wanted`; `alive` is asked now and then.
    pub fn wait_for(
        &self,
        wanted: u64,
        every: Duration,
        limit: Duration,
        mut alive: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Reached> {
        let started = Instant::now();
        loop {
            let asked = Instant::now();
            let sum = self.committed()?;
            if sum >= wanted {
                return Ok(Reached { at: Instant::now(), sum });
            }
            alive()?;
            if started.elapsed() > limit {
                bail!("only {sum} of {wanted} records were committed within {limit:?}");
            }
            std::thread::sleep(every.saturating_sub(asked.elapsed()));
        }
    }
}

/// See [`Progress::wait_for`].
#[derive(Clone, Copy)]
pub struct Reached {
    /// When it was seen.
    pub at: Instant,
    /// What was seen.
    pub sum: u64,
}

/// The admin client's futures need no runtime of their own.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
