//! The command line: its grammar and its help. What the values mean is the settings' business; here they are text.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use figment::value::{Dict, Value};
use serde::Serialize;

use crate::settings::flag;

/// Sorted after everything else in the help.
const SETTINGS_HELP: &str = "\
Every setting can be given in three places, the first of these wins: as a flag, `--commit-interval 50ms`; as an
environment variable, `FLECHTWERK_COMMIT_INTERVAL=50ms`; in the TOML file of --config, `commit_interval = \"50ms\"`
(--topic as a table [topic], -X as a table [kafka]; in the environment FLECHTWERK_TOPIC=a=b,c=d and
FLECHTWERK_KAFKA_SOCKET_KEEPALIVE_ENABLE=true). Secrets are read from files of their own, or from
FLECHTWERK_SASL_PASSWORD, FLECHTWERK_TLS_KEY_PASSWORD, FLECHTWERK_SCHEMA_REGISTRY_PASSWORD and
FLECHTWERK_SCHEMA_REGISTRY_TOKEN, never from the command line.

Exit status: 0 clean stop, 1 failed while running, 2 wrong usage or a failed startup check.";

/// A default that is not built in would be none.
const STORE_HELP: &str = if cfg!(feature = "rocksdb") {
    "Where state is kept: memory or rocksdb [default: rocksdb]"
} else {
    "Where state is kept: memory; rocksdb is not built in [default: memory]"
};

/// Flags that a command in a mend needs as well: those that say which cluster, and which names.
const REPEATED: &[&str] = &[
    "namespace",
    "topic",
    "bootstrap_servers",
    "security_protocol",
    "sasl_mechanism",
    "sasl_username",
    "sasl_password_file",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "tls_key_password_file",
    "schema_registry",
    "schema_registry_username",
    "schema_registry_password_file",
    "schema_registry_token_file",
    "schema_registry_ca",
    "kafka",
];

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
    cluster: ClusterArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    dev: DevArgs,
}

/// What to do. Values are text here as well, so that a wrong one is told together with all other mistakes.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs the stages until SIGTERM or SIGINT (the default)
    #[command(after_help = SETTINGS_HELP)]
    Run(StartArgs),
    /// Makes the startup checks and lists every problem with its mend; changes nothing
    ///
    /// Looks at settings, names, topics, changelogs and committed offsets, but reads no record. Whether the state in a
    /// changelog is of the version that this program knows is seen only when it is restored.
    Check(WholeArgs),
    /// Shows stages, topics, groups and changelogs; needs no cluster
    Topology(TopologyArgs),
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

/// `run`
#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    whole: WholeArgs,
    #[command(flatten)]
    dev: DevArgs,
}

/// The development broker of `run`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct DevArgs {
    /// Runs on a development broker inside this process, with all topics created; state in memory, unless --store says
    /// otherwise. Everything is gone at the end. Never for production
    #[arg(long, help_heading = "Development")]
    pub(super) dev: bool,
    /// Partitions of the topics that --dev creates [default: 4]
    #[arg(long, value_name = "N", help_heading = "Development")]
    pub(super) dev_partitions: Option<String>,
}

/// `check`, and most of `run`
#[derive(Debug, Args)]
pub(super) struct WholeArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// `topology`
#[derive(Debug, Args)]
pub(super) struct TopologyArgs {
    /// How to show them: text, mermaid, dot or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(super) format: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// `topics create`
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Partitions of each new topic; changelogs always get as many as their stage's inputs have
    #[arg(long, value_name = "N")]
    pub(super) partitions: Option<String>,
    /// Replicas of each new topic, changelogs included [default: the cluster's]
    #[arg(long, value_name = "R")]
    pub(super) replication_factor: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// `reset`
#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    /// Where to begin: `beginning`, or a time such as 2026-01-31T12:00:00Z [default: beginning]
    #[arg(long, value_name = "WHERE")]
    pub(super) to: Option<String>,
    /// Replicas of the changelogs made anew [default: the cluster's]
    #[arg(long, value_name = "R")]
    pub(super) replication_factor: Option<String>,
    /// Does it, instead of showing what it would do
    #[arg(long)]
    pub(super) execute: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Flags that every command takes.
#[derive(Debug, Default, Args, Serialize)]
pub(super) struct ClusterArgs {
    /// Settings file (TOML) [env: FLECHTWERK_CONFIG]
    #[arg(long, value_name = "FILE", help_heading = "Pipeline")]
    #[serde(skip)]
    pub(super) config: Option<PathBuf>,
    /// Stage to work on; repeatable [default: all]
    #[arg(long, value_name = "NAME", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stage: Vec<String>,
    /// Prefix of groups, transactional ids and changelogs, so that two environments can share a cluster
    #[arg(long, value_name = "PREFIX", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// Uses TOPIC in the cluster for the topic that the code calls NAME; repeatable
    #[arg(long, value_name = "NAME=TOPIC", help_heading = "Pipeline")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) topic: Vec<String>,

    /// Brokers to ask first, comma separated [default: localhost:9092]
    #[arg(long, value_name = "HOST:PORT", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bootstrap_servers: Option<String>,
    /// plaintext, tls, sasl_plaintext or sasl_tls [default: by what else is set]
    #[arg(long, value_name = "PROTOCOL", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security_protocol: Option<String>,
    /// PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 [default: SCRAM-SHA-512]
    #[arg(long, value_name = "MECHANISM", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_mechanism: Option<String>,
    /// User to log in as
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_username: Option<String>,
    /// File that holds the user's password
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sasl_password_file: Option<String>,
    /// Certificates of the authorities to trust, PEM [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_ca: Option<String>,
    /// Certificate of this client, PEM
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_cert: Option<String>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_key: Option<String>,
    /// File that holds the key's password
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_key_password_file: Option<String>,
    /// Schema registry to ask, http://HOST:PORT; several with commas between
    #[arg(long, value_name = "URL", help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_registry: Option<String>,
    /// User to show to the schema registry
    #[arg(long, value_name = "NAME", help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_registry_username: Option<String>,
    /// File that holds that user's password
    #[arg(long, value_name = "FILE", help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_registry_password_file: Option<String>,
    /// File that holds a token to show to the schema registry, instead of a user
    #[arg(long, value_name = "FILE", help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_registry_token_file: Option<String>,
    /// Certificates of the authorities to trust for the schema registry, PEM [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_registry_ca: Option<String>,
    /// How long to wait for the cluster's first answer [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connect_timeout: Option<String>,
    /// Setting of librdkafka, such as socket.keepalive.enable=true; repeatable
    #[arg(short = 'X', value_name = "KEY=VALUE", help_heading = "Cluster")]
    #[serde(rename = "kafka", skip_serializing_if = "Vec::is_empty")]
    pub(super) librdkafka: Vec<String>,

    /// Log lines to write: a level, or levels by module as in info,flechtwerk=debug [default: info; other commands than run: warn]
    #[arg(long, value_name = "FILTER", help_heading = "Observing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<String>,
    /// text or json [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = "Observing")]
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
    /// Registers the schemas of outputs that the schema registry does not have
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL",
          hide_possible_values = true, help_heading = "Schema registry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) register_schemas: Option<String>,
    /// Name of this instance, the same after a restart: it then has its partitions back at once
    #[arg(long, value_name = "ID", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance_id: Option<String>,
    /// Stays in its groups at a stop, to be waited for (rolling restarts); needs an --instance-id
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL",
          help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stay_in_group: Option<String>,
    #[arg(long, value_name = "STORE", help_heading = "Running", help = STORE_HELP)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<String>,
    /// Folder of the state on disk [default: flechtwerk-state]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state_dir: Option<String>,
    /// Longest time for the tasks at a clean stop; leaving takes up to 10s more [default: 30s]
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
    /// The settings that were named by flags, those after the subcommand over those before it. What may be repeated
    /// may be repeated on both sides.
    pub(super) fn flags(&self) -> Dict {
        let mut flags = named(&self.cluster);
        merge(&mut flags, named(&self.run));
        if let Some(cluster) = self.command.as_ref().map(Command::cluster) {
            merge(&mut flags, named(cluster));
        }
        if let Some(whole) = self.command.as_ref().and_then(Command::whole) {
            merge(&mut flags, named(&whole.run));
        }
        flags
    }

    /// The development broker, said before or after the subcommand.
    pub(super) fn dev(&self) -> DevArgs {
        let after = match &self.command {
            Some(Command::Run(args)) => args.dev.clone(),
            _ => DevArgs::default(),
        };
        let dev_partitions = after.dev_partitions.or_else(|| self.dev.dev_partitions.clone());
        DevArgs { dev: after.dev || self.dev.dev, dev_partitions }
    }

    /// The settings file.
    pub(super) fn config(&self) -> Option<&PathBuf> {
        let particular = self.command.as_ref().and_then(|command| command.cluster().config.as_ref());
        particular.or(self.cluster.config.as_ref())
    }

    /// The flags that a command in a mend needs as well.
    pub(super) fn repeated(&self) -> Vec<(String, String)> {
        let flags = self.flags();
        let config = self.config().map(|path| ("--config".to_owned(), path.display().to_string()));
        config.into_iter().chain(REPEATED.iter().flat_map(|key| listed(&flags, key))).collect()
    }

    /// The stages that were named by flags, as flags: a command in a mend that names none itself needs them.
    pub(super) fn stages(&self) -> Vec<(String, String)> {
        listed(&self.flags(), "stage")
    }
}

impl Command {
    fn whole(&self) -> Option<&WholeArgs> {
        match self {
            Command::Run(args) => Some(&args.whole),
            Command::Check(whole) => Some(whole),
            _ => None,
        }
    }

    fn cluster(&self) -> &ClusterArgs {
        match self {
            Command::Run(args) => &args.whole.cluster,
            Command::Check(whole) => &whole.cluster,
            Command::Topology(args) => &args.cluster,
            Command::Topics(TopicsCommand::Create(args)) => &args.cluster,
            Command::Reset(args) => &args.cluster,
        }
    }
}

/// A setting's flag, with each of its values.
fn listed(flags: &Dict, key: &str) -> Vec<(String, String)> {
    let values: Vec<&str> = match flags.get(key) {
        Some(Value::Array(_, values)) => values.iter().filter_map(Value::as_str).collect(),
        Some(single) => single.as_str().into_iter().collect(),
        None => Vec::new(),
    };
    values.into_iter().map(|value| (flag(key), value.to_owned())).collect()
}

fn merge(flags: &mut Dict, stronger: Dict) {
    for (key, value) in stronger {
        match (flags.get_mut(&key), value) {
            (Some(Value::Array(_, all)), Value::Array(_, more)) => all.extend(more),
            (_, value) => drop(flags.insert(key, value)),
        }
    }
}

fn named(args: &impl Serialize) -> Dict {
    // Structs of strings always serialize to a dictionary.
    Value::serialize(args).ok().and_then(Value::into_dict).unwrap_or_default()
}
