//! The names that a running pipeline uses in the cluster: application ids, groups, changelogs, transactional ids
//! and mapped topics (S2.2, S11.3), and the checks of names that mapping makes necessary again (S1.2).
//!
//! Every name in the cluster is made here and nowhere else, so that two places can't disagree about one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::glue::{StageInfo, TopicInfo};
use crate::nearest::nearest;
use crate::report::Problem;

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
    /// Where a changelog that is leased is witnessed: an output, whose partition 0 carries the stamp as well. If the changelog is
    /// deleted, Kafka forgets what was committed for it, and nothing else would tell that there was one (S7.3, S10.3).
    pub(crate) witness: Option<Arc<str>>,
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

    /// The topics for which the stage commits: each transaction, all of them, with its stamp.
    pub(crate) fn stamped(&self) -> impl Iterator<Item = &Arc<str>> {
        self.leases.iter().chain(&self.witness)
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
    /// Whether they are as they were meant.
    pub(crate) known: Known,
}

/// What of a mapping is as it was meant. Where a setting was not understood, names that come from what is left of it
/// are not those that were meant, and whether they clash is not told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) namespace: bool,
    pub(crate) topics: bool,
}

#[cfg(any(test, feature = "simulation"))]
impl<'a> Mapping<'a> {
    /// A mapping that is meant as it is.
    pub(crate) fn of(namespace: &'a str, topics: &'a BTreeMap<String, String>) -> Self {
        Mapping { namespace, topics, known: Known { namespace: true, topics: true } }
    }
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
    let mut problems = unknown_mappings(stages, &named, mapping);
    if mapping.known.namespace {
        check_application_ids(&named, mapping, &mut problems);
    }
    let mut uses = Uses { mapping, by_metric: BTreeMap::new(), clashes: BTreeSet::new() };
    for (stage, names) in stages.iter().zip(&named) {
        for (topic, name) in used(stage).zip(names.topics()) {
            uses.add(name, Use::Topic { declared: topic.name, id: topic.id }, &mut problems);
        }
    }
    // After the topics, so that a clash is reported at the changelog, which is the one that is easily renamed.
    for names in &named {
        if let Some(changelog) = &names.changelog {
            uses.add(changelog, Use::Changelog { stage: names.stage }, &mut problems);
        }
    }
    if problems.is_empty() { Ok(named) } else { Err(problems) }
}

fn stage_names(pipeline: &str, stage: &'static StageInfo, mapping: Mapping<'_>) -> StageNames {
    let own = stage.application_id.map_or_else(|| format!("{pipeline}-{}", stage.name), str::to_owned);
    let application_id = format!("{}{own}", mapping.namespace);
    let changelog: Option<Arc<str>> = stage.keeps().then(|| format!("{application_id}-changelog").into());
    let inputs: Vec<Arc<str>> = stage.inputs.iter().map(|topic| mapping.topic(topic)).collect();
    let outputs: Vec<Arc<str>> = stage.outputs().map(|topic| mapping.topic(topic)).collect();
    let (leases, witness) = match inputs.is_empty() {
        true => (changelog.iter().cloned().collect(), outputs.first().cloned()),
        false => (inputs.clone(), None),
    };
    StageNames {
        stage: stage.name,
        changelog,
        application_id: application_id.into(),
        inputs,
        leases,
        witness,
        outputs,
        tables: stage.tables().map(|table| mapping.topic(table.topic)).collect(),
    }
}

fn unknown_mappings(
    stages: &[&'static StageInfo],
    named: &[StageNames],
    mapping: Mapping<'_>,
) -> Vec<Problem> {
    let known: BTreeSet<&str> = stages.iter().flat_map(|stage| used(stage)).map(|topic| topic.name).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let unknown = mapping.topics.keys().filter(|name| !known.contains(&name.as_str()));
    unknown
        .map(|name| match named.iter().find(|names| names.changelog.as_deref() == Some(name.as_str())) {
            Some(names) => Problem {
                what: format!("`{name}` is a changelog, which can't be mapped"),
                place: "setting `topic`".into(),
                why: format!("it is named after the application id of stage `{}`", names.stage),
                mend: "remove the mapping; --namespace PREFIX or another `application_id` of the stage rename the \
                       changelog, together with the group: the stage then begins anew"
                    .into(),
            },
            None => Problem {
                what: format!("no stage reads or writes a topic `{name}`, which is to be mapped"),
                place: "setting `topic`".into(),
                why: "a mapping that does nothing is a misspelt one: the stage would use the unmapped topic"
                    .into(),
                mend: match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("map one of {}", list(&known)),
                },
            },
        })
        .collect()
}

/// One problem for all stages: what is wrong is most often the namespace, which they share.
fn check_application_ids(named: &[StageNames], mapping: Mapping<'_>, problems: &mut Vec<Problem>) {
    // The changelog of a stage without state would never be made, but a stage may get state one day.
    let longest = |names: &StageNames| format!("{}-changelog", names.application_id);
    let wrong: Vec<&StageNames> =
        named.iter().filter(|names| check_topic_name(&longest(names)).is_err()).collect();
    let Some(worst) = wrong.iter().max_by_key(|names| names.application_id.len()) else { return };
    let name = longest(worst);
    let reason = check_topic_name(&name).err().unwrap_or_default();
    let stages: Vec<&str> = wrong.iter().map(|names| names.stage).collect();
    let stages = format!("stage{} {}", if stages.len() == 1 { "" } else { "s" }, list(&stages));
    problems.push(Problem {
        what: format!(
            "`{}` can't be an application id: as a changelog, `{name}`, it {reason}",
            worst.application_id
        ),
        place: match mapping.namespace {
            "" => stages,
            namespace => format!("{stages}, namespace `{namespace}`"),
        },
        why: "the application id names the consumer group, the transactional ids and the changelog topic"
            .into(),
        mend: match mapping.namespace {
            "" => "give the stage a shorter `application_id`, of the characters A-Z a-z 0-9 . _ -".into(),
            _ => "use a shorter --namespace PREFIX, of the characters A-Z a-z 0-9 . _ -".into(),
        },
    });
}

/// What a name in the cluster stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// A topic type, under the name that it has in the code.
    Topic {
        declared: &'static str,
        id: &'static str,
    },
    Changelog {
        stage: &'static str,
    },
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Topic { id, .. } => write!(f, "topic type `{id}`"),
            Use::Changelog { stage } => write!(f, "changelog of stage `{stage}`"),
        }
    }
}

/// What each name stands for, keyed by the form in which Kafka's metrics tell names apart.
struct Uses<'a> {
    mapping: Mapping<'a>,
    by_metric: BTreeMap<String, (Arc<str>, Use)>,
    /// Those that were reported: two stages may use the same two topics.
    clashes: BTreeSet<[Use; 2]>,
}

impl Uses<'_> {
    fn add(&mut self, name: &Arc<str>, this: Use, problems: &mut Vec<Problem>) {
        if let Some((other_name, other)) = self.by_metric.get(&name.replace('.', "_")) {
            let (other_name, other) = (other_name.clone(), *other);
            let mut pair = [other, this];
            pair.sort();
            if other != this && self.is_known(other, this) && self.clashes.insert(pair) {
                let differ = if other_name == *name { "have one name" } else { "differ only in `.` and `_`" };
                problems.push(Problem {
                    what: format!("`{other_name}` and `{name}` {differ}"),
                    place: format!("{other} and {this}"),
                    why: "two kinds of records would share a topic, or two topics a metric".into(),
                    mend: self.part(other, this),
                });
            }
            return;
        }
        if let (Use::Topic { declared, .. }, Err(reason)) = (this, check_topic_name(name)) {
            problems.push(Problem {
                what: format!("`{name}` can't be a topic: it {reason}"),
                place: this.to_string(),
                why: "Kafka refuses such names".into(),
                mend: self.remap(declared),
            });
        }
        self.by_metric.insert(name.replace('.', "_"), (name.clone(), this));
    }

    /// True where both names are as they were meant.
    fn is_known(&self, one: Use, other: Use) -> bool {
        let Known { namespace, topics } = self.mapping.known;
        match (one, other) {
            (Use::Topic { .. }, Use::Topic { .. }) => topics,
            (Use::Changelog { .. }, Use::Changelog { .. }) => true,
            _ => namespace && topics,
        }
    }

    /// How to give two uses names that differ. A topic that is mapped was made to clash by that, so it is the one to
    /// change; without a namespace or a mapping no two names clash, since the compiler has looked.
    fn part(&self, one: Use, other: Use) -> String {
        let topics = [one, other].into_iter().filter_map(|this| match this {
            Use::Topic { declared, .. } => Some(declared),
            Use::Changelog { .. } => None,
        });
        let topics: Vec<&str> = topics.collect();
        let mapped: Vec<&str> =
            topics.iter().copied().filter(|declared| self.mapping.topics.contains_key(*declared)).collect();
        let changed = if mapped.is_empty() { topics.clone() } else { mapped };
        let mut ways: Vec<String> = changed.iter().map(|declared| self.remap(declared)).collect();
        match topics.len() {
            2 => {}
            1 => ways.push("use another --namespace PREFIX: a changelog itself can't be mapped".into()),
            _ => ways.push("give one of the stages another `application_id`".into()),
        }
        ways.join("\nor ")
    }

    fn remap(&self, declared: &str) -> String {
        match self.mapping.topics.get(declared) {
            Some(now) => {
                format!("use --topic {declared}=TOPIC with another topic, in place of {declared}={now}")
            }
            None => format!("use --topic {declared}=TOPIC"),
        }
    }
}

/// One place that maps a topic to two names.
pub(crate) fn mapped_twice(name: &str, [first, second]: [&str; 2], place: String) -> Problem {
    Problem {
        what: format!("`{name}` is mapped twice: to `{first}` and to `{second}`"),
        place,
        why: "it can't be told which one is meant".into(),
        mend: format!("keep one: --topic {name}={first} or --topic {name}={second}"),
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
    use crate::demo::{COUNT, COUNT_ALL, ENRICH, MERGE};

    fn mapped(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    fn whats(result: Result<Vec<StageNames>, Vec<Problem>>) -> Vec<String> {
        result.unwrap_err().into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn names_follow_from_namespace_pipeline_and_stage() {
        let topics = mapped(&[("words", "prod.words")]);
        let names = names("demo", &[&COUNT, &ENRICH], Mapping::of("test-", &topics)).unwrap();
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
        let plain = names("demo", &[&COUNT_ALL], Mapping::of("", &none)).unwrap();
        assert_eq!(&*plain[0].application_id, "legacy-counter");
        let prefixed = names("demo", &[&COUNT_ALL], Mapping::of("x.", &none)).unwrap();
        assert_eq!(&*prefixed[0].application_id, "x.legacy-counter");
    }

    #[test]
    fn one_topic_type_in_two_stages_is_no_clash() {
        let none = BTreeMap::new();
        assert!(names("demo", &[&COUNT, &MERGE], Mapping::of("", &none)).is_ok());
    }

    #[test]
    fn mapping_two_topics_onto_one_is_a_clash() {
        let topics = mapped(&[("words", "counts")]);
        // In two stages, and still one problem.
        let problems = names("demo", &[&COUNT, &MERGE], Mapping::of("", &topics)).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert_eq!(problems[0].what, "`counts` and `counts` have one name");
        assert_eq!(problems[0].mend, "use --topic words=TOPIC with another topic, in place of words=counts");
        let topics = mapped(&[("words", "x"), ("counts", "x")]);
        let problems = names("demo", &[&COUNT, &MERGE], Mapping::of("", &topics)).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].mend.contains("words=x\nor use --topic counts=TOPIC"), "{problems:#?}");
    }

    #[test]
    fn names_that_differ_in_dots_clash() {
        let topics = mapped(&[("words", "a.b"), ("counts", "a_b")]);
        let problems = whats(names("demo", &[&COUNT], Mapping::of("", &topics)));
        assert_eq!(problems, ["`a.b` and `a_b` differ only in `.` and `_`"]);
    }

    #[test]
    fn a_topic_mapped_onto_a_changelog_is_a_clash() {
        let topics = mapped(&[("counts", "demo-count-changelog")]);
        let problems = names("demo", &[&COUNT], Mapping::of("", &topics)).unwrap_err();
        assert!(problems[0].place.contains("changelog of stage `count`"), "{problems:?}");
        assert_eq!(
            problems[0].mend,
            "use --topic counts=TOPIC with another topic, in place of counts=demo-count-changelog\n\
             or use another --namespace PREFIX: a changelog itself can't be mapped"
        );
    }

    #[test]
    fn a_changelog_can_not_be_mapped() {
        let topics = mapped(&[("demo-count-changelog", "x")]);
        let problems = names("demo", &[&COUNT], Mapping::of("", &topics)).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert_eq!(problems[0].what, "`demo-count-changelog` is a changelog, which can't be mapped");
    }

    #[test]
    fn application_ids_that_are_too_long_are_one_problem() {
        let (none, long) = (BTreeMap::new(), "n".repeat(240));
        let stages: [&'static StageInfo; 2] = [&COUNT, &ENRICH];
        let problems = names("demo", &stages, Mapping::of(&long, &none)).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(
            problems[0].place.starts_with("stages `count` and `enrich`, namespace `nnn"),
            "{problems:#?}"
        );
        assert!(problems[0].mend.starts_with("use a shorter --namespace"), "{problems:#?}");
        let pipeline = "p".repeat(240);
        let problems = names(&pipeline, &stages, Mapping::of("", &none)).unwrap_err();
        assert_eq!(problems[0].place, "stages `count` and `enrich`");
        assert!(problems[0].mend.starts_with("give the stage a shorter `application_id`"), "{problems:#?}");
    }

    #[test]
    fn an_unknown_topic_in_a_mapping_names_the_nearest() {
        let topics = mapped(&[("wrods", "prod.words")]);
        let problems = names("demo", &[&COUNT], Mapping::of("", &topics)).unwrap_err();
        assert_eq!(problems[0].mend, "did you mean `words`?");
    }

    #[test]
    fn all_problems_are_reported_together() {
        let topics = mapped(&[("words", "a b"), ("counts", ".."), ("nothing", "x")]);
        let problems = whats(names("demo", &[&COUNT], Mapping::of("n/", &topics)));
        assert_eq!(problems.len(), 4, "{problems:#?}");
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
