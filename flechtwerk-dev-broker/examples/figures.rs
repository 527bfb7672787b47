//! What the broker must reach, measured: `cargo run --release -p flechtwerk-dev-broker --example figures`.
//!
//! Each figure stands beside its bound, and the status is 1 where one is missed. The client speaks the protocol over TCP and
//! runs in the same process, so both share the machine's cores. No test: a busy machine would decide about it.

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::MetadataRequest;
use support::records::get_varint;
use support::transactions::Producer;
use support::{Client, fetch};

/// Records of a transaction, and the bytes of a record's value.
const RECORDS: usize = 500;
const VALUE: usize = 100;
const TRANSACTIONS: usize = 2_000;
const SINGLE: usize = 3_000;
const IDLE: Duration = Duration::from_secs(5);
const STARTS: usize = 1_000;

fn main() -> ExitCode {
    let mut figures = Figures::default();
    transactions(&mut figures);
    single(&mut figures);
    idle(&mut figures);
    starts(&mut figures);
    if figures.missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Default)]
struct Figures {
    missed: bool,
}

impl Figures {
    fn at_least(&mut self, what: &str, figure: f64, bound: f64, unit: &str) {
        self.print(what, figure, &format!(">= {bound}"), unit, figure >= bound);
    }

    fn at_most(&mut self, what: &str, figure: f64, bound: f64, unit: &str) {
        self.print(what, figure, &format!("<= {bound}"), unit, figure <= bound);
    }

    fn print(&mut self, what: &str, figure: f64, bound: &str, unit: &str, reached: bool) {
        let digits = if figure < 100.0 { 2 } else { 0 };
        println!(
            "{what:<56} {figure:>12.digits$} {unit:<10} {bound:<10} {}",
            if reached { "" } else { "MISSED" }
        );
        self.missed |= !reached;
    }
}

/// Transactions of one producer to one partition, reading them back, and what the log takes of memory.
fn transactions(figures: &mut Figures) {
    let broker = DevBroker::builder().topic(("orders", 1)).start().unwrap();
    let mut producer = Producer::new(broker.address(), "figures");
    transaction(&mut producer, 1);
    let before = resident_bytes();
    let start = Instant::now();
    for _ in 0..TRANSACTIONS {
        transaction(&mut producer, RECORDS);
    }
    let records = (TRANSACTIONS * RECORDS) as f64;
    let rate = records / start.elapsed().as_secs_f64();
    let memory = resident_bytes().saturating_sub(before) as f64;
    figures.at_least("transactions of 500 records of 100 bytes", rate, 150_000.0, "records/s");

    let mut client = Client::connect(broker.address());
    let start = Instant::now();
    let (read, bytes) = read_committed(&mut client, TRANSACTIONS * RECORDS + 1);
    let rate = read as f64 / start.elapsed().as_secs_f64();
    figures.at_least("reading them back, read_committed", rate, 300_000.0, "records/s");
    figures.at_most("memory of a million records, by their bytes in the log", memory / bytes as f64, 1.5, "");
}

/// Reads so many records; how many there were, and the bytes of all batches.
fn read_committed(client: &mut Client, records: usize) -> (usize, usize) {
    let (mut offset, mut read, mut bytes) = (0, 0, 0);
    while read < records {
        let request = fetch("orders", 0, offset, 100).with_isolation_level(1);
        let mut answer = client.call(11, &request);
        let partition = answer.responses[0].partitions.remove(0);
        assert_eq!(partition.error_code, 0);
        let mut batches = partition.records.unwrap_or_default();
        assert!(!batches.is_empty(), "the log ends after {read} records");
        bytes += batches.len();
        while batches.len() >= 61 {
            let length = 12 + i32::from_be_bytes(batches[8..12].try_into().unwrap()) as usize;
            let batch = batches.split_to(length.min(batches.len()));
            offset = i64::from_be_bytes(batch[..8].try_into().unwrap())
                + i64::from(i32::from_be_bytes(batch[23..27].try_into().unwrap()))
                + 1;
            let control = batch[22] & 0x20 != 0;
            if !control {
                read += count_records(batch);
            }
        }
    }
    (read, bytes)
}

/// The records of a batch, each looked at as a consumer does.
fn count_records(mut batch: Bytes) -> usize {
    batch.advance(57);
    let count = batch.get_i32() as usize;
    for _ in 0..count {
        let length = get_varint(&mut batch);
        assert!(length > VALUE as i64);
        batch.advance(length as usize);
    }
    count
}

/// Transactions of a single record: what one costs beside its data.
fn single(figures: &mut Figures) {
    let broker = DevBroker::builder().topic(("orders", 1)).start().unwrap();
    let mut producer = Producer::new(broker.address(), "figures");
    let mut times: Vec<f64> = (0..SINGLE)
        .map(|_| {
            let start = Instant::now();
            transaction(&mut producer, 1);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    figures.at_most("a transaction of one record, median", times[times.len() / 2], 3.0, "ms");
    println!("{:<56} {:>12.2} ms", "a transaction of one record, 99 of 100", times[times.len() * 99 / 100]);
}

/// A broker that nobody asks anything, with a client connected, a member's fetch waiting, and a compaction timer.
fn idle(figures: &mut Figures) {
    let broker =
        DevBroker::builder().topic(("orders", 12)).compact_every(Duration::from_secs(1)).start().unwrap();
    let mut waiting = Client::connect(broker.address());
    waiting.send(11, &fetch("orders", 0, 0, 600_000)).unwrap();
    let (before, start) = (cpu_seconds(), Instant::now());
    std::thread::sleep(IDLE);
    let used = (cpu_seconds() - before) / start.elapsed().as_secs_f64() * 100.0;
    figures.at_most("processor time of an idle broker", used, 1.0, "%");
}

/// Starting, and what a thousand brokers leave behind.
fn starts(figures: &mut Figures) {
    drop(DevBroker::builder().start().unwrap());
    let (files, threads) = (entries("/proc/self/fd"), entries("/proc/self/task"));
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    let mut times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let start = Instant::now();
            let broker = DevBroker::builder().topic(("orders", 3)).start().unwrap();
            Client::connect(broker.address()).call(9, &MetadataRequest::default().with_topics(None));
            slowest = slowest.max(start.elapsed());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let all = start.elapsed().as_secs_f64() * 1e3 / STARTS as f64;
    times.sort_by(f64::total_cmp);
    figures.at_most("start until the first answer, median", times[times.len() / 2], 50.0, "ms");
    figures.at_most("the same with stopping, mean", all, 100.0, "ms");
    println!("{:<56} {:>12.2} ms", "slowest of a thousand starts", slowest.as_secs_f64() * 1e3);
    let left = (entries("/proc/self/fd") + entries("/proc/self/task")).abs_diff(files + threads);
    figures.at_most("threads and files left by a thousand brokers", left as f64, 0.0, "");
}

/// A transaction, each request answered before the next.
fn transaction(producer: &mut Producer, records: usize) {
    producer.transaction("orders", 0, &vec![(None, &[b'v'; VALUE][..]); records], true);
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Of all threads of this process that live.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let nanoseconds: u64 = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    nanoseconds as f64 / 1e9
}
