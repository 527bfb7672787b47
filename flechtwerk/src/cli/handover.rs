//! Where the command line ends and the runtime begins. Tests put a cluster in memory behind these traits.

use crate::BoxError;
use crate::glue::AnyStage;
use crate::naming::StageNames;
use crate::observe::{Health, Restoring};
use crate::port::Cluster;
use crate::settings::Settings;
use crate::startup::{Problem, Program};

/// A stage that is to run.
#[derive(Clone)]
pub(crate) struct LaunchStage {
    pub(crate) stage: &'static dyn AnyStage,
    pub(crate) names: StageNames,
    /// Of each input, and of the changelog.
    pub(crate) partitions: i32,
    /// Topic id of the changelog, where the stage keeps state.
    pub(crate) changelog_id: Option<String>,
}

/// Everything that a run needs: checked, created, and ready to join.
pub(crate) struct Launch {
    pub(crate) settings: Settings,
    pub(crate) stages: Vec<LaunchStage>,
    /// Told what is assigned and what runs.
    pub(crate) health: Health,
    /// Told how restores go.
    pub(crate) restoring: Restoring,
    /// For messages that name a command.
    pub(crate) program: Program,
}

/// Connects to a cluster.
pub(crate) trait Backend {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Connected>, Problem>;
}

/// A connection, for commands and for a run.
pub(crate) trait Connected {
    /// Administration, which is all that checks and commands use.
    fn cluster(&self) -> &dyn Cluster;
    /// Runs until a clean stop, or an error that ends the process with status 1.
    fn run(self: Box<Self>, launch: Launch) -> Result<(), BoxError>;
}

/// Apache Kafka, through librdkafka.
pub(crate) struct KafkaBackend;

impl Backend for KafkaBackend {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Connected>, Problem> {
        // HANDOVER: make the client here, and call the runtime in its `Connected::run`.
        Err(Problem {
            what: "the client is not part of this build".into(),
            place: format!("cluster {}", settings.bootstrap_servers),
            why: String::new(),
            mend: "use a later version".into(),
        })
    }
}
