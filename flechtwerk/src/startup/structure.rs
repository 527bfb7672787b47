//! What must hold between topics, changelogs and committed offsets, as a function of what was seen. No I/O, so that
//! `topics create` can ask what would hold after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::stamps::{Verdict, judge};
use super::{Chosen, CommittedByStage, Problem, Program, Ready, ReadyStage, new_changelog, new_topic};
use crate::naming::{StageNames, list, used};
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

/// Everything that is wrong, or what is ready and what may be made.
pub(crate) fn structure(
    stages: &[Chosen],
    seen: &Seen,
    settings: &Settings,
    program: &Program,
) -> Result<Ready, Vec<Problem>> {
    let mut check = Check { seen, settings, program, problems: Vec::new(), ready: Ready::default() };
    check.topics(stages);
    for chosen in stages {
        check.stage(chosen);
    }
    if check.problems.is_empty() { Ok(check.ready) } else { Err(check.problems) }
}

/// What the code calls an input that the cluster knows as `topic`.
fn code_name<'a>(stages: &[Chosen], topic: &'a Arc<str>) -> &'a str {
    stages
        .iter()
        .flat_map(|chosen| used(chosen.info).zip(chosen.names.topics()))
        .find_map(|(info, name)| (name == topic).then_some(info.name))
        .unwrap_or(topic)
}

struct Check<'a> {
    seen: &'a Seen,
    settings: &'a Settings,
    program: &'a Program,
    problems: Vec<Problem>,
    ready: Ready,
}

impl Check<'_> {
    /// S7.1
    fn topics(&mut self, stages: &[Chosen]) {
        for (topic, role) in roles(stages) {
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
            let partitions =
                self.co_input_count(stages, &topic).map_or_else(|| "N".to_owned(), |n| n.to_string());
            let create = self.program.command(&format!("topics create --partitions {partitions}"));
            self.problems.push(Problem {
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
                        self.program.remapped(code_name(stages, &topic))
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
             and their keys are gone {} at the next start; to keep them: kafka-configs.sh --bootstrap-server {} \
             --alter --entity-type topics --entity-name {topic} --add-config cleanup.policy=compact",
            role.place(),
            if role.table_of.is_empty() { "from the configs" } else { "from the table" },
            self.settings.bootstrap_servers,
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
            mend: format!(
                "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {topic} \
                 --add-config cleanup.policy=delete",
                self.settings.bootstrap_servers,
            ),
        });
    }

    /// Partitions of another input of a stage that reads `topic`, where there is one: it must have as many.
    fn co_input_count(&self, stages: &[Chosen], topic: &Arc<str>) -> Option<i32> {
        let readers =
            stages.iter().map(|chosen| &chosen.names.inputs).filter(|inputs| inputs.contains(topic));
        readers.flatten().find_map(|input| self.seen.topics.get(input)).map(|found| found.partitions)
    }

    fn stage(&mut self, chosen: &Chosen) {
        let names = &chosen.names;
        let found =
            names.inputs.iter().map(|topic| self.seen.topics.get(topic).map(|found| found.partitions));
        let counts: Option<Vec<i32>> = found.collect();
        let partitions = counts.and_then(|counts| match (counts.is_empty(), chosen.info.extractor) {
            // Without a config topic there is one token.
            (true, _) => Some(1),
            (false, Some(_)) => self.one_token_count(names, &counts),
            (false, None) => self.one_count(chosen, &counts),
        });
        let changelog_id = names.changelog.as_ref().and_then(|changelog| {
            let found = self.seen.topics.get(changelog)?.clone();
            self.changelog(names, changelog, &found, partitions);
            Some(found.id)
        });
        let stamped = self.stamps(names, changelog_id.as_deref());
        let Some(partitions) = partitions else { return };
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

    /// S7.2
    fn one_count(&mut self, chosen: &Chosen, counts: &[i32]) -> Option<i32> {
        let names = &chosen.names;
        let first = *counts.first()?;
        if counts.iter().all(|count| *count == first) {
            return Some(first);
        }
        let each: Vec<String> =
            names.inputs.iter().zip(counts).map(|(topic, n)| format!("`{topic}` has {n}")).collect();
        // The one to copy: the first that has not as many as most have, or as the first where none are most.
        let of_count = |n: &i32| counts.iter().filter(|count| *count == n).count();
        let usual = counts.iter().rev().max_by_key(|n| of_count(n)).copied().unwrap_or(first);
        let odd = counts.iter().position(|n| *n != usual).unwrap_or(0);
        let (odd, declared) = (&names.inputs[odd], chosen.info.inputs[odd].name);
        self.problems.push(Problem {
            what: format!("the inputs differ in their number of partitions: {}", each.join(", ")),
            place: format!("stage `{}`", names.stage),
            why: "a task reads the partition of one number of every input, so a key must have one number in all of them"
                .into(),
            mend: format!(
                "copy the records of the odd one, such as `{odd}`, into a new topic with {usual} partitions, and start \
                 with\n{}",
                self.program.remapped(declared)
            ),
        });
        None
    }

    /// S7.4
    fn one_token_count(&mut self, names: &StageNames, counts: &[i32]) -> Option<i32> {
        let first = *counts.first()?;
        if counts.iter().all(|count| *count == first) {
            return Some(first);
        }
        let each: Vec<String> =
            names.inputs.iter().zip(counts).map(|(topic, n)| format!("`{topic}` has {n}")).collect();
        self.problems.push(Problem {
            what: format!("the config topics differ in their number of partitions: {}", each.join(", ")),
            place: format!("stage `{}`", names.stage),
            why: "a token is the partition of one number of every config topic, and a config belongs to the token that its \
                  key and their number say"
                .into(),
            mend: format!(
                "copy the configs of the odd one into a new topic with as many partitions as the others have, and start \
                 with\n{}",
                self.program.command("--topic NAME=TOPIC")
            ),
        });
        None
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
                    "the changelog has {} partitions, but {} {partitions}",
                    found.partitions,
                    match names.inputs.len() {
                        0 => "an extractor without configs has",
                        1 => "the input has",
                        _ => "the inputs have",
                    },
                ),
                place: place.clone(),
                why: "keys now lie in other partitions than their state: repartitioning needs a state migration".into(),
                mend: format!(
                    "give the inputs {} partitions again, as new topics; or let the state be computed anew from them:\n{}",
                    found.partitions,
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
                    "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {changelog} \
                     --add-config cleanup.policy=compact\nand where records may be gone already, let the state be computed \
                     anew from the inputs:\n{}",
                    self.settings.bootstrap_servers,
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
