//! Where the command line ends and the runtime begins. Tests put a cluster in memory behind these traits.

use std::sync::Arc;
use std::time::Duration;

use super::memory::GivingBack;
use super::signals::Signals;
use crate::glue::AnyStage;
use crate::kafka::{ClientSettings, Kafka, KafkaClients};
use crate::naming::StageNames;
use crate::observe::{Health, Restores};
use crate::port::{Cluster, Schemas, StoreFactory};
use crate::resource::Pool;
use crate::runtime::{Changelog, Limits, Plan, RunError, StagePlan, TablePlan};
use crate::settings::{Settings, StoreKind};
use crate::startup::Problem;
use crate::store::MemoryStores;

/// Positions that moved without any record are committed after this long (S3.3g).
const IDLE_COMMIT: Duration = Duration::from_secs(60);

/// A stage that is to run.
#[derive(Clone)]
pub(crate) struct LaunchStage {
    pub(crate) stage: &'static dyn AnyStage,
    pub(crate) names: StageNames,
    /// Of each input, and of the changelog.
    pub(crate) partitions: i32,
    /// Of each table.
    pub(crate) table_partitions: Vec<i32>,
    /// Topic id of the changelog, where the stage keeps state.
    pub(crate) changelog_id: Option<String>,
}

/// Everything that a run needs: checked, created, and ready to join.
pub(crate) struct Launch {
    pub(crate) settings: Settings,
    pub(crate) stages: Vec<LaunchStage>,
    /// The resources of the stages, made.
    pub(crate) pool: Pool,
    /// Where schemas come from that records name; `None` without a registry.
    pub(crate) schemas: Option<Arc<dyn Schemas>>,
    /// Told what is assigned and what runs.
    pub(crate) health: Health,
    /// Told how restores go.
    pub(crate) restores: Restores,
    /// Stop it, where somebody listens to them.
    pub(super) signals: Signals,
}

/// Connects to a cluster.
pub(crate) trait Backend {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Connected>, Problem>;
}

/// A connection, for commands and for a run.
pub(crate) trait Connected {
    /// Administration, which is all that checks and commands use.
    fn cluster(&self) -> &dyn Cluster;
    /// Runs until a clean stop, or an error that ends the process.
    fn run(self: Box<Self>, launch: Launch) -> Result<(), RunError>;
}

/// Apache Kafka, through librdkafka.
pub(crate) struct KafkaBackend {
    /// Name of the pipeline, by which the brokers know its clients.
    pub(crate) pipeline: &'static str,
}

struct KafkaConnected {
    kafka: Kafka,
    cluster: Arc<dyn Cluster>,
}

impl Backend for KafkaBackend {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Connected>, Problem> {
        let kafka = Kafka::new(client_settings(self.pipeline, settings));
        let cluster = kafka.cluster().map_err(|error| Problem {
            what: format!("no client can be made with these settings: {error}"),
            place: format!("settings of the connection to {}", settings.bootstrap_servers),
            why: String::new(),
            mend: "mend the setting that the message names".into(),
        })?;
        Ok(Box::new(KafkaConnected { kafka, cluster }))
    }
}

impl Connected for KafkaConnected {
    fn cluster(&self) -> &dyn Cluster {
        &*self.cluster
    }

    fn run(self: Box<Self>, launch: Launch) -> Result<(), RunError> {
        let KafkaConnected { kafka, cluster } = *self;
        // Its threads and connections are of no use to a run.
        drop(cluster);
        let clients = KafkaClients { kafka, instance_id: launch.settings.instance_id.clone() };
        let (health, signals) = (launch.health.clone(), launch.signals.clone());
        let (plan, pool) = plan(launch, clients);
        let _giving_back = GivingBack::start();
        crate::runtime::run(plan, pool, |stopper| signals.hand_to(stopper, health))
    }
}

/// What the clients are made of.
fn client_settings(pipeline: &str, settings: &Settings) -> ClientSettings {
    let client_id = match &settings.instance_id {
        Some(instance_id) => format!("{}{pipeline}-{instance_id}", settings.namespace),
        None => format!("{}{pipeline}", settings.namespace),
    };
    let mut extra: std::collections::BTreeMap<String, String> =
        settings.librdkafka.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut set = |name: &str, value: &str| drop(extra.insert(name.to_owned(), value.to_owned()));
    set("security.protocol", settings.security_protocol.as_kafka());
    if let Some(sasl) = &settings.sasl {
        set("sasl.mechanisms", sasl.mechanism.as_kafka());
        set("sasl.username", &sasl.username);
        set("sasl.password", sasl.password.expose());
    }
    let tls = &settings.tls;
    let files = [
        ("ssl.ca.location", &tls.ca),
        ("ssl.certificate.location", &tls.cert),
        ("ssl.key.location", &tls.key),
    ];
    for (name, path) in files {
        if let Some(path) = path {
            set(name, &path.to_string_lossy());
        }
    }
    if let Some(password) = &tls.key_password {
        set("ssl.key.password", password.expose());
    }
    ClientSettings {
        client_id,
        extra,
        session_timeout: settings.session_timeout,
        heartbeat_interval: settings.heartbeat_interval,
        transaction_timeout: settings.transaction_timeout,
        ..ClientSettings::new(settings.bootstrap_servers.as_str())
    }
}

/// What the runtime works by.
fn plan(launch: Launch, clients: KafkaClients) -> (Plan, Pool) {
    let Launch { settings, stages, pool, schemas, health, restores, signals: _ } = launch;
    let stages =
        stages.into_iter().map(|LaunchStage { stage, names, partitions, table_partitions, changelog_id }| {
            // A stage with state and without its changelog would lose the state silently.
            assert_eq!(names.changelog.is_some(), changelog_id.is_some(), "a changelog without an id");
            let changelog = names.changelog.clone().zip(changelog_id);
            let changelog = changelog.map(|(topic, id)| Changelog { topic, id, partitions });
            let tables = names.tables.iter().zip(stage.info().tables()).zip(table_partitions);
            let tables = tables.map(|((topic, info), partitions)| TablePlan {
                topic: topic.clone(),
                info,
                partitions,
            });
            let tables = tables.collect();
            StagePlan { stage, names, changelog, partitions, tables }
        });
    let plan = Plan {
        stages: stages.collect(),
        instance_id: settings.instance_id.clone(),
        limits: Limits {
            max_poll_records: settings.max_poll_records,
            max_batch_bytes: settings.max_batch_bytes,
            max_batch_time: settings.max_batch_time,
            commit_interval: settings.commit_interval,
            broker_timeout: settings.broker_timeout,
            revoke_timeout: settings.revoke_timeout,
            heartbeat_interval: settings.heartbeat_interval,
            transaction_timeout: settings.transaction_timeout,
            max_concurrent_polls: settings.max_concurrent_polls,
            idle_commit: IDLE_COMMIT,
        },
        stay_in_group: settings.stay_in_group,
        shutdown_timeout: settings.shutdown_timeout,
        clients: Arc::new(clients),
        stores: stores(&settings),
        schemas,
        health,
        restores,
    };
    (plan, pool)
}

#[cfg(feature = "rocksdb")]
fn stores(settings: &Settings) -> Arc<dyn StoreFactory> {
    match settings.store {
        StoreKind::Memory => Arc::new(MemoryStores::default()),
        StoreKind::RocksDb => Arc::new(crate::store::RocksStores::new(&settings.state_dir)),
    }
}

#[cfg(not(feature = "rocksdb"))]
fn stores(settings: &Settings) -> Arc<dyn StoreFactory> {
    // The settings refuse anything else where it is not compiled in.
    debug_assert_eq!(settings.store, StoreKind::Memory);
    Arc::new(MemoryStores::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sasl, SaslMechanism, Secret, SecurityProtocol, Tls};

    #[test]
    fn settings_become_those_of_the_client() {
        let sasl = Sasl {
            mechanism: SaslMechanism::ScramSha256,
            username: "ann".into(),
            password: Secret::new("hunter2"),
        };
        let tls = Tls { ca: Some("/ca.pem".into()), ..Tls::default() };
        let settings = Settings {
            bootstrap_servers: "b:9".into(),
            security_protocol: SecurityProtocol::SaslTls,
            sasl: Some(sasl),
            tls,
            namespace: "x-".into(),
            instance_id: Some("one".into()),
            ..Settings::default()
        };
        let client = client_settings("demo", &settings);
        assert_eq!(client.bootstrap_servers, "b:9");
        assert_eq!(client.client_id, "x-demo-one");
        assert_eq!(client.extra["security.protocol"], "SASL_SSL");
        assert_eq!(client.extra["sasl.mechanisms"], "SCRAM-SHA-256");
        assert_eq!(client.extra["sasl.password"], "hunter2");
        assert_eq!(client.extra["ssl.ca.location"], "/ca.pem");
        assert_eq!(client.session_timeout, settings.session_timeout);
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}
