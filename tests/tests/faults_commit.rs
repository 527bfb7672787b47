//! Requests of a transaction that go wrong on their way (S3.7, S5.2, S6.2): an answer that never comes, an error instead of
//! it, an answer that comes too late. Whatever it is, each word counts once.

use flechtwerk_dev_broker::{Api, ErrorCode, FaultBuilder};
use flechtwerk_tests::dev::{wait_fired, wait_held};
use flechtwerk_tests::job::logged;
use flechtwerk_tests::{STOP, Stamp, Trial, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// One transaction of the first task meets a fault. Gives the stamps before it, of it, and after it.
#[track_caller]
fn broken(trial: &mut Trial, fault: impl FnOnce(&Trial) -> flechtwerk_dev_broker::Fault) -> [Stamp; 3] {
    let before = trial.process(3);
    let fault = fault(trial);
    trial.write(1);
    wait_fired(&fault, 1);
    let of_it = trial.wait_done();
    let after = trial.process(3);
    [before, of_it, after]
}

/// S3.7a, S3.7c, S3.7f: a request of a transaction got no answer, and its retry succeeded. The transaction counts, and the
/// next one has another producer.
#[track_caller]
fn replaces_the_producer(api: Api, lost: impl FnOnce(FaultBuilder) -> flechtwerk_dev_broker::Fault) {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let [before, of_it, after] = broken(&mut trial, |trial| lost(trial.producer(api)));
    assert_eq!(of_it, Stamp { counter: before.counter + 1, ..before.clone() }, "committed as it was sent");
    assert_ne!(after.owner, before.owner, "the producer is replaced; log:\n{}", instance.log());
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

#[test]
fn a_commit_that_is_carried_out_and_not_answered() {
    replaces_the_producer(Api::EndTxn, FaultBuilder::apply_then_drop_reply);
}

#[test]
fn a_commit_that_is_lost_on_its_way() {
    replaces_the_producer(Api::EndTxn, FaultBuilder::drop_connection);
}

#[test]
fn positions_that_are_taken_and_not_answered() {
    replaces_the_producer(Api::TxnOffsetCommit, FaultBuilder::apply_then_drop_reply);
}

#[test]
fn positions_that_are_lost_on_their_way() {
    replaces_the_producer(Api::TxnOffsetCommit, FaultBuilder::drop_connection);
}

/// S3.7a: records that were written and not acknowledged are sent again by the client and not written again. A produce
/// request of a committed transaction can do no harm any more, and the producer goes on.
#[test]
fn records_that_are_written_and_not_answered() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    for lost in [FaultBuilder::apply_then_drop_reply, FaultBuilder::drop_connection] {
        let [before, of_it, after] = broken(&mut trial, |trial| lost(trial.producer(Api::Produce)));
        assert_eq!([&of_it.owner, &after.owner], [&before.owner; 2], "log:\n{}", instance.log());
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S3.7a: what a lost answer may lead to. The broker carries a commit out long after the client has given it up, when the
/// next transaction is open. It must not commit half of it.
#[test]
fn a_commit_that_arrives_in_the_next_transaction() {
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("-X", "socket.timeout.ms=1000"));
    let mut instance = trial.start();
    let before = trial.process(3);
    let late = trial.producer(Api::EndTxn).hold();
    trial.write(1);
    wait_held(&late);
    // By the client's retry.
    assert_eq!(trial.wait_done().owner, before.owner);

    let open = trial.producer(Api::Produce).hold();
    trial.write(1);
    wait_held(&open);
    late.release();
    let counts = trial.job.topic("counts").to_owned();
    let end = trial.job.kafka.watermarks(&counts, 0, "read_uncommitted").1;
    open.release();
    let after = trial.wait_done();
    // The output and one marker. The late commit has left none.
    assert_eq!(trial.job.kafka.watermarks(&counts, 0, "read_uncommitted").1, end + 2);
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
    assert_ne!(after.owner, before.owner);
}

/// S3.7d: the broker ends a transaction that its time-out has overtaken, and the commit comes afterwards. The task fences,
/// finds the stamps as they were, and sends the same batch again.
#[test]
fn a_commit_that_comes_after_the_transactions_time_out() {
    let mut trial =
        Trial::new(RIG).with(|rig| rig.arg("--transaction-timeout", "2s").arg("--max-batch-bytes", "1MiB"));
    let mut instance = trial.start();
    let before = trial.process(3);
    let counts = trial.job.topic("counts").to_owned();
    let ends = |trial: &Trial| {
        ["read_committed", "read_uncommitted"].map(|of| trial.job.kafka.watermarks(&counts, 0, of).1)
    };
    let [begin, _] = ends(&trial);
    let held = trial.producer(Api::EndTxn).always().hold();
    trial.write(1);
    wait_held(&held);
    wait_for("the broker aborts the transaction", || ends(&trial) == [begin + 2; 2]);
    held.release();
    let after = trial.wait_done();
    assert_ne!(after.owner, before.owner);
    assert_eq!(after.counter, before.counter + 1, "nothing was committed in between");
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S5.2a, S5.2b: the group refuses the positions. That is no failure of the batch: it is sent again by the same producer,
/// and not computed again.
#[test]
fn positions_of_an_old_generation() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let refusals =
        [ErrorCode::ILLEGAL_GENERATION, ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::REBALANCE_IN_PROGRESS];
    for refusal in refusals {
        let refused = logged(&instance, "a transaction was aborted: Generation");
        let [before, of_it, after] =
            broken(&mut trial, |trial| trial.producer(Api::TxnOffsetCommit).answer(refusal));
        assert_eq!(of_it, Stamp { counter: before.counter + 1, ..before.clone() }, "{refusal:?}");
        assert_eq!(after.owner, before.owner, "{refusal:?}");
        assert_eq!(logged(&instance, "a transaction was aborted: Generation"), refused + 1, "{refusal:?}");
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S5.2c: the commit says that another process has taken the instance's id. The process stops and names the id; nothing is
/// sent again and nothing is fenced.
#[test]
fn positions_of_an_instance_that_was_replaced() {
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("--instance-id", "twin-7"));
    let mut instance = trial.start();
    trial.process(3);
    let before = trial.fences();
    let fault = trial.producer(Api::TxnOffsetCommit).answer(ErrorCode::FENCED_INSTANCE_ID);
    trial.write(1);
    wait_fired(&fault, 1);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("twin-7") && error.contains("--instance-id"), "the id is named in:\n{log}");
    assert_eq!(trial.fences(), before, "nothing is fenced");
    assert_eq!(trial.job.offsets("words")[&0], 3, "nothing of the batch is committed");

    let mut next = trial.start();
    trial.finish(&mut next);
}

/// S6.2c, S3.7d: a gap in the sequence numbers is the end of the client. The task fences, finds the stamps as they were, and
/// sends the same batch again.
#[test]
fn records_out_of_order() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let [before, of_it, after] = broken(&mut trial, |trial| {
        trial.producer(Api::Produce).answer(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
    });
    assert_ne!(of_it.owner, before.owner, "log:\n{}", instance.log());
    assert_eq!(of_it.counter, before.counter + 1, "nothing was committed in between");
    assert_eq!(after.owner, of_it.owner);
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S6.2c, S3.7d: a producer that was fenced, as any of its requests may tell. Nobody else has committed anything, as the stamps
/// say, and so the batch is sent again by another producer, and not computed again.
#[test]
fn requests_of_a_producer_that_was_fenced() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let fenced = [
        (Api::AddOffsetsToTxn, ErrorCode::INVALID_PRODUCER_EPOCH),
        (Api::AddOffsetsToTxn, ErrorCode::PRODUCER_FENCED),
        (Api::TxnOffsetCommit, ErrorCode::INVALID_PRODUCER_EPOCH),
        (Api::AddPartitionsToTxn, ErrorCode::INVALID_PRODUCER_EPOCH),
        (Api::AddPartitionsToTxn, ErrorCode::PRODUCER_FENCED),
        (Api::EndTxn, ErrorCode::INVALID_PRODUCER_EPOCH),
        (Api::EndTxn, ErrorCode::PRODUCER_FENCED),
    ];
    for (api, error) in fenced {
        let [before, of_it, after] = broken(&mut trial, |trial| trial.producer(api).answer(error));
        assert_ne!(of_it.owner, before.owner, "{api} {error:?}; log:\n{}", instance.log());
        assert_eq!(of_it.counter, before.counter + 1, "{api} {error:?}");
        assert_eq!(after.owner, of_it.owner, "{api} {error:?}");
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S3.7d: the commit was carried out, and its answer says that the producer was fenced. The stamps say that it counts: it is
/// not sent again.
#[test]
fn a_commit_that_is_carried_out_and_answered_by_an_error() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    for error in [ErrorCode::INVALID_PRODUCER_EPOCH, ErrorCode::PRODUCER_FENCED] {
        let [before, of_it, after] =
            broken(&mut trial, |trial| trial.producer(Api::EndTxn).apply_then_answer(error));
        assert_eq!(of_it, Stamp { counter: before.counter + 1, ..before.clone() }, "{error:?}");
        assert_ne!(after.owner, before.owner, "{error:?}");
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S6.2a: errors that a repetition mends, on every request of a transaction. Each was answered, and so the producer goes on.
#[test]
fn errors_that_pass() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let first = trial.process(3);
    let coordinator = [
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::COORDINATOR_NOT_AVAILABLE,
    ];
    let apis = [Api::AddOffsetsToTxn, Api::TxnOffsetCommit, Api::AddPartitionsToTxn, Api::EndTxn];
    let moved = apis.into_iter().flat_map(|api| coordinator.map(|error| (api, error)));
    let busy =
        [Api::AddOffsetsToTxn, Api::AddPartitionsToTxn].map(|api| (api, ErrorCode::CONCURRENT_TRANSACTIONS));
    let leader =
        [ErrorCode::NOT_LEADER_OR_FOLLOWER, ErrorCode::LEADER_NOT_AVAILABLE, ErrorCode::NOT_ENOUGH_REPLICAS];
    let leader = leader.map(|error| (Api::Produce, error));
    for (api, error) in moved.chain(busy).chain(leader) {
        let fault = trial.producer(api).times(2).answer(error);
        trial.write(1);
        wait_fired(&fault, 2);
        assert_eq!(trial.wait_done().owner, first.owner, "{api} {error:?}; log:\n{}", instance.log());
    }
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S6.2a: the group's coordinator is nowhere to be found, for longer than `--broker-timeout`. The process stops, and says why;
/// the next one goes on.
#[test]
fn positions_that_nobody_takes() {
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("--broker-timeout", "3s"));
    let mut instance = trial.start();
    trial.process(3);
    let refused = trial.producer(Api::TxnOffsetCommit).always().answer(ErrorCode::NOT_COORDINATOR);
    let group = trial.job.group();
    let unknown = trial.broker().fault().api(Api::FindCoordinator).group_id(group).client(trial.client_id());
    let unknown = unknown.always().answer(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    trial.write(1);
    wait_fired(&refused, 1);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    assert_eq!(logged(&instance, "\nerror: stage count_aloud: "), 1, "{}", instance.log());
    assert!(instance.log().contains("--broker-timeout"), "{}", instance.log());
    refused.remove();
    unknown.remove();
    trial.process_with_another(3);
}

/// S6.2b, S6.2c: errors that leave the client no way but to abort, or none at all. The batch is sent again, or the task starts
/// anew; nothing of what was answered by the error counts.
#[test]
fn errors_that_spoil_the_transaction() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let spoilt = [
        (Api::Produce, ErrorCode::INVALID_PRODUCER_EPOCH),
        (Api::Produce, ErrorCode::UNKNOWN_PRODUCER_ID),
        (Api::AddOffsetsToTxn, ErrorCode::INVALID_PRODUCER_ID_MAPPING),
        (Api::AddPartitionsToTxn, ErrorCode::INVALID_PRODUCER_ID_MAPPING),
        (Api::EndTxn, ErrorCode::INVALID_PRODUCER_ID_MAPPING),
        (Api::AddOffsetsToTxn, ErrorCode::INVALID_TXN_STATE),
        (Api::AddPartitionsToTxn, ErrorCode::INVALID_TXN_STATE),
        (Api::EndTxn, ErrorCode::INVALID_TXN_STATE),
    ];
    for (api, error) in spoilt {
        let [before, of_it, _] = broken(&mut trial, |trial| trial.producer(api).answer(error));
        assert_eq!(of_it.counter, before.counter + 1, "{api} {error:?}");
    }
    trial.finish(&mut instance);
}

/// A trial whose records expire before its transactions do.
fn impatient() -> Trial {
    Trial::new(RIG).with(|rig| rig.arg("-X", "message.timeout.ms=2000").arg("-X", "socket.timeout.ms=1000"))
}

/// S6.2b: records could not be delivered in time. The transaction is aborted, and the task starts anew.
#[test]
fn records_that_expire() {
    let mut trial = impatient();
    let mut instance = trial.start();
    let before = trial.process(3);
    let refused = trial.producer(Api::Produce).always().answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    trial.write(1);
    wait_fired(&refused, 1);
    instance.wait_for_log("starts anew");
    refused.remove();
    assert_eq!(trial.wait_done().counter, before.counter + 1, "nothing was committed in between");
    trial.process(3);
    assert!(trial.calls(&[&instance])[3] > 1, "it is computed again; log:\n{}", instance.log());
    trial.finish(&mut instance);
}

/// S6.2g: the coordinator is well, and an output takes no records for longer than `--broker-timeout`, as where its partition has no
/// leader. Each transaction is aborted as it should be; the process stops all the same, and says why; the next one goes on.
#[test]
fn records_that_nobody_takes() {
    let mut trial = impatient().with(|rig| rig.arg("--broker-timeout", "5s"));
    let mut instance = trial.start();
    trial.process(3);
    let refused = trial.producer(Api::Produce).always().answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    trial.write(1);
    wait_fired(&refused, 1);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    assert!(logged(&instance, "a transaction was aborted: Other") > 0, "the abort succeeds:\n{log}");
    assert!(logged(&instance, "starts anew") > 0, "it is sent again:\n{log}");
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    for part in ["could not send a transaction of partition 0 within --broker-timeout (5s)", "have a leader"]
    {
        assert!(error.contains(part), "{part:?} in:\n{log}");
    }
    refused.remove();
    trial.process_with_another(3);
}

/// S3.7a: records of an aborted transaction arrive when the next one is open. None of them gets into it.
#[test]
fn records_that_arrive_in_the_next_transaction() {
    let mut trial = impatient();
    let mut instance = trial.start();
    let before = trial.process(3);
    let late = trial.producer(Api::Produce).hold();
    let refused = trial.producer(Api::Produce).always().answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    trial.write(1);
    wait_held(&late);
    instance.wait_for_log("starts anew");
    refused.remove();
    let open = trial.producer(Api::EndTxn).hold();
    wait_held(&open);
    late.release();
    // What was released is served before this is answered.
    trial.job.kafka.watermarks(trial.job.topic("counts"), 0, "read_uncommitted");
    open.release();
    let of_it = trial.wait_done();
    trial.process(3);
    trial.finish(&mut instance);
    assert_eq!(of_it.counter, before.counter + 1, "nothing was committed in between");
    assert_ne!(of_it.owner, before.owner);
}
