//! The broker as a program: see the crate's README.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use flechtwerk_dev_broker::{DevBroker, NewTopic};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// A small Kafka-compatible broker for development and tests. Never for production.
#[derive(Debug, Parser)]
#[command(name = "flechtwerk-dev-broker", version)]
struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    listen: String,
    /// Keep everything in this folder; without it all is gone at the end
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Create a topic, such as `orders:3` or `totals:3:cleanup.policy=compact`; may be repeated
    #[arg(long = "topic", value_name = "NAME:PARTITIONS[:KEY=VALUE,...]", value_parser = topic)]
    topics: Vec<NewTopic>,
    /// Create topics with one partition when clients ask for them
    #[arg(long)]
    auto_create_topics: bool,
    /// How many virtual nodes there are; the others than the first listen on free ports
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: i32,
    /// Wait for the disk after each write to the data folder
    #[arg(long, requires = "data_dir")]
    fsync: bool,
    /// Compact every topic with cleanup.policy=compact so often, such as `30s` or `500ms`
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    compact_every: Option<Duration>,
    /// The shortest session time-out that a member of a group may ask for (group.min.session.timeout.ms)
    #[arg(long, value_name = "PERIOD", value_parser = period, default_value = "1s")]
    min_session_timeout: Duration,
    /// What to log on stderr, such as `info` or `flechtwerk_dev_broker=debug`
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

fn topic(text: &str) -> Result<NewTopic, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(name), Some(partitions)) = (parts.next(), parts.next()) else {
        return Err("write NAME:PARTITIONS, such as orders:3".to_owned());
    };
    // A request may say -1 for "as many as usual"; who writes it here has made a mistake.
    let partitions = partitions
        .parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("{partitions:?} is no number of partitions, write orders:3"))?;
    let mut topic = NewTopic::new(name, partitions);
    let mut last: Option<(String, String)> = None;
    for setting in parts.next().unwrap_or_default().split(',').filter(|setting| !setting.is_empty()) {
        match setting.split_once('=') {
            Some((key, value)) => {
                if let Some((key, value)) = last.replace((key.to_owned(), value.to_owned())) {
                    topic = topic.config(key, value);
                }
            }
            // Lists have commas of their own: cleanup.policy=compact,delete.
            None => match &mut last {
                Some((_, value)) => {
                    value.push(',');
                    value.push_str(setting);
                }
                None => return Err(format!("{setting:?} is no setting, write KEY=VALUE")),
            },
        }
    }
    if let Some((key, value)) = last {
        topic = topic.config(key, value);
    }
    Ok(topic)
}

fn period(text: &str) -> Result<Duration, String> {
    let period = humantime::parse_duration(text)
        .map_err(|error| format!("{text:?} is no period: {error}; write 500ms, 30s or 5m"))?;
    if period.is_zero() {
        return Err("a period of nothing: write 500ms, 30s or 5m".to_owned());
    }
    Ok(period)
}

/// More than all connections and the files of some ten thousand partitions.
const MOST_FILES: u64 = 65_536;

/// Takes all the open files that it may have, as Java does for Kafka: a connection is one, and so is a partition in a data folder.
fn raise_file_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard.min(MOST_FILES).max(soft), hard));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays");
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log)
        .map_err(|error| format!("--log {:?}: {error}", args.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    raise_file_limit();

    let mut builder = DevBroker::builder()
        .listen(&args.listen)
        .fsync(args.fsync)
        .nodes(args.nodes)
        .session_timeouts(args.min_session_timeout, Duration::from_secs(1_800))
        .auto_create_topics(args.auto_create_topics);
    if let Some(folder) = args.data_dir {
        builder = builder.data_dir(folder);
    }
    if let Some(period) = args.compact_every {
        builder = builder.compact_every(period);
    }
    for topic in args.topics {
        builder = builder.topic(topic);
    }

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        // Before the broker starts, so that no signal comes too early to end it in good order.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let broker = builder.start()?;
        eprintln!("flechtwerk-dev-broker is for development and tests, never for production");
        let all = broker.bootstrap();
        println!("ready {}", all.split(',').next().unwrap_or_default());
        std::io::stdout().flush()?;
        let ended = tokio::select! {
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            why = broker.failed() => Err(why.into()),
        };
        broker.stop();
        ended
    })
}
