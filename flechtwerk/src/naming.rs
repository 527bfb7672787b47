//! The names that a running pipeline uses in the cluster: application ids, groups, changelogs, transactional ids
//! and mapped topics (S2.2, S11.3), and the checks of names that mapping makes necessary again (S1.2).
//!
//! Every name in the cluster is made here and nowhere else, so that two places can't disagree about one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::glue::{StageInfo, TopicInfo};
use crate::settings::nearest;
use crate::startup::Problem;

/// The names of one stage in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageNames {
    /// As in the pipeline, without namespace.
    pub(crate) stage: &'static str,
    /// Consumer group and prefix of everything else that belongs to the stage.
    pub(crate) application_id: Arc<str>,
    /// The input topics after mapping, in the order of [`StageInfo::inputs`].
    pub(crate) inputs: Vec<Arc<str>>,
    /// The topics whose partitions the group hands out: the inputs, or the changelog of an extractor without config
    /// topics (S10.3).
    pub(crate) leases: Vec<Arc<str>>,
    /// The output topics after mapping, in the order of [`StageInfo::outputs`].
    pub(crate) outputs: Vec<Arc<str>>,
    /// The topics of its tables after mapping, in the order of [`StageInfo::tables`].
    pub(crate) tables: Vec<Arc<str>>,
    /// Where the stage keeps state.
    pub(crate) changelog: Option<Arc<str>>,
}

impl StageNames {
    /// The consumer group.
    pub(crate) fn group(&self) -> &Arc<str> {
        &self.application_id
    }

    /// All topics but the changelog, in the order of [`used`].
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.inputs.iter().chain(&self.outputs).chain(&self.tables)
    }

    /// The topics that the stage's parameters send to, and that of its dead letters.
    pub(crate) fn outputs_and_dead_letters(&self, info: &StageInfo) -> (&[Arc<str>], Option<&Arc<str>>) {
        match (info.policy.dead_letters, self.outputs.split_last()) {
            (Some(_), Some((dead_letters, outputs))) => (outputs, Some(dead_letters)),
            _ => (&self.outputs, None),
        }
    }

    /// The static transactional id of the task with this partition number.
    pub(crate) fn transactional_id(&self, partition: i32) -> String {
        format!("{}-{partition}", self.application_id)
    }
}

/// The topics of a stage: inputs, outputs, tables.
pub(crate) fn used(stage: &StageInfo) -> impl Iterator<Item = &'static TopicInfo> {
    stage.inputs.iter().copied().chain(stage.outputs()).chain(stage.tables().map(|table| table.topic))
}

/// How names are changed at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping<'a> {
    /// Prefix of all application ids; may be empty.
    pub(crate) namespace: &'a str,
    /// A topic's name in the code to its name in the cluster.
    pub(crate) topics: &'a BTreeMap<String, String>,
}

impl Mapping<'_> {
    fn topic(&self, topic: &TopicInfo) -> Arc<str> {
        self.topics.get(topic.name).map_or(topic.name, String::as_str).into()
    }
}

/// Names of all stages, or everything that is wrong with them.
pub(crate) fn names(
    pipeline: &str,
    stages: &[&'static StageInfo],
    mapping: Mapping<'_>,
) -> Result<Vec<StageNames>, Vec<Problem>> {
    let named: Vec<StageNames> = stages.iter().map(|stage| stage_names(pipeline, stage, mapping)).collect();
    let mut problems = unknown_mappings(stages, mapping);
    let mut uses = Uses::default();
    for (stage, names) in stages.iter().zip(&named) {
        check_application_id(stage, names, mapping, &mut problems);
        for (topic, name) in used(stage).zip(names.topics()) {
            let what = format!("topic type `{}`", topic.id);
            uses.add(name, topic.id, what, &mut problems);
        }
    }
    // After the topics, so that a clash is reported at the changelog, which is the one that is easily renamed.
    for names in &named {
        if let Some(changelog) = &names.changelog {
            let what = format!("changelog of stage `{}`", names.stage);
            uses.add(changelog, names.stage, what, &mut problems);
        }
    }
    if problems.is_empty() { Ok(named) } else { Err(problems) }
}

fn stage_names(pipeline: &str, stage: &'static StageInfo, mapping: Mapping<'_>) -> StageNames {
    let own = stage.application_id.map_or_else(|| format!("{pipeline}-{}", stage.name), str::to_owned);
    let application_id = format!("{}{own}", mapping.namespace);
    let changelog: Option<Arc<str>> = stage.state().map(|_| format!("{application_id}-changelog").into());
    let inputs: Vec<Arc<str>> = stage.inputs.iter().map(|topic| mapping.topic(topic)).collect();
    let leases = if inputs.is_empty() { changelog.iter().cloned().collect() } else { inputs.clone() };
    StageNames {
        stage: stage.name,
        changelog,
        application_id: application_id.into(),
        inputs,
        leases,
        outputs: stage.outputs().map(|topic| mapping.topic(topic)).collect(),
        tables: stage.tables().map(|table| mapping.topic(table.topic)).collect(),
    }
}

fn unknown_mappings(stages: &[&'static StageInfo], mapping: Mapping<'_>) -> Vec<Problem> {
    let known: Vec<&str> = stages.iter().flat_map(|stage| used(stage)).map(|topic| topic.name).collect();
    let unknown = mapping.topics.keys().filter(|name| !known.contains(&name.as_str()));
    unknown
        .map(|name| Problem {
            what: format!("no stage reads or writes a topic `{name}`, which is to be mapped"),
            place: "setting `topic`".into(),
            why: "a mapping that does nothing is a misspelt one: the stage would use the unmapped topic"
                .into(),
            mend: match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("map one of {}", list(&known)),
            },
        })
        .collect()
}

fn check_application_id(
    stage: &StageInfo,
    names: &StageNames,
    mapping: Mapping<'_>,
    problems: &mut Vec<Problem>,
) {
    // The changelog of a stage without state would never be made, but a stage may get state one day.
    let longest = format!("{}-changelog", names.application_id);
    if let Err(reason) = check_topic_name(&longest) {
        problems.push(Problem {
            what: format!(
                "`{}` can't be an application id: as a changelog, `{longest}`, it {reason}",
                names.application_id
            ),
            place: format!("stage `{}`, namespace `{}`", stage.name, mapping.namespace),
            why: "the application id names the consumer group, the transactional ids and the changelog topic"
                .into(),
            mend: "use a shorter `namespace` of the characters A-Z a-z 0-9 . _ -".into(),
        });
    }
}

/// What each name stands for, keyed by the form in which Kafka's metrics tell names apart.
#[derive(Default)]
struct Uses(BTreeMap<String, (Arc<str>, &'static str, String)>);

impl Uses {
    fn add(&mut self, name: &Arc<str>, id: &'static str, what: String, problems: &mut Vec<Problem>) {
        if let Some((other, other_id, other_what)) = self.0.get(&name.replace('.', "_")) {
            if *other_id != id {
                let differ = if other == name { "have one name" } else { "differ only in `.` and `_`" };
                problems.push(Problem {
                    what: format!("`{other}` and `{name}` {differ}"),
                    place: format!("{other_what} and {what}"),
                    why: "two kinds of records would share a topic, or two topics a metric".into(),
                    mend: "give them different names with `--topic NAME=TOPIC`, or change the `namespace`"
                        .into(),
                });
            }
            return;
        }
        if let Err(reason) = check_topic_name(name) {
            problems.push(Problem {
                what: format!("`{name}` can't be a topic: it {reason}"),
                place: what.clone(),
                why: "Kafka refuses such names".into(),
                mend: "map it to another name with `--topic NAME=TOPIC`".into(),
            });
        }
        self.0.insert(name.replace('.', "_"), (name.clone(), id, what));
    }
}

/// Kafka's rule for topic names; the reason continues a sentence: "it ...".
pub(crate) fn check_topic_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    if name == "." || name == ".." {
        return Err("is `.` or `..`".into());
    }
    if name.len() > 249 {
        return Err(format!("is {} characters long; 249 are allowed", name.len()));
    }
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        Some(wrong) => Err(format!("has the character {wrong:?}; allowed are A-Z a-z 0-9 . _ -")),
        None => Ok(()),
    }
}

/// `a`, `b` and `c`
pub(crate) fn list(names: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == names.len() => " and ",
            _ => ", ",
        };
        text += &format!("{before}`{}`", name.as_ref());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::testing::{COUNT, COUNT_ALL, ENRICH, MERGE};

    fn mapped(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    fn whats(result: Result<Vec<StageNames>, Vec<Problem>>) -> Vec<String> {
        result.unwrap_err().into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn names_follow_from_namespace_pipeline_and_stage() {
        let topics = mapped(&[("words", "prod.words")]);
        let names =
            names("demo", &[&COUNT, &ENRICH], Mapping { namespace: "test-", topics: &topics }).unwrap();
        assert_eq!(&*names[0].application_id, "test-demo-count");
        assert_eq!(names[0].group(), &names[0].application_id);
        assert_eq!(names[0].changelog.as_deref(), Some("test-demo-count-changelog"));
        assert_eq!(names[0].transactional_id(7), "test-demo-count-7");
        assert_eq!(&*names[0].inputs[0], "prod.words");
        assert_eq!(&*names[0].outputs[0], "counts");
        assert_eq!(names[1].changelog, None);
    }

    #[test]
    fn a_set_application_id_gets_the_namespace_and_nothing_else() {
        let none = BTreeMap::new();
        let plain = names("demo", &[&COUNT_ALL], Mapping { namespace: "", topics: &none }).unwrap();
        assert_eq!(&*plain[0].application_id, "legacy-counter");
        let prefixed = names("demo", &[&COUNT_ALL], Mapping { namespace: "x.", topics: &none }).unwrap();
        assert_eq!(&*prefixed[0].application_id, "x.legacy-counter");
    }

    #[test]
    fn one_topic_type_in_two_stages_is_no_clash() {
        let none = BTreeMap::new();
        assert!(names("demo", &[&COUNT, &MERGE], Mapping { namespace: "", topics: &none }).is_ok());
    }

    #[test]
    fn mapping_two_topics_onto_one_is_a_clash() {
        let topics = mapped(&[("words", "counts")]);
        let problems = whats(names("demo", &[&COUNT], Mapping { namespace: "", topics: &topics }));
        assert_eq!(problems, ["`counts` and `counts` have one name"]);
    }

    #[test]
    fn names_that_differ_in_dots_clash() {
        let topics = mapped(&[("words", "a.b"), ("counts", "a_b")]);
        let problems = whats(names("demo", &[&COUNT], Mapping { namespace: "", topics: &topics }));
        assert_eq!(problems, ["`a.b` and `a_b` differ only in `.` and `_`"]);
    }

    #[test]
    fn a_topic_mapped_onto_a_changelog_is_a_clash() {
        let topics = mapped(&[("counts", "demo-count-changelog")]);
        let problems = names("demo", &[&COUNT], Mapping { namespace: "", topics: &topics }).unwrap_err();
        assert!(problems[0].place.contains("changelog of stage `count`"), "{problems:?}");
    }

    #[test]
    fn an_unknown_topic_in_a_mapping_names_the_nearest() {
        let topics = mapped(&[("wrods", "prod.words")]);
        let problems = names("demo", &[&COUNT], Mapping { namespace: "", topics: &topics }).unwrap_err();
        assert_eq!(problems[0].mend, "did you mean `words`?");
    }

    #[test]
    fn all_problems_are_reported_together() {
        let topics = mapped(&[("words", "a b"), ("counts", ".."), ("nothing", "x")]);
        let problems = whats(names("demo", &[&COUNT], Mapping { namespace: "n/", topics: &topics }));
        assert_eq!(problems.len(), 5, "{problems:#?}");
    }

    #[test]
    fn kafkas_rule_for_names() {
        for good in ["a", "A.b_c-9", &"x".repeat(249)] {
            assert_eq!(check_topic_name(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a b", "ä", "a/b", &"x".repeat(250)] {
            assert!(check_topic_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_read_well() {
        assert_eq!(list(&["a"]), "`a`");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
