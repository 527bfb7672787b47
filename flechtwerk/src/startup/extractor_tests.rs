//! The checks of extractors: config topics, tokens and leases (S7.4, S10.3).

use std::time::Duration;

use expect_test::expect;

use super::testing::{FakeCluster, KNOWN, POLL, POLL_BOTH, TICK};
use super::*;
use crate::glue::StageInfo;
use crate::task::RESETTING;

fn checked(stages: &[&'static StageInfo], cluster: &FakeCluster) -> Result<Ready, Vec<Problem>> {
    let settings = Settings { connect_timeout: Duration::from_millis(200), ..Settings::default() };
    let program = Program { name: "demo".into(), flags: vec![], ..Program::default() };
    check(&choose("demo", stages, &settings, KNOWN).unwrap(), &settings, cluster, &program)
}

fn report(stages: &[&'static StageInfo], cluster: &FakeCluster) -> String {
    let problems = checked(stages, cluster).unwrap_err();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn there_is_a_token_for_each_partition_of_the_configs() {
    let cluster = FakeCluster::default().topic("words", 16).topic("counts", 16).topic("alerts", 1);
    let ready = checked(&[&POLL, &POLL_BOTH], &cluster).unwrap();
    assert_eq!(ready.stages.iter().map(|stage| stage.partitions).collect::<Vec<_>>(), [16, 16]);
    assert_eq!(ready.missing.len(), 1);
    assert_eq!((&*ready.missing[0].name, ready.missing[0].partitions), ("demo-poll-changelog", 16));
}

#[test]
fn without_configs_there_is_one_token_which_leases_the_changelog() {
    let ready = checked(&[&TICK], &FakeCluster::default().topic("alerts", 7)).unwrap();
    assert_eq!(ready.stages[0].partitions, 1);
    assert_eq!((&*ready.missing[0].name, ready.missing[0].partitions), ("demo-tick-changelog", 1));
    assert_eq!(
        ready.stages[0].names.leases,
        ready.stages[0].names.changelog.iter().cloned().collect::<Vec<_>>()
    );
    // What is committed there counts as everywhere else.
    let cluster = FakeCluster::default().topic("alerts", 7).changelog("demo-tick-changelog", 1).committed(
        "demo-tick",
        "demo-tick-changelog",
        0,
        0,
        RESETTING,
    );
    assert!(report(&[&TICK], &cluster).contains("a reset of this stage is under way"));
}

/// Kafka forgets what was committed for a topic that is deleted, so the stamp stands at an output as well.
#[test]
fn a_changelog_that_is_leased_is_missed_by_its_witness() {
    let stamped =
        |cluster: FakeCluster| cluster.committed("demo-tick", "alerts", 0, 0, "a:7:id-of-the-old-one");
    let gone = stamped(FakeCluster::default().topic("alerts", 7));
    let text = report(&[&TICK], &gone);
    assert!(text.contains("the changelog that the last commit wrote to is gone"), "{text}");
    assert!(text.contains("changelog `demo-tick-changelog` of stage `tick`, stamp at alerts/0"), "{text}");
    assert!(text.contains("reset --stage tick --execute"), "{text}");
    let anew = stamped(FakeCluster::default().topic("alerts", 7).changelog("demo-tick-changelog", 1));
    assert!(report(&[&TICK], &anew).contains("deleted and made anew"));
    // Partitions of the output that are no witness don't count, nor does an output of an extractor with configs.
    let other = FakeCluster::default().topic("alerts", 7).committed("demo-tick", "alerts", 1, 0, "a:7:x");
    assert_eq!(checked(&[&TICK], &other).unwrap().missing.len(), 1);
    let configs = FakeCluster::default().topic("words", 4).topic("alerts", 1);
    assert!(checked(&[&POLL], &configs.committed("demo-poll", "alerts", 0, 0, "a:7:x")).is_ok());
}

#[test]
fn config_topics_have_one_partition_count() {
    let cluster = FakeCluster::default().topic("words", 4).topic("counts", 3).topic("alerts", 1);
    expect![[r#"
        the config topics differ in their number of partitions: `words` has 4, `counts` has 3
           where  stage `poll-both`
           why    a token is the partition of one number of every config topic, and a config belongs to the token that its key and their number say
           mend   copy the configs of `words` into a new topic with 3 partitions, and start with
                  demo run --topic words=TOPIC
                  or copy the configs of `counts` into a new topic with 4 partitions, and start with
                  demo run --topic counts=TOPIC
    "#]]
    .assert_eq(&report(&[&POLL_BOTH], &cluster));
}

#[test]
fn a_missing_config_topic_is_called_what_it_is() {
    let cluster = FakeCluster::default().topic("counts", 3).topic("alerts", 1);
    let text = report(&[&POLL, &POLL_BOTH], &cluster);
    assert!(text.contains("where  config of stages `poll` and `poll-both`"), "{text}");
    assert!(text.contains("topics create --partitions 3"), "{text}");
}

#[test]
fn configs_that_kafka_deletes_by_their_age_are_warned_of() {
    let cluster = FakeCluster::default().topic("words", 1).topic("alerts", 1);
    let ready = checked(&[&POLL], &cluster).unwrap();
    let warning = &ready.warnings[0];
    assert!(
        warning.starts_with("topic `words`, config of stage `poll`, has cleanup.policy=delete"),
        "{warning}"
    );
    assert!(warning.contains("their keys are gone from the configs at the next start"), "{warning}");
    let cluster = FakeCluster::default().changelog("words", 1).topic("alerts", 1);
    assert!(checked(&[&POLL], &cluster).unwrap().warnings.is_empty());
}

#[test]
fn the_changelog_of_the_cursors_has_as_many_partitions_as_there_are_tokens() {
    let cluster = FakeCluster::default()
        .topic("words", 4)
        .topic("alerts", 1)
        .changelog("demo-poll-changelog", 3)
        .changelog("demo-tick-changelog", 3);
    let text = report(&[&POLL, &TICK], &cluster);
    assert!(text.contains("the changelog has 3 partitions, but the input has 4"), "{text}");
    assert!(
        text.contains("the changelog has 3 partitions, but an extractor without configs has 1"),
        "{text}"
    );
}
