//! What must hold between topics, changelogs and committed offsets, as a function of what was seen. No I/O, so that
//! `topics create` can ask what would hold after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::{Inputs, code_name, counted, creation};
use super::policy;
use super::stamps::{Verdict, judge};
use super::{Chosen, CommittedByStage, Problem, Program, Ready, ReadyStage, new_changelog, new_topic};
use crate::naming::{StageNames, list};
use crate::port::TopicDescription;
use crate::settings::Settings;

/// A cluster, as far as some stages use it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) topics: BTreeMap<Arc<str>, TopicDescription>,
    pub(crate) committed: CommittedByStage,
}

/// What a topic is to the stages that use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// The stages that read it.
    pub(crate) read_by: Vec<&'static str>,
    /// The extractors whose configs lie in it.
    pub(crate) configures: Vec<&'static str>,
    /// The stages that write it.
    pub(crate) written_by: Vec<&'static str>,
    /// The stages that hold it whole.
    pub(crate) table_of: Vec<&'static str>,
    /// The stages that send it what does not decode.
    pub(crate) dead_letters_of: Vec<&'static str>,
}

impl Role {
    /// What counts is the last record of each key: it is to be compacted.
    pub(crate) fn is_read_whole(&self) -> bool {
        !self.table_of.is_empty() || !self.configures.is_empty()
    }

    fn place(&self) -> String {
        let stages =
            |names: &[&str]| format!("stage{} {}", if names.len() == 1 { "" } else { "s" }, list(names));
        let uses = [
            ("input", &self.read_by),
            ("config", &self.configures),
            ("output", &self.written_by),
            ("table", &self.table_of),
            ("dead letters", &self.dead_letters_of),
        ];
        let uses = uses.into_iter().filter(|(_, names)| !names.is_empty());
        let texts: Vec<String> = uses.map(|(what, names)| format!("{what} of {}", stages(names))).collect();
        texts.join(", ")
    }
}

/// All topics of these stages but the changelogs, each once.
pub(crate) fn roles(stages: &[Chosen]) -> BTreeMap<Arc<str>, Role> {
    let mut roles: BTreeMap<Arc<str>, Role> = BTreeMap::new();
    for Chosen { names, info } in stages {
        let (outputs, dead_letters) = names.outputs_and_dead_letters(info);
        for topic in &names.inputs {
            let role = roles.entry(topic.clone()).or_default();
            let readers = if info.extractor.is_some() { &mut role.configures } else { &mut role.read_by };
            readers.push(names.stage);
        }
        for topic in outputs {
            roles.entry(topic.clone()).or_default().written_by.push(names.stage);
        }
        for topic in &names.tables {
            roles.entry(topic.clone()).or_default().table_of.push(names.stage);
        }
        if let Some(topic) = dead_letters {
            roles.entry(topic.clone()).or_default().dead_letters_of.push(names.stage);
        }
    }
    roles
}

/// What was found.
pub(crate) struct Found {
    /// What may run and what may be made, as far as nothing is wrong with it.
    pub(crate) ready: Ready,
    /// Everything that is wrong. Missing topics come last: what they are to be may depend on the rest.
    pub(crate) problems: Vec<Problem>,
}

impl Found {
    /// What is ready, where nothing is wrong at all.
    pub(crate) fn sound(self) -> Result<Ready, Vec<Problem>> {
        if self.problems.is_empty() { Ok(self.ready) } else { Err(self.problems) }
    }
}

/// Everything that is wrong, and what is ready and what may be made.
pub(crate) fn structure(stages: &[Chosen], seen: &Seen, settings: &Settings, program: &Program) -> Found {
    let (problems, missing, ready) = (Vec::new(), Vec::new(), Ready::default());
    let mut check = Check { stages, seen, settings, program, problems, missing, ready };
    check.topics();
    for chosen in stages {
        check.stage(chosen);
    }
    check.problems.append(&mut check.missing);
    Found { ready: check.ready, problems: check.problems }
}

struct Check<'a> {
    stages: &'a [Chosen],
    seen: &'a Seen,
    settings: &'a Settings,
    program: &'a Program,
    problems: Vec<Problem>,
    /// Topics that are missing.
    missing: Vec<Problem>,
    ready: Ready,
}

impl Check<'_> {
    /// S7.1
    fn topics(&mut self) {
        for (topic, role) in roles(self.stages) {
            if let Some(found) = self.seen.topics.get(&topic) {
                self.table(&topic, &role, &found.cleanup_policy);
                self.dead_letters(&topic, &role, found);
                continue;
            }
            let only_written = role.read_by.is_empty() && !role.is_read_whole();
            if only_written && self.settings.create_outputs {
                self.ready.missing.push(new_topic(&topic, -1, -1));
                continue;
            }
            let create = creation(self.stages, &self.seen.topics, &topic, self.program);
            self.missing.push(Problem {
                what: format!("topic `{topic}` does not exist"),
                place: role.place(),
                why: match role.table_of.is_empty() {
                    true => "its number of partitions decides where keys go, which is not guessed".into(),
                    false => "a table is read whole before its stages start".into(),
                },
                mend: match only_written {
                    true => format!("{create}\nor start with --create-outputs, for the cluster's defaults"),
                    false => format!(
                        "{create}\nor name another topic:\n{}",
                        self.program.remapped(&[code_name(self.stages, &topic)])
                    ),
                },
            });
        }
    }

    /// A topic that is read whole keeps the last record of each key (S7.1).
    fn table(&mut self, topic: &str, role: &Role, cleanup_policy: &str) {
        if !role.is_read_whole() || cleanup_policy == "compact" {
            return;
        }
        self.ready.warnings.push(format!(
            "topic `{topic}`, {}, has cleanup.policy={cleanup_policy}, not compact alone: Kafka deletes records by their age, \
             and their keys are gone {} at the next start; to keep them: {}",
            role.place(),
            if role.table_of.is_empty() { "from the configs" } else { "from the table" },
            policy::setting(self.settings, topic, "compact"),
        ));
    }

    /// Dead letters are kept as they are, each of them.
    fn dead_letters(&mut self, topic: &str, role: &Role, found: &TopicDescription) {
        if role.dead_letters_of.is_empty() || !found.cleanup_policy.contains("compact") {
            return;
        }
        self.problems.push(Problem {
            what: format!("topic `{topic}` has cleanup.policy={}, and takes dead letters", found.cleanup_policy),
            place: role.place(),
            why: "a compacted topic keeps one record for each key, and the broker refuses records without a key: dead \
                  letters would be lost, and one without a key would stop the stage"
                .into(),
            mend: policy::setting(self.settings, topic, "delete"),
        });
    }

    fn stage(&mut self, chosen: &Chosen) {
        let names = &chosen.names;
        let inputs = Inputs::of(chosen, &self.seen.topics);
        let mut partitions = inputs.count();
        if inputs.differ() {
            self.problems.push(inputs.problem(self.program));
            partitions = None;
        }
        let changelog_id = names.changelog.as_ref().and_then(|changelog| {
            let found = self.seen.topics.get(changelog)?.clone();
            self.changelog(names, changelog, &found, partitions);
            Some(found.id)
        });
        let stamped = self.stamps(names, changelog_id.as_deref());
        let Some(partitions) = partitions.filter(|_| inputs.complete()) else { return };
        if let Some(changelog) = &names.changelog
            && changelog_id.is_none()
            && stamped
        {
            self.ready.missing.push(new_changelog(changelog, partitions, -1));
        }
        // A table that is missing is a problem of its own.
        let tables = names.tables.iter().filter_map(|topic| self.seen.topics.get(topic));
        let table_partitions = tables.map(|found| found.partitions).collect();
        self.ready.stages.push(ReadyStage {
            names: names.clone(),
            partitions,
            table_partitions,
            changelog_id,
        });
    }

    /// S7.3, the changelog itself.
    fn changelog(
        &mut self,
        names: &StageNames,
        changelog: &str,
        found: &TopicDescription,
        partitions: Option<i32>,
    ) {
        let place = format!("changelog `{changelog}` of stage `{}`", names.stage);
        if let Some(partitions) = partitions
            && found.partitions != partitions
        {
            self.problems.push(Problem {
                what: format!(
                    "the changelog has {}, but {} {partitions}",
                    counted(found.partitions),
                    match names.inputs.len() {
                        0 => "an extractor without configs has",
                        1 => "the input has",
                        _ => "the inputs have",
                    },
                ),
                place: place.clone(),
                why: "keys now lie in other partitions than their state: repartitioning needs a state migration".into(),
                mend: format!(
                    "give the inputs {} again, as new topics; or let the state be computed anew from them:\n{}",
                    counted(found.partitions),
                    self.reset(names)
                ),
            });
        }
        if found.cleanup_policy != "compact" {
            self.problems.push(Problem {
                what: format!("the changelog has cleanup.policy={}, not compact alone", found.cleanup_policy),
                place,
                why: "Kafka deletes state with its old records".into(),
                mend: format!(
                    "{}\nand where records may be gone already, let the state be computed anew from the inputs:\n{}",
                    policy::setting(self.settings, changelog, "compact"),
                    self.reset(names)
                ),
            });
        }
    }

    /// S7.3, the changelog against the committed stamps; true if nothing speaks against making it.
    fn stamps(&mut self, names: &StageNames, changelog_id: Option<&str>) -> bool {
        let committed = self.seen.committed.get(names.stage).map(Vec::as_slice).unwrap_or_default();
        // What a stage without state has committed names a changelog only if it had state once.
        let verdict = match judge(committed, changelog_id) {
            Verdict::OtherChangelog(_) if names.changelog.is_none() => Verdict::Fine,
            verdict => verdict,
        };
        let (what, place, why) = match verdict {
            Verdict::Fine => return true,
            Verdict::Resetting => (
                "a reset of this stage is under way, or was cut short".to_owned(),
                format!("stage `{}`, committed offsets of group `{}`", names.stage, names.group()),
                "offsets and state don't belong together until it is finished",
            ),
            Verdict::OtherChangelog(at) => (
                match changelog_id {
                    Some(_) => "the changelog was deleted and made anew since the last commit".to_owned(),
                    None => "the changelog that the last commit wrote to is gone".to_owned(),
                },
                format!(
                    "changelog `{}` of stage `{}`, stamp at {}",
                    names.changelog.as_deref().unwrap_or_default(),
                    names.stage,
                    at.at
                ),
                "going on at the committed offsets with empty state would lose what it held",
            ),
        };
        let mend = format!("let the state be computed anew from the inputs:\n{}", self.reset(names));
        self.problems.push(Problem { what, place, why: why.into(), mend });
        false
    }

    fn reset(&self, names: &StageNames) -> String {
        self.program.command(&format!("reset --stage {} --execute", names.stage))
    }
}
