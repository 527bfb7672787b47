//! All or nothing, and by whom (S2.2, S3.1, S3.2, S3.5, S3.6).

use std::time::{Duration, Instant};

use flechtwerk_dev_broker::{Api, DevBroker};
use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Case, Kafka, Observer, STOP, Seen, wait_for};
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const LIMIT: Duration = Duration::from_secs(20);

fn tally(partitions: i32) -> Case {
    Case::new(RIG, "tally", partitions, &["words", "joined"])
}

/// Last stable offset and end of partition 0.
fn ends(case: &Case, topic: &str) -> (i64, i64) {
    let stable = case.kafka.watermarks(topic, 0, "read_committed").1;
    (stable, case.kafka.watermarks(topic, 0, "read_uncommitted").1)
}

/// Kills an instance while it sends a batch; false if the batch was done before.
fn is_killed_in_mid_transaction() -> bool {
    let case = tally(1).log_fetches().arg("--max-batch-bytes", "14MiB").arg("--commit-interval", "1ms");
    let gate = case.gate("gate");
    let keys: Vec<String> = (0..10).map(|n| format!("key {n}")).collect();
    let mut records = vec![("gate", "x".to_owned()), ("a", "x".to_owned())];
    records.extend(keys.iter().map(|key| (key.as_str(), "grow:900000".to_owned())));
    let joined = case.observe("joined");
    let uncommitted = Observer::start_with(&case.kafka, case.topic("joined"), "read_uncommitted");
    case.write("words", &[("gate", &gate.value())]);
    let mut instance = case.rig.start();
    gate.wait_arrived();
    case.write("words", &records.iter().map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>());
    instance.wait_fetched(case.topic("words"), 0, records.len() as i64);
    gate.open();
    // The outputs are sent first, and then 9 MB of state.
    wait_for("an output that is not committed", || uncommitted.count() >= 2);
    instance.kill();
    let is_over = || {
        let (stable, end) = ends(&case, case.topic("joined"));
        stable == end
    };
    // A commit that the broker has got takes a moment to be seen.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if is_over() {
            return false;
        }
    }
    // The output is there and nobody sees it, and so with the state. The positions can't even be asked for.
    assert_eq!(joined.seen().iter().map(Seen::value_text).collect::<Vec<_>>(), ["waited"]);
    assert_eq!(ends(&case, &case.changelog()).0, 0);

    // The next owner ends it, and does it all again.
    let mut instance = case.rig.start();
    // The start and the gate have been committed before.
    assert_eq!(case.wait_committed("words", 1 + records.len() as i64).counter, 3);
    let values: Vec<_> = joined.wait(3).iter().map(Seen::value_text).collect();
    assert_eq!(values, ["waited", "1", "1"]);
    assert_eq!(instance.terminate(STOP), 0);
    let changes = Observer::start(&case.kafka, &case.changelog()).wait(12);
    assert_eq!(changes.len(), 12);
    let (stable, end) = ends(&case, case.topic("joined"));
    assert_eq!(stable, end, "a transaction is left open");
    true
}

#[test]
fn a_kill_in_mid_transaction_leaves_nothing_of_it() {
    // A kill may come too late; some come in time.
    assert!((0..10).any(|_| is_killed_in_mid_transaction()), "no kill met an open transaction");
}

#[test]
fn outputs_changelog_and_positions_appear_together() {
    let case = tally(1);
    let joined = case.observe("joined");
    let mut instance = case.start();
    let changelog = Observer::start(&case.kafka, &case.changelog());
    for n in 1..=20 {
        case.write("words", &[("a", "x")]);
        // Where the position is, everything else is.
        case.wait_committed("words", n as i64);
        let (stable, _) = ends(&case, case.topic("joined"));
        assert_eq!(stable, 2 * n as i64, "each output has its marker");
        assert_eq!(ends(&case, &case.changelog()).0, 2 * n as i64, "each change has its marker");
    }
    joined.wait(20);
    changelog.wait(20);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn tasks_commit_independently() {
    let case = tally(2);
    let gate = case.gate("gate");
    let on = |partition, value: &str| Write { partition: Some(partition), ..Write::new("a", value) };
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    case.kafka.write(case.topic("words"), [on(0, &gate.value()), on(0, "x")]);
    gate.wait_arrived();
    for n in 1..=3 {
        case.kafka.write(case.topic("words"), [on(1, "x")]);
        joined.wait(n);
    }
    assert_eq!(case.committed_of("words", 0).expect("the first position").0, 0);
    gate.open();
    case.wait_committed("words", 2);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn no_transaction_is_open_while_user_code_runs() {
    let case = tally(1);
    let gate = case.gate("gate");
    let joined = case.observe("joined");
    case.write("words", &[("a", "x"), ("b", "grow:10"), ("a", "x"), ("gate", &gate.value())]);
    let mut instance = case.rig.start();
    gate.wait_arrived();
    // What the other records of the round have made is not sent before the round is done.
    let (stable, end) = ends(&case, case.topic("joined"));
    assert_eq!(stable, end);
    let (stable, end) = ends(&case, &case.changelog());
    assert_eq!(stable, end);
    gate.open();
    joined.wait(3);
    assert_eq!(instance.terminate(STOP), 0);
}

/// A transaction begins with the positions, which nobody sees at the topics: so here by what the producer asks for.
#[test]
fn nothing_of_a_transaction_is_asked_for_while_user_code_runs() {
    let broker = DevBroker::builder().start().expect("a broker");
    let kafka = Kafka { brokers: broker.bootstrap() };
    let case = Case::on(&kafka, RIG, "tally", 1, &["words", "joined"]);
    // The commit of a first start is done.
    assert_eq!(case.start().terminate(STOP), 0);
    let id = format!("{}-0", case.application_id());
    let of_transactions =
        [Api::AddOffsetsToTxn, Api::AddPartitionsToTxn, Api::TxnOffsetCommit, Api::Produce, Api::EndTxn];
    let asked = || {
        broker.requests().count_where(|request| {
            request.transactional_id.as_deref() == Some(&id) && of_transactions.contains(&request.api)
        })
    };
    let before = asked();
    assert!(before > 0, "the commit of the first start");
    let gate = case.gate("gate");
    case.write("words", &[("a", "x"), ("b", "grow:10"), ("a", "x"), ("gate", &gate.value())]);
    let mut instance = case.rig.start();
    gate.wait_arrived();
    assert_eq!(asked(), before);
    gate.open();
    case.wait_committed("words", 4);
    assert!(asked() > before, "the batch was sent");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn inputs_are_read_committed() {
    let case = Case::new(RIG, "describe", 1, &["words", "joined"]);
    let words = case.topic("words");
    let on = |value: &str| Write { partition: Some(0), ..Write::new("a", value) };
    let aborted = case.kafka.open_transaction(&case.kafka.unique("aborted"));
    send(&aborted, words, &on("no"));
    send(&aborted, words, &on("no"));
    aborted.flush(LIMIT).expect("flush");
    aborted.abort_transaction(LIMIT).expect("abort");
    // Offset 2 is the marker.
    case.write("words", &[("a", "x")]);
    let open = case.kafka.open_transaction(&case.kafka.unique("open"));
    send(&open, words, &on("later"));
    open.flush(LIMIT).expect("flush");
    case.write("words", &[("a", "behind")]);

    let offsets = |seen: Vec<Seen>| -> Vec<String> {
        let text = |one: &Seen| one.value_text().split('@').next().unwrap_or_default().to_owned();
        seen.iter().map(text).collect()
    };
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    assert_eq!(offsets(joined.wait(1)), ["0/3"]);
    case.wait_committed("words", 4);
    open.commit_transaction(LIMIT).expect("commit");
    assert_eq!(offsets(joined.wait(3)), ["0/3", "0/4", "0/5"]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn the_transactional_id_is_application_id_and_partition_and_taking_it_fences() {
    let case = tally(2);
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    let before = case.committed("words").expect("committed").1;
    let thief = case.kafka.open_transaction(&format!("{}-0", case.application_id()));
    send(&thief, case.topic("joined"), &Write::new("a", "of the thief"));
    thief.flush(LIMIT).expect("flush");
    // The task can't commit any more, takes its id back, and sends the same batch again.
    case.write("words", &[("a", "x")]);
    let after = case.wait_committed("words", 2);
    assert_ne!(after.owner, before.owner);
    assert_eq!(after.counter, before.counter + 1);
    assert!(thief.commit_transaction(LIMIT).is_err(), "the thief was not fenced");
    let values: Vec<_> = joined.wait(2).iter().map(Seen::value_text).collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn group_and_changelog_are_named_after_the_application_id() {
    let case = tally(3);
    let mut instance = case.start();
    assert_eq!(case.kafka.members(&case.application_id()), 1);
    assert_eq!(case.application_id(), format!("{}rig-tally", case.rig.namespace));
    assert_eq!(case.kafka.partitions(&case.changelog()), 3);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(case.kafka.members(&case.application_id()), 0);

    let case = Case::new(RIG, "named", 1, &["words", "joined"]);
    let mut instance = case.start();
    let chosen = format!("{}chosen", case.rig.namespace);
    assert_eq!(case.kafka.members(&chosen), 1);
    assert_eq!(case.kafka.partitions(&format!("{chosen}-changelog")), 1);
    assert_eq!(instance.terminate(STOP), 0);
}
