//! Timers: what it costs to fire them beside records that do the same, and the memory of many that wait.

use std::time::{Duration, Instant, SystemTime};

use anyhow::bail;
use nix::sys::signal::Signal;
use rdkafka::consumer::Consumer as _;
use rdkafka::producer::{BaseRecord, Producer as _};

use crate::cluster::Cluster;
use crate::contestant::{Contestant, Kind, Run, Running};
use crate::load::{self, RECORD_SIZE};

const PARTITIONS: i32 = 8;
const EVERY: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(300);
/// How long the timers wait, in milliseconds of event time. A broker takes no record that is more than an hour ahead.
pub const WAIT: i64 = 40 * 60 * 1000;
/// What the first byte of a value asks of the stage `remind`: to count and send, or to set the timer.
pub const COUNT: u8 = b'x';
/// See [`COUNT`].
pub const SET: u8 = b's';

/// CPU time of the whole process.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of timers that fire, each with a look at its state, a new state and an output.
    pub timers: Duration,
    /// Of as many records that do the same.
    pub records: Duration,
}

/// Sets a timer in each of `keys` keys, has as many records processed, and then all timers fire.
pub fn cost(cluster: &Cluster, keys: u64) -> anyhow::Result<Cost> {
    let (run, mut running) = begin(cluster)?;
    let progress = cluster.progress(&run.group, &run.input, PARTITIONS)?;
    fill(cluster, &run.input, keys, SET)?;
    progress.wait_for(keys, EVERY, LIMIT, || running.alive())?;
    let before = cpu(&running)?;
    fill(cluster, &run.input, keys, COUNT)?;
    wait_for_outputs(cluster, &run, &mut running, keys)?;
    let between = cpu(&running)?;
    tick(cluster, &run.input)?;
    wait_for_outputs(cluster, &run, &mut running, 2 * keys)?;
    let after = cpu(&running)?;
    end(cluster, &run, running)?;
    Ok(Cost { timers: after - between, records: between - before })
}

/// Bytes resident with a timer that waits in each of `keys` keys.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Some seconds after the last of them was set: what the backlog took is in it.
    pub set: u64,
    /// The same where the records made states instead.
    pub counted: u64,
    /// Of a process that starts with them on its disk.
    pub started: u64,
}

/// See [`Memory`].
pub fn memory(cluster: &Cluster, keys: u64) -> anyhow::Result<Memory> {
    let (run, running, counted) = load(cluster, keys, COUNT)?;
    end(cluster, &run, running)?;
    let (run, running, set) = load(cluster, keys, SET)?;
    running.end(Signal::SIGTERM)?;
    let progress = cluster.progress(&run.group, &run.input, PARTITIONS)?;
    let mut running = run.start()?;
    // A record in each partition shows that its task has started; it is no time for any timer.
    fill(cluster, &run.input, 100, COUNT)?;
    progress.wait_for(keys + 100, EVERY, LIMIT, || running.alive())?;
    let started = at_rest(&mut running)?;
    end(cluster, &run, running)?;
    Ok(Memory { set, counted, started })
}

/// Has a record of each of `keys` keys processed; the memory then.
fn load(cluster: &Cluster, keys: u64, what: u8) -> anyhow::Result<(Run, Running, u64)> {
    let (run, mut running) = begin(cluster)?;
    let progress = cluster.progress(&run.group, &run.input, PARTITIONS)?;
    fill(cluster, &run.input, keys, what)?;
    progress.wait_for(keys, EVERY, LIMIT, || running.alive())?;
    let memory = at_rest(&mut running)?;
    Ok((run, running, memory))
}

fn at_rest(running: &mut Running) -> anyhow::Result<u64> {
    std::thread::sleep(Duration::from_secs(5));
    running.alive()?;
    running.memory()
}

fn begin(cluster: &Cluster) -> anyhow::Result<(Run, Running)> {
    let mut run = Contestant::new(Kind::StageRocksDb).prepare_with_input(cluster, PARTITIONS)?;
    run.stage("remind");
    let running = run.start()?;
    Ok((run, running))
}

fn end(cluster: &Cluster, run: &Run, running: Running) -> anyhow::Result<()> {
    running.end(Signal::SIGTERM)?;
    run.clean_up()?;
    cluster.delete_topics(&[&format!("{}-changelog", run.group)])
}

fn cpu(running: &Running) -> anyhow::Result<Duration> {
    let threads = running.threads()?;
    Ok(threads.client + threads.own)
}

/// A record in each of `keys` keys.
fn fill(cluster: &Cluster, topic: &str, keys: u64, what: u8) -> anyhow::Result<()> {
    let producer = load::producer(cluster)?;
    let value = String::from_utf8(vec![what; RECORD_SIZE])?;
    for number in 0..keys {
        let key = format!("k{number}");
        load::send(&producer, BaseRecord::to(topic).key(key.as_str()).payload(&value[key.len()..]))?;
        if number % 1000 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    Ok(producer.flush(Duration::from_secs(60))?)
}

/// A record in each partition that says that it is time.
fn tick(cluster: &Cluster, topic: &str) -> anyhow::Result<()> {
    let producer = load::producer(cluster)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis() as i64;
    for partition in 0..PARTITIONS {
        let record = BaseRecord::to(topic).key("tick").payload("tick").partition(partition);
        load::send(&producer, record.timestamp(now + WAIT))?;
    }
    Ok(producer.flush(Duration::from_secs(60))?)
}

/// Waits until there are as many outputs, and no more come: the offsets count markers as well.
fn wait_for_outputs(cluster: &Cluster, run: &Run, running: &mut Running, outputs: u64) -> anyhow::Result<()> {
    let consumer = cluster.consumer("flechtwerk-benches")?;
    let until = Instant::now() + LIMIT;
    let mut last = (0, Instant::now());
    loop {
        let mut records = 0;
        for partition in 0..PARTITIONS {
            records += consumer.fetch_watermarks(&run.output, partition, LIMIT)?.1 as u64;
        }
        if records != last.0 {
            last = (records, Instant::now());
        }
        if records >= outputs && last.1.elapsed() > Duration::from_millis(500) {
            return Ok(());
        }
        running.alive()?;
        if Instant::now() > until {
            bail!("only {records} of {outputs} outputs were committed");
        }
        std::thread::sleep(EVERY);
    }
}
