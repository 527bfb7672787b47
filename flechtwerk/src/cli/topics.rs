//! `topics create`: makes what is missing, with what it then has beside it. Faults of other topics don't keep it from that:
//! a report that lists them beside a missing topic names this command, which then does what it says. They are told
//! afterwards. What it makes can't be made otherwise later without moving keys, so it makes nothing with a number of
//! partitions that does not fit, and leaves out what it is not known of which number it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::Create;
use super::output::count;
use crate::naming::list;
use crate::port::{NewTopic, Stability, TopicDescription};
use crate::settings::Settings;
use crate::startup::{
    Asker, Chosen, CommittedByStage, Problem, Program, Seen, committed_of, creation, make, misfits,
    new_changelog, new_table, new_topic, roles, structure, undecided,
};
use crate::text_table::table;

/// Creates the missing topics, and says what there is now and what is still wrong.
pub(super) fn create(
    args: Create,
    stages: &[Chosen],
    settings: &Settings,
    asker: &Asker<'_>,
    program: &Program,
) -> Result<(String, Vec<Problem>), Vec<Problem>> {
    let one = |problem| vec![problem];
    asker.answers().map_err(one)?;
    let existing = asker.topics(stages).map_err(one)?;
    let replicas = args.replication_factor.map_or(-1, i32::from);
    let mut missing = missing_topics(stages, &existing, args.partitions, replicas, program)?;
    let problems = misfits(stages, &existing, &missing, program);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut committed = CommittedByStage::new();
    for Chosen { names, .. } in stages {
        let partitions = |topic: &Arc<str>| existing.get(topic).map_or(0, |found| found.partitions);
        committed.insert(names.stage, committed_of(asker, names, Stability::Any, partitions).map_err(one)?);
    }
    let mut topics = existing.clone();
    topics.extend(missing.iter().map(|topic| (topic.name.clone(), imagined(topic))));
    let now = structure(
        stages,
        &Seen { topics: existing.clone(), committed: committed.clone() },
        settings,
        program,
    );
    let then = structure(stages, &Seen { topics, committed }, settings, program);
    // Nothing is made that would be at fault itself.
    let faults = |problems: &[Problem]| -> BTreeSet<(String, String)> {
        problems.iter().map(|problem| (problem.what.clone(), problem.place.clone())).collect()
    };
    if !faults(&then.problems).is_subset(&faults(&now.problems)) {
        return Err(then.problems);
    }
    let changelogs = then.ready.missing.iter();
    missing.extend(changelogs.map(|topic| new_changelog(&topic.name, topic.partitions, replicas)));
    if !missing.is_empty() {
        make(&missing, asker)?;
    }
    let kept = kept(&existing, stages, args.partitions);
    Ok((summary(&existing, &missing, stages) + &kept, then.problems))
}

/// What `--partitions` has not changed.
fn kept(
    existing: &BTreeMap<Arc<str>, TopicDescription>,
    stages: &[Chosen],
    partitions: Option<i32>,
) -> String {
    let Some(partitions) = partitions else { return String::new() };
    let roles = roles(stages);
    let other =
        existing.iter().filter(|(name, topic)| roles.contains_key(*name) && topic.partitions != partitions);
    let other: Vec<_> = other.map(|(name, _)| name.clone()).collect();
    match other.is_empty() {
        true => String::new(),
        false => format!(
            "--partitions {partitions} is for topics that are missing; {} {} the number above: another one would move keys\n",
            list(&other),
            if other.len() == 1 { "keeps" } else { "keep" },
        ),
    }
}

fn missing_topics(
    stages: &[Chosen],
    existing: &BTreeMap<Arc<str>, TopicDescription>,
    partitions: Option<i32>,
    replicas: i32,
    program: &Program,
) -> Result<Vec<NewTopic>, Vec<Problem>> {
    let mut roles = roles(stages);
    roles.retain(|topic, _| !existing.contains_key(topic) && undecided(stages, existing, topic).is_none());
    if roles.is_empty() {
        return Ok(Vec::new());
    }
    let Some(partitions) = partitions else {
        let missing: Vec<Arc<str>> = roles.into_keys().collect();
        let commands: BTreeSet<String> =
            missing.iter().map(|topic| creation(stages, existing, topic, program)).collect();
        return Err(vec![Problem {
            what: format!("{} to create, and no number of partitions", count(missing.len(), "topic")),
            place: list(&missing),
            why: "it decides how many instances can share the work, and can't be changed without moving keys"
                .into(),
            mend: commands.into_iter().collect::<Vec<_>>().join("\n"),
        }]);
    };
    let new = roles.iter().map(|(topic, role)| match role.is_read_whole() {
        false => new_topic(topic, partitions, replicas),
        true => new_table(topic, partitions, replicas),
    });
    Ok(new.collect())
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
        let role = roles.get(*name);
        let kind = match (is_changelog(name), role) {
            (true, _) => "changelog",
            (_, Some(role)) if !role.table_of.is_empty() => "table",
            (_, Some(role)) if !role.configures.is_empty() => "config",
            _ => "topic",
        };
        vec![(*name).to_owned(), kind.into(), partitions.to_string(), (*what).to_owned()]
    });
    table(&["NAME", "KIND", "PARTITIONS", ""], rows)
}
