//! Numbers of partitions that belong together: those of a stage's inputs and its changelog (S7.2, S7.3, S7.4). Where
//! they differ, or one of the topics is missing, what there is says what is to be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Chosen, Problem, Program};
use crate::naming::{list, used};
use crate::port::{NewTopic, TopicDescription};

pub(crate) type Topics = BTreeMap<Arc<str>, TopicDescription>;

/// The inputs of a stage, or the config topics of an extractor, with their numbers of partitions.
pub(super) struct Inputs<'a> {
    chosen: &'a Chosen,
    /// What the code calls those that exist, their names in the cluster and their partitions.
    found: Vec<(&'static str, &'a Arc<str>, i32)>,
    /// Of the changelog, where there is one.
    changelog: Option<i32>,
}

impl<'a> Inputs<'a> {
    pub(super) fn of(chosen: &'a Chosen, topics: &Topics) -> Self {
        let partitions = |topic: &Arc<str>| topics.get(topic).map(|found| found.partitions);
        let inputs = chosen.info.inputs.iter().zip(&chosen.names.inputs);
        let found = inputs.filter_map(|(info, topic)| Some((info.name, topic, partitions(topic)?))).collect();
        let changelog = chosen.names.changelog.as_ref().and_then(partitions);
        Inputs { chosen, found, changelog }
    }

    /// None is missing.
    pub(super) fn complete(&self) -> bool {
        self.found.len() == self.chosen.names.inputs.len()
    }

    /// The number that those have which exist, if it is one. Without a config topic there is one token.
    pub(super) fn count(&self) -> Option<i32> {
        match self.found.first() {
            _ if self.chosen.names.inputs.is_empty() => Some(1),
            Some((.., partitions)) if !self.differ() => Some(*partitions),
            _ => None,
        }
    }

    pub(super) fn differ(&self) -> bool {
        self.found.windows(2).any(|two| two[0].2 != two[1].2)
    }

    /// The number that one more input must have, if what there is says so.
    fn wanted(&self) -> Option<i32> {
        if self.differ() { None } else { self.count().or(self.changelog) }
    }

    /// The number that all are to have, where one is more fitting than the others: that of the state, which would be
    /// lost otherwise, or the one that most of them have.
    fn fitting(&self) -> Option<i32> {
        let votes = |partitions| self.found.iter().filter(|(.., n)| *n == partitions).count();
        if let Some(changelog) = self.changelog.filter(|partitions| votes(*partitions) > 0) {
            return Some(changelog);
        }
        let counts: BTreeSet<i32> = self.found.iter().map(|(.., n)| *n).collect();
        let most = counts.iter().map(|n| votes(*n)).max()?;
        let mut first = counts.into_iter().filter(|n| votes(*n) == most);
        first.next().filter(|_| first.next().is_none())
    }

    /// S7.2 and S7.4: they differ.
    pub(super) fn problem(&self, program: &Program) -> Problem {
        let (what, why, records) = match self.chosen.info.extractor {
            None => (
                "inputs",
                "a task reads the partition of one number of every input, so a key must have one number in all of them",
                "records",
            ),
            Some(_) => (
                "config topics",
                "a token is the partition of one number of every config topic, and a config belongs to the token that its \
                 key and their number say",
                "configs",
            ),
        };
        let each: Vec<String> = self.found.iter().map(|(_, topic, n)| format!("`{topic}` has {n}")).collect();
        let way = |partitions: i32| {
            let odd = self.found.iter().filter(|(.., n)| *n != partitions);
            let (names, topics): (Vec<&str>, Vec<&str>) =
                odd.map(|(name, topic, _)| (*name, &***topic)).unzip();
            format!(
                "copy the {records} of {} into {} with {}, and start with\n{}",
                list(&topics),
                if topics.len() == 1 { "a new topic" } else { "new topics" },
                counted(partitions),
                program.remapped(&names)
            )
        };
        let ways: BTreeSet<i32> = match self.fitting() {
            Some(partitions) => [partitions].into(),
            None => self.found.iter().map(|(.., n)| *n).collect(),
        };
        let ways: Vec<String> = ways.into_iter().map(way).collect();
        Problem {
            what: format!("the {what} differ in their number of partitions: {}", each.join(", ")),
            place: format!("stage `{}`", self.chosen.names.stage),
            why: why.into(),
            mend: ways.join("\nor "),
        }
    }
}

/// `1 partition`, `2 partitions`
pub(super) fn counted(partitions: i32) -> String {
    format!("{partitions} partition{}", if partitions == 1 { "" } else { "s" })
}

/// What the code calls an input that the cluster knows as `topic`.
pub(super) fn code_name<'a>(stages: &[Chosen], topic: &'a Arc<str>) -> &'a str {
    stages
        .iter()
        .flat_map(|chosen| used(chosen.info).zip(chosen.names.topics()))
        .find_map(|(info, name)| (name == topic).then_some(info.name))
        .unwrap_or(topic)
}

/// Numbers of partitions that topics which are missing must have, by what is there of their stages, each with the first
/// stage that says so.
fn wanted(stages: &[Chosen], topics: &Topics) -> BTreeMap<i32, &'static str> {
    let mut all = BTreeMap::new();
    for inputs in stages.iter().map(|chosen| Inputs::of(chosen, topics)) {
        if !inputs.complete()
            && let Some(partitions) = inputs.wanted()
        {
            all.entry(partitions).or_insert(inputs.chosen.names.stage);
        }
    }
    all
}

/// The stages that read this topic.
fn readers<'a>(stages: &'a [Chosen], topic: &Arc<str>) -> impl Iterator<Item = &'a Chosen> {
    stages.iter().filter(move |chosen| chosen.names.inputs.contains(topic))
}

/// The stage that keeps it from being known how many partitions a missing topic must have: its inputs differ.
pub(crate) fn undecided(stages: &[Chosen], topics: &Topics, topic: &Arc<str>) -> Option<&'static str> {
    let mut undecided = readers(stages, topic).filter(|chosen| Inputs::of(chosen, topics).differ());
    undecided.next().map(|chosen| chosen.names.stage)
}

/// The command that makes a missing topic. It makes all others as well, with one number of partitions: where that is
/// told by what is there, by the other inputs of a stage or by its state, it is that one. Where several are told, the
/// command is for one stage.
pub(crate) fn creation(stages: &[Chosen], topics: &Topics, topic: &Arc<str>, program: &Program) -> String {
    let told = wanted(stages, topics);
    let own = readers(stages, topic)
        .find_map(|chosen| Some((Inputs::of(chosen, topics).wanted()?, chosen.names.stage)));
    let command = match (told.first_key_value(), own) {
        (Some((partitions, _)), _) if told.len() == 1 => format!("topics create --partitions {partitions}"),
        (_, Some((partitions, stage))) => format!("topics create --partitions {partitions} --stage {stage}"),
        _ => "topics create --partitions N".to_owned(),
    };
    let command = program.command(&command);
    match undecided(stages, topics, topic) {
        Some(stage) => {
            format!("once the inputs of stage `{stage}` have one number of partitions:\n{command}")
        }
        None => command,
    }
}

/// Why topics can't be made with this number of partitions.
pub(crate) fn misfits(
    stages: &[Chosen],
    topics: &Topics,
    new: &[NewTopic],
    program: &Program,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for topic in new {
        let told = readers(stages, &topic.name).find_map(|chosen| {
            let inputs = Inputs::of(chosen, topics);
            let wanted = inputs.wanted()?;
            Some((inputs, wanted))
        });
        let Some((inputs, partitions)) = told.filter(|(_, partitions)| *partitions != topic.partitions)
        else {
            continue;
        };
        let named = inputs.found.iter().map(|(_, topic, _)| *topic);
        let named: Vec<&Arc<str>> = match inputs.found.is_empty() {
            true => inputs.chosen.names.changelog.iter().collect(),
            false => named.collect(),
        };
        problems.push(Problem {
            what: format!(
                "topic `{}` was to be created with {}, and {} {} {partitions}",
                topic.name,
                counted(topic.partitions),
                list(&named),
                if named.len() == 1 { "has" } else { "have" },
            ),
            place: format!(
                "{} of stage `{}`; nothing was created",
                if inputs.chosen.info.extractor.is_some() { "config" } else { "input" },
                inputs.chosen.names.stage
            ),
            why: "a key must have the same partition in all inputs of a stage, and in its state".into(),
            mend: creation(stages, topics, &topic.name, program),
        });
    }
    problems
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::settings::Settings;
    use crate::startup::testing::{COUNT, ENRICH, FakeCluster, JOIN, KNOWN, MERGE, POLL_BOTH};
    use crate::startup::{check, choose};

    /// The mends of all that is wrong.
    fn mends(stages: &[&'static crate::glue::StageInfo], cluster: FakeCluster, expected: Expect) {
        let (settings, program) =
            (Settings::default(), Program { name: "demo".into(), ..Program::default() });
        let stages = choose("demo", stages, &settings, KNOWN).unwrap();
        let problems = check(&stages, &settings, &cluster, &program).unwrap_err();
        let texts = problems.iter().map(|problem| format!("{}:\n{}\n", problem.what, problem.mend));
        expected.assert_eq(&texts.collect::<String>());
    }

    fn cluster(counts: [i32; 3]) -> FakeCluster {
        let [words, second, items] = counts;
        FakeCluster::default()
            .topic("alerts", 1)
            .topic("words", words)
            .topic("counts", second)
            .topic("items", items)
    }

    #[test]
    fn the_odd_one_is_the_one_that_differs_from_most() {
        mends(
            &[&JOIN],
            cluster([3, 4, 4]),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 3, `counts` has 4, `items` has 4:
            copy the records of `words` into a new topic with 4 partitions, and start with
            demo run --topic words=TOPIC
        "#]],
        );
        mends(
            &[&JOIN],
            cluster([4, 3, 4]),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 4, `counts` has 3, `items` has 4:
            copy the records of `counts` into a new topic with 4 partitions, and start with
            demo run --topic counts=TOPIC
        "#]],
        );
        mends(
            &[&JOIN],
            cluster([4, 4, 1]),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 4, `counts` has 4, `items` has 1:
            copy the records of `items` into a new topic with 4 partitions, and start with
            demo run --topic items=TOPIC
        "#]],
        );
    }

    #[test]
    fn without_a_majority_every_way_is_told() {
        mends(
            &[&JOIN],
            cluster([2, 3, 4]),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 2, `counts` has 3, `items` has 4:
            copy the records of `counts` and `items` into new topics with 2 partitions, and start with
            demo run --topic counts=TOPIC_1 --topic items=TOPIC_2
            or copy the records of `words` and `items` into new topics with 3 partitions, and start with
            demo run --topic words=TOPIC_1 --topic items=TOPIC_2
            or copy the records of `words` and `counts` into new topics with 4 partitions, and start with
            demo run --topic words=TOPIC_1 --topic counts=TOPIC_2
        "#]],
        );
        mends(
            &[&POLL_BOTH],
            cluster([2, 3, 4]),
            expect![[r#"
            the config topics differ in their number of partitions: `words` has 2, `counts` has 3:
            copy the configs of `counts` into a new topic with 2 partitions, and start with
            demo run --topic counts=TOPIC
            or copy the configs of `words` into a new topic with 3 partitions, and start with
            demo run --topic words=TOPIC
        "#]],
        );
    }

    #[test]
    fn the_number_of_the_state_is_the_one_to_keep() {
        mends(
            &[&MERGE],
            cluster([3, 4, 9]).changelog("demo-merge-changelog", 3),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 3, `counts` has 4:
            copy the records of `counts` into a new topic with 3 partitions, and start with
            demo run --topic counts=TOPIC
        "#]],
        );
        mends(
            &[&MERGE],
            cluster([3, 4, 9]).changelog("demo-merge-changelog", 4),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 3, `counts` has 4:
            copy the records of `words` into a new topic with 4 partitions, and start with
            demo run --topic words=TOPIC
        "#]],
        );
    }

    #[test]
    fn a_missing_topic_is_made_with_the_number_that_what_is_there_asks_for() {
        let alerts = || FakeCluster::default().topic("alerts", 1);
        mends(
            &[&MERGE],
            alerts().topic("counts", 4),
            expect![[r#"
            topic `words` does not exist:
            demo topics create --partitions 4
            or name another topic:
            demo run --topic words=TOPIC
        "#]],
        );
        mends(
            &[&COUNT],
            alerts().topic("counts", 7).changelog("demo-count-changelog", 5),
            expect![[r#"
            topic `words` does not exist:
            demo topics create --partitions 5
            or name another topic:
            demo run --topic words=TOPIC
        "#]],
        );
        // `topics create` makes all of them, with one number.
        mends(
            &[&MERGE, &ENRICH],
            FakeCluster::default().topic("words", 6),
            expect![[r#"
            topic `alerts` does not exist:
            demo topics create --partitions 6
            or start with --create-outputs, for the cluster's defaults
            topic `counts` does not exist:
            demo topics create --partitions 6
            or name another topic:
            demo run --topic counts=TOPIC
        "#]],
        );
        // Where that is impossible, those of one stage.
        let two = alerts().changelog("demo-count-changelog", 5).changelog("demo-merge-changelog", 6);
        mends(
            &[&COUNT, &MERGE],
            two,
            expect![[r#"
            topic `counts` does not exist:
            demo topics create --partitions 6 --stage merge
            or name another topic:
            demo run --topic counts=TOPIC
            topic `words` does not exist:
            demo topics create --partitions 5 --stage count
            or name another topic:
            demo run --topic words=TOPIC
        "#]],
        );
        mends(
            &[&JOIN],
            alerts().topic("words", 6).topic("items", 2),
            expect![[r#"
            the inputs differ in their number of partitions: `words` has 6, `items` has 2:
            copy the records of `words` into a new topic with 2 partitions, and start with
            demo run --topic words=TOPIC
            or copy the records of `items` into a new topic with 6 partitions, and start with
            demo run --topic items=TOPIC
            topic `counts` does not exist:
            once the inputs of stage `join` have one number of partitions:
            demo topics create --partitions N
            or name another topic:
            demo run --topic counts=TOPIC
        "#]],
        );
    }
}
