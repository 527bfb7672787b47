//! A cluster that stops answering: one of its own, so that no other test is disturbed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::support::*;
use crate::kafka::{ClientSettings, Kafka};
use crate::port::{ErrorKind, GroupEvent};

/// A cluster of one node, removed when this is dropped.
struct OwnCluster {
    script: PathBuf,
    folder: tempfile::TempDir,
}

impl OwnCluster {
    fn start() -> Self {
        let script = std::env::var_os("FLECHTWERK_TEST_KAFKA").unwrap_or_else(|| {
            panic!("FLECHTWERK_TEST_KAFKA is not set: run with the variables that `scripts/kafka env` prints")
        });
        let cluster = Self { script: PathBuf::from(script), folder: tempfile::tempdir().unwrap() };
        // Transactions that have timed out are looked for often, so that nobody has to wait for it.
        cluster.script(&[
            "start",
            "1",
            "--set",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms=200",
        ]);
        cluster
    }

    fn script(&self, command: &[&str]) -> String {
        let done =
            Command::new(&self.script).args(command).arg("--dir").arg(self.folder.path()).output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    fn settings(&self) -> ClientSettings {
        ClientSettings { bootstrap_servers: self.script(&["bootstrap"]), ..settings() }
    }

    /// Stops the node for a while.
    fn pause(&self) {
        let cluster = Kafka::new(self.settings()).cluster().unwrap();
        cluster.brokers(LONG).unwrap();
        self.script(&["pause", "1"]);
        // The signal is sent, but threads of a busy process may go on for a moment.
        eventually("the pause", || cluster.brokers(Duration::from_millis(100)).err());
    }

    fn resume(&self) {
        self.script(&["resume", "1"]);
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        // A stopped node would not hear that it is to end.
        let _ = Command::new(&self.script).args(["resume", "1", "--dir"]).arg(self.folder.path()).status();
        let _ = Command::new(&self.script).args(["stop", "--wipe", "--dir"]).arg(self.folder.path()).status();
    }
}

#[test]
fn outages() {
    let own = OwnCluster::start();
    a_transaction_that_timed_out_is_fenced(&own);
    an_outage_is_told_by_what_was_not_answered_and_by_the_session(&own);
}

fn a_transaction_that_timed_out_is_fenced(own: &OwnCluster) {
    let kafka = Kafka::new(ClientSettings { transaction_timeout: Duration::from_secs(1), ..own.settings() });
    let topic = topic(&kafka, "timed-out", 1);
    let mut producer = producer(&kafka, "timed-out", &topic);
    producer.begin().unwrap();
    producer.produce(&outputs(0, ["late"]), std::slice::from_ref(&topic)).unwrap();
    let reader = reader(&kafka);
    eventually("the broker's abort", || {
        producer.serve();
        let marks = reader.watermarks(&at(&topic, 0), LONG).unwrap();
        (marks.high == 2 && marks.stable == 2).then_some(())
    });
    let error = commit(&mut *producer).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Fenced, "{error}");
}

fn an_outage_is_told_by_what_was_not_answered_and_by_the_session(own: &OwnCluster) {
    let mut settings = own.settings();
    settings.extra.insert("socket.timeout.ms".to_owned(), "1000".to_owned());
    let kafka = Kafka::new(settings);
    let topic = topic(&kafka, "unanswered", 1);
    let member = join(&kafka, "outage", &topic, None);
    assert_eq!(member.assigned(), [0]);
    let reader = reader(&kafka);
    let mut producer = producer(&kafka, "unanswered", &topic);
    write(&mut *producer, &topic, 0, ["answered"]);
    let before = producer.unanswered();
    assert_eq!((before.lost_txn, before.open_txn, before.sent_end_txn), (0, 0, 1));
    assert_eq!((before.lost_produce, before.open_produce), (0, 0));

    producer.begin().unwrap();
    producer.produce(&outputs(0, ["late"]), std::slice::from_ref(&topic)).unwrap();
    eventually("the record", || {
        producer.serve();
        let marks = reader.watermarks(&at(&topic, 0), LONG).unwrap();
        (marks.high > 2 && producer.unanswered().open_produce == 0).then_some(())
    });
    own.pause();
    let error = producer.commit(Duration::from_millis(200)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    let open = producer.unanswered();
    assert_eq!((open.open_txn, open.lost_txn, open.sent_end_txn), (1, 0, 2));
    eventually("the time-out of the request", || {
        producer.commit(Duration::from_millis(100)).unwrap_err();
        (producer.unanswered().lost_txn == 1).then_some(())
    });
    own.resume();
    // The client's own retry succeeds; that the first was lost stays known.
    commit(&mut *producer).unwrap();
    let after = producer.unanswered();
    assert_eq!((after.lost_txn, after.open_txn), (1, 0));
    assert!(after.sent_end_txn >= 3);

    // A member whose heartbeats are not answered for a session is out, and back when it is over.
    own.pause();
    eventually("the loss of the assignment", || matches!(member.next(), GroupEvent::Lost).then_some(()));
    // Nothing hangs that is dropped meanwhile, whatever it has in flight.
    producer.begin().unwrap();
    producer.produce(&outputs(0, ["never"]), std::slice::from_ref(&topic)).unwrap();
    drop(producer);
    drop(reader);
    own.resume();
    assert_eq!(member.assigned(), [0]);
    member.leave();
}
