//! What nobody does on purpose: topics that are deleted, or made anew, behind the back of a running instance.

use std::time::Duration;

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, STOP, Seen, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const SHARED: &str = env!("CARGO_BIN_EXE_shared");

/// A changelog that is deleted and made anew while instances run is empty: a task that moves must not restore from it
/// as if nothing were missing (S7.3).
#[test]
fn a_changelog_made_anew_while_running_loses_no_state_silently() {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut first = case.start();
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(2);
    let mut second = case.start();
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(4);
    for partition in 0..2 {
        wait_for("all is committed", || case.committed_of("words", partition).is_some_and(|(at, _)| at == 2));
    }
    case.kafka.delete_topic(&case.changelog());
    case.kafka.create_topic(&case.changelog(), 2, &[("cleanup.policy", "compact")]);
    // Its task goes to the first one, which has to restore it.
    assert_eq!(second.terminate(STOP), 0, "{}", second.log());
    assert_eq!(first.wait(STOP), 1);
    assert!(first.log().contains("made anew") && first.log().contains("`reset`"), "{}", first.log());
    let ones = joined.seen().iter().map(Seen::value_text).filter(|value| value == "1").count();
    assert_eq!(ones, 2, "a count has begun anew");
}

/// Somebody deletes a topic under the running process: after `--broker-timeout` it stops, and names the topic.
#[test]
fn deleted_topics_stop_the_process_naming_them() {
    for which in ["input", "output", "changelog"] {
        let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--broker-timeout", "3s");
        let joined = case.observe("joined");
        let mut instance = case.start();
        case.write("words", &[("a", "x")]);
        joined.wait(1);
        let topic = match which {
            "input" => case.topic("words").to_owned(),
            "output" => case.topic("joined").to_owned(),
            _ => case.changelog(),
        };
        case.kafka.delete_topic(&topic);
        if which != "input" {
            case.write("words", &[("a", "x")]);
        }
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{which}: {}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains(&topic) && error.contains("somebody has deleted it"), "{which}: {log}");
    }
}

/// A stage with a topic that is read whole; the topic's name in the code.
fn whole_topics() -> [(Case, &'static str); 2] {
    let table = Case::new(SHARED, "look_up", 1, &["words", "joined", "items"]);
    let configs = Case::new(RIG, "fetch", 1, &["feeds", "items"]);
    [(table, "items"), (configs, "feeds")]
}

/// The process would go on at its position in the old one, and what lies before it in the new one would be lost (S3.3h).
#[test]
fn an_input_that_is_made_anew_meanwhile_stops_the_process() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x"); 5]);
    joined.wait(5);
    case.kafka.delete_topic(case.topic("words"));
    case.kafka.create_topic(case.topic("words"), 1, &[]);
    case.write("words", &[("a", "x"); 20]);
    assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains(case.topic("words")) && error.contains("made anew"), "{log}");
    assert!(error.contains("`reset`"), "{log}");
}

/// A table or configs would stay as they were for ever, and from the offset where the old topic ended the new one would be read.
#[test]
fn what_is_read_whole_and_made_anew_meanwhile_stops_the_process() {
    for (case, topic) in whole_topics() {
        let write = |count: usize| case.write(topic, &vec![("off", "off"); count]);
        write(1);
        let mut instance = case.rig.start();
        instance.wait_for_log("is running");
        case.kafka.delete_topic(case.topic(topic));
        case.kafka.create_topic(case.topic(topic), 1, &[]);
        write(20);
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{topic}: {}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains(case.topic(topic)) && error.contains("made anew"), "{topic}: {log}");
    }
}

/// S9.1f, S10.3f: what lies in the new partitions would never be read, and of configs instances that start meanwhile would poll others
/// than these do.
#[test]
fn what_is_read_whole_and_gets_more_partitions_stops_the_process() {
    let [table, cursors] = whole_topics();
    let without_cursors = (Case::new(RIG, "repeat", 1, &["feeds", "items"]), "feeds");
    for (mend, (case, topic)) in
        ["start again", "`reset`", "start all instances"].into_iter().zip([table, cursors, without_cursors])
    {
        case.write(topic, &[("off", "off")]);
        let mut instance = case.rig.start();
        instance.wait_for_log("is running");
        case.kafka.add_partitions(case.topic(topic), 2);
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{topic}: {}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let expected =
            format!("topic {} has 2 partitions now, and had 1 when this process started", case.topic(topic));
        assert!(error.contains(&expected) && error.contains(mend), "{topic}: {log}");
    }
}

#[test]
fn what_is_read_whole_and_deleted_meanwhile_stops_the_process() {
    for (case, topic) in whole_topics() {
        let case = case.arg("--broker-timeout", "3s");
        case.write(topic, &[("off", "off")]);
        let mut instance = case.rig.start();
        instance.wait_for_log("is running");
        case.kafka.delete_topic(case.topic(topic));
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{topic}: {}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(
            error.contains(case.topic(topic)) && error.contains("somebody has deleted it"),
            "{topic}: {log}"
        );
    }
}
