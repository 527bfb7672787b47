//! Single steps of the life cycle, each with its number in the semantics.

use crate::task::{
    Abort, Command, CommittedInput, Config, Event, InputRange, Machine, Outcome, RESETTING, Stamp, Stop,
    Warning,
};

pub(super) fn config(changelog: Option<&str>) -> Config {
    Config { inputs: 1, changelog: changelog.map(str::to_owned), start_latest: false }
}

pub(super) fn stamp(owner: &str, counter: u64) -> Stamp {
    Stamp { owner: owner.into(), counter, changelog: Some("id".into()) }
}

pub(super) fn committed(offset: i64, stamp: &Stamp) -> CommittedInput {
    CommittedInput { offset: Some(offset), metadata: stamp.to_string() }
}

pub(super) fn range(low: i64, high: i64) -> Event {
    Event::Ranges(vec![InputRange { low, stable: high, high }])
}

/// A machine with state that reads from offset 7, after transaction `a:3`, and owns `b`.
pub(super) fn running() -> Machine {
    let (mut machine, first) = Machine::new(config(Some("id")));
    assert_eq!(first, [Command::Fence]);
    assert_eq!(machine.step(Event::Fenced { owner: "b".into() }), [Command::ReadOffsets]);
    let offsets = Event::Offsets(vec![committed(7, &stamp("a", 3))]);
    assert_eq!(machine.step(offsets), [Command::ReadChangelogEnd]);
    assert_eq!(machine.step(Event::ChangelogEnd(9)), [Command::OpenStore { wiped: false }]);
    let restore = Command::Restore { end: 9, stamp: Some("a:3:id".into()) };
    assert_eq!(machine.step(Event::StoreOpened { stamp: None }), [restore]);
    assert_eq!(machine.step(Event::Restored { empty: false }), [Command::ReadRanges]);
    assert_eq!(machine.step(range(0, 20)), [Command::Run { positions: vec![7] }]);
    machine
}

pub(super) fn send(id: u64, stamp: Stamp, to: i64, paced: bool) -> Command {
    Command::Send { id, stamp, positions: vec![to], paced }
}

#[test]
fn the_start_goes_in_the_order_that_makes_it_correct() {
    running();
}

#[test]
fn a_store_of_the_committed_stamp_is_reused_and_any_other_is_not() {
    for (found, reused) in [("a:3:id", true), ("a:2:id", false), ("b:3:id", false)] {
        let (mut machine, _) = Machine::new(config(Some("id")));
        machine.step(Event::Fenced { owner: "b".into() });
        machine.step(Event::Offsets(vec![committed(7, &stamp("a", 3))]));
        machine.step(Event::ChangelogEnd(9));
        let commands = machine.step(Event::StoreOpened { stamp: Some(found.into()) });
        assert_eq!(commands == [Command::ReadRanges], reused, "{found}");
    }
}

/// As where an input was added, or where another tool has set one back.
#[test]
fn inputs_with_different_stamps_reuse_no_store_and_the_counter_goes_on_from_the_largest() {
    for (first, second) in [(3, 7), (7, 3)] {
        let (mut machine, _) = Machine::new(Config { inputs: 2, ..config(Some("id")) });
        machine.step(Event::Fenced { owner: "b".into() });
        let inputs = vec![committed(7, &stamp("a", first)), committed(5, &stamp("z", second))];
        assert_eq!(machine.step(Event::Offsets(inputs)), [Command::ReadChangelogEnd]);
        machine.step(Event::ChangelogEnd(9));
        let found = Event::StoreOpened { stamp: Some(stamp("a", first).to_string()) };
        assert_eq!(machine.step(found), [Command::Restore { end: 9, stamp: None }]);
        machine.step(Event::Restored { empty: false });
        let all = InputRange { low: 0, stable: 20, high: 20 };
        assert_eq!(machine.step(Event::Ranges(vec![all, all])), [Command::Run { positions: vec![7, 5] }]);
        let sent = Command::Send { id: 1, stamp: stamp("b", 8), positions: vec![9, 6], paced: false };
        assert_eq!(machine.step(Event::Closed { id: 1, positions: vec![9, 6] }), [sent]);
    }
}

#[test]
fn metadata_of_another_tool_never_reuses_a_store() {
    let (mut machine, _) = Machine::new(config(Some("id")));
    machine.step(Event::Fenced { owner: "b".into() });
    machine.step(Event::Offsets(vec![CommittedInput { offset: Some(7), metadata: "x".into() }]));
    machine.step(Event::ChangelogEnd(9));
    let commands = machine.step(Event::StoreOpened { stamp: Some("x".into()) });
    assert_eq!(commands, [Command::Restore { end: 9, stamp: None }]);
}

#[test]
fn a_stage_without_state_opens_no_store_and_reads_no_changelog() {
    let (mut machine, _) = Machine::new(config(None));
    machine.step(Event::Fenced { owner: "b".into() });
    let offsets = vec![CommittedInput { offset: Some(4), metadata: "a:1:-".into() }];
    assert_eq!(machine.step(Event::Offsets(offsets)), [Command::ReadRanges]);
    assert_eq!(machine.step(range(0, 9)), [Command::Run { positions: vec![4] }]);
}

#[test]
fn a_first_start_commits_its_resolved_position_before_it_reads() {
    for (start_latest, resolved) in [(false, 3), (true, 9)] {
        let (mut machine, _) = Machine::new(Config { start_latest, ..config(None) });
        machine.step(Event::Fenced { owner: "b".into() });
        machine.step(Event::Offsets(vec![CommittedInput::default()]));
        let first = Stamp { owner: "b".into(), counter: 1, changelog: None };
        assert_eq!(machine.step(range(3, 9)), [send(0, first.clone(), resolved, false)]);
        let sent = Event::Sent { id: 0, outcome: Outcome::Committed { suspect: false } };
        assert_eq!(machine.step(sent), [Command::Apply { id: 0, stamp: first }]);
        assert_eq!(machine.step(Event::Applied { id: 0 }), [Command::Run { positions: vec![resolved] }]);
    }
}

#[test]
fn an_input_that_is_new_starts_with_a_warning() {
    let (mut machine, _) = Machine::new(Config { inputs: 2, ..config(None) });
    machine.step(Event::Fenced { owner: "b".into() });
    let old = CommittedInput { offset: Some(5), metadata: "a:8:-".into() };
    machine.step(Event::Offsets(vec![old, CommittedInput::default()]));
    let all = InputRange { low: 1, stable: 9, high: 9 };
    let commands = machine.step(Event::Ranges(vec![all, all]));
    let stamp = Stamp { owner: "b".into(), counter: 9, changelog: None };
    let sent = Command::Send { id: 0, stamp, positions: vec![5, 1], paced: false };
    assert_eq!(commands, [Command::Warn(Warning::NewInputs(vec![1])), sent]);
}

#[test]
fn what_can_not_be_right_stops_the_process() {
    let start = |offsets: CommittedInput| {
        let (mut machine, _) = Machine::new(config(Some("id")));
        machine.step(Event::Fenced { owner: "b".into() });
        let commands = machine.step(Event::Offsets(vec![offsets]));
        (machine, commands)
    };
    let (_, commands) = start(CommittedInput { offset: Some(1), metadata: RESETTING.into() });
    assert_eq!(commands, [Command::Fail(Stop::Resetting)]);

    let (_, commands) = start(CommittedInput { offset: Some(1), metadata: "a:1:gone".into() });
    assert_eq!(commands, [Command::Fail(Stop::OtherChangelog { named: "gone".into() })]);

    let (mut machine, _) = start(CommittedInput::default());
    machine.step(Event::ChangelogEnd(9));
    machine.step(Event::StoreOpened { stamp: None });
    assert_eq!(machine.step(Event::Restored { empty: false }), [Command::Fail(Stop::StateWithoutOffsets)]);

    for (low, high) in [(8, 20), (0, 6)] {
        let (mut machine, _) = start(committed(7, &stamp("a", 3)));
        machine.step(Event::ChangelogEnd(0));
        machine.step(Event::StoreOpened { stamp: Some("a:3:id".into()) });
        let range_of = InputRange { low, stable: high, high };
        let stop = Stop::OutOfRange { input: 0, offset: 7, range: range_of };
        assert_eq!(machine.step(range(low, high)), [Command::Fail(stop)]);
    }
}

#[test]
fn state_added_to_a_stage_begins_empty_with_a_warning() {
    let (mut machine, _) = Machine::new(config(Some("id")));
    machine.step(Event::Fenced { owner: "b".into() });
    let offsets = vec![CommittedInput { offset: Some(1), metadata: "a:1:-".into() }];
    assert_eq!(
        machine.step(Event::Offsets(offsets)),
        [Command::Warn(Warning::StateAdded), Command::ReadChangelogEnd]
    );
}

#[test]
fn one_batch_commits_while_the_next_is_computed_and_a_third_is_not() {
    let mut machine = running();
    let commands = machine.step(Event::Closed { id: 1, positions: vec![9] });
    assert_eq!(commands, [send(1, stamp("b", 4), 9, false)]);
    assert!(machine.may_compute());
    assert_eq!(machine.step(Event::Closed { id: 2, positions: vec![12] }), []);
    assert!(!machine.may_compute());
    let sent = Event::Sent { id: 1, outcome: Outcome::Committed { suspect: false } };
    assert_eq!(machine.step(sent), [Command::Apply { id: 1, stamp: stamp("b", 4) }]);
    assert_eq!(machine.step(Event::Applied { id: 1 }), [send(2, stamp("b", 5), 12, false)]);
    assert!(machine.may_compute());
}

#[test]
fn a_batch_that_the_group_refused_is_sent_again() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    let refused =
        || Event::Sent { id: 1, outcome: Outcome::Aborted { why: Abort::Generation, suspect: false } };
    // No rebalance is known: at once, with fresh metadata.
    assert_eq!(machine.step(refused()), [send(1, stamp("b", 4), 9, true)]);
    // One is under way: with its assignment.
    assert_eq!(machine.step(Event::Revoked), []);
    assert_eq!(machine.step(refused()), []);
    assert_eq!(machine.step(Event::Assigned { mine: true }), [send(1, stamp("b", 4), 9, false)]);
    // It is no longer ours.
    assert_eq!(machine.step(Event::Revoked), []);
    assert_eq!(machine.step(refused()), []);
    let gone = machine.step(Event::Assigned { mine: false });
    assert_eq!(gone, [Command::Discard { keep: None }, Command::End { clean: false }]);
}

#[test]
fn a_suspect_producer_is_never_used_again() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    machine.step(Event::Closed { id: 2, positions: vec![12] });
    let sent = Event::Sent { id: 1, outcome: Outcome::Committed { suspect: true } };
    assert_eq!(machine.step(sent), [Command::Apply { id: 1, stamp: stamp("b", 4) }, Command::Fence]);
    assert_eq!(machine.step(Event::Applied { id: 1 }), []);
    assert_eq!(machine.step(Event::Fenced { owner: "c".into() }), [Command::ReadOffsets]);
    let offsets = Event::Offsets(vec![committed(9, &stamp("b", 4))]);
    assert_eq!(machine.step(offsets), [send(2, stamp("c", 5), 12, false)]);
}

#[test]
fn an_unknown_outcome_is_settled_by_the_stamps() {
    let unknown = || {
        let mut machine = running();
        machine.step(Event::Closed { id: 1, positions: vec![9] });
        let outcome = Outcome::Unknown { fenced: false, error: "no answer".into() };
        assert_eq!(machine.step(Event::Sent { id: 1, outcome }), [Command::Fence]);
        machine.step(Event::Fenced { owner: "c".into() });
        machine
    };
    let mut machine = unknown();
    let commands = machine.step(Event::Offsets(vec![committed(9, &stamp("b", 4))]));
    assert_eq!(commands, [Command::Apply { id: 1, stamp: stamp("b", 4) }], "committed");

    let mut machine = unknown();
    let commands = machine.step(Event::Offsets(vec![committed(7, &stamp("a", 3))]));
    assert_eq!(commands, [send(1, stamp("c", 4), 9, false)], "not committed");

    let mut machine = unknown();
    let commands = machine.step(Event::Offsets(vec![committed(9, &stamp("z", 4))]));
    let why = "another owner has committed in between".into();
    let anew =
        [Command::Discard { keep: None }, Command::Warn(Warning::Anew { why }), Command::ReadChangelogEnd];
    assert_eq!(commands, anew, "another owner wrote");
}

/// Whatever became of the producer: what was computed on top of the batch stands, and the batch is sent again, or counts.
#[test]
fn fatal_and_fenced_errors_keep_what_was_computed() {
    for fenced in [false, true] {
        let dead = || {
            let mut machine = running();
            machine.step(Event::Closed { id: 1, positions: vec![9] });
            machine.step(Event::Closed { id: 2, positions: vec![12] });
            let outcome = Outcome::Dead { fenced, error: "broken".into() };
            machine.step(Event::Sent { id: 1, outcome });
            machine.step(Event::Waited);
            machine.step(Event::Fenced { owner: "c".into() });
            machine
        };
        let mut machine = dead();
        let commands = machine.step(Event::Offsets(vec![committed(7, &stamp("a", 3))]));
        assert_eq!(commands, [send(1, stamp("c", 4), 9, false)], "fenced: {fenced}");
        let sent = Event::Sent { id: 1, outcome: Outcome::Committed { suspect: false } };
        assert_eq!(machine.step(sent), [Command::Apply { id: 1, stamp: stamp("c", 4) }]);
        assert_eq!(machine.step(Event::Applied { id: 1 }), [send(2, stamp("c", 5), 12, false)]);

        let mut machine = dead();
        let commands = machine.step(Event::Offsets(vec![committed(9, &stamp("b", 4))]));
        assert_eq!(commands, [Command::Apply { id: 1, stamp: stamp("b", 4) }], "fenced: {fenced}");
    }
}

#[test]
fn a_fenced_producer_waits_before_it_fences() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    let outcome = Outcome::Dead { fenced: true, error: "fenced".into() };
    assert_eq!(machine.step(Event::Sent { id: 1, outcome }), [Command::DropProducer, Command::Wait]);
    let mut other = machine.clone();
    assert_eq!(machine.step(Event::Waited), [Command::Fence]);
    assert_eq!(other.step(Event::Assigned { mine: true }), [Command::Fence]);
}

#[test]
fn no_fence_while_the_next_assignment_is_unknown() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    machine.step(Event::Revoked);
    let outcome = Outcome::Unknown { fenced: false, error: "no answer".into() };
    assert_eq!(machine.step(Event::Sent { id: 1, outcome }), [Command::DropProducer]);
    assert_eq!(machine.step(Event::Waited), []);
    assert_eq!(machine.step(Event::Assigned { mine: true }), [Command::Fence]);
}

#[test]
fn a_task_that_is_taken_away_awaits_its_commit_in_flight() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    machine.step(Event::Closed { id: 2, positions: vec![12] });
    assert_eq!(machine.step(Event::Assigned { mine: false }), [Command::Discard { keep: Some(1) }]);
    let sent = Event::Sent { id: 1, outcome: Outcome::Committed { suspect: false } };
    assert_eq!(machine.step(sent), [Command::Apply { id: 1, stamp: stamp("b", 4) }]);
    assert_eq!(machine.step(Event::Applied { id: 1 }), [Command::End { clean: true }]);
}

#[test]
fn a_lost_assignment_ends_the_task_at_once() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    assert_eq!(machine.step(Event::Lost), [Command::Discard { keep: None }, Command::End { clean: false }]);
    assert!(machine.is_ended());
}

#[test]
fn a_clean_stop_commits_what_was_computed() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    assert_eq!(machine.step(Event::Stop), []);
    assert!(!machine.may_compute());
    machine.step(Event::Closed { id: 2, positions: vec![12] });
    assert_eq!(machine.step(Event::Drained), []);
    machine.step(Event::Sent { id: 1, outcome: Outcome::Committed { suspect: false } });
    assert_eq!(machine.step(Event::Applied { id: 1 }), [send(2, stamp("b", 5), 12, false)]);
    machine.step(Event::Sent { id: 2, outcome: Outcome::Committed { suspect: false } });
    assert_eq!(
        machine.step(Event::Applied { id: 2 }),
        [Command::Discard { keep: None }, Command::End { clean: true }]
    );
}

#[test]
fn after_a_failure_elsewhere_no_further_commit_is_started() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    machine.step(Event::Closed { id: 2, positions: vec![12] });
    assert_eq!(machine.step(Event::Halt), [Command::Discard { keep: Some(1) }]);
    machine.step(Event::Sent { id: 1, outcome: Outcome::Committed { suspect: false } });
    assert_eq!(machine.step(Event::Applied { id: 1 }), [Command::End { clean: true }]);
}

#[test]
fn a_store_that_fails_is_rebuilt_once() {
    let mut machine = running();
    let failed = || Event::StoreFailed { error: "bad block".into() };
    let warning = Command::Warn(Warning::StoreRebuilt { error: "bad block".into() });
    assert_eq!(machine.step(failed()), [warning, Command::Discard { keep: None }, Command::Fence]);
    machine.step(Event::Fenced { owner: "c".into() });
    machine.step(Event::Offsets(vec![committed(7, &stamp("a", 3))]));
    assert_eq!(machine.step(Event::ChangelogEnd(9)), [Command::OpenStore { wiped: true }]);
    assert_eq!(machine.step(failed()), [Command::Fail(Stop::Store { error: "bad block".into() })]);
}

/// S4.7b: also where the store fails while it waits.
#[test]
fn a_store_that_fails_during_the_wait_after_a_fence_does_not_end_the_wait() {
    let waiting = || {
        let mut machine = running();
        machine.step(Event::Closed { id: 1, positions: vec![9] });
        let outcome = Outcome::Dead { fenced: true, error: "fenced".into() };
        assert_eq!(machine.step(Event::Sent { id: 1, outcome }), [Command::DropProducer, Command::Wait]);
        let warning = Command::Warn(Warning::StoreRebuilt { error: "bad block".into() });
        let failed = machine.step(Event::StoreFailed { error: "bad block".into() });
        assert_eq!(failed, [warning, Command::Discard { keep: None }]);
        assert!(!machine.is_live());
        machine
    };
    for over in [Event::Waited, Event::Assigned { mine: true }] {
        let mut machine = waiting();
        assert_eq!(machine.step(over), [Command::Fence]);
        machine.step(Event::Fenced { owner: "c".into() });
        // What was handed over and discarded is not settled: whatever is committed is the truth.
        let offsets = Event::Offsets(vec![committed(9, &stamp("b", 4))]);
        assert_eq!(machine.step(offsets), [Command::ReadChangelogEnd]);
        assert_eq!(machine.step(Event::ChangelogEnd(9)), [Command::OpenStore { wiped: true }]);
    }
    assert_eq!(waiting().step(Event::Stop), [Command::End { clean: false }]);
}

#[test]
fn other_aborts_start_the_task_anew() {
    let mut machine = running();
    machine.step(Event::Closed { id: 1, positions: vec![9] });
    let outcome = Outcome::Aborted { why: Abort::Other("timed out".into()), suspect: false };
    let commands = machine.step(Event::Sent { id: 1, outcome });
    let warning = Command::Warn(Warning::Anew { why: "timed out".into() });
    assert_eq!(commands, [Command::Discard { keep: None }, warning, Command::DropProducer, Command::Wait]);
}
