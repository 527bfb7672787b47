//! What the parts of one run are called on the cluster.

use flechtwerk_tests::Kafka;

/// Of the pipeline, as it names itself.
const PIPELINE: &str = "chaos";

/// A stage, seen from outside.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Its group.
    pub group: String,
    /// What it reads.
    pub input: String,
    /// What it writes.
    pub output: String,
    /// Where its state is, if it has one.
    pub changelog: Option<String>,
}

/// The names of a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// Put before groups and ids.
    pub namespace: String,
    /// Where invalid records go.
    pub rejected: String,
    /// The stages, each reading what the one before has written.
    pub stages: [Stage; 2],
}

impl Names {
    /// Those of a new run in this namespace.
    pub fn new(kafka: &Kafka, namespace: &str) -> Names {
        let [events, sifted, rejected, tallies] =
            ["events", "sifted", "rejected", "tallies"].map(|name| kafka.unique(name));
        let group = |stage: &str| format!("{namespace}{PIPELINE}-{stage}");
        let sift = Stage {
            name: "sift",
            group: group("sift"),
            input: events,
            output: sifted.clone(),
            changelog: None,
        };
        let tally = Stage {
            name: "tally",
            group: group("tally"),
            input: sifted,
            output: tallies,
            changelog: Some(group("tally") + "-changelog"),
        };
        Names { namespace: namespace.to_owned(), rejected, stages: [sift, tally] }
    }

    /// What comes in.
    pub fn events(&self) -> &str {
        &self.stages[0].input
    }

    /// What comes out in the end.
    pub fn tallies(&self) -> &str {
        &self.stages[1].output
    }

    /// True of a topic of this run.
    pub fn is_ours(&self, topic: &str) -> bool {
        let changelogs = self.stages.iter().filter_map(|stage| stage.changelog.as_deref());
        self.topics().iter().map(|(_, name)| *name).chain(changelogs).any(|one| one == topic)
    }

    /// Pairs of the pipeline's names and the cluster's.
    pub fn topics(&self) -> [(&'static str, &str); 4] {
        let [sift, tally] = &self.stages;
        [
            ("events", &sift.input),
            ("sifted", &sift.output),
            ("rejected", &self.rejected),
            ("tallies", &tally.output),
        ]
    }
}
