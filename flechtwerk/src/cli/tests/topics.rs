//! `topics create`: what it makes, what it leaves alone, and what it says of the rest.

use super::*;
use crate::startup::testing::{COUNT, Described, JOIN, LOOKUP, POLL};

#[test]
fn topics_create_makes_what_is_missing_and_nothing_twice() {
    let backend = Fake::new(FakeCluster::default().topic("words", 4));
    answers(
        &backend,
        "topics create --partitions 4 --replication-factor 3",
        expect![[r#"
        NAME                  KIND       PARTITIONS
        alerts                topic      4           created
        counts                topic      4           created
        demo-count-changelog  changelog  4           created
        demo-merge-changelog  changelog  4           created
        words                 topic      4           exists
    "#]],
    );
    let made = backend.cluster.changes();
    assert_eq!(
        made,
        [
            "create alerts x4 r3 delete",
            "create counts x4 r3 delete",
            "create demo-count-changelog x4 r3 compact",
            "create demo-merge-changelog x4 r3 compact",
        ]
    );
    assert_eq!(call(&backend, "topics create").status, CLEAN);
    assert_eq!(backend.cluster.changes(), made);
    assert_eq!(call(&backend, "check").status, CLEAN);
}

#[test]
fn topics_create_says_whose_number_it_leaves_alone() {
    let backend = Fake::new(FakeCluster::default().topic("words", 4));
    assert_eq!(call(&backend, "topics create --partitions 4").status, CLEAN);
    let said = call(&backend, "topics create --partitions 3");
    assert_eq!(said.status, CLEAN);
    let last = said.out.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "--partitions 3 is for topics that are missing; `alerts`, `counts` and `words` keep the number above: another one would move keys"
    );
}

/// Creates the topics of a pipeline; what it says, in words, and what it does.
fn created(pipeline: &'static Pipeline) -> (Vec<String>, Vec<String>) {
    let backend = Fake::new(FakeCluster::default());
    let arguments = ["./demo", "topics", "create", "--partitions", "2"].map(OsString::from).to_vec();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut output = Output { out: &mut out, err: &mut err, terminal: false, colour: false };
    let call = Call { arguments, environment: vec![], width: Some(100), signals: Signals::default };
    assert_eq!(main_with(pipeline, call, &backend, &mut output), CLEAN);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    (String::from_utf8(out).unwrap().lines().map(words).collect(), backend.cluster.changes())
}

#[test]
fn topics_create_makes_what_is_read_whole_compacted() {
    static WITH_TABLE: Pipeline = Pipeline { name: "demo", stages: &[&Described(&LOOKUP)], resources: &[] };
    static WITH_CONFIGS: Pipeline = Pipeline { name: "demo", stages: &[&Described(&POLL)], resources: &[] };
    for (pipeline, topic, kind) in [(&WITH_TABLE, "items", "table"), (&WITH_CONFIGS, "words", "config")] {
        let (said, changes) = created(pipeline);
        assert!(said.contains(&format!("{topic} {kind} 2 created")), "{said:?}");
        assert!(changes.contains(&format!("create {topic} x2 r-1 compact")), "{changes:?}");
        assert!(changes.contains(&"create alerts x2 r-1 delete".to_owned()), "{changes:?}");
    }
}

#[test]
fn topics_create_needs_a_number_and_makes_nothing_that_would_not_hold() {
    let backend = Fake::new(FakeCluster::default().topic("words", 4));
    let ended = call(&backend, "topics create");
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("./demo topics create --partitions 4\n"), "{}", ended.err);
    let ended = call(&Fake::new(FakeCluster::default()), "topics create");
    assert!(ended.err.contains("./demo topics create --partitions N\n"), "{}", ended.err);
    let ended = call(&backend, "topics create --partitions 3");
    assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""));
    expect![[r#"
        1 problem with the pipeline `demo` on localhost:9092

        1. topic `counts` was to be created with 3 partitions, and `words` has 4
           where  input of stage `merge`; nothing was created
           why    a key must have the same partition in all inputs of a stage, and in its state
           mend   ./demo topics create --partitions 4
    "#]]
    .assert_eq(&ended.err);
    assert!(backend.cluster.changes().is_empty());
    // State lies where the keys lay.
    let backend = Fake::new(FakeCluster::default().changelog("demo-count-changelog", 5));
    let ended = call(&backend, "topics create --stage count --partitions 1");
    assert_eq!(ended.status, REFUSED);
    expect![[r#"
        1 problem with the pipeline `demo` on localhost:9092

        1. topic `words` was to be created with 1 partition, and `demo-count-changelog` has 5
           where  input of stage `count`; nothing was created
           why    a key must have the same partition in all inputs of a stage, and in its state
           mend   ./demo topics create --partitions 5 --stage count
    "#]]
    .assert_eq(&ended.err);
    assert!(backend.cluster.changes().is_empty());
}

/// What is missing is made whatever else is wrong, and that is told.
#[test]
fn topics_create_does_what_the_report_says_beside_other_faults() {
    let faulty = || {
        let cluster = FakeCluster::default().topic("words", 2).topic("alerts", 2);
        Fake::new(cluster.with_policy("demo-count-changelog", 2, "delete").committed(
            "demo-merge",
            "words",
            0,
            5,
            "9f3a:12:gone",
        ))
    };
    let backend = faulty();
    let checked = call(&backend, "check");
    assert!(checked.err.starts_with("3 problems"), "{}", checked.err);
    let command = checked.err.lines().find_map(|line| line.split_once("./demo topics ")).unwrap().1;
    let ended = call(&backend, &format!("topics {command}"));
    assert_eq!(ended.status, REFUSED);
    expect![[r#"
        NAME                  KIND       PARTITIONS
        alerts                topic      2           exists
        counts                topic      2           created
        demo-count-changelog  changelog  2           exists
        words                 topic      2           exists
    "#]]
    .assert_eq(&ended.out);
    expect![[r#"
        2 problems with the pipeline `demo` on localhost:9092

        1. the changelog has cleanup.policy=delete, not compact alone
           where  changelog `demo-count-changelog` of stage `count`
           why    Kafka deletes state with its old records
           mend   kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type topics --entity-name demo-count-changelog --add-config cleanup.policy=compact
                  and where records may be gone already, let the state be computed anew from the inputs:
                  ./demo reset --stage count --execute

        2. the changelog that the last commit wrote to is gone
           where  changelog `demo-merge-changelog` of stage `merge`, stamp at words/0
           why    going on at the committed offsets with empty state would lose what it held
           mend   let the state be computed anew from the inputs:
                  ./demo reset --stage merge --execute
    "#]].assert_eq(&ended.err);
    // No changelog whose stage is to be reset.
    assert_eq!(backend.cluster.changes(), ["create counts x2 r-1 delete"]);
    let again = call(&backend, "topics create");
    assert_eq!((again.status, again.err), (REFUSED, ended.err));
}

/// Where the inputs of a stage differ, one more of them is not made: nobody knows with how many partitions.
#[test]
fn topics_create_leaves_out_what_depends_on_a_fault() {
    static JOINING: Pipeline =
        Pipeline { name: "demo", stages: &[&Described(&JOIN), &Described(&COUNT)], resources: &[] };
    let backend = Fake::new(FakeCluster::default().topic("words", 2).topic("items", 3));
    let ended = call_of(&JOINING, &backend, "topics create --partitions 2", &[]);
    assert_eq!(ended.status, REFUSED);
    assert_eq!(
        backend.cluster.changes(),
        ["create alerts x2 r-1 delete", "create demo-count-changelog x2 r-1 compact"]
    );
    expect![[r#"
        2 problems with the pipeline `demo` on localhost:9092

        1. the inputs differ in their number of partitions: `words` has 2, `items` has 3
           where  stage `join`
           why    a task reads the partition of one number of every input, so a key must have one number in all of them
           mend   copy the records of `items` into a new topic with 2 partitions, and start with
                  ./demo run --topic items=TOPIC
                  or copy the records of `words` into a new topic with 3 partitions, and start with
                  ./demo run --topic words=TOPIC

        2. topic `counts` does not exist
           where  input of stage `join`, output of stage `count`
           why    its number of partitions decides where keys go, which is not guessed
           mend   once the inputs of stage `join` have one number of partitions:
                  ./demo topics create --partitions N
                  or name another topic:
                  ./demo run --topic counts=TOPIC
    "#]].assert_eq(&ended.err);
}
