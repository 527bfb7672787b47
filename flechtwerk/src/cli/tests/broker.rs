//! The commands against a real cluster: what the cluster in memory can't vouch for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::cli::handover::KafkaBackend;
use crate::cli::output::Output;
use crate::cli::signals::Signals;
use crate::cli::{CLEAN, Call, REFUSED, main_with};
use crate::kafka::{ClientSettings, Kafka};
use crate::port::{Cluster, NewTopic, OffsetCommit, Stability, TopicDescription, TopicPartition};
use crate::startup::testing::DEMO;
use crate::task::{RESETTING, Stamp};

use super::Ended;

/// Far more than anything takes; only failures wait for it.
const LONG: Duration = Duration::from_secs(30);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: start a cluster with scripts/kafka"))
}

/// One test's corner of the cluster: a namespace, and topics mapped into it.
struct Corner {
    namespace: String,
    cluster: Arc<dyn Cluster>,
}

impl Corner {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let namespace =
            format!("cli-{since}-{}-{}-", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let kafka = Kafka::new(ClientSettings::new(variable("FLECHTWERK_TEST_BROKERS")));
        Corner { namespace, cluster: kafka.cluster().unwrap() }
    }

    fn name(&self, name: &str) -> Arc<str> {
        format!("{}{name}", self.namespace).into()
    }

    fn create(&self, name: &str, partitions: i32, policy: &str) {
        let config = [("cleanup.policy".to_owned(), policy.to_owned())].into();
        let topic = NewTopic { name: self.name(name), partitions, replication_factor: 1, config };
        for (name, outcome) in self.cluster.create_topics(&[topic], LONG).unwrap() {
            outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    fn described(&self, name: &str) -> Option<TopicDescription> {
        let name = self.name(name);
        self.cluster.topics(std::slice::from_ref(&name), LONG).unwrap().remove(&name)
    }

    fn commit(&self, stage: &str, topic: &str, partition: i32, offset: i64, metadata: &str) {
        let at = TopicPartition { topic: self.name(topic), partition };
        let commit = OffsetCommit { at, offset, metadata: metadata.to_owned() };
        let (group, until) = (self.name(&format!("demo-{stage}")), Instant::now() + LONG);
        while let Err(error) =
            self.cluster.commit(&group, std::slice::from_ref(&commit), Duration::from_secs(3))
        {
            assert!(Instant::now() < until, "{error}");
        }
    }

    fn committed(&self, stage: &str, topic: &str, partition: i32) -> (Option<i64>, String) {
        let at = TopicPartition { topic: self.name(topic), partition };
        let mut all = self
            .cluster
            .committed(&self.name(&format!("demo-{stage}")), &[at], Stability::Stable, LONG)
            .unwrap();
        let one = all.remove(0);
        (one.offset, one.metadata)
    }

    fn call(&self, arguments: &str) -> Ended {
        let topics =
            ["words", "counts", "alerts"].map(|topic| format!(" --topic {topic}={}", self.name(topic)));
        let servers = variable("FLECHTWERK_TEST_BROKERS");
        let line = format!(
            "{arguments} --bootstrap-servers {servers} --namespace {}{}",
            self.namespace,
            topics.concat()
        );
        call(&line, &[])
    }
}

fn call(line: &str, environment: &[(&str, &str)]) -> Ended {
    let arguments = std::iter::once("./demo").chain(line.split_whitespace()).map(Into::into).collect();
    let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut output = Output { out: &mut out, err: &mut err, terminal: false, colour: false };
    let backend = KafkaBackend { pipeline: "demo" };
    let status = main_with(
        &DEMO,
        Call { arguments, environment, width: Some(100), signals: Signals::default },
        &backend,
        &mut output,
    );
    Ended { status, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn faults_of_a_real_cluster_are_listed_together_and_nothing_is_made() {
    let corner = Corner::new();
    corner.create("words", 2, "delete");
    corner.create("counts", 3, "delete");
    corner.create("demo-count-changelog", 1, "compact,delete");
    let ended = corner.call("check");
    assert_eq!(ended.status, REFUSED);
    for part in [
        "alerts` does not exist",
        "words` has 2, ",
        "counts` has 3",
        "the changelog has 1 partition, but the input has 2",
        "the changelog has cleanup.policy=compact,delete, not compact alone",
    ] {
        assert!(ended.err.contains(part), "{part} in {}", ended.err);
    }
    assert_eq!(corner.call("run --log off").status, REFUSED);
    assert_eq!(corner.described("demo-merge-changelog"), None);
}

#[test]
fn topics_are_created_as_they_must_be() {
    let corner = Corner::new();
    let ended = corner.call("topics create --partitions 3");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    let changelog = corner.described("demo-merge-changelog").unwrap();
    assert_eq!((changelog.partitions, changelog.cleanup_policy.as_str()), (3, "compact"));
    assert_eq!(corner.described("alerts").unwrap().partitions, 3);
    let ended = corner.call("check");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
}

#[test]
fn reset_begins_anew_and_can_be_repeated() {
    let corner = Corner::new();
    assert_eq!(corner.call("topics create --partitions 2").status, CLEAN);
    let before = corner.described("demo-count-changelog").unwrap().id;
    let stamp = Stamp { owner: "0af3".into(), counter: 7, changelog: Some(before.clone()) }.to_string();
    corner.commit("count", "words", 1, 42, &stamp);
    assert_eq!(corner.call("check").status, CLEAN);
    // Cut short after the first step.
    corner.commit("count", "words", 0, 0, RESETTING);
    let ended = corner.call("check");
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("a reset of this stage is under way, or was cut short"), "{}", ended.err);
    let ended = corner.call("reset --stage count --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert!(ended.out.contains("42"), "{}", ended.out);
    assert_eq!(corner.committed("count", "words", 0), (Some(0), String::new()));
    assert_eq!(corner.committed("count", "words", 1), (Some(0), String::new()));
    let after = corner.described("demo-count-changelog").unwrap();
    assert_ne!(after.id, before);
    assert_eq!((after.partitions, after.cleanup_policy.as_str()), (2, "compact"));
    assert_eq!(corner.call("check").status, CLEAN);
}

#[test]
fn reset_refuses_while_a_member_is_alive() {
    let corner = Corner::new();
    assert_eq!(corner.call("topics create --partitions 2").status, CLEAN);
    let before = corner.described("demo-count-changelog").unwrap().id;
    let kafka = Kafka::new(ClientSettings::new(variable("FLECHTWERK_TEST_BROKERS")));
    let group = corner.name("demo-count");
    let member = kafka.join(&group, &[corner.name("words")], None, Box::new(|_| {})).unwrap();
    let until = Instant::now() + LONG;
    while corner.cluster.group_members(&group, LONG).unwrap() == 0 {
        assert!(Instant::now() < until, "the member did not join");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = corner.call("reset --stage count --execute");
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("the group still has 1 member"), "{}", ended.err);
    member.leave(false, LONG).unwrap();
    assert_eq!(corner.described("demo-count-changelog").unwrap().id, before);
    assert_eq!(corner.call("reset --stage count --execute").status, CLEAN);
}

#[test]
fn a_changelog_made_anew_by_somebody_else_is_noticed() {
    let corner = Corner::new();
    assert_eq!(corner.call("topics create --partitions 2").status, CLEAN);
    let id = corner.described("demo-count-changelog").unwrap().id;
    let stamp = Stamp { owner: "0af3".into(), counter: 7, changelog: Some(id) }.to_string();
    corner.commit("count", "words", 1, 42, &stamp);
    corner.cluster.delete_topics(&[corner.name("demo-count-changelog")], LONG).unwrap();
    let ended = corner.call("check");
    assert!(ended.err.contains("the changelog that the last commit wrote to is gone"), "{}", ended.err);
    corner.create("demo-count-changelog", 2, "compact");
    let ended = corner.call("check");
    assert!(ended.err.contains("deleted and made anew since the last commit"), "{}", ended.err);
    assert_eq!(ended.status, REFUSED);
}

#[test]
fn a_cluster_that_is_down_is_named_within_the_time_set() {
    let ended = call("check --log off --bootstrap-servers 127.0.0.1:1 --connect-timeout 1s", &[]);
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("no broker at 127.0.0.1:1 answered within 1s"), "{}", ended.err);
}

#[cfg(all(feature = "tls", feature = "sasl"))]
mod secured {
    use super::*;

    fn secured(more: &str, environment: &[(&str, &str)]) -> Ended {
        let line = format!(
            "check --log off --stage enrich --topic words=nobody-has-made-this --bootstrap-servers {} --tls-ca {} --sasl-username {} {more}",
            variable("FLECHTWERK_TEST_TLS_BROKERS"),
            variable("FLECHTWERK_TEST_CA"),
            variable("FLECHTWERK_TEST_USER"),
        );
        call(&line, environment)
    }

    #[test]
    fn a_password_from_a_file_or_the_environment_opens_a_cluster_with_tls_and_scram() {
        let file = variable("FLECHTWERK_TEST_PASSWORD_FILE");
        let password = std::fs::read_to_string(&file).unwrap();
        // The topics are missing, so the cluster was asked.
        let ended = secured(&format!("--sasl-password-file {file}"), &[]);
        assert!(ended.err.contains("topic `nobody-has-made-this` does not exist"), "{}", ended.err);
        let ended = secured("", &[("FLECHTWERK_SASL_PASSWORD", password.trim())]);
        assert!(ended.err.contains("topic `nobody-has-made-this` does not exist"), "{}", ended.err);
    }

    #[test]
    fn a_wrong_password_is_told_and_not_shown() {
        let ended = secured("--connect-timeout 3s", &[("FLECHTWERK_SASL_PASSWORD", "hunter2")]);
        assert_eq!(ended.status, REFUSED);
        assert!(ended.err.contains("no broker at"), "{}", ended.err);
        assert!(!ended.err.contains("hunter2"));
    }

    #[test]
    fn a_cluster_with_tls_is_not_reached_without_it() {
        let servers = variable("FLECHTWERK_TEST_TLS_BROKERS");
        let ended = call(&format!("check --log off --bootstrap-servers {servers} --connect-timeout 2s"), &[]);
        assert_eq!(ended.status, REFUSED);
        assert!(ended.err.contains("--security-protocol"), "{}", ended.err);
    }
}
