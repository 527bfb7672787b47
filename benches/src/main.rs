//! Runs the comparisons and prints them as ratios.

use clap::Parser;
use flechtwerk_benches::cluster::Cluster;
use flechtwerk_benches::contestant::{Contestant, Kind};
use flechtwerk_benches::{load, perf, throughput};

/// Flechtwerk against a hand-written loop, on one broker
#[derive(Parser)]
struct Arguments {
    #[arg(long, env = "FLECHTWERK_TEST_BROKERS")]
    bootstrap_servers: String,
    #[arg(long, env = "FLECHTWERK_TEST_KAFKA")]
    script: std::path::PathBuf,
    #[arg(long, env = "FLECHTWERK_TEST_KAFKA_DIR")]
    folder: std::path::PathBuf,
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    #[arg(short = 'L', allow_hyphen_values = true)]
    arguments: Vec<String>,
    #[arg(long, default_value_t = 3)]
    repeats: u32,
}

fn main() -> anyhow::Result<()> {
    let a = Arguments::parse();
    let cluster = Cluster { bootstrap_servers: a.bootstrap_servers };
    let script = perf::KafkaScript { script: a.script, folder: a.folder };
    let words = format!("words{}", a.records);
    if cluster.partitions(&words)? == 0 {
        cluster.create_topic(&words, 8, false)?;
        load::words(&cluster, &words, a.records, 100_000)?;
        cluster.create_topic("perf", 8, false)?;
    }
    let mut contestant = Contestant::new(Kind::Loop);
    contestant.arguments = a.arguments;
    let expected = flechtwerk_benches::verify::recount(&cluster, &words)?;
    for _ in 0..a.repeats {
        let perf = if script.script.exists() { script.producer_performance("perf", a.records)? } else { 0.0 };
        let drained = throughput::drain(&cluster, &contestant, &words, a.records, Some(&expected))?;
        println!(
            "perf {perf:.0}/s, loop {:.0}/s ({:.2}), cpu {:.2}, first commit {:?}",
            drained.records_per_second,
            drained.records_per_second / perf,
            drained.cpu_per_million,
            drained.first_commit
        );
    }
    Ok(())
}
