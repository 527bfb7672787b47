//! How long the configs of an extractor rest when the instance that polls them is killed.

use std::time::{Duration, Instant};

use anyhow::bail;
use nix::sys::signal::Signal;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::cluster::Cluster;
use crate::pages::{Job, Work};

const LIMIT: Duration = Duration::from_secs(60);
const TOKENS: i32 = 8;

/// The longest that a token had no page, counted from the kill of one of two instances.
pub fn measure(cluster: &Cluster) -> anyhow::Result<Duration> {
    // There is always a next page, so that every token shows that it is at work.
    let work = Work { configs: 32, tokens: TOKENS, pages: u64::MAX };
    let job = Job::prepare(cluster, "tokens", work)?;
    let leaving = job.start(false)?;
    let consumer = cluster.consumer("flechtwerk-benches")?;
    wait_for_pages(&consumer, &job.items, &[0; TOKENS as usize])?;
    let mut staying = job.start(false)?;
    // The second has its half of the tokens, and no rebalance is under way.
    std::thread::sleep(Duration::from_secs(5));

    let gone = Instant::now();
    leaving.end(Signal::SIGKILL)?;
    // A commit that was on its way may still show.
    std::thread::sleep(Duration::from_secs(1));
    let before = ends(&consumer, &job.items)?;
    wait_for_pages(&consumer, &job.items, &before)?;
    let rested = gone.elapsed();
    staying.alive()?;
    staying.end(Signal::SIGTERM)?;
    job.clean_up()?;
    Ok(rested)
}

/// The last stable offset of each partition.
fn ends(consumer: &BaseConsumer, topic: &str) -> anyhow::Result<Vec<i64>> {
    let end = |partition| Ok(consumer.fetch_watermarks(topic, partition, LIMIT)?.1);
    (0..TOKENS).map(end).collect()
}

/// Waits until every token has committed something behind these offsets.
fn wait_for_pages(consumer: &BaseConsumer, topic: &str, before: &[i64]) -> anyhow::Result<()> {
    let until = Instant::now() + LIMIT;
    while ends(consumer, topic)?.iter().zip(before).any(|(now, before)| now <= before) {
        if Instant::now() > until {
            bail!("a token has committed no page in {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
