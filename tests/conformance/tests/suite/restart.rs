//! A broker that was killed and started again is the same broker.
//!
//! On the development broker alone: it is ended and started in the process within milliseconds. A real Kafka would need a
//! cluster of its own for each check, and what it keeps is not in question.

use flechtwerk_conformance::calls::transactions::Init;
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;
use tempfile::TempDir;

/// A broker with a folder.
struct Kept {
    folder: TempDir,
    broker: Broker,
}

impl Kept {
    /// `None` where the environment names a real Kafka: its suite is not for the development broker.
    fn new() -> Option<Kept> {
        if Broker::get().is_real() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let broker = Broker::dev(DevBroker::builder().data_dir(folder.path()));
        Some(Kept { folder, broker })
    }

    fn client(&self) -> Client {
        self.broker.client()
    }

    fn killed_and_started(self) -> Kept {
        self.broker.into_dev().kill();
        let broker = Broker::dev(DevBroker::builder().data_dir(self.folder.path()));
        Kept { folder: self.folder, broker }
    }
}

#[test]
fn topics_their_ids_settings_and_records_are_kept() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic_with(2, &[("cleanup.policy", "compact"), ("max.message.bytes", "5000")]);
    let gone = client.topic(1);
    client.produce(&topic, 1, &Batch::keyed(&[("a", "1"), ("b", "2")])).expect("a batch");
    client.delete(&gone).expect("deleted");
    let before = client.describe_topic(&topic);

    let kept = kept.killed_and_started();
    let mut client = kept.client();
    let after = client.describe_topic(&topic);
    assert_eq!((after.topic_id, after.partitions.len()), (before.topic_id, 2));
    assert_eq!(client.config(&topic, "cleanup.policy").as_deref(), Some("compact"));
    assert_eq!(client.config(&topic, "max.message.bytes").as_deref(), Some("5000"));
    assert_eq!(client.values(&topic, 1, UNCOMMITTED), ["1", "2"]);
    assert_eq!(client.produce(&topic, 1, &Batch::keyed(&[("c", "3")])), Ok(2));
    assert_eq!(code(client.describe_topic(&gone).error_code), Err(Code::UnknownTopicOrPartition));
}

#[test]
fn deleted_records_stay_deleted() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["a", "b", "c"])).expect("a batch");
    assert_eq!(client.delete_records(&topic, 0, 2), Ok(2));
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(2));
    assert_eq!(client.read(&topic, 0, 2, UNCOMMITTED), [(2, "c".to_owned())]);
}

#[test]
fn an_open_transaction_goes_on_and_commits() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic(2);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    client.produce(&topic, 0, &Batch::of(["plain"])).expect("a batch");

    let kept = kept.killed_and_started();
    let mut client = kept.client();
    assert_eq!(client.transaction_state(&producer.transactional_id), "Ongoing");
    assert_eq!((client.stable_end(&topic, 0), client.end(&topic, 0)), (0, 2));
    assert_eq!(producer.send(&mut client, &topic, 0, &["b"]), Ok(2));
    assert_eq!(producer.send(&mut client, &topic, 1, &["c"]), Err(Code::InvalidTxnState));
    producer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a", "plain", "b"]);
}

#[test]
fn an_open_transaction_is_aborted_after_its_time_out() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic(1);
    let mut producer = client.producer_with(&unique("tx"), Init { timeout_ms: 1_000, ..Init::default() });
    producer.write(&mut client, &topic, 0, &["a"]);
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    wait_for("the transaction is aborted", || {
        client.transaction_state(&producer.transactional_id) == "CompleteAbort"
    });
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
    assert_eq!(producer.end_once(&mut client, true), Err(Code::InvalidProducerEpoch));
}

#[test]
fn a_transaction_that_was_decided_is_completed() {
    for commit in [true, false] {
        let Some(kept) = Kept::new() else { return };
        let mut client = kept.client();
        let (topic, group) = (client.topic(1), unique("group"));
        let mut producer = client.transactional_producer();
        producer.write(&mut client, &topic, 0, &["a"]);
        producer.add_offsets(&mut client, &group).expect("added");
        producer.commit_offset(&mut client, &group, &topic, 0, 5).expect("committed");
        let held =
            kept.broker.as_dev().expect("a development broker").hold_markers(&producer.transactional_id);
        producer.end_once(&mut client, commit).expect("the end");
        assert_eq!(client.stable_end(&topic, 0), 0);
        // The hold ends with the process that it is in.
        std::mem::forget(held);

        let kept = kept.killed_and_started();
        let mut client = kept.client();
        let wanted = if commit { "CompleteCommit" } else { "CompleteAbort" };
        wait_for("the transaction is complete", || {
            client.transaction_state(&producer.transactional_id) == wanted
        });
        assert_eq!(client.values(&topic, 0, COMMITTED).len(), usize::from(commit));
        assert_eq!(client.committed(&group, &topic, 0), if commit { 5 } else { -1 });
    }
}

#[test]
fn aborted_transactions_are_still_listed() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    for commit in [false, true, false] {
        producer.write(&mut client, &topic, 0, &[if commit { "seen" } else { "gone" }]);
        producer.end(&mut client, commit).expect("the end");
    }
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    let answer = client.fetch(&topic, 0, 0, COMMITTED).expect("a fetch");
    assert_eq!(answer.aborted, [(producer.id, 0), (producer.id, 4)]);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["seen"]);
}

#[test]
fn sequence_numbers_and_duplicates_are_remembered() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic(1);
    let producer = client.idempotent_producer();
    let batch = |sequence: i32| Batch::of([sequence.to_string()]).by(producer.id, producer.epoch, sequence);
    for sequence in 0..4 {
        client.produce(&topic, 0, &batch(sequence)).expect("a batch");
    }
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    assert_eq!(client.produce(&topic, 0, &batch(3)), Ok(3), "a duplicate");
    assert_eq!(client.produce(&topic, 0, &batch(5)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.produce(&topic, 0, &batch(4)), Ok(4));
}

#[test]
fn producer_ids_and_epochs_are_never_given_twice() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let (plain, named) = (client.idempotent_producer(), client.transactional_producer());
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    let next = client.idempotent_producer();
    assert!(next.id != plain.id && next.id != named.id, "{} again", next.id);
    let again = client.producer_named(&named.transactional_id);
    assert_eq!((again.id, again.epoch), (named.id, named.epoch + 1));
    assert_eq!(named.end_once(&mut client, true), Err(Code::InvalidProducerEpoch));
}

#[test]
fn committed_and_pending_offsets_are_kept() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let (topic, group) = (client.topic(2), unique("group"));
    assert_eq!(client.commit_offset(&group, &topic, 0, 3), Ok(()));
    let producer = client.transactional_producer();
    producer.add_offsets(&mut client, &group).expect("added");
    producer.commit_offset(&mut client, &group, &topic, 1, 5).expect("committed");

    let kept = kept.killed_and_started();
    let mut client = kept.client();
    assert_eq!(client.committed(&group, &topic, 0), 3);
    assert_eq!(client.fetch_offset(&group, &topic, 1, true), Err(Code::UnstableOffsetCommit));
    producer.commit(&mut client);
    assert_eq!(client.committed(&group, &topic, 1), 5);
}

#[test]
fn the_members_of_a_group_go_on() {
    let Some(kept) = Kept::new() else { return };
    let group = unique("group");
    let mut member = Member::new(kept.client(), &group).fixed("one");
    member.join_alone();
    let kept = kept.killed_and_started();
    member.client = kept.client();
    assert_eq!(member.heartbeat(), Ok(()));
    assert_eq!(member.sync(&[]), Ok("all".to_owned()));
}

#[test]
fn compacted_records_stay_away() {
    let Some(kept) = Kept::new() else { return };
    let mut client = kept.client();
    let topic = client.topic_with(1, &[("cleanup.policy", "compact")]);
    client.produce(&topic, 0, &Batch::keyed(&[("a", "1"), ("b", "2")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("a", "3")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("c", "last, and so not compacted")])).expect("a batch");
    kept.broker.as_dev().expect("a development broker").compact(&topic).expect("compacted");
    let kept = kept.killed_and_started();
    let mut client = kept.client();
    assert_eq!(client.values(&topic, 0, UNCOMMITTED)[..2], ["2", "3"]);
    assert_eq!(client.end(&topic, 0), 4);
}

#[test]
fn a_broker_can_be_killed_again_and_again() {
    let Some(mut kept) = Kept::new() else { return };
    let topic = kept.client().topic(1);
    let mut producer = kept.client().transactional_producer();
    let mut wanted = Vec::new();
    for round in 0..5 {
        let mut client = kept.client();
        let value = round.to_string();
        producer.write(&mut client, &topic, 0, &[&value]);
        kept = kept.killed_and_started();
        producer.end(&mut kept.client(), round % 2 == 0).expect("the end");
        if round % 2 == 0 {
            wanted.push(value);
        }
        assert_eq!(kept.client().values(&topic, 0, COMMITTED), wanted);
    }
}

#[test]
fn a_folder_in_use_is_refused() {
    let Some(kept) = Kept::new() else { return };
    assert!(DevBroker::builder().data_dir(kept.folder.path()).start().is_err());
    assert!(kept.client().describe_topic(&unique("nowhere")).error_code != 0, "the first one goes on");
    kept.killed_and_started();
}

#[test]
fn a_port_in_use_is_refused() {
    let Some(kept) = Kept::new() else { return };
    let address = kept.broker.address().to_string();
    assert!(DevBroker::builder().listen(address).start().is_err());
}
