//! The command line: its grammar and its help. What the values mean is the settings' business; here they are text.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use figment::value::{Dict, Value};
use serde::Serialize;

/// Sorted after everything else in the help.
const SETTINGS_HELP: &str = "\
Every setting can be given in three places, the first of these wins: as a flag, `--commit-interval 50ms`; as an
environment variable, `FLECHTWERK_COMMIT_INTERVAL=50ms`; in the TOML file of --config, `commit_interval = \"50ms\"`
(--topic as a table [topic], -X as a table [kafka]; in the environment FLECHTWERK_TOPIC=a=b,c=d and
FLECHTWERK_KAFKA_SOCKET_KEEPALIVE_ENABLE=true). Secrets are read from files of their own, or from
FLECHTWERK_SASL_PASSWORD and FLECHTWERK_TLS_KEY_PASSWORD, never from the command line.

Exit status: 0 clean stop, 1 failed while running, 2 wrong usage or a failed startup check.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit status: 0 clean stop, 1 failed while running, 2 wrong usage or a failed startup check.",
    after_long_help = SETTINGS_HELP,
    disable_help_subcommand = true
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs the stages until SIGTERM or SIGINT (the default)
    #[command(after_help = SETTINGS_HELP)]
    Run(RunArgs),
    /// Makes the startup checks and lists every problem with its mend; changes nothing
    Check(RunArgs),
    /// Shows stages, topics, groups and changelogs; needs no cluster
    Topology {
        /// How to show them
        #[arg(long, value_enum, default_value_t = TopologyFormat::Text)]
        format: TopologyFormat,
    },
    /// Creates topics
    #[command(subcommand)]
    Topics(TopicsCommand),
    /// Lets stages begin anew: offsets to the beginning or a time, state empty
    ///
    /// Shows what it would do; --execute does it. All instances of the stages must have stopped. What the stages have
    /// written to their output topics stays there. A reset that was cut short keeps the stage from starting until it
    /// is repeated.
    Reset(ResetArgs),
}

/// `topics ...`
#[derive(Debug, Subcommand)]
pub(super) enum TopicsCommand {
    /// Creates the topics that are missing: inputs, outputs and changelogs
    Create(CreateArgs),
}

/// `topics create`
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct CreateArgs {
    /// Partitions of each new topic; changelogs always get as many as their stage's inputs have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) partitions: Option<i32>,
    /// Replicas of each new topic, changelogs included [default: the cluster's]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(i16).range(1..))]
    pub(super) replication_factor: Option<i16>,
}

/// `reset`
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ResetArgs {
    /// Where to begin: `beginning`, or a time such as 2026-01-31T12:00:00Z [default: beginning]
    #[arg(long, value_name = "WHERE", default_value = "beginning", hide_default_value = true, value_parser = super::reset::To::parse)]
    pub(super) to: super::reset::To,
    /// Replicas of the changelogs made anew [default: the cluster's]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(i16).range(1..))]
    pub(super) replication_factor: Option<i16>,
    /// Does it, instead of showing what it would do
    #[arg(long)]
    pub(super) execute: bool,
}

/// How a topology is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TopologyFormat {
    /// For people
    Text,
    /// A Mermaid flowchart, for Markdown
    Mermaid,
    /// A graph for Graphviz
    Dot,
    /// For programs
    Json,
}

/// Flags that every command takes.
#[derive(Debug, Default, Args, Serialize)]
pub(super) struct ClusterArgs {
    /// Settings file (TOML) [env: FLECHTWERK_CONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Pipeline")]
    #[serde(skip)]
    pub(super) config: Option<PathBuf>,
    /// Stage to work on; repeatable [default: all]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stage: Vec<String>,
    /// Prefix of groups, transactional ids and changelogs, so that two environments can share a cluster
    #[arg(long, global = true, value_name = "PREFIX", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// Uses TOPIC in the cluster for the topic that the code calls NAME; repeatable
    #[arg(long, global = true, value_name = "NAME=TOPIC", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) topic: Vec<String>,

    /// Brokers to ask first, comma separated [default: localhost:9092]
    #[arg(long, global = true, value_name = "HOST:PORT", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bootstrap_servers: Option<String>,
    /// plaintext, tls, sasl_plaintext or sasl_tls [default: by what else is set]
    #[arg(long, global = true, value_name = "PROTOCOL", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security_protocol: Option<String>,
    /// PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 [default: SCRAM-SHA-512]
    #[arg(long, global = true, value_name = "MECHANISM", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_mechanism: Option<String>,
    /// User to log in as
    #[arg(long, global = true, value_name = "NAME", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_username: Option<String>,
    /// File that holds the user's password
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_password_file: Option<String>,
    /// Certificates of the authorities to trust, PEM [default: the system's]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_ca: Option<String>,
    /// Certificate of this client, PEM
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_cert: Option<String>,
    /// Its private key, PEM
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_key: Option<String>,
    /// File that holds the key's password
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_key_password_file: Option<String>,
    /// How long to wait for the cluster's first answer [default: 10s]
    #[arg(long, global = true, value_name = "TIME", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connect_timeout: Option<String>,
    /// Setting of librdkafka, such as socket.keepalive.enable=true; repeatable
    #[arg(short = 'X', global = true, value_name = "KEY=VALUE", help_heading = "Cluster")]
    #[serde(rename = "kafka", skip_serializing_if = "Vec::is_empty")]
    pub(super) librdkafka: Vec<String>,

    /// Log lines to write: a level, or levels by module as in info,flechtwerk=debug [default: info; other commands than run: warn]
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Observing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<String>,
    /// text or json [default: text]
    #[arg(long, global = true, value_name = "FORMAT", help_heading = "Observing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log_format: Option<String>,
}

/// Flags of a run, and of the check of one.
#[derive(Debug, Default, Args, Serialize)]
pub(super) struct RunArgs {
    /// Creates missing output topics with the cluster's defaults
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL",
          hide_possible_values = true, help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) create_outputs: Option<String>,
    /// Name of this instance, the same after a restart: it then has its partitions back at once
    #[arg(long, value_name = "ID", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance_id: Option<String>,
    /// Stays in its groups at a stop, to be waited for (rolling restarts); needs an --instance-id
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL",
          help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stay_in_group: Option<String>,
    /// Where state is kept: memory or rocksdb [default: rocksdb, where it is built in]
    #[arg(long, value_name = "STORE", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<String>,
    /// Folder of the state on disk [default: flechtwerk-state]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state_dir: Option<String>,
    /// Longest time for a clean stop [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shutdown_timeout: Option<String>,

    /// Most records of a transaction [default: 5000]
    #[arg(long, value_name = "N", help_heading = "Batches")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_poll_records: Option<String>,
    /// Most bytes of a transaction: inputs, outputs and changed state [default: 8MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Batches")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_batch_bytes: Option<String>,
    /// Longest time for the user code of one batch, after which the process stops [default: 5m]
    #[arg(long, value_name = "TIME", help_heading = "Batches")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_batch_time: Option<String>,
    /// Shortest time between two commits of a task while records keep coming [default: 50ms]
    #[arg(long, value_name = "TIME", help_heading = "Batches")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit_interval: Option<String>,
    /// Most calls of an extractor at a time [default: 100]
    #[arg(long, value_name = "N", help_heading = "Batches")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_concurrent_polls: Option<String>,

    /// How long a failing request is repeated before the process stops [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = "Time limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broker_timeout: Option<String>,
    /// How long a commit in flight may take when its partition is taken away [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Time limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revoke_timeout: Option<String>,
    /// How long an instance may be silent before the others take over [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Time limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_timeout: Option<String>,
    /// Time between two signs of life to the group [default: 500ms]
    #[arg(long, value_name = "TIME", help_heading = "Time limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) heartbeat_interval: Option<String>,
    /// How long a transaction may be open before the cluster aborts it [default: 15s]
    #[arg(long, value_name = "TIME", help_heading = "Time limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transaction_timeout: Option<String>,

    /// Serves /metrics, /live and /ready [default: nowhere]
    #[arg(long, value_name = "HOST:PORT", help_heading = "Observing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics_listen: Option<String>,
}

impl Cli {
    /// The settings that were named by flags, those after the subcommand over those before it.
    pub(super) fn flags(&self) -> Dict {
        let mut flags = named(&self.cluster);
        flags.extend(named(&self.run));
        if let Some(Command::Run(run) | Command::Check(run)) = &self.command {
            flags.extend(named(run));
        }
        flags
    }

    /// The flags that a command in a mend needs as well: those that say which cluster, and which names.
    pub(super) fn repeated(&self) -> Vec<String> {
        let c = &self.cluster;
        let config = c.config.as_ref().map(|path| path.display().to_string());
        let single = [
            ("--config", &config),
            ("--namespace", &c.namespace),
            ("--bootstrap-servers", &c.bootstrap_servers),
            ("--security-protocol", &c.security_protocol),
            ("--sasl-mechanism", &c.sasl_mechanism),
            ("--sasl-username", &c.sasl_username),
            ("--sasl-password-file", &c.sasl_password_file),
            ("--tls-ca", &c.tls_ca),
            ("--tls-cert", &c.tls_cert),
            ("--tls-key", &c.tls_key),
            ("--tls-key-password-file", &c.tls_key_password_file),
        ];
        let single = single.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let topics = c.topic.iter().map(|pair| ("--topic", pair));
        let librdkafka = c.librdkafka.iter().map(|pair| ("-X", pair));
        single
            .chain(topics)
            .chain(librdkafka)
            .flat_map(|(flag, value)| [flag.to_owned(), value.clone()])
            .collect()
    }
}

fn named(args: &impl Serialize) -> Dict {
    // Structs of strings always serialize to a dictionary.
    Value::serialize(args).ok().and_then(Value::into_dict).unwrap_or_default()
}
