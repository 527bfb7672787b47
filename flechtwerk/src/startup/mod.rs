//! The checks before anything is read, created or joined: all problems in one report, each with its mend (S7.1-S7.4,
//! S7.6, S1.2 at run time). What must hold is in `structure`, free of I/O; this module asks the cluster.

mod ask;
mod create;
mod inputs;
mod policy;
#[cfg(feature = "schema-registry")]
mod schemas;
#[cfg(not(feature = "schema-registry"))]
#[path = "no_schemas.rs"]
mod schemas;
mod stamps;
mod structure;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use crate::report::{Problem, Program};
pub(crate) use ask::{Asker, INTERRUPTED, committed_of};
pub(crate) use create::{create, make, new_changelog, new_table, new_topic};
pub(crate) use inputs::{creation, misfits, undecided};
pub(crate) use schemas::{ReadySchemas, check_schemas};
pub(crate) use structure::{Seen, roles, structure};

pub(crate) use crate::chosen::Chosen;
use crate::naming::{Known, Mapping, StageNames};
use crate::port::{Cluster, NewTopic, Stability};
use crate::settings::Settings;

/// The stages that the settings ask for, under the names that the settings give them as far as these are known.
pub(crate) fn choose(
    pipeline: &str,
    stages: &[&'static crate::glue::StageInfo],
    settings: &Settings,
    known: Known,
) -> Result<Vec<Chosen>, Vec<Problem>> {
    let mapping = Mapping { namespace: &settings.namespace, topics: &settings.topic, known };
    crate::chosen::choose(pipeline, stages, &settings.stage, mapping)
}

/// A stage that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadyStage {
    pub(crate) names: StageNames,
    /// Of each input, and of the changelog.
    pub(crate) partitions: i32,
    /// Of each table, in the order of [`StageNames::tables`].
    pub(crate) table_partitions: Vec<i32>,
    /// Topic id of the changelog; `None` without state, and before [`create()`] made it.
    pub(crate) changelog_id: Option<String>,
}

/// What the checks found where they found no problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) stages: Vec<ReadyStage>,
    /// What is missing and may be made: changelogs, and outputs where that was asked for.
    pub(crate) missing: Vec<NewTopic>,
    /// Nothing that stops a start, but likely not meant.
    pub(crate) warnings: Vec<String>,
}

/// Checks everything; changes nothing.
pub(crate) fn check(
    stages: &[Chosen],
    settings: &Settings,
    cluster: &dyn Cluster,
    program: &Program,
) -> Result<Ready, Vec<Problem>> {
    let asker = Asker::new(cluster, settings);
    asker.answers().map_err(|problem| vec![problem])?;
    let seen = Seen { topics: asker.topics(stages).map_err(|problem| vec![problem])?, ..Seen::default() };
    let seen = Seen { committed: committed(stages, &seen, &asker)?, ..seen };
    structure(stages, &seen, settings, program).sound()
}

/// Committed offsets of each stage's inputs.
pub(crate) type CommittedByStage = BTreeMap<&'static str, Vec<crate::port::Committed>>;

fn committed(stages: &[Chosen], seen: &Seen, asker: &Asker<'_>) -> Result<CommittedByStage, Vec<Problem>> {
    let (mut all, mut problems) = (BTreeMap::new(), Vec::new());
    for Chosen { names, .. } in stages {
        let partitions = |topic: &Arc<str>| seen.topics.get(topic).map_or(0, |topic| topic.partitions);
        match committed_of(asker, names, Stability::Any, partitions) {
            Ok(committed) => drop(all.insert(names.stage, committed)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

#[cfg(test)]
mod extractor_tests;
#[cfg(test)]
mod tests;
