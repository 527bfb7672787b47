//! Requests of a task that starts or reads which go wrong on their way (S4, S6.2, S7.5), and nodes and brokers that are away
//! for a while. Whatever it is, each word counts once.

use flechtwerk_dev_broker::{Api, ErrorCode, FaultBuilder};
use flechtwerk_tests::dev::{wait_fired, wait_held};
use flechtwerk_tests::job::{logged, wait_for_tasks};
use flechtwerk_tests::{STOP, Trial, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// Errors by which a coordinator says: not I, or not yet.
const MOVED: [ErrorCode; 3] = [
    ErrorCode::NOT_COORDINATOR,
    ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode::COORDINATOR_NOT_AVAILABLE,
];

/// Errors by which a leader says: not I, or not yet.
const LEADER: [ErrorCode; 4] = [
    ErrorCode::NOT_LEADER_OR_FOLLOWER,
    ErrorCode::LEADER_NOT_AVAILABLE,
    ErrorCode::OFFSET_NOT_AVAILABLE,
    ErrorCode::FENCED_LEADER_EPOCH,
];

/// Ways for a request to get no answer.
const LOST: [fn(FaultBuilder) -> flechtwerk_dev_broker::Fault; 2] =
    [FaultBuilder::drop_connection, FaultBuilder::apply_then_drop_reply];

/// S4.1a, S6.2a: the fence meets a transaction that is still being ended, or a coordinator that has moved, is loading, or does
/// not answer. It is asked for again until it stands.
#[test]
fn a_fence_that_takes_several_attempts() {
    let mut trial = Trial::new(RIG);
    let busy = trial.producer(Api::InitProducerId).times(5).answer(ErrorCode::CONCURRENT_TRANSACTIONS);
    trial.process_with_fault(busy, "CONCURRENT_TRANSACTIONS");
    for error in MOVED {
        let fault = trial.producer(Api::InitProducerId).times(3).answer(error);
        trial.process_with_fault(fault, &format!("{error:?}"));
    }
    for lost in LOST {
        trial.process_with_fault(lost(trial.producer(Api::InitProducerId).times(2)), "lost");
    }
}

/// S4.1a: the previous owner was killed when its transaction was decided and not yet written everywhere. The next owner waits
/// for it to be over, and reads what it has committed.
#[test]
fn a_fence_over_a_transaction_that_is_being_committed() {
    let mut trial = Trial::new(RIG);
    let mut killed = trial.start();
    let before = trial.process(3);
    let held = trial.broker().hold_markers(&trial.transactional_id(0));
    trial.write(1);
    wait_held(&held);
    killed.kill();
    let asked = trial.fences();
    let mut next = trial.job.rig.start();
    wait_for("it is told to wait, more than once", || trial.fences() > asked + 2);
    assert_eq!(logged(&next, "task is running"), 0, "log:\n{}", next.log());
    held.release();
    let of_it = trial.wait_done();
    assert_eq!(of_it.owner, before.owner, "the commit counts");
    wait_for_tasks(&next, 1);
    trial.process(3);
    assert_eq!(trial.calls(&[&killed, &next]), [1; 7]);
    trial.finish(&mut next);
}

/// S4.7b: somebody else fences in the same moment. The task does not fence back at once, and has its turn later.
#[test]
fn a_fence_that_is_lost_to_another() {
    let mut trial = Trial::new(RIG);
    for error in [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH] {
        let fault = trial.producer(Api::InitProducerId).answer(error);
        trial.process_with_fault(fault, &format!("{error:?}"));
    }
}

/// S4.2b: the committed offsets are not stable for a while, or cannot be read. The task asks again, and takes no others.
#[test]
fn committed_offsets_that_are_not_to_be_had_at_first() {
    let mut trial = Trial::new(RIG);
    for error in MOVED.into_iter().chain([ErrorCode::UNSTABLE_OFFSET_COMMIT]) {
        let fault = trial.client(Api::OffsetFetch).times(3).answer(error);
        trial.process_with_fault(fault, &format!("{error:?}"));
    }
    for lost in LOST {
        trial.process_with_fault(lost(trial.client(Api::OffsetFetch).times(2)), "lost");
    }
}

/// S6.2a: the ends of changelog and inputs cannot be read at first.
#[test]
fn ends_of_partitions_that_are_not_to_be_had_at_first() {
    let mut trial = Trial::new(RIG);
    for error in LEADER {
        let fault = trial.client(Api::ListOffsets).times(3).answer(error);
        trial.process_with_fault(fault, &format!("{error:?}"));
    }
    for lost in LOST {
        trial.process_with_fault(lost(trial.client(Api::ListOffsets).times(2)), "lost");
    }
}

/// S6.2a: the cluster does not say at first who leads what. Nothing is begun before it does.
#[test]
fn metadata_that_stalls_at_the_start() {
    let mut trial = Trial::new(RIG);
    let stalled = trial.client(Api::Metadata).always().hold();
    let mut instance = trial.job.rig.start();
    wait_held(&stalled);
    assert_eq!(trial.asked(Api::JoinGroup) + trial.fences(), 0, "nothing is begun");
    stalled.release();
    wait_for_tasks(&instance, 1);
    trial.process(3);
    trial.finish(&mut instance);
    for lost in LOST {
        trial.process_with_fault(lost(trial.client(Api::Metadata).times(3)), "lost");
    }
}

/// S6.2a: no records come for longer than the session lasts. The instance keeps its tasks, and goes on where it was.
#[test]
fn fetches_that_stall() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    trial.process(3);
    let stalled = trial.client(Api::Fetch).always().hold();
    wait_held(&stalled);
    trial.write(3);
    let beats = trial.asked(Api::Heartbeat);
    wait_for("signs of life for longer than a session", || trial.asked(Api::Heartbeat) >= beats + 13);
    stalled.release();
    trial.process(3);
    assert_eq!(logged(&instance, " assigned stage="), 1, "log:\n{}", instance.log());
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S6.2a: errors of a leader, and fetches without an answer. They are made again; no record is missed or seen twice.
#[test]
fn fetches_that_fail() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    trial.process(3);
    let errors = [ErrorCode::KAFKA_STORAGE_ERROR, ErrorCode::UNKNOWN_LEADER_EPOCH];
    for error in LEADER.into_iter().chain(errors) {
        let fault = trial.client(Api::Fetch).times(2).answer(error);
        wait_fired(&fault, 2);
        trial.process(3);
    }
    for lost in LOST {
        let fault = lost(trial.client(Api::Fetch).times(2));
        trial.write(3);
        wait_fired(&fault, 2);
        trial.process(3);
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S6.2a: a broker that has just started says that it does not know the input. It is waited for, and read on where it was.
#[test]
fn an_input_that_is_not_known_for_a_while() {
    // The client believes it only where the topic has been known for longer than this.
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("-X", "topic.metadata.propagation.max.ms=1"));
    let mut instance = trial.start();
    trial.process(3);
    let unknown = trial.client(Api::Metadata).always().answer(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    // By this the reader asks for it.
    let moved = trial.client(Api::Fetch).answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    wait_fired(&moved, 1);
    instance.wait_for_log("topic does not exist");
    trial.write(3);
    unknown.remove();
    trial.wait_done();
    trial.process(3);
    trial.finish(&mut instance);
}

/// S7.5d: the leader says that the position is out of range. The process stops; no position is reset silently.
#[test]
fn a_fetch_out_of_range() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    trial.process(3);
    let fault = trial.client(Api::Fetch).answer(ErrorCode::OFFSET_OUT_OF_RANGE);
    wait_fired(&fault, 1);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains(trial.job.topic("words")), "the topic is named in:\n{log}");
    trial.process_with_another(3);
}

/// S4.6a: the changelog cannot be read for longer than the session lasts. The instance stays in its group, and begins when its
/// state is there.
#[test]
fn a_restore_that_stalls() {
    let mut trial = Trial::new(RIG);
    trial.process_with_another(5);
    let stalled = trial.client(Api::Fetch).always().hold();
    let mut instance = trial.job.rig.start();
    wait_held(&stalled);
    let beats = trial.asked(Api::Heartbeat);
    wait_for("signs of life for longer than a session", || trial.asked(Api::Heartbeat) >= beats + 13);
    assert_eq!(logged(&instance, "task is running"), 0, "log:\n{}", instance.log());
    assert_eq!(trial.job.kafka.members(&trial.job.group()), 1);
    stalled.release();
    wait_for_tasks(&instance, 1);
    trial.process(3);
    assert_eq!(logged(&instance, " assigned stage="), 1, "log:\n{}", instance.log());
    trial.finish(&mut instance);
}

/// S6.2a: the changelog is deleted while it is read. Nothing would come any more; the process stops, and names it.
#[test]
fn a_changelog_that_is_deleted_during_the_restore() {
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("--broker-timeout", "3s"));
    trial.process_with_another(5);
    let stalled = trial.client(Api::Fetch).always().hold();
    let mut instance = trial.job.rig.start();
    wait_held(&stalled);
    trial.job.kafka.delete_topic(&trial.job.changelog());
    stalled.release();
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains(&trial.job.changelog()) && error.contains("somebody has deleted it"), "{log}");
}

/// S6.2a: each node of a cluster is away for a while, with its leaders and coordinators. The others take over, and it comes
/// back.
#[test]
fn nodes_that_are_down_and_come_back() {
    let mut trial = Trial::on(Trial::builder().nodes(3), RIG, 4, 3);
    let mut instance = trial.start();
    let words = |trial: &mut Trial| (0..4).for_each(|partition| trial.write_to(partition, 5));
    words(&mut trial);
    trial.wait_done();
    for node in 1..=3 {
        words(&mut trial);
        trial.broker().node_down(node).expect("a known node");
        words(&mut trial);
        trial.wait_done();
        words(&mut trial);
        trial.broker().node_up(node).expect("a known node");
        words(&mut trial);
        trial.wait_done();
    }
    trial.finish(&mut instance);
}

/// S6.2a: with a node go the only copies of some partitions. What needs them waits until it is back, and the rest goes on.
#[test]
fn partitions_that_are_offline_for_a_while() {
    let mut trial = Trial::on(Trial::builder().nodes(2), RIG, 4, 1);
    let mut instance = trial.start();
    for node in [1, 2] {
        (0..4).for_each(|partition| trial.write_to(partition, 5));
        let asked = trial.asked(Api::Metadata);
        trial.broker().node_down(node).expect("a known node");
        wait_for("the instance looks for leaders", || trial.asked(Api::Metadata) > asked + 1);
        trial.broker().node_up(node).expect("a known node");
        trial.wait_done();
    }
    trial.finish(&mut instance);
}

/// S6.2a, S3.7d: the broker is killed in the middle of a transaction and comes back with what it had written. The outcome is
/// settled by the stamps.
#[test]
fn a_broker_that_is_killed_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = Trial::builder().data_dir(folder.path());
    let mut trial = Trial::on(builder.clone(), RIG, 1, 1);
    let builder = builder.listen(trial.broker().address().to_string());
    let mut instance = trial.start();
    trial.process(3);
    for (api, held) in [
        (Api::EndTxn, FaultBuilder::hold as fn(FaultBuilder) -> flechtwerk_dev_broker::Held),
        (Api::EndTxn, |fault| fault.after().hold()),
        (Api::TxnOffsetCommit, |fault| fault.after().hold()),
        (Api::Produce, |fault| fault.after().hold()),
    ] {
        let held = held(trial.producer(api));
        trial.write(1);
        wait_held(&held);
        trial.restart(builder.clone());
        trial.process(3);
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}
