//! The checks before anything is read, created or joined: all problems in one report, each with its mend (S7.1-S7.4,
//! S7.6, S1.2 at run time). What must hold is in `structure`, free of I/O; this module asks the cluster.

mod ask;
mod create;
mod report;
mod stamps;
mod structure;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use ask::{Asker, committed_of};
pub(crate) use create::{create, make, new_changelog, new_table, new_topic};
pub(crate) use report::{Problem, Program};
pub(crate) use structure::{Role, Seen, roles, structure};

use crate::glue::{AnyStage, StageInfo};
use crate::naming::{Mapping, StageNames, list, names};
use crate::port::{Cluster, NewTopic, Stability};
use crate::settings::{Settings, nearest};

/// A stage that is to run, under its names in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) info: &'static StageInfo,
    pub(crate) names: StageNames,
}

/// The stages that the settings ask for, named; the names of all stages are checked, chosen or not.
pub(crate) fn choose(
    pipeline: &str,
    stages: &[&'static StageInfo],
    settings: &Settings,
) -> Result<Vec<Chosen>, Vec<Problem>> {
    let known: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
    let mut problems = Vec::new();
    if stages.is_empty() {
        problems.push(Problem {
            what: "the pipeline has no stage".into(),
            place: format!("pipeline `{pipeline}`"),
            why: String::new(),
            mend: "list at least one stage in `pipeline!`".into(),
        });
    }
    for name in settings.stage.iter().filter(|name| !known.contains(&name.as_str())) {
        problems.push(Problem {
            what: format!("the pipeline has no stage `{name}`"),
            place: "setting `stage`".into(),
            why: String::new(),
            mend: match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its stages are {}", list(&known)),
            },
        });
    }
    let mapping = Mapping { namespace: &settings.namespace, topics: &settings.topic };
    match names(pipeline, stages, mapping) {
        Ok(named) if problems.is_empty() => {
            let all = stages.iter().zip(named).map(|(info, names)| Chosen { info, names });
            let wanted =
                |name: &str| settings.stage.is_empty() || settings.stage.iter().any(|stage| stage == name);
            Ok(all.filter(|chosen| wanted(chosen.info.name)).collect())
        }
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// The constant descriptions of a pipeline's stages.
pub(crate) fn infos(stages: &'static [&'static dyn AnyStage]) -> Vec<&'static StageInfo> {
    stages.iter().map(|stage| stage.info()).collect()
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
    structure(stages, &seen, settings, program)
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
