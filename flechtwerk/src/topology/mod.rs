//! Shows a pipeline as it is written and named: stages, topics, groups and changelogs. Needs no cluster.
//!
//! One model, four renderings. All of them show the names that the cluster will see, after mapping and namespace.

mod dot;
mod json;
mod mermaid;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::chosen::{Chosen, loops};
use crate::glue::{Order, StageInfo, Start, TopicInfo};
use crate::naming::used;

/// A pipeline, ready to be shown. Serializes to what `--format json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Topology {
    pipeline: String,
    stages: Vec<Stage>,
    topics: Vec<Topic>,
    /// What is worth knowing about the whole, such as circles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Stage {
    name: String,
    /// Path of the function.
    function: String,
    application_id: String,
    group: String,
    kind: &'static str,
    inputs: Vec<String>,
    outputs: Vec<String>,
    tables: Vec<String>,
    /// Types of the resources that it takes.
    resources: Vec<String>,
    /// Where records go that don't decode.
    dead_letters: Option<String>,
    state: Option<State>,
    /// Of a stage that takes timers: where they are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    timers: Option<Timers>,
    /// Of a transformer.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<&'static str>,
    /// Of a transformer.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
    /// Of an extractor, whose inputs are its config topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval: Option<String>,
}

#[derive(Debug, Serialize)]
struct State {
    #[serde(rename = "type")]
    type_name: String,
    version: u32,
    changelog: String,
}

#[derive(Debug, Serialize)]
struct Timers {
    changelog: String,
}

impl Stage {
    /// What lies in the stage's changelog, and its name.
    fn kept(&self) -> Option<(String, &str)> {
        match (&self.state, &self.timers) {
            (Some(state), None) => Some((state.type_name.clone(), &state.changelog)),
            (Some(state), Some(_)) => Some((format!("{}, timers", state.type_name), &state.changelog)),
            (None, Some(timers)) => Some(("timers".to_owned(), &timers.changelog)),
            (None, None) => None,
        }
    }
}

#[derive(Debug, Serialize)]
struct Topic {
    /// In the cluster.
    name: String,
    /// In the code.
    declared: String,
    /// Path of the type.
    #[serde(rename = "type")]
    type_path: String,
    key: String,
    value: String,
}

impl Topology {
    pub(crate) fn new(pipeline: &str, stages: &[Chosen]) -> Self {
        let mut topics: BTreeMap<Arc<str>, &'static TopicInfo> = BTreeMap::new();
        for Chosen { info, names } in stages {
            topics.extend(names.topics().cloned().zip(used(info)));
        }
        Topology {
            pipeline: pipeline.to_owned(),
            stages: stages.iter().map(stage).collect(),
            topics: topics.into_iter().map(topic).collect(),
            notes: loops(stages),
        }
    }
}

fn stage(Chosen { info, names }: &Chosen) -> Stage {
    let info: &'static StageInfo = info;
    let state = info.state().zip(names.changelog.clone());
    let (outputs, dead_letters) = names.outputs_and_dead_letters(info);
    Stage {
        name: info.name.to_owned(),
        function: info.id.to_owned(),
        application_id: names.application_id.to_string(),
        group: names.group().to_string(),
        kind: if info.extractor.is_some() { "extractor" } else { "transformer" },
        inputs: texts(&names.inputs),
        outputs: texts(outputs),
        tables: texts(&names.tables),
        resources: info.resources().map(|need| need.type_name.to_owned()).collect(),
        dead_letters: dead_letters.map(|topic| topic.to_string()),
        state: state.map(|(state, changelog)| State {
            type_name: state.type_name.to_owned(),
            version: state.version,
            changelog: changelog.to_string(),
        }),
        timers: names
            .changelog
            .as_ref()
            .filter(|_| info.takes_timers())
            .map(|changelog| Timers { changelog: changelog.to_string() }),
        start: info.extractor.is_none().then_some(match info.start {
            Start::Earliest => "earliest",
            Start::Latest => "latest",
        }),
        order: info.extractor.is_none().then_some(match info.order {
            Order::Inputs => "inputs",
            Order::Timestamp => "timestamp",
        }),
        poll_interval: info.extractor.map(|extractor| format!("{:?}", extractor.poll_interval)),
    }
}

fn texts(names: &[Arc<str>]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn topic((name, info): (Arc<str>, &'static TopicInfo)) -> Topic {
    Topic {
        name: name.to_string(),
        declared: info.name.to_owned(),
        type_path: info.id.to_owned(),
        key: if info.key_nullable {
            format!("{}, nullable", info.key_codec)
        } else {
            info.key_codec.to_owned()
        },
        value: info.value_codec.to_owned(),
    }
}

/// A name without the characters that the graph languages give a meaning; distinct names stay distinct.
fn identifier(prefix: &str, name: &str) -> String {
    let escaped = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        // No name may hold two underscores where only one was meant: each special character has its own code.
        c => format!("_{:x}_", u32::from(c)),
    });
    format!("{prefix}_{}", escaped.collect::<String>())
}

#[cfg(test)]
mod tests;
