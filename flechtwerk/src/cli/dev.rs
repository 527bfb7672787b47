//! `run --dev`: the pipeline on a development broker inside this process, so that a first run needs nothing else.

use crate::settings::Settings;
use crate::startup::{Chosen, Problem};

/// What is asked of the development broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dev {
    /// Of each topic that is created.
    pub(super) partitions: i32,
}

impl Dev {
    /// Where nothing is said.
    pub(super) const PARTITIONS: i32 = 4;
}

/// A running development broker; it would end with this.
pub(super) struct Running {
    /// Where it listens.
    pub(super) address: String,
    #[cfg(feature = "dev-broker")]
    _broker: flechtwerk_dev_broker::DevBroker,
}

/// Starts the broker with all topics of the stages, and points the settings to it. The changelogs are created by the
/// pipeline's own start.
#[cfg(feature = "dev-broker")]
pub(super) fn start(
    dev: Dev,
    stages: &[Chosen],
    settings: &mut Settings,
    store_given: bool,
) -> Result<Running, Problem> {
    use flechtwerk_dev_broker::{DevBroker, NewTopic};

    use crate::settings::{SchemaRegistry, StoreKind};
    use crate::startup::roles;

    let builder = roles(stages).into_iter().fold(DevBroker::builder(), |builder, (topic, role)| {
        let new = NewTopic::new(topic.to_string(), dev.partitions);
        builder.topic(if role.is_read_whole() { new.config("cleanup.policy", "compact") } else { new })
    });
    let broker = builder.start().map_err(|error| Problem {
        what: format!("the development broker does not start: {error}"),
        place: "flag --dev".into(),
        why: String::new(),
        mend: "see the reason, or use another cluster: --bootstrap-servers HOST:PORT".into(),
    })?;
    let address = broker.bootstrap();
    settings.bootstrap_servers.clone_from(&address);
    // What a folder holds belongs to another cluster.
    if !store_given {
        settings.store = StoreKind::Memory;
    }
    // The ids need not outlive what is written here.
    if settings.schema_registry == SchemaRegistry::None {
        settings.schema_registry = SchemaRegistry::InProcess;
    }
    Ok(Running { address, _broker: broker })
}

/// Without the feature there is none.
#[cfg(not(feature = "dev-broker"))]
pub(super) fn start(_: Dev, _: &[Chosen], _: &mut Settings, _: bool) -> Result<Running, Problem> {
    Err(Problem {
        what: "this program was built without the development broker".into(),
        place: "flag --dev".into(),
        why: String::new(),
        mend: "add the feature to the dependency: flechtwerk = { .., features = [\"dev-broker\"] }".into(),
    })
}
