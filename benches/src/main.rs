//! Runs the comparisons and prints them as ratios, each beside its target.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use flechtwerk_benches::cluster::Cluster;
use flechtwerk_benches::perf::KafkaScript;
use flechtwerk_benches::report::{self, Row};
use flechtwerk_benches::suite::{Part, Suite};

/// Flechtwerk against a hand-written loop that does the same work, on one broker in one run
///
/// Start it with `scripts/kafka run -- flechtwerk-benches`, which gives it a broker of its own. Figures are worth
/// something only on a machine that does nothing else.
#[derive(Parser)]
struct Arguments {
    #[arg(long, env = "FLECHTWERK_TEST_BROKERS", hide_env_values = true)]
    bootstrap_servers: String,
    /// The script that started the broker
    #[arg(long, env = "FLECHTWERK_TEST_KAFKA", hide_env_values = true)]
    kafka_script: PathBuf,
    /// The broker's folder
    #[arg(long, env = "FLECHTWERK_TEST_KAFKA_DIR", hide_env_values = true)]
    kafka_dir: PathBuf,
    /// Only these parts, comma separated
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only the hand-written loop, in the place of Flechtwerk too
    #[arg(long)]
    loop_only: bool,
    /// Runs of what is compared by throughput
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Records of the backlog
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let suite = Suite {
        cluster: Cluster { bootstrap_servers: arguments.bootstrap_servers },
        kafka: KafkaScript { script: arguments.kafka_script, folder: arguments.kafka_dir },
        repeats: arguments.repeats.max(1),
        records: arguments.records,
        loop_only: arguments.loop_only,
    };
    let parts = if arguments.only.is_empty() { Part::value_variants() } else { &arguments.only };
    let mut rows: Vec<Row> = Vec::new();
    for &part in parts {
        eprintln!("measuring {part:?} ..");
        match suite.measure(part) {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(Row::failed(&format!("{part:?}"), &error)),
        }
        if let Some(failure) = rows.last().and_then(|row| row.failure.as_ref()) {
            eprintln!("  {failure}");
        }
    }
    if arguments.json {
        match serde_json::to_string_pretty(&rows) {
            Ok(json) => println!("{json}"),
            Err(error) => eprintln!("can't print the rows: {error}"),
        }
    } else {
        println!("{}", report::table(&rows));
    }
    if rows.iter().any(|row| row.failure.is_some()) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
