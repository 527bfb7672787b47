//! The hand-written loop as a process of its own, so that its CPU time and memory can be told apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use flechtwerk_benches::loop_::{self, Settings};

static STOP: AtomicBool = AtomicBool::new(false);

/// Counts records per key, exactly once.
#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    bootstrap_servers: String,
    #[arg(long, default_value = "words")]
    input: String,
    #[arg(long, default_value = "counts")]
    output: String,
    /// The consumer group; the changelog is this and `-changelog`
    #[arg(long)]
    group: String,
    /// Milliseconds
    #[arg(long, default_value_t = 50)]
    commit_interval: u64,
    #[arg(long, default_value_t = 5000)]
    max_poll_records: usize,
    /// A setting of librdkafka: `consumer.NAME=VALUE` or `producer.NAME=VALUE`
    #[arg(short = 'X')]
    overrides: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    std::thread::spawn(stop_at_a_signal);
    loop_::run(
        Settings {
            bootstrap_servers: arguments.bootstrap_servers,
            input: arguments.input,
            output: arguments.output,
            changelog: format!("{}-changelog", arguments.group),
            group: arguments.group,
            commit_interval: Duration::from_millis(arguments.commit_interval),
            max_poll_records: arguments.max_poll_records,
            overrides: arguments
                .overrides
                .iter()
                .filter_map(|setting| setting.split_once('=').map(|(key, value)| (key.into(), value.into())))
                .collect(),
        },
        &STOP,
    )
}

fn stop_at_a_signal() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        if let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            signal.recv().await;
            STOP.store(true, Ordering::Release);
        }
    });
}
