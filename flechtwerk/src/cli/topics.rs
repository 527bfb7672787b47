//! `topics create`: makes what is missing, but only where everything would then hold together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asked::Create;
use super::output::count;
use crate::naming::list;
use crate::port::{NewTopic, Stability, TopicDescription};
use crate::settings::Settings;
use crate::startup::{
    Asker, Chosen, CommittedByStage, Problem, Program, Role, Seen, committed_of, make, new_changelog,
    new_table, new_topic, roles, structure,
};
use crate::text_table::table;

/// Creates the missing topics and says what there is now.
pub(super) fn create(
    args: Create,
    stages: &[Chosen],
    settings: &Settings,
    asker: &Asker<'_>,
    program: &Program,
) -> Result<String, Vec<Problem>> {
    let one = |problem| vec![problem];
    asker.answers().map_err(one)?;
    let existing = asker.topics(stages).map_err(one)?;
    let replicas = args.replication_factor.map_or(-1, i32::from);
    let mut missing = missing_topics(stages, &existing, args.partitions, replicas, program)?;
    let mut committed = CommittedByStage::new();
    for Chosen { names, .. } in stages {
        let partitions = |topic: &Arc<str>| existing.get(topic).map_or(0, |found| found.partitions);
        committed.insert(names.stage, committed_of(asker, names, Stability::Any, partitions).map_err(one)?);
    }
    // Nothing is made that would not pass the checks afterwards.
    let mut topics = existing.clone();
    topics.extend(missing.iter().map(|topic| (topic.name.clone(), imagined(topic))));
    let ready = structure(stages, &Seen { topics, committed }, settings, program)?;
    let changelogs = ready.missing.iter().map(|topic| new_changelog(&topic.name, topic.partitions, replicas));
    missing.extend(changelogs);
    if !missing.is_empty() {
        make(&missing, asker)?;
    }
    Ok(summary(&existing, &missing, stages))
}

fn missing_topics(
    stages: &[Chosen],
    existing: &BTreeMap<Arc<str>, TopicDescription>,
    partitions: Option<i32>,
    replicas: i32,
    program: &Program,
) -> Result<Vec<NewTopic>, Vec<Problem>> {
    let mut roles = roles(stages);
    roles.retain(|topic, _| !existing.contains_key(topic));
    let missing: Vec<Arc<str>> = roles.keys().cloned().collect();
    match partitions {
        Some(partitions) => {
            let make = |(topic, role): (&Arc<str>, &Role)| match role.is_read_whole() {
                false => new_topic(topic, partitions, replicas),
                true => new_table(topic, partitions, replicas),
            };
            Ok(roles.iter().map(make).collect())
        }
        None if missing.is_empty() => Ok(Vec::new()),
        None => Err(vec![Problem {
            what: format!("{} to create, and no number of partitions", count(missing.len(), "topic")),
            place: list(&missing),
            why: "it decides how many instances can share the work, and can't be changed without moving keys"
                .into(),
            mend: program.command("topics create --partitions N"),
        }]),
    }
}

/// A topic as it will be.
fn imagined(topic: &NewTopic) -> TopicDescription {
    TopicDescription {
        partitions: topic.partitions,
        id: String::new(),
        cleanup_policy: topic.config.get("cleanup.policy").map_or("delete", String::as_str).into(),
        max_message_bytes: None,
    }
}

fn summary(existing: &BTreeMap<Arc<str>, TopicDescription>, made: &[NewTopic], stages: &[Chosen]) -> String {
    let mut all: BTreeMap<&str, (i32, &str)> = BTreeMap::new();
    all.extend(existing.iter().map(|(name, topic)| (&**name, (topic.partitions, "exists"))));
    all.extend(made.iter().map(|topic| (&*topic.name, (topic.partitions, "created"))));
    let roles = roles(stages);
    let is_changelog =
        |name: &str| stages.iter().any(|chosen| chosen.names.changelog.as_deref() == Some(name));
    let rows = all.iter().map(|(name, (partitions, what))| {
        let is_table = roles.get(*name).is_some_and(|role| !role.table_of.is_empty());
        let kind = match (is_changelog(name), is_table) {
            (true, _) => "changelog",
            (_, true) => "table",
            _ => "topic",
        };
        vec![(*name).to_owned(), kind.into(), partitions.to_string(), (*what).to_owned()]
    });
    table(&["NAME", "KIND", "PARTITIONS", ""], rows)
}
