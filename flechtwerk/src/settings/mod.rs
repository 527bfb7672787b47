//! What can be set about a run, and where it comes from.
//!
//! Flags win over environment variables, these over the file, the file over the defaults (S11.2). Everything is read
//! once, at the start, and every mistake is reported, not only the first: [`read()`] gives [`Settings`] that
//! are consistent, or all problems. Nothing here reads the process's environment or arguments; the binary hands
//! them in.

mod doubts;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod keys;
mod layers;
mod librdkafka;
mod load;
mod resources;
mod schema_registry;
mod validate;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::resource::Said;

pub(crate) use crate::duration::duration_text;
#[cfg(test)]
pub(crate) use keys::flag_names;
pub(crate) use keys::{flag, is_connection};
pub(crate) use layers::{Given, Source};
pub(crate) use librdkafka::Librdkafka;
pub(crate) use load::read;
#[cfg(all(test, feature = "schema-registry"))]
pub(crate) use schema_registry::Access;
pub(crate) use schema_registry::SchemaRegistry;
pub(crate) use values::{Secret, bytes_text};

/// Everything that can be set, with its default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Brokers to connect to first, `host:port`, comma separated. Default `localhost:9092`.
    pub(crate) bootstrap_servers: String,
    /// How to talk to the brokers. Default: from what else is set, see [`SecurityProtocol`].
    pub(crate) security_protocol: SecurityProtocol,
    /// User and password, where the brokers ask for them.
    pub(crate) sasl: Option<Sasl>,
    /// Certificates, where the connection is encrypted.
    pub(crate) tls: Tls,
    /// The stages to run, by name; empty means all of them.
    pub(crate) stage: Vec<String>,
    /// Prefix of application ids: groups, transactional ids and changelogs. Default: none.
    pub(crate) namespace: String,
    /// Topic names in the code to topic names in the cluster. Default: unmapped.
    pub(crate) topic: BTreeMap<String, String>,
    /// Makes missing output topics with the cluster's defaults. Default: no, a missing one is an error.
    pub(crate) create_outputs: bool,
    /// Static membership: a process that comes back under its id has its partitions back at once. Default: none.
    pub(crate) instance_id: Option<String>,
    /// Don't leave the group at a clean stop: the others wait for this id to come back. Default: leave.
    pub(crate) stay_in_group: bool,
    /// Where state is kept. Default: RocksDB where it is compiled in, else memory.
    pub(crate) store: StoreKind,
    /// The folder of the state on disk. Default `./flechtwerk-state`.
    pub(crate) state_dir: PathBuf,
    /// Most records of a batch (S2.4). Default 5000.
    pub(crate) max_poll_records: usize,
    /// Most bytes of a batch: inputs, outputs and changed state together (S2.4). Default 8 MiB.
    pub(crate) max_batch_bytes: usize,
    /// Longest time for the user code of one batch (S2.8). Default 5 minutes.
    pub(crate) max_batch_time: Duration,
    /// Shortest time between the starts of two commits of a task (S2.4). Default 50 ms.
    pub(crate) commit_interval: Duration,
    /// Most calls of an extractor at a time (S10.3). Default 100.
    pub(crate) max_concurrent_polls: usize,
    /// How long the start waits for the cluster's first answer. Default 10 s.
    pub(crate) connect_timeout: Duration,
    /// How long a retriable error is repeated while running (S6.2). Default 2 minutes.
    pub(crate) broker_timeout: Duration,
    /// How long a commit in flight may still take when its partition is taken away (S5.1). Default 1 s.
    pub(crate) revoke_timeout: Duration,
    /// A member that is silent for so long loses its partitions. Default 10 s.
    pub(crate) session_timeout: Duration,
    /// Time between two signs of life to the group. Default 500 ms.
    pub(crate) heartbeat_interval: Duration,
    /// The cluster aborts a transaction that is open for so long. Default 15 s.
    pub(crate) transaction_timeout: Duration,
    /// Longest time for the tasks at a clean stop. Default 30 s.
    pub(crate) shutdown_timeout: Duration,
    /// Where `/metrics`, `/live` and `/ready` are served, `host:port`. Default: nowhere.
    pub(crate) metrics_listen: Option<String>,
    /// How log lines look. Default text.
    pub(crate) log_format: LogFormat,
    /// Which log lines are written, in the syntax of `RUST_LOG`. Default `info` for a run, `warn` for other commands.
    pub(crate) log: Option<String>,
    /// Further settings of librdkafka.
    pub(crate) librdkafka: Librdkafka,
    /// Where schemas are kept. Default: nowhere.
    pub(crate) schema_registry: SchemaRegistry,
    /// Registers the schemas that are missing. Default: no, a missing one is an error.
    pub(crate) register_schemas: bool,
    /// Settings of resources.
    pub(crate) resources: Said,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            bootstrap_servers: "localhost:9092".into(),
            security_protocol: SecurityProtocol::Plaintext,
            sasl: None,
            tls: Tls::default(),
            stage: Vec::new(),
            namespace: String::new(),
            topic: BTreeMap::new(),
            create_outputs: false,
            instance_id: None,
            stay_in_group: false,
            store: if cfg!(feature = "rocksdb") { StoreKind::RocksDb } else { StoreKind::Memory },
            state_dir: "flechtwerk-state".into(),
            max_poll_records: 5000,
            max_batch_bytes: 8 << 20,
            max_batch_time: Duration::from_secs(300),
            commit_interval: Duration::from_millis(50),
            max_concurrent_polls: 100,
            connect_timeout: Duration::from_secs(10),
            broker_timeout: Duration::from_secs(120),
            revoke_timeout: Duration::from_secs(1),
            session_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_millis(500),
            transaction_timeout: Duration::from_secs(15),
            shutdown_timeout: Duration::from_secs(30),
            metrics_listen: None,
            log_format: LogFormat::Text,
            log: None,
            librdkafka: Librdkafka::default(),
            schema_registry: SchemaRegistry::None,
            register_schemas: false,
            resources: Said::default(),
        }
    }
}

/// How to talk to the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecurityProtocol {
    /// Neither encrypted nor authenticated. The default where neither TLS nor SASL is set.
    Plaintext,
    /// Encrypted; the default where a certificate is named.
    Tls,
    /// Authenticated, not encrypted; never a default.
    SaslPlaintext,
    /// Both; the default where a user is named.
    SaslTls,
}

impl SecurityProtocol {
    /// As Kafka and its clients write it.
    pub(crate) fn as_kafka(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Tls => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslTls => "SASL_SSL",
        }
    }

    pub(crate) fn sasl(self) -> bool {
        matches!(self, SecurityProtocol::SaslPlaintext | SecurityProtocol::SaslTls)
    }

    pub(crate) fn tls(self) -> bool {
        matches!(self, SecurityProtocol::Tls | SecurityProtocol::SaslTls)
    }
}

/// Who we are to the brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sasl {
    pub(crate) mechanism: SaslMechanism,
    pub(crate) username: String,
    pub(crate) password: Secret,
}

/// How the password is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

impl SaslMechanism {
    /// As Kafka writes it.
    pub(crate) fn as_kafka(self) -> &'static str {
        match self {
            SaslMechanism::Plain => "PLAIN",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// The files of an encrypted connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// Whom we trust; default: the system's list.
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, where the brokers ask for one.
    pub(crate) cert: Option<PathBuf>,
    /// Its key.
    pub(crate) key: Option<PathBuf>,
    pub(crate) key_password: Option<Secret>,
}

/// Where state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    RocksDb,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[cfg(test)]
mod tests;
