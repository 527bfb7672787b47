//! Tables (S9): whole before the stage begins, up to date from then on, one version for a batch.

use std::time::Duration;

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Instance, Observer, Probe, STOP, wait_for};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::{Offset, TopicPartitionList};

const SHARED: &str = env!("CARGO_BIN_EXE_shared");

fn case(stage: &str) -> Case {
    Case::new(SHARED, stage, 1, &["words", "joined", "items", "lengths"]).arg(ANY_PORT.0, ANY_PORT.1)
}

/// Keys and bytes of a table, as the instance tells them.
fn size(case: &Case, probe: &Probe, table: &str) -> (f64, f64) {
    let labels = format!("table=\"{}\"", case.topic(table));
    let metric = |name| probe.metric(name, &labels).unwrap_or(-1.0);
    (metric("flechtwerk_table_keys"), metric("flechtwerk_table_bytes"))
}

/// Writes to the table and waits until the instance shows it.
#[track_caller]
fn update(case: &Case, instance: &Instance, records: &[(&str, &str)], keys: usize, bytes: usize) {
    let probe = Probe::of(instance);
    case.write("items", records);
    let expected = (keys as f64, bytes as f64);
    wait_for("the table is up to date", || size(case, &probe, "items") == expected);
}

#[track_caller]
fn texts(output: &Observer, count: usize) -> Vec<String> {
    let seen = output.wait(count);
    seen.iter()
        .map(|one| String::from_utf8_lossy(one.value.as_deref().unwrap_or_default()).trim_end().into())
        .collect()
}

/// There is no order between keys.
#[track_caller]
fn sorted(output: &Observer, range: std::ops::Range<usize>) -> Vec<String> {
    let mut texts = texts(output, range.end).split_off(range.start);
    texts.sort();
    texts
}

/// S9.1: what the topic holds when the process starts is in the table at the first record; keys that came later
/// arrive, values change, nulls delete; and all again after a restart.
#[test]
fn read_whole_then_kept_up_to_date_and_read_again_after_a_restart() {
    let case = case("look_up");
    let items = (0..5000).map(|n| Write::new(&format!("i{n}"), &format!("item {n}")));
    case.kafka.write(case.topic("items"), items);
    case.write("items", &[("k", "one")]);
    case.write("words", &[("i4999", "get"), ("k", "size"), ("k", "get")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    assert_eq!(sorted(&output, 0..3), ["5001", "item 4999", "one"]);
    let bytes = size(&case, &Probe::of(&instance), "items").1 as usize;
    update(&case, &instance, &[("k", "three"), ("new", "x")], 5002, bytes + 2 + 4);
    let null = Write { key: Some(b"i1".into()), partition: Some(0), ..Write::default() };
    case.kafka.write(case.topic("items"), [null]);
    wait_for("the key is gone", || size(&case, &Probe::of(&instance), "items").0 == 5001.0);
    case.write("words", &[("k", "get"), ("new", "get"), ("i1", "get"), ("k", "size")]);
    let expected = ["-", "5001", "three", "x"];
    assert_eq!(sorted(&output, 3..7), expected);
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    assert!(instance.log().contains("not compact alone"), "{}", instance.log());

    let mut again = case.start();
    case.write("words", &[("k", "get"), ("new", "get"), ("i1", "get"), ("k", "size")]);
    assert_eq!(sorted(&output, 7..11), expected);
    assert_eq!(again.terminate(STOP), 0, "{}", again.log());
}

/// S9.1: the last record of the table's topic stops the process, and it has not joined the group by then.
#[test]
fn read_to_its_end_before_the_group_is_joined() {
    let case = case("look_up");
    case.kafka.write(case.topic("items"), (0..2000).map(|n| Write::new(&format!("i{n}"), "x")));
    let bad = Write { key: Some(b"k".into()), value: Some(b"\xffhunter2".into()), ..Write::default() };
    case.kafka.write(case.topic("items"), [bad]);
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
    let log = instance.log();
    let place = format!("the value of {}/0 offset 2000 can't be decoded", case.topic("items"));
    assert!(log.contains(&place) && log.contains("of stage look_up"), "{place:?} in:\n{log}");
    assert!(!log.contains("hunter2"), "{log}");
    assert!(!log.contains("assigned"), "the group was joined:\n{log}");
    assert_eq!(case.kafka.members(&case.application_id()), 0);
}

/// S9.1a: not the first partition alone.
#[test]
fn every_partition_is_read_before_the_group_is_joined() {
    let case = Case::new(SHARED, "look_up", 3, &["words", "joined", "items"]);
    let on = |partition: i32, key: &str, value: &str| Write {
        partition: Some(partition),
        ..Write::new(key, value)
    };
    let items = (0..3000).map(|n| on(n % 3, &format!("i{n}"), &format!("item {n}")));
    case.kafka.write(case.topic("items"), items);
    case.write("words", &[("i2997", "get"), ("i2998", "get"), ("i2999", "get"), ("k", "size")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    assert_eq!(sorted(&output, 0..4), ["3000", "item 2997", "item 2998", "item 2999"]);
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    for partition in 0..3 {
        let key = format!("bad{partition}");
        let bad = Write { value: Some(b"\xff".into()), ..on(partition, &key, "") };
        case.kafka.write(case.topic("items"), [bad]);
        let mut instance = case.rig.start();
        assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
        let log = instance.log();
        let place = format!("the value of {}/{partition} offset 1000 can't be decoded", case.topic("items"));
        assert!(log.contains(&place), "{place:?} in:\n{log}");
        assert!(!log.contains("assigned"), "the group was joined:\n{log}");
        assert_eq!(case.kafka.members(&case.application_id()), 0);
        case.kafka.write(case.topic("items"), [Write { value: None, ..on(partition, &key, "") }]);
    }
}

/// S9.2h: nobody calls it, so that nobody would catch it: `Hash` of a key.
#[test]
fn a_panic_in_the_thread_of_a_table_stops_the_process() {
    for running in [false, true] {
        let case = Case::new(SHARED, "set_traps", 1, &["words", "joined", "traps"]);
        case.write("traps", &[("\"one\"", "x")]);
        let trap = || case.write("traps", &[("\"trap\"", "x")]);
        let mut instance = if running {
            let instance = case.start();
            trap();
            instance
        } else {
            trap();
            case.rig.start()
        };
        assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        for text in
            [&*format!("table {} of stage set_traps", case.topic("traps")), "the trap snaps shut", "`Hash`"]
        {
            assert!(error.contains(text), "{text:?} in:\n{log}");
        }
        assert_eq!(log.contains("assigned"), running, "{log}");
    }
}

/// S11.4d: a table's code that does not come back holds a stop up for two seconds, and then it is left.
#[test]
fn a_stop_does_not_wait_for_a_table_that_hangs() {
    let case = case("measure");
    case.write("lengths", &[("k", "hang")]);
    let mut instance = case.rig.start();
    instance.wait_for_log("enriched k hang");
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    assert!(instance.log().contains("a table's thread has not ended in time"), "{}", instance.log());
}

/// S9.2: the same while the stage runs.
#[test]
fn a_record_that_does_not_decode_stops_a_running_stage() {
    let case = case("look_up");
    let mut instance = case.start();
    case.kafka.write(case.topic("items"), [Write { value: Some(b"x".into()), ..Write::default() }]);
    assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
    let log = instance.log();
    let place = format!("the key of {}/0 offset 0 can't be decoded", case.topic("items"));
    assert!(log.contains(&place), "{place:?} in:\n{log}");
    // Before, the topic itself was warned of.
    let warning =
        format!("topic `{}`, table of stage `look_up`, has cleanup.policy=delete", case.topic("items"));
    assert!(log.contains(&warning), "{warning:?} in:\n{log}");

    // It stays in the topic, and bothers nobody once a later record of its key is right.
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1);
    assert!(instance.log().contains(&place), "{}", instance.log());
    case.kafka.write(case.topic("items"), [Write::default()]);
    let mut instance = case.start();
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}

/// S9.1: both records are of one batch, the table changes between their rounds, and the second sees what the first saw.
#[test]
fn one_batch_sees_one_version() {
    let case = case("look_up").arg("--commit-interval", "1h");
    case.write("items", &[("k", "old")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    case.write("words", &[("k", "first")]);
    instance.wait_for_log("looked up first old");
    update(&case, &instance, &[("k", "new one")], 1, 8);
    case.write("words", &[("k", "second")]);
    instance.wait_for_log("looked up second");
    // The next commit is due in an hour; a stop makes it at once.
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    assert_eq!(flechtwerk_tests::case::transaction_sizes(&output.wait(2)), [2], "one batch");
    assert_eq!(texts(&output, 2), ["old", "old"]);

    let mut again = case.start();
    case.write("words", &[("k", "third")]);
    again.wait_for_log("looked up third new one");
    assert_eq!(again.terminate(STOP), 0);
}

/// S9.1: the batch is computed again, with fewer records, since it grew too large; the table changed meanwhile.
#[test]
fn a_batch_that_is_computed_again_sees_the_same_version() {
    let case = case("look_up").arg("--max-batch-bytes", "4KiB");
    let gate = case.gate("gate");
    case.write("items", &[("k", "old")]);
    case.write("words", &[("k", "big"), ("k", &gate.value()), ("k", "big")]);
    let instance = case.start();
    let output = case.observe("joined");
    gate.wait_arrived();
    update(&case, &instance, &[("k", "new one")], 1, 8);
    gate.open();
    let texts = texts(&output, 3);
    let log = instance.log();
    // Three records were too large together: the first is computed again, alone, and the batch may go out with it.
    let (_, after) = log.split_once("looked up wait:").unwrap();
    assert!(after.contains("looked up big old"), "computed again:\n{log}");
    assert_eq!((&*texts[0], &*texts[2]), ("old", "new one"), "log:\n{log}");
}

/// S9.1: somebody else has written under the task's transactional id, so that the batch does not count, and the task starts
/// anew. Its records are computed again as of the version that they saw.
#[test]
fn a_batch_that_is_discarded_sees_the_same_version_again() {
    let case = case("look_up");
    let gate = case.gate("gate");
    case.write("items", &[("k", "old")]);
    let instance = case.start();
    let output = case.observe("joined");
    case.write("words", &[("k", &gate.value())]);
    gate.wait_arrived();
    update(&case, &instance, &[("k", "new one")], 1, 8);
    let other = case.kafka.open_transaction(&format!("{}-0", case.application_id()));
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(case.topic("words"), 0, Offset::Offset(0)).unwrap();
    offsets.find_partition(case.topic("words"), 0).unwrap().set_metadata("other:7:-");
    let group = case.kafka.config().set("group.id", case.application_id()).create::<BaseConsumer>().unwrap();
    let group = group.group_metadata().unwrap();
    other.send_offsets_to_transaction(&offsets, &group, Duration::from_secs(20)).unwrap();
    other.commit_transaction(Duration::from_secs(20)).unwrap();
    gate.open();
    assert_eq!(texts(&output, 1), ["old"], "log:\n{}", instance.log());
    assert_eq!(instance.log().matches("looked up wait:").count(), 2, "computed again:\n{}", instance.log());
    case.write("words", &[("k", "get")]);
    assert_eq!(texts(&output, 2)[1], "new one");
}

/// S9.2, S9.3: only what was committed is read; rows are made once for each record that is left; an empty value deletes
/// where the topic says so.
#[test]
fn rows_are_made_of_committed_records_that_are_left() {
    let case = case("measure");
    let producer = case.kafka.open_transaction(&case.kafka.unique("writer"));
    for (key, value) in [("a", "x"), ("a", "four"), ("b", "gone"), ("c", "refuse"), ("c", "12"), ("b", "")] {
        send(&producer, case.topic("lengths"), &Write::new(key, value));
    }
    producer.commit_transaction(Duration::from_secs(20)).unwrap();
    producer.begin_transaction().unwrap();
    send(&producer, case.topic("lengths"), &Write::new("a", "aborted"));
    producer.flush(Duration::from_secs(20)).unwrap();
    producer.abort_transaction(Duration::from_secs(20)).unwrap();
    // With an empty table beside it, which has nothing to wait for.
    case.write("words", &[("a", "x"), ("b", "x"), ("c", "x")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    assert_eq!(sorted(&output, 0..3), ["- 0", "2 0", "4 0"]);
    let log = instance.log();
    let enriched: Vec<&str> = log.lines().filter(|line| line.starts_with("enriched")).collect();
    assert_eq!(enriched.len(), 2, "{log}");
    assert!(enriched.contains(&"enriched a four") && enriched.contains(&"enriched c 12"), "{log}");

    case.write("lengths", &[("a", "refuse")]);
    assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
    let place = format!("the `enrich` function returned an error at {}/0 offset", case.topic("lengths"));
    assert!(instance.log().contains(&place), "{}", instance.log());
}

/// S9.2: where the topic's type says so, what does not decode is left out, and counted.
#[test]
fn the_topic_may_decide_about_records_that_do_not_decode() {
    let case = case("measure");
    case.write("lengths", &[("a", "four")]);
    let bad = |key: &[u8]| Write { key: Some(key.into()), value: Some(b"\xff".into()), ..Write::default() };
    case.kafka.write(case.topic("lengths"), [bad(b"a"), bad(b"\xff")]);
    case.write("lengths", &[("b", "12")]);
    case.write("words", &[("a", "x"), ("b", "x")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    assert_eq!(sorted(&output, 0..2), ["2 0", "4 0"]);
    let labels = format!("topic=\"{}\",outcome=\"skip\"", case.topic("lengths"));
    let skipped = Probe::of(&instance).metric("flechtwerk_invalid_records_total", &labels);
    assert_eq!(skipped, Some(2.0));
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}

/// One reading for all stages of the process.
#[test]
fn two_stages_share_one_table() {
    let mut case = case("look_up");
    case.rig = case.rig.stage("measure");
    case.write("items", &[("k", "one")]);
    case.write("words", &[("k", "get")]);
    let mut instance = case.start();
    let output = case.observe("joined");
    assert_eq!(sorted(&output, 0..2), ["- 1", "one"]);
    let read = format!("read table=\"{}\"", case.topic("items"));
    assert_eq!(instance.log().matches(&read).count(), 1, "{}", instance.log());
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}

/// A stop does not wait for a table.
#[test]
fn a_stop_while_a_table_is_read_is_clean() {
    let case = case("look_up");
    // Half a million records take a while; the stop comes as soon as the process hears signals.
    case.kafka.write(case.topic("items"), (0..500_000).map(|n| Write::new(&format!("i{n}"), "x")));
    let mut instance = case.rig.start();
    instance.wait_for_log("reading");
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    assert_eq!(case.kafka.members(&case.application_id()), 0);
}
