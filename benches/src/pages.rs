//! Pages of an extractor: a thousand configs, sixteen tokens, a hundred messages and a cursor in each transaction.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::cluster::Cluster;
use crate::contestant::Running;

const LIMIT: Duration = Duration::from_secs(30);
/// Messages of a page.
pub const MESSAGES: u64 = 100;

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Configs, each with a cursor.
    pub configs: u64,
    /// Partitions of the config topic.
    pub tokens: i32,
    /// Pages of each config.
    pub pages: u64,
}

/// Committed pages a second, from the first tenth to the last page.
pub fn measure(cluster: &Cluster, by_hand: bool, work: Work) -> anyhow::Result<f64> {
    let job = Job::prepare(cluster, if by_hand { "loop" } else { "stage" }, work)?;
    let mut running = job.start(by_hand)?;
    let consumer = cluster.consumer("flechtwerk-benches")?;
    // A page is its messages and one marker, all in one partition.
    let all = work.configs * work.pages;
    let (begun, begin) = wait(&consumer, &job.items, work.tokens, all / 10, &mut running)?;
    let (done, end) = wait(&consumer, &job.items, work.tokens, all, &mut running)?;
    running.end(Signal::SIGTERM)?;
    job.clean_up()?;
    Ok((done - begun) as f64 / (end - begin).as_secs_f64())
}

/// The topics of an extractor, and how to start it.
pub struct Job {
    cluster: Cluster,
    work: Work,
    name: String,
    configs: String,
    /// Where the messages go; those of a config lie in the partition of its token.
    pub items: String,
    changelog: String,
}

impl Job {
    /// Makes the topics and writes the configs.
    pub fn prepare(cluster: &Cluster, name: &str, work: Work) -> anyhow::Result<Job> {
        let name = format!("pages{}-{name}-", std::process::id());
        let job = Job {
            cluster: cluster.clone(),
            work,
            configs: format!("{name}configs"),
            items: format!("{name}items"),
            changelog: format!("{name}bench-fetch-changelog"),
            name,
        };
        for (topic, compacted) in [(&job.configs, true), (&job.items, false), (&job.changelog, true)] {
            cluster.create_topic(topic, work.tokens, compacted)?;
        }
        let producer: BaseProducer = cluster.client().set("partitioner", "murmur2_random").create()?;
        let value = work.pages.to_string();
        for number in 0..work.configs {
            let key = format!("config-{number}");
            let record = BaseRecord::to(&job.configs).key(&key).payload(&value);
            producer.send(record).map_err(|(error, _)| error)?;
        }
        producer.flush(LIMIT)?;
        Ok(job)
    }

    /// Starts an instance.
    pub fn start(&self, by_hand: bool) -> anyhow::Result<Running> {
        let Job { cluster, work, name, configs, items, .. } = self;
        let folder =
            std::env::current_exe()?.parent().map(Path::to_owned).context("this program has no folder")?;
        let mut command = Command::new(folder.join(if by_hand { "bench-pages" } else { "bench-stage" }));
        if by_hand {
            command.args(["--bootstrap-servers", &cluster.bootstrap_servers]);
            command.args(["--group", &format!("{name}bench-fetch"), "--input", configs, "--output", items]);
            command.args(["--configs", &work.configs.to_string(), "--pages", &work.pages.to_string()]);
            command.args(["--tokens", &work.tokens.to_string()]);
        } else {
            command.args(["run", "--bootstrap-servers", &cluster.bootstrap_servers, "--store", "memory"]);
            command.args(["--namespace", name, "--stage", "fetch"]);
            command.args(["--topic", &format!("words={configs}"), "--topic", &format!("counts={items}")]);
        }
        Running::start("pages", &mut command, std::env::var_os("BENCH_LOUD").is_some())
    }

    /// Deletes the topics.
    pub fn clean_up(self) -> anyhow::Result<()> {
        self.cluster.delete_topics(&[&self.configs, &self.items, &self.changelog])
    }
}

fn wait(
    consumer: &BaseConsumer,
    topic: &str,
    partitions: i32,
    pages: u64,
    running: &mut Running,
) -> anyhow::Result<(u64, Instant)> {
    let until = Instant::now() + 10 * LIMIT;
    loop {
        let mut records = 0;
        for partition in 0..partitions {
            records += consumer.fetch_watermarks(topic, partition, LIMIT)?.1 as u64;
        }
        let seen = records / (MESSAGES + 1);
        if seen >= pages {
            return Ok((seen, Instant::now()));
        }
        running.alive()?;
        if Instant::now() > until {
            bail!("only {seen} of {pages} pages were committed");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
