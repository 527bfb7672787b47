//! What a record carries in and out (S1): codecs, null and empty, partitions, headers, timestamps.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, STOP};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// Murmur2 hashes that Kafka's Java client gives.
const JAVA_HASHES: [(&str, i32); 6] = [
    ("21", -973_932_308),
    ("foobar", -790_332_482),
    ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829),
    ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ("abc", 479_470_107),
];

fn an_hour_ago() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the time");
    (now - Duration::from_secs(3600)).as_millis() as i64
}

#[test]
fn null_and_empty_keys_and_values_stay_what_they_are() {
    let case = Case::new(RIG, "copy", 1, &["raw", "copies"]);
    let parts = [None, Some(Vec::new()), Some(b"x".to_vec())];
    let all: Vec<_> = parts.iter().flat_map(|key| parts.iter().map(move |value| (key, value))).collect();
    case.kafka.write(
        case.topic("raw"),
        all.iter().map(|(key, value)| Write {
            key: (*key).clone(),
            value: (*value).clone(),
            partition: Some(0),
            ..Write::default()
        }),
    );
    let copies = case.observe("copies");
    let mut instance = case.rig.start();
    let mut seen: Vec<_> = copies.wait(all.len()).into_iter().map(|one| (one.key, one.value)).collect();
    let mut expected: Vec<_> = all.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    // Records of different keys have no order.
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_tombstone_reaches_a_nullable_value() {
    let case = Case::new(RIG, "join", 1, &["profiles", "words", "joined"]);
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("profiles", &[("a", "first")]);
    // One after another: the inputs have an order within a round only.
    case.wait_committed("profiles", 1);
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    let tombstone = Write { key: Some(b"a".to_vec()), partition: Some(0), ..Write::default() };
    case.kafka.write(case.topic("profiles"), [tombstone]);
    case.wait_committed("profiles", 2);
    case.write("words", &[("a", "y")]);
    let values: Vec<_> = joined.wait(2).iter().map(|one| one.value_text()).collect();
    assert_eq!(values, ["x@first", "y@-"]);
    assert_eq!(instance.terminate(STOP), 0);
}

/// Runs until the failure and gives the log.
#[track_caller]
fn failed(case: &Case) -> String {
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1, "exit status; log:\n{}", instance.log());
    instance.log()
}

#[test]
fn null_is_refused_where_the_codec_is_not_nullable() {
    let null_value = Write { key: Some(b"a".to_vec()), ..Write::default() };
    let null_key = Write { value: Some(b"x".to_vec()), ..Write::default() };
    for (record, part) in [(null_value, "value"), (null_key, "key")] {
        let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
        case.kafka.write(case.topic("words"), [Write { partition: Some(0), ..record }]);
        let log = failed(&case);
        let place = format!("the {part} of the record at {}/0 offset 0", case.topic("words"));
        assert!(log.contains(&place), "{place:?} in\n{log}");
    }
}

#[test]
fn empty_text_is_a_value() {
    let case = Case::new(RIG, "describe", 1, &["words", "joined"]);
    case.write("words", &[("", "")]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    assert_eq!(joined.wait(1)[0].key, Some(Vec::new()));
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn outputs_go_to_the_java_clients_partition() {
    let partitions = 4;
    let case = Case::new(RIG, "tally", partitions, &["words", "joined"]);
    // A plain client that does as the Java client does is the second witness, for many keys.
    let plain = case.kafka.unique("plain");
    case.kafka.create_topic(&plain, partitions, &[]);
    let mut keys: Vec<String> = (0..200).map(|n| format!("key {n}")).collect();
    keys.extend(JAVA_HASHES.iter().map(|(key, _)| (*key).to_owned()));
    case.kafka.write(&plain, keys.iter().map(|key| Write::new(key, "x")));
    let records: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "x")).collect();
    // All of them come from one partition, so that the outputs' can't be the input's.
    case.write("words", &records);
    let (joined, plain) = (case.observe("joined"), flechtwerk_tests::Observer::start(&case.kafka, &plain));
    let mut instance = case.rig.start();
    let places = |seen: Vec<flechtwerk_tests::Seen>| -> BTreeMap<String, i32> {
        seen.iter().map(|one| (one.key_text(), one.partition)).collect()
    };
    let ours = places(joined.wait(keys.len()));
    assert_eq!(ours, places(plain.wait(keys.len())));
    for (key, hash) in JAVA_HASHES {
        assert_eq!(ours[key], (hash & 0x7fff_ffff) % partitions, "{key}");
    }
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn json_keys_are_canonical() {
    let case = Case::new(RIG, "route", 1, &["words", "routes"]);
    case.write("words", &[("HAM", "TXL")]);
    let routes = case.observe("routes");
    let mut instance = case.rig.start();
    assert_eq!(routes.wait(1)[0].key_text(), r#"{"from":"HAM","stops":[3,1],"to":"TXL"}"#);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_codec_of_ones_own_reads_and_writes() {
    let case = Case::new(RIG, "turn", 1, &["digits", "turned"]);
    case.write("digits", &[("a", "00ff10")]);
    let turned = case.observe("turned");
    let mut instance = case.start();
    assert_eq!(turned.wait(1)[0].value_text(), "10ff00");
    // And is as strict as any other.
    case.write("digits", &[("a", "00f")]);
    assert_eq!(instance.wait(STOP), 1);
    let log = instance.log();
    assert!(log.contains("Hex") && log.contains("an odd number of digits"), "{log}");
    assert!(!log.contains("00f"), "the payload is in the log:\n{log}");
}

#[test]
fn headers_timestamp_partition_and_offset_can_be_read() {
    let case = Case::new(RIG, "describe", 2, &["words", "joined"]);
    let time = an_hour_ago();
    let record = Write {
        partition: Some(1),
        timestamp: Some(time),
        headers: vec![("a".into(), b"1".to_vec()), ("b".into(), b"2".to_vec()), ("a".into(), b"3".to_vec())],
        ..Write::new("key", "x")
    };
    case.kafka.write(case.topic("words"), [record.clone(), record]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let values: Vec<_> = joined.wait(2).iter().map(|one| one.value_text()).collect();
    assert_eq!(values, [format!("1/0@{time} a=1,b=2,a=3"), format!("1/1@{time} a=1,b=2,a=3")]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn an_output_takes_its_inputs_timestamp() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let time = an_hour_ago();
    let records = (0..3).map(|n| Write { timestamp: Some(time + n), ..Write::new("a", "x") });
    case.kafka.write(case.topic("words"), records);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let times: Vec<_> = joined.wait(3).iter().map(|one| one.timestamp).collect();
    assert_eq!(times, [time, time + 1, time + 2]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn partition_timestamp_and_headers_of_an_output_can_be_set() {
    let case = Case::new(RIG, "place_output", 3, &["words", "joined"]);
    let time = an_hour_ago();
    let places = [(0, time), (1, time + 7), (2, time + 3)];
    let values: Vec<String> = places.iter().map(|(partition, time)| format!("{partition}:{time}")).collect();
    // One key, which by itself has one partition.
    case.write("words", &values.iter().map(|value| ("key", value.as_str())).collect::<Vec<_>>());
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let mut seen: Vec<_> = joined.wait(3).iter().map(|one| (one.partition, one.timestamp)).collect();
    seen.sort_unstable();
    assert_eq!(seen, places);
    assert_eq!(instance.terminate(STOP), 0);

    let case = Case::new(RIG, "count", 1, &["words", "counts"]);
    case.write("words", &[("a", "x"), ("a", "x")]);
    let counts = case.observe("counts");
    let mut instance = case.rig.start();
    let headers: Vec<_> = counts.wait(2).iter().map(|one| one.header("at").expect("the header")).collect();
    assert_eq!(headers, ["0:0", "0:1"]);
    assert_eq!(instance.terminate(STOP), 0);
}

/// S1.5f: to the client it is no time, and means the present one.
#[test]
fn the_time_0_is_not_now() {
    let case = Case::new(RIG, "place_output", 1, &["words", "joined"]);
    case.write("words", &[("key", "0:0"), ("key", "0:1"), ("key", "0:2")]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let seen: Vec<_> = joined.wait(3).iter().map(|one| one.timestamp).collect();
    assert_eq!(seen, [1, 1, 2]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn an_output_that_can_not_be_encoded_stops_the_stage_naming_the_record() {
    let case = Case::new(RIG, "ratio", 1, &["words", "ratios"]);
    case.write("words", &[("a", "0.5"), ("a", "NaN")]);
    let log = failed(&case);
    let place = format!(
        "stage ratio: an output to topic {} made of the record at {}/0 offset 1 can't be encoded",
        case.topic("ratios"),
        case.topic("words")
    );
    assert!(log.contains(&place), "{place:?} in\n{log}");
}
