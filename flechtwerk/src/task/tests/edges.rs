//! What the histories seldom reach: answers that come too late, questions that drivers ask, and faults in the middle of an end
//! or of a start. Each of these tests was asked for by a mutant of the machine that nothing else had noticed.

use super::steps::{committed, config, range, running, send, stamp};
use crate::task::{
    Abort, Command, CommittedInput, Config, Event, FIRST_POSITIONS, InputRange, Machine, Outcome, RESETTING,
    Stop, Warning,
};

fn sent(id: u64, outcome: Outcome) -> Event {
    Event::Sent { id, outcome }
}

fn done(suspect: bool) -> Outcome {
    Outcome::Committed { suspect }
}

fn refused(suspect: bool) -> Outcome {
    Outcome::Aborted { why: Abort::Generation, suspect }
}

fn unknown() -> Outcome {
    Outcome::Unknown { fenced: false, error: "no answer".into() }
}

fn closed(id: u64, to: i64) -> Event {
    Event::Closed { id, positions: vec![to] }
}

fn fenced() -> Event {
    Event::Fenced { owner: "c".into() }
}

fn apply(id: u64, counter: u64) -> Command {
    Command::Apply { id, stamp: stamp("b", counter) }
}

/// One that commits where it begins to read.
fn starting() -> Machine {
    let (mut machine, _) =
        Machine::new(Config { inputs: 1, changelog: Some("id".into()), start_latest: false });
    machine.step(Event::Fenced { owner: "b".into() });
    machine.step(Event::Offsets(vec![CommittedInput::default()]));
    machine.step(Event::ChangelogEnd(0));
    machine.step(Event::StoreOpened { stamp: None });
    machine.step(Event::Restored { empty: true });
    assert_eq!(machine.step(range(3, 9)), [send(FIRST_POSITIONS, stamp("b", 1), 3, false)]);
    machine
}

#[test]
fn answers_that_something_has_overtaken_change_nothing() {
    let answers = [
        fenced(),
        Event::Offsets(vec![committed(7, &stamp("a", 3))]),
        Event::ChangelogEnd(9),
        Event::StoreOpened { stamp: None },
        Event::Restored { empty: false },
        range(0, 20),
        Event::Waited,
        Event::FenceLost { error: "x".into() },
    ];
    let (mut machine, _) = Machine::new(config(Some("id")));
    for step in 0..=6 {
        for (at, answer) in answers.iter().enumerate() {
            // The first six are what each step waits for; a fence may also be lost.
            if at == step || (step == 0 && matches!(answer, Event::FenceLost { .. })) {
                continue;
            }
            let mut other = machine.clone();
            assert_eq!(other.step(answer.clone()), [], "{answer:?} in step {step}");
            assert_eq!(other, machine, "{answer:?} in step {step}");
        }
        for early in [closed(1, 9), sent(1, done(false)), Event::Applied { id: 1 }, Event::Drained] {
            let mut other = machine.clone();
            if step < 6 || !matches!(early, Event::Closed { .. }) {
                assert_eq!(other.step(early.clone()), [], "{early:?} in step {step}");
                assert_eq!(other, machine, "{early:?} in step {step}");
            }
        }
        if step < 6 {
            assert!(!machine.step(answers[step].clone()).is_empty());
        }
    }
    // What was sent is heard of once, and what is applied was sent before.
    machine.step(closed(1, 9));
    let before = machine.clone();
    for event in [sent(2, done(false)), Event::Applied { id: 1 }] {
        assert_eq!((machine.step(event), &machine), (vec![], &before));
    }
    assert_eq!(machine.step(sent(1, done(false))), [Command::Apply { id: 1, stamp: stamp("c", 4) }]);
    let before = machine.clone();
    for event in [sent(1, refused(false)), Event::Applied { id: 2 }] {
        assert_eq!((machine.step(event), &machine), (vec![], &before));
    }
}

#[test]
fn drivers_are_told_what_they_may_do() {
    let may = |machine: &Machine| {
        [
            machine.may_compute(),
            machine.may_close(),
            machine.may_send(),
            machine.is_live(),
            machine.is_ended(),
        ]
    };
    let (mut machine, _) = Machine::new(config(Some("id")));
    assert_eq!(may(&machine), [false; 5]);
    assert_eq!(machine.committed(), []);
    machine.step(Event::Lost);
    assert_eq!(may(&machine), [false, false, false, false, true]);

    assert_eq!(may(&starting()), [false; 5]);
    let mut machine = running();
    assert_eq!(machine.committed(), [Some(7)]);
    assert_eq!(may(&machine), [true, true, true, true, false]);
    machine.step(closed(1, 9));
    assert_eq!(may(&machine), [true, true, false, true, false]);
    machine.step(closed(2, 12));
    assert_eq!(may(&machine), [false, false, false, true, false]);
    machine.step(sent(1, done(true)));
    assert_eq!(machine.committed(), [Some(9)]);
    machine.step(Event::Applied { id: 1 });
    // Nothing is in flight, but the producer is being replaced and a batch waits for it.
    assert_eq!(may(&machine), [false, false, false, true, false]);
    machine.step(Event::Assigned { mine: false });
    assert_eq!(may(&machine), [false, false, false, false, true]);

    let mut machine = running();
    machine.step(closed(1, 9));
    machine.step(sent(1, done(true)));
    machine.step(Event::Applied { id: 1 });
    assert_eq!(may(&machine), [true, true, false, true, false], "no producer");
    machine.step(Event::Stop);
    assert_eq!(may(&machine), [false, true, false, true, false], "what was computed is still closed");
}

#[test]
fn a_lost_fence_is_tried_again_after_a_moment() {
    let (mut machine, _) = Machine::new(config(None));
    let lost = Event::FenceLost { error: "fenced".into() };
    assert_eq!(machine.step(lost), [Command::DropProducer, Command::Wait]);
    assert_eq!(machine.step(Event::Waited), [Command::Fence]);
}

#[test]
fn a_refused_batch_of_a_suspect_producer_goes_out_by_the_next_one() {
    let mut machine = running();
    machine.step(closed(1, 9));
    assert_eq!(machine.step(sent(1, refused(true))), [Command::Fence]);
    assert_eq!(machine.step(Event::Assigned { mine: true }), [], "the fence is under way");
    machine.step(fenced());
    let offsets = Event::Offsets(vec![committed(7, &stamp("a", 3))]);
    assert_eq!(machine.step(offsets), [send(1, stamp("c", 4), 9, false)]);
    assert_eq!(machine.step(Event::Assigned { mine: true }), [], "it is being sent");
}

#[test]
fn a_batch_that_is_being_applied_is_not_sent_again() {
    let mut machine = running();
    machine.step(closed(1, 9));
    machine.step(closed(2, 12));
    assert_eq!(machine.step(sent(1, done(true))), [apply(1, 4), Command::Fence]);
    machine.step(fenced());
    assert_eq!(machine.step(Event::Offsets(vec![committed(9, &stamp("b", 4))])), []);
    assert_eq!(machine.step(Event::Applied { id: 1 }), [send(2, stamp("c", 5), 12, false)]);
}

#[test]
fn a_stop_is_over_when_all_is_drained_and_applied() {
    let end = [Command::Discard { keep: None }, Command::End { clean: true }];
    let mut machine = running();
    assert_eq!(machine.step(Event::Stop), []);
    assert_eq!(machine.step(Event::Drained), end);

    // The driver has not closed its last batch.
    let mut machine = running();
    machine.step(closed(1, 9));
    machine.step(Event::Stop);
    machine.step(sent(1, done(false)));
    assert_eq!(machine.step(Event::Applied { id: 1 }), []);
    assert_eq!(machine.step(closed(2, 12)), [send(2, stamp("b", 5), 12, false)]);
    assert_eq!(machine.step(Event::Drained), []);
    assert_eq!(machine.step(Event::Stop), [], "to say it twice takes nothing back");
    machine.step(sent(2, done(false)));
    assert_eq!(machine.step(Event::Applied { id: 2 }), end);

    // A closed batch waits for another producer.
    let mut machine = running();
    machine.step(closed(1, 9));
    machine.step(closed(2, 12));
    machine.step(Event::Stop);
    machine.step(Event::Drained);
    machine.step(sent(1, done(true)));
    assert_eq!(machine.step(Event::Applied { id: 1 }), []);
    machine.step(fenced());
    let offsets = Event::Offsets(vec![committed(9, &stamp("b", 4))]);
    assert_eq!(machine.step(offsets), [send(2, stamp("c", 5), 12, false)]);
}

#[test]
fn a_stop_before_anything_is_read_ends_at_once() {
    let (mut machine, _) = Machine::new(config(None));
    assert_eq!(machine.step(Event::Stop), [Command::End { clean: false }]);
}

#[test]
fn what_goes_wrong_while_a_task_stops_ends_it_and_is_not_clean() {
    let end = [Command::Discard { keep: None }, Command::End { clean: false }];
    let stopping = || {
        let mut machine = running();
        machine.step(closed(1, 9));
        machine.step(Event::Stop);
        machine
    };
    let why = Abort::Other("timed out".into());
    let aborted = Outcome::Aborted { why, suspect: false };
    assert_eq!(stopping().step(sent(1, aborted)), end);

    let warning = Command::Warn(Warning::StoreRebuilt { error: "bad block".into() });
    let failed = || Event::StoreFailed { error: "bad block".into() };
    assert_eq!(stopping().step(failed()), [std::slice::from_ref(&warning), &end[..]].concat());

    let mut machine = stopping();
    assert_eq!(
        machine.step(sent(1, unknown())),
        [Command::Fence],
        "the stamps may tell that it is committed"
    );
    machine.step(fenced());
    let why = "another owner has committed in between".into();
    let anew = Command::Warn(Warning::Anew { why });
    let other = Event::Offsets(vec![committed(9, &stamp("z", 4))]);
    assert_eq!(machine.step(other), [end[0].clone(), anew, end[1].clone()]);

    // It was taken away, and its last commit is awaited.
    let leaving = || {
        let mut machine = running();
        machine.step(closed(1, 9));
        assert_eq!(machine.step(Event::Assigned { mine: false }), [Command::Discard { keep: Some(1) }]);
        machine
    };
    for outcome in [unknown(), refused(false), Outcome::Dead { fenced: true, error: "x".into() }] {
        assert_eq!(leaving().step(sent(1, outcome)), [Command::End { clean: false }]);
    }
    assert_eq!(leaving().step(failed()), [warning, Command::End { clean: false }]);
    let mut machine = leaving();
    assert_eq!(machine.step(sent(1, done(true))), [apply(1, 4)], "no other producer for a task that ends");
    assert_eq!(machine.step(Event::Applied { id: 1 }), [Command::End { clean: true }]);
}

#[test]
fn a_task_that_is_taken_away_awaits_the_store_too() {
    let mut machine = running();
    machine.step(closed(1, 9));
    machine.step(sent(1, done(false)));
    assert_eq!(machine.step(Event::Assigned { mine: false }), [Command::Discard { keep: Some(1) }]);
    assert_eq!(machine.step(Event::Applied { id: 1 }), [Command::End { clean: true }]);

    let mut machine = starting();
    let first = Command::Apply { id: FIRST_POSITIONS, stamp: stamp("b", 1) };
    assert_eq!(machine.step(sent(FIRST_POSITIONS, done(true))), [first, Command::Fence]);
    assert_eq!(machine.step(Event::Assigned { mine: false }), []);
    assert_eq!(machine.step(Event::Applied { id: FIRST_POSITIONS }), [Command::End { clean: true }]);
}

#[test]
fn first_positions_that_do_not_get_through() {
    for outcome in [Outcome::Dead { fenced: false, error: "gone".into() }, unknown()] {
        let why = if outcome == unknown() { "no answer" } else { "gone" };
        let anew = Command::Warn(Warning::Anew { why: why.into() });
        let mut machine = starting();
        assert_eq!(
            machine.step(sent(FIRST_POSITIONS, outcome)),
            [anew, Command::DropProducer, Command::Wait],
            "nothing is computed yet: all is read again"
        );
    }
    // Refused in a rebalance: with its assignment.
    let mut machine = starting();
    machine.step(Event::Revoked);
    assert_eq!(machine.step(sent(FIRST_POSITIONS, refused(false))), []);
    let again = send(FIRST_POSITIONS, stamp("b", 1), 3, false);
    assert_eq!(machine.step(Event::Assigned { mine: true }), [again]);
    // By a producer that is not used again: what is committed by then decides.
    let mut machine = starting();
    assert_eq!(machine.step(sent(FIRST_POSITIONS, refused(true))), [Command::Fence]);
    machine.step(fenced());
    let offsets = Event::Offsets(vec![CommittedInput::default()]);
    assert_eq!(machine.step(offsets), [Command::ReadChangelogEnd]);
}

#[test]
fn a_store_that_fails_while_it_is_opened_or_restored_is_opened_anew() {
    for restoring in [false, true] {
        let (mut machine, _) = Machine::new(config(Some("id")));
        machine.step(fenced());
        machine.step(Event::Offsets(vec![committed(7, &stamp("a", 3))]));
        machine.step(Event::ChangelogEnd(9));
        if restoring {
            machine.step(Event::StoreOpened { stamp: None });
        }
        let error = || "bad block".to_owned();
        let warning = Command::Warn(Warning::StoreRebuilt { error: error() });
        let commands = machine.step(Event::StoreFailed { error: error() });
        assert_eq!(commands, [warning, Command::OpenStore { wiped: true }]);
        let restore = Command::Restore { end: 9, stamp: Some("a:3:id".into()) };
        assert_eq!(machine.step(Event::StoreOpened { stamp: None }), [restore]);
        assert_eq!(
            machine.step(Event::StoreFailed { error: error() }),
            [Command::Fail(Stop::Store { error: error() })]
        );
    }
}

#[test]
fn the_ends_of_an_input_are_within_it() {
    for (low, high) in [(7, 20), (0, 7), (7, 7)] {
        let (mut machine, _) = Machine::new(config(None));
        machine.step(fenced());
        machine.step(Event::Offsets(vec![CommittedInput { offset: Some(7), metadata: "a:1:-".into() }]));
        assert_eq!(machine.step(range(low, high)), [Command::Run { positions: vec![7] }]);
    }
}

#[test]
fn one_input_is_enough_to_tell_of_a_reset_or_of_state() {
    let start = |second: CommittedInput, empty: bool| {
        let (mut machine, _) = Machine::new(Config { inputs: 2, ..config(Some("id")) });
        machine.step(fenced());
        let commands = machine.step(Event::Offsets(vec![CommittedInput::default(), second]));
        machine.step(Event::ChangelogEnd(9));
        machine.step(Event::StoreOpened { stamp: None });
        (commands, machine.step(Event::Restored { empty }))
    };
    let resetting = CommittedInput { offset: Some(1), metadata: RESETTING.into() };
    assert_eq!(start(resetting, true).0, [Command::Fail(Stop::Resetting)]);
    let known = committed(7, &stamp("a", 3));
    assert_eq!(start(known, false).1, [Command::ReadRanges]);
    assert_eq!(start(CommittedInput::default(), true).1, [Command::ReadRanges]);
    assert_eq!(start(CommittedInput::default(), false).1, [Command::Fail(Stop::StateWithoutOffsets)]);
}

#[test]
fn each_new_input_has_its_own_start() {
    let (mut machine, _) = Machine::new(Config { inputs: 2, start_latest: true, changelog: None });
    machine.step(fenced());
    machine.step(Event::Offsets(vec![CommittedInput::default(); 2]));
    let input = |low, stable, high| InputRange { low, stable, high };
    let commands = machine.step(Event::Ranges(vec![input(0, 4, 5), input(2, 8, 9)]));
    assert!(
        matches!(&commands[..], [Command::Send { positions, .. }] if *positions == [4, 8]),
        "{commands:?}"
    );
}
