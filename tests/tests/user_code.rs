//! What the function of a stage may do to the process: hang, block, fail and panic (S2.8, S6.1), and run more than
//! once (S2.9).

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, STOP, Seen, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// A function that never comes back must stop the process; gives the case and the log.
#[track_caller]
fn overdue(value: &str) {
    let case = Case::new(RIG, "obey", 2, &["words", "joined"]).arg("--max-batch-time", "2s");
    let on = |partition, value| Write { partition: Some(partition), ..Write::new("a", value) };
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.kafka.write(case.topic("words"), [on(1, "x"), on(1, "x")]);
    joined.wait(2);
    case.kafka.write(case.topic("words"), [on(1, value)]);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let place = format!("for partition 1, {}/1 offsets 2 to 2", case.topic("words"));
    for part in ["stage obey", "max_batch_time (2s)", &place] {
        assert!(log.contains(part), "{part:?} in\n{log}");
    }
    assert_eq!(case.committed_of("words", 1).expect("committed").0, 2);
}

#[test]
fn a_function_that_hangs_stops_the_process() {
    overdue("hang");
}

#[test]
fn a_function_that_blocks_its_thread_stops_the_process() {
    overdue("block");
}

/// A batch whose last record fails, beside a partition where all is well; then the corrected program.
#[track_caller]
fn fails(command: &str, message: &str) {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]).log_fetches();
    let on = |partition, value: &str| Write { partition: Some(partition), ..Write::new("a", value) };
    let gate = case.gate("gate");
    let joined = case.observe("joined");
    let mut instance = case.start();
    let words = case.topic("words");
    let traces = case.rig.dir().join("traces");
    let fails = format!("{command}:{}", traces.display());
    case.kafka.write(words, [on(1, "x"), on(0, "x"), on(0, &gate.value())]);
    // Both partitions have one sum committed, or will have it once the gate is open.
    gate.wait_arrived();
    wait_for("the other partition's commit", || case.committed_of("words", 1).is_some_and(|(at, _)| at == 1));
    case.kafka.write(words, [on(0, "x"), on(0, "x"), on(0, &fails), on(0, "x")]);
    instance.wait_fetched(words, 0, 5);
    gate.open();
    assert_eq!(instance.wait(STOP), 1);
    let log = instance.log();
    let message = format!("{message} at the record at {words}/0 offset 4: ");
    assert!(log.contains(&message), "{message:?} in\n{log}");
    if command == "fail" {
        assert!(log.contains(&(message + "the word was refused: it was asked for")), "the causes in\n{log}");
    } else {
        assert!(log.contains(&(message + "it was asked for, too")), "the panic's message in\n{log}");
    }

    // It was called once: nothing has tried again (S6.1a).
    assert_eq!(std::fs::read(&traces).expect("the traces of the calls").len(), 1);

    // Nothing of the batch is there, whole batches before it are, and so is the other partition's.
    let (offset, _) = case.committed_of("words", 0).expect("committed");
    assert!(offset <= 2, "{offset}");
    let sums = |seen: Vec<Seen>| seen.iter().map(Seen::value_text).filter(|value| value != "waited").count();
    assert!(sums(joined.seen()) <= 2);

    // The record is processed after all, and every other once.
    let corrected = case.rig.clone().env("RIG_CORRECTED", "1");
    let mut instance = corrected.start();
    wait_for("all sums", || sums(joined.seen()) == 6);
    let mut values: Vec<_> = joined.seen().iter().map(Seen::value_text).filter(|v| v != "waited").collect();
    values.sort();
    assert_eq!(values, ["1", "1", "2", "3", "4", "5"]);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(case.committed_of("words", 0).expect("committed").0, 6);
}

#[test]
fn an_error_of_the_function_discards_the_batch_and_stops_the_process() {
    fails("fail", "stage tally failed");
}

#[test]
fn a_panic_of_the_function_does_the_same() {
    fails("panic", "stage tally panicked");
}

#[test]
fn the_function_runs_again_and_its_effects_in_kafka_happen_once() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    // Without the commit of a first start, and with an hour until the next one, nothing is committed before the kill.
    assert_eq!(case.start().terminate(STOP), 0);
    let slow = case.rig.clone().arg("--commit-interval", "1h");
    let joined = case.observe("joined");
    let mut instance = slow.start();
    instance.wait_for_log("task is running");
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    let traces = case.rig.dir().join("traces");
    case.write("words", &[("a", &format!("trace:{}", traces.display()))]);
    let calls = || std::fs::read(&traces).map_or(0, |bytes| bytes.len());
    wait_for("the function has run", || calls() == 1);
    instance.kill();
    assert_eq!(case.committed("words").expect("committed").0, 1);

    let mut instance = case.start();
    case.wait_committed("words", 2);
    assert_eq!(instance.terminate(STOP), 0);
    let values: Vec<_> = joined.wait(2).iter().map(Seen::value_text).collect();
    assert_eq!((values, calls()), (vec!["1".to_owned(), "2".to_owned()], 2));
}
