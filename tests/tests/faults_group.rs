//! Requests of a member of the group that go wrong on their way (S5, S6.2): at its start, while it works, and when it goes.
//! Whatever it is, each word counts once.

use flechtwerk_dev_broker::{Api, ErrorCode, FaultBuilder};
use flechtwerk_tests::dev::{wait_fired, wait_held};
use flechtwerk_tests::job::{logged, wait_for_tasks};
use flechtwerk_tests::{Instance, STOP, Trial, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// Errors by which a coordinator says: not I, or not yet.
const MOVED: [ErrorCode; 3] = [
    ErrorCode::NOT_COORDINATOR,
    ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode::COORDINATOR_NOT_AVAILABLE,
];

/// Ways for a request to get no answer.
const LOST: [fn(FaultBuilder) -> flechtwerk_dev_broker::Fault; 2] =
    [FaultBuilder::drop_connection, FaultBuilder::apply_then_drop_reply];

fn starts(instance: &Instance) -> usize {
    logged(instance, "task is running")
}

/// S5.1a, S6.2a: some lost or refused signs of life cost nothing. The tasks go on.
#[test]
fn signs_of_life_that_are_lost() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    trial.process(3);
    for lost in LOST {
        let fault = lost(trial.client(Api::Heartbeat).times(2));
        wait_fired(&fault, 2);
        trial.process(3);
    }
    for error in MOVED {
        let fault = trial.client(Api::Heartbeat).times(2).answer(error);
        wait_fired(&fault, 2);
        trial.process(3);
    }
    assert_eq!(logged(&instance, " assigned stage="), 1, "log:\n{}", instance.log());
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S5.1a: the coordinator asks for a rebalance. The task lives through it.
#[test]
fn a_sign_of_life_answered_by_a_rebalance() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    trial.process(3);
    let fault = trial.client(Api::Heartbeat).answer(ErrorCode::REBALANCE_IN_PROGRESS);
    wait_fired(&fault, 1);
    trial.process(3);
    wait_for("the next assignment", || logged(&instance, " assigned stage=") == 2);
    trial.process(3);
    trial.assert_computed_once(&instance);
    trial.finish(&mut instance);
}

/// S5.1d: the coordinator does not know the member, or its generation, any more. Its tasks are gone at once, and begin anew
/// with the next assignment.
#[test]
fn a_sign_of_life_of_a_member_that_was_expelled() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    for (n, error) in (1..).zip([ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION]) {
        trial.process(3);
        let fault = trial.client(Api::Heartbeat).answer(error);
        wait_fired(&fault, 1);
        wait_for("the task begins anew", || starts(&instance) == n + 1);
    }
    trial.process(3);
    assert_eq!(logged(&instance, "the session expired"), 2, "log:\n{}", instance.log());
    trial.finish(&mut instance);
}

/// S5.1d, S4.1a: no sign of life arrives for longer than the session lasts, while a commit is on its way. The task is gone at
/// once and what it had under way counts for nothing; the next one fences before it reads, so that the commit comes too late.
#[test]
fn a_session_that_is_lost_with_a_commit_on_its_way() {
    let mut trial = Trial::new(RIG);
    let mut instance = trial.start();
    let before = trial.process(3);
    let late = trial.producer(Api::EndTxn).hold();
    trial.write(1);
    wait_held(&late);
    let silent = trial.client(Api::Heartbeat).always().hold();
    wait_held(&silent);
    instance.wait_for_log("the session expired");
    silent.release();
    wait_for("the task begins anew", || starts(&instance) == 2);
    late.release();
    let after = trial.wait_done();
    assert_ne!(after.owner, before.owner);
    assert_eq!(after.counter, before.counter + 1, "nothing was committed in between");
    assert_eq!(trial.calls(&[&instance]), [1, 1, 1, 2], "log:\n{}", instance.log());
    trial.process(3);
    trial.finish(&mut instance);
}

/// S5.2c: the coordinator says that another process has taken the instance's id. The process stops and names the id.
#[test]
fn a_sign_of_life_of_an_instance_that_was_replaced() {
    let mut trial = Trial::new(RIG).with(|rig| rig.arg("--instance-id", "twin-7"));
    let mut instance = trial.start();
    trial.process(3);
    let before = trial.fences();
    let group = trial.job.group();
    let fault =
        trial.broker().fault().api(Api::Heartbeat).group_id(group).answer(ErrorCode::FENCED_INSTANCE_ID);
    wait_fired(&fault, 1);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("twin-7") && error.contains("--instance-id"), "the id is named in:\n{log}");
    assert_eq!(trial.fences(), before, "nothing is fenced");
    trial.process_with_another(3);
}

/// S6.2a: requests by which a member joins get no answer, or an error that passes. They are made again.
#[test]
fn joining_that_takes_several_attempts() {
    let mut trial = Trial::new(RIG);
    for api in [Api::JoinGroup, Api::SyncGroup] {
        for lost in LOST {
            trial.process_with_fault(lost(trial.client(api)), &format!("{api}, lost"));
        }
        let refused = [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::REBALANCE_IN_PROGRESS];
        for error in MOVED.into_iter().chain(refused) {
            let fault = trial.client(api).answer(error);
            trial.process_with_fault(fault, &format!("{api}, {error:?}"));
        }
    }
}

/// S6.2a: coordinators are not found at first, neither that of the group nor that of the transactions.
#[test]
fn coordinators_that_are_not_found_at_first() {
    let mut trial = Trial::new(RIG);
    for lost in LOST {
        trial.process_with_fault(lost(trial.client(Api::FindCoordinator).times(2)), "lost");
    }
    for error in [ErrorCode::COORDINATOR_NOT_AVAILABLE, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS] {
        let all = trial.client(Api::FindCoordinator).times(3).answer(error);
        trial.process_with_fault(all, &format!("{error:?}"));
        let transactions = trial.producer(Api::FindCoordinator).times(3).answer(error);
        trial.process_with_fault(transactions, &format!("{error:?} of a transactional id"));
    }
}

/// S5.2a, S5.2b: another member joins while a commit is on its way, and the answers to the rebalance are lost. What is not
/// committed is sent again by whoever has the task afterwards, and counts once.
#[test]
fn a_rebalance_whose_answers_are_lost() {
    let mut trial = Trial::on(Trial::builder(), RIG, 4, 1);
    let mut first = trial.start();
    for partition in 0..4 {
        trial.write_to(partition, 3);
    }
    trial.wait_done();
    for (api, lost) in [(Api::SyncGroup, LOST[1]), (Api::JoinGroup, LOST[1]), (Api::SyncGroup, LOST[0])] {
        let fault = lost(trial.client(api));
        let mut second = trial.job.rig.start();
        for partition in 0..4 {
            trial.write_to(partition, 3);
        }
        wait_fired(&fault, 1);
        wait_for_tasks(&second, 2);
        trial.wait_done();
        assert_eq!(second.terminate(STOP), 0, "a clean stop; log:\n{}", second.log());
    }
    for partition in 0..4 {
        trial.write_to(partition, 3);
    }
    trial.finish(&mut first);
}

/// S11.4b: the answer to a goodbye is lost. The stop is a clean one all the same.
#[test]
fn a_goodbye_that_is_not_answered() {
    let mut trial = Trial::new(RIG);
    for lost in LOST {
        let fault = lost(trial.client(Api::LeaveGroup));
        let mut instance = trial.start();
        trial.process(3);
        trial.finish(&mut instance);
        assert_eq!(fault.fired(), 1);
    }
}
