//! Every check, against a cluster in memory.

use std::time::Duration;

use expect_test::{Expect, expect};

use super::testing::{COUNT, COUNT_ALL, ENRICH, FakeCluster, JUDGE, KNOWN, LOOKUP, MERGE};
use super::*;
use crate::glue::StageInfo;
use crate::port::ErrorKind;
use crate::task::RESETTING;

fn settings() -> Settings {
    Settings { connect_timeout: Duration::from_millis(200), ..Settings::default() }
}

fn program() -> Program {
    Program { name: "demo".into(), flags: vec![("--namespace".into(), "n".into())], stages: Vec::new() }
}

fn chosen(stages: &[&'static StageInfo]) -> Vec<Chosen> {
    choose("demo", stages, &settings(), KNOWN).unwrap()
}

fn checked(stages: &[&'static StageInfo], cluster: &FakeCluster) -> Result<Ready, Vec<Problem>> {
    check(&chosen(stages), &settings(), cluster, &program())
}

fn report(stages: &[&'static StageInfo], cluster: &FakeCluster, expected: Expect) {
    let problems = checked(stages, cluster).unwrap_err();
    let texts = problems.iter().enumerate().map(|(index, problem)| format!("{}. {problem}\n", index + 1));
    expected.assert_eq(&texts.collect::<Vec<_>>().join("\n"));
    assert!(cluster.changes().is_empty(), "a check changed something");
}

/// What the stages `count` and `merge` need.
fn sound() -> FakeCluster {
    FakeCluster::default()
        .topic("words", 4)
        .topic("counts", 4)
        .topic("alerts", 1)
        .changelog("demo-count-changelog", 4)
        .changelog("demo-merge-changelog", 4)
}

#[test]
fn a_sound_cluster_is_ready_as_it_is() {
    let cluster = sound();
    let ready = checked(&[&COUNT, &ENRICH, &MERGE], &cluster).unwrap();
    assert!(ready.missing.is_empty());
    let counts: Vec<i32> = ready.stages.iter().map(|stage| stage.partitions).collect();
    assert_eq!(counts, [4, 4, 4]);
    assert_eq!(ready.stages[0].changelog_id, Some(cluster.id("demo-count-changelog")));
    assert_eq!(ready.stages[1].changelog_id, None);
}

#[test]
fn a_dead_letter_topic_must_be_there_and_keep_every_record() {
    report(
        &[&JUDGE],
        &FakeCluster::default().topic("words", 4).topic("alerts", 1),
        expect![[r#"
        1. topic `dead` does not exist
           where  dead letters of stage `judge`
           why    its number of partitions decides where keys go, which is not guessed
           mend   demo topics create --partitions N --namespace n
                  or start with --create-outputs, for the cluster's defaults
    "#]],
    );
    let cluster = FakeCluster::default().topic("words", 4).topic("alerts", 1);
    report(
        &[&JUDGE],
        &cluster.with_policy("dead", 1, "compact,delete"),
        expect![[r#"
        1. topic `dead` has cleanup.policy=compact,delete, and takes dead letters
           where  dead letters of stage `judge`
           why    a compacted topic keeps one record for each key, and the broker refuses records without a key: dead letters would be lost, and one without a key would stop the stage
           mend   kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type topics --entity-name dead --add-config cleanup.policy=delete
    "#]],
    );
    // As many partitions as it likes.
    let cluster = FakeCluster::default().topic("words", 4).topic("alerts", 1).topic("dead", 1);
    assert!(checked(&[&JUDGE], &cluster).unwrap().missing.is_empty());
    // Made like any output, where that was asked for.
    let cluster = FakeCluster::default().topic("words", 4).topic("alerts", 1);
    let settings = Settings { create_outputs: true, ..settings() };
    let ready = check(&chosen(&[&JUDGE]), &settings, &cluster, &program()).unwrap();
    assert_eq!(&*ready.missing[0].name, "dead");
}

#[test]
fn missing_topics_are_each_named_once_with_all_their_uses() {
    report(
        &[&COUNT, &ENRICH, &MERGE],
        &FakeCluster::default(),
        expect![[r#"
        1. topic `alerts` does not exist
           where  output of stages `enrich` and `merge`
           why    its number of partitions decides where keys go, which is not guessed
           mend   demo topics create --partitions N --namespace n
                  or start with --create-outputs, for the cluster's defaults

        2. topic `counts` does not exist
           where  input of stage `merge`, output of stage `count`
           why    its number of partitions decides where keys go, which is not guessed
           mend   demo topics create --partitions N --namespace n
                  or name another topic:
                  demo run --topic counts=TOPIC --namespace n

        3. topic `words` does not exist
           where  input of stages `count`, `enrich` and `merge`
           why    its number of partitions decides where keys go, which is not guessed
           mend   demo topics create --partitions N --namespace n
                  or name another topic:
                  demo run --topic words=TOPIC --namespace n
    "#]],
    );
}

#[test]
fn inputs_with_unequal_counts() {
    let cluster = FakeCluster::default().topic("words", 3).topic("counts", 4).topic("alerts", 1);
    report(
        &[&MERGE],
        &cluster,
        expect![[r#"
            1. the inputs differ in their number of partitions: `words` has 3, `counts` has 4
               where  stage `merge`
               why    a task reads the partition of one number of every input, so a key must have one number in all of them
               mend   copy the records of `counts` into a new topic with 3 partitions, and start with
                      demo run --topic counts=TOPIC --namespace n
                      or copy the records of `words` into a new topic with 4 partitions, and start with
                      demo run --topic words=TOPIC --namespace n
        "#]],
    );
}

#[test]
fn a_changelog_with_another_count_and_policy() {
    let cluster = FakeCluster::default().topic("words", 4).topic("counts", 1).with_policy(
        "demo-count-changelog",
        3,
        "compact,delete",
    );
    report(
        &[&COUNT],
        &cluster,
        expect![[r#"
        1. the changelog has 3 partitions, but the input has 4
           where  changelog `demo-count-changelog` of stage `count`
           why    keys now lie in other partitions than their state: repartitioning needs a state migration
           mend   give the inputs 3 partitions again, as new topics; or let the state be computed anew from them:
                  demo reset --stage count --execute --namespace n

        2. the changelog has cleanup.policy=compact,delete, not compact alone
           where  changelog `demo-count-changelog` of stage `count`
           why    Kafka deletes state with its old records
           mend   kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type topics --entity-name demo-count-changelog --add-config cleanup.policy=compact
                  and where records may be gone already, let the state be computed anew from the inputs:
                  demo reset --stage count --execute --namespace n
    "#]],
    );
}

#[test]
fn a_changelog_that_is_gone_or_another_one() {
    let stamp = "9f3a:12:id-of-the-old-one";
    let gone = FakeCluster::default().topic("words", 4).topic("counts", 1).committed(
        "demo-count",
        "words",
        2,
        7,
        stamp,
    );
    report(
        &[&COUNT],
        &gone,
        expect![[r#"
        1. the changelog that the last commit wrote to is gone
           where  changelog `demo-count-changelog` of stage `count`, stamp at words/2
           why    going on at the committed offsets with empty state would lose what it held
           mend   let the state be computed anew from the inputs:
                  demo reset --stage count --execute --namespace n
    "#]],
    );
    let other = gone.changelog("demo-count-changelog", 4);
    let problems = checked(&[&COUNT], &other).unwrap_err();
    assert_eq!(problems[0].what, "the changelog was deleted and made anew since the last commit");
    let own = other.id("demo-count-changelog");
    let own = other.committed("demo-count", "words", 2, 8, &format!("9f3a:13:{own}"));
    assert!(checked(&[&COUNT], &own).is_ok());
}

#[test]
fn the_mark_of_a_reset_stops_any_start() {
    let cluster = sound().committed("demo-count", "words", 0, 0, RESETTING).committed(
        "demo-enrich",
        "words",
        3,
        0,
        RESETTING,
    );
    report(
        &[&COUNT, &ENRICH],
        &cluster,
        expect![[r#"
        1. a reset of this stage is under way, or was cut short
           where  stage `count`, committed offsets of group `demo-count`
           why    offsets and state don't belong together until it is finished
           mend   let the state be computed anew from the inputs:
                  demo reset --stage count --execute --namespace n

        2. a reset of this stage is under way, or was cut short
           where  stage `enrich`, committed offsets of group `demo-enrich`
           why    offsets and state don't belong together until it is finished
           mend   let the state be computed anew from the inputs:
                  demo reset --stage enrich --execute --namespace n
    "#]],
    );
}

#[test]
fn a_stage_without_state_needs_no_changelog_whatever_was_committed() {
    let cluster = sound().committed("demo-enrich", "words", 0, 5, "9f3a:12:id-of-one-it-had");
    assert!(checked(&[&ENRICH], &cluster).is_ok());
}

#[test]
fn problems_of_all_kinds_are_listed_together() {
    let cluster = FakeCluster::default()
        .topic("words", 3)
        .topic("counts", 4)
        .with_policy("demo-count-changelog", 3, "delete")
        .committed("demo-merge", "counts", 0, 5, "9f3a:12:gone");
    let problems = checked(&[&COUNT, &MERGE], &cluster).unwrap_err();
    let whats: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
    assert_eq!(
        whats,
        [
            "the changelog has cleanup.policy=delete, not compact alone",
            "the inputs differ in their number of partitions: `words` has 3, `counts` has 4",
            "the changelog that the last commit wrote to is gone",
            "topic `alerts` does not exist",
        ]
    );
}

#[test]
fn a_cluster_that_does_not_answer_is_one_problem_that_names_the_address() {
    for kind in [ErrorKind::TimedOut, ErrorKind::Retriable, ErrorKind::Fatal] {
        let cluster = sound();
        cluster.fail("brokers", kind);
        let problems = checked(&[&COUNT], &cluster).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].what.contains("localhost:9092"), "{problems:?}");
    }
}

#[test]
fn offsets_that_can_not_be_read_are_a_problem_and_not_taken_for_none() {
    let cluster = sound();
    cluster.fail("committed", ErrorKind::Hopeless);
    let problems = checked(&[&COUNT], &cluster).unwrap_err();
    assert!(problems[0].what.starts_with("the committed offsets can't be read"), "{problems:?}");
}

#[test]
fn a_group_that_commits_all_the_time_can_be_joined_by_one_more() {
    let cluster = sound().busy().committed("demo-count", "words", 3, 9, "9f3a:12:id-of-the-old-one");
    assert!(checked(&[&MERGE], &cluster).is_ok());
    let problems = checked(&[&COUNT], &cluster).unwrap_err();
    assert_eq!(problems[0].what, "the changelog was deleted and made anew since the last commit");
}

#[test]
fn changelogs_are_made_compacted_with_the_inputs_count_after_the_checks() {
    let cluster = FakeCluster::default().topic("words", 4).topic("counts", 1);
    let stages = chosen(&[&COUNT]);
    let ready = check(&stages, &settings(), &cluster, &program()).unwrap();
    assert_eq!(ready.stages[0].changelog_id, None);
    assert!(cluster.changes().is_empty());
    let ready = create(ready, &stages, &settings(), &cluster, &program()).unwrap();
    assert_eq!(cluster.changes(), ["create demo-count-changelog x4 r-1 compact"]);
    assert_eq!(ready.stages[0].changelog_id, Some(cluster.id("demo-count-changelog")));
    assert!(ready.missing.is_empty());
}

/// In a cluster of several brokers one may answer that does not know the new changelog yet. A stage that started
/// without its id would keep no state at all.
#[test]
fn a_changelog_that_a_broker_does_not_know_yet_is_waited_for() {
    let cluster = FakeCluster::default().topic("words", 4).topic("counts", 1).lagging(2);
    let stages = chosen(&[&COUNT]);
    let ready = check(&stages, &settings(), &cluster, &program()).unwrap();
    let ready = create(ready, &stages, &settings(), &cluster, &program()).unwrap();
    assert_eq!(ready.stages[0].changelog_id, Some(cluster.id("demo-count-changelog")));
    assert!(ready.missing.is_empty());
}

#[test]
fn outputs_are_made_only_where_that_was_asked_for() {
    let cluster = FakeCluster::default().topic("words", 4);
    let asked = Settings { create_outputs: true, ..settings() };
    let stages = chosen(&[&ENRICH]);
    let ready = check(&stages, &asked, &cluster, &program()).unwrap();
    create(ready, &stages, &asked, &cluster, &program()).unwrap();
    assert_eq!(cluster.changes(), ["create alerts x-1 r-1 delete"]);
    // A topic that another stage reads has a number of partitions that matters.
    let problems = check(&chosen(&[&COUNT, &MERGE]), &asked, &cluster, &program()).unwrap_err();
    assert!(problems.iter().any(|problem| problem.what == "topic `counts` does not exist"), "{problems:?}");
}

#[test]
fn a_topic_that_can_not_be_made_is_named() {
    let cluster = FakeCluster::default().topic("words", 4).topic("counts", 1);
    let stages = chosen(&[&COUNT]);
    let ready = check(&stages, &settings(), &cluster, &program()).unwrap();
    cluster.fail("create", ErrorKind::Hopeless);
    let problems = create(ready, &stages, &settings(), &cluster, &program()).unwrap_err();
    assert!(problems[0].what.starts_with("topic `demo-count-changelog` can't be created"), "{problems:?}");
}

#[test]
fn stages_are_chosen_by_name() {
    let only = |names: &[&str]| Settings {
        stage: names.iter().map(|name| (*name).to_owned()).collect(),
        ..settings()
    };
    let names = |settings: &Settings| {
        let stages = choose("demo", &[&COUNT, &ENRICH, &COUNT_ALL], settings, KNOWN);
        stages.map(|stages| stages.iter().map(|stage| stage.info.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&only(&[])).unwrap(), ["count", "enrich", "count-all"]);
    assert_eq!(names(&only(&["enrich"])).unwrap(), ["enrich"]);
    let problems = names(&only(&["enrihc", "zzz"])).unwrap_err();
    assert_eq!(problems[0].mend, "did you mean `enrich`?");
    assert_eq!(problems[1].mend, "its stages are `count`, `enrich` and `count-all`");
}

#[test]
fn a_retriable_answer_is_asked_for_again() {
    let mut answers = vec![
        Ok(3),
        Err((ErrorKind::TimedOut, "")),
        Err((ErrorKind::Retriable, "")),
        Err((ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART")),
    ];
    let asked = ask::repeat(Duration::from_secs(60), |_| {
        let answer = answers.pop().unwrap();
        answer.map_err(|(kind, code)| crate::port::BrokerError {
            kind,
            code: code.to_owned(),
            text: String::new(),
            output: None,
            size: None,
        })
    });
    assert_eq!(asked.unwrap(), 3);
}

#[test]
fn a_table_that_is_missing_is_a_problem_and_its_partitions_may_be_any() {
    let cluster = FakeCluster::default().topic("words", 4).topic("alerts", 1);
    report(
        &[&LOOKUP],
        &cluster,
        expect![[r#"
            1. topic `items` does not exist
               where  table of stage `lookup`
               why    a table is read whole before its stages start
               mend   demo topics create --partitions N --namespace n
                      or name another topic:
                      demo run --topic items=TOPIC --namespace n
        "#]],
    );
    let ready = checked(&[&LOOKUP], &cluster.changelog("items", 3)).unwrap();
    assert_eq!((ready.stages[0].partitions, &ready.stages[0].table_partitions[..]), (4, &[3][..]));
    assert!(ready.warnings.is_empty());
}

#[test]
fn a_table_that_is_not_compacted_is_a_warning_with_its_reason() {
    for policy in ["delete", "compact,delete"] {
        let cluster =
            FakeCluster::default().topic("words", 4).topic("alerts", 1).with_policy("items", 3, policy);
        let warnings = checked(&[&LOOKUP], &cluster).unwrap().warnings;
        let expected = format!(
            "topic `items`, table of stage `lookup`, has cleanup.policy={policy}, not compact alone: Kafka deletes records by their \
             age, and their keys are gone from the table at the next start"
        );
        assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
    }
}

/// The mend of a mapped topic takes the place of its mapping.
#[test]
fn mends_replace_the_mapping_there_was() {
    let topics = [("words".to_owned(), "w1".to_owned()), ("counts".to_owned(), "c1".to_owned())];
    let mapped = Settings { topic: topics.into(), ..settings() };
    let stages = choose("demo", &[&MERGE], &mapped, KNOWN).unwrap();
    let flags = [("--topic", "words=w1"), ("--topic", "counts=c1")];
    let flags = flags.map(|(flag, value)| (flag.to_owned(), value.to_owned())).to_vec();
    let stage = vec![("--stage".to_owned(), "merge".to_owned())];
    let program = Program { name: "demo".into(), flags, stages: stage };
    let mends = |cluster: &FakeCluster| {
        let problems = check(&stages, &mapped, cluster, &program).unwrap_err();
        problems.iter().map(|problem| problem.mend.clone()).collect::<Vec<_>>().join("\n")
    };
    let missing = mends(&FakeCluster::default().topic("w1", 4).topic("alerts", 1));
    assert_eq!(
        missing,
        "demo topics create --partitions 4 --stage merge --topic words=w1 --topic counts=c1\n\
         or name another topic:\n\
         demo run --topic counts=TOPIC --stage merge --topic words=w1"
    );
    let unequal = mends(&FakeCluster::default().topic("w1", 4).topic("c1", 3).topic("alerts", 1));
    assert!(unequal.ends_with("demo run --topic counts=TOPIC --stage merge --topic words=w1"), "{unequal}");
}
