//! Extractors against a real broker: pages, cursors, configs and tokens (S10).

use flechtwerk_tests::case::transaction_sizes;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Instance, Observer, STOP, Seen, Source, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn fetch(partitions: i32) -> Case {
    Case::new(RIG, "fetch", partitions, &["feeds", "items"])
}

/// Starts an instance and waits until it has a token that polls.
fn start(case: &Case) -> Instance {
    let mut instance = case.rig.start();
    instance.wait_for_log("token is running");
    instance
}

/// Writes configs where their keys belong.
fn configure(case: &Case, configs: &[(&str, &str)]) {
    case.kafka.write(case.topic("feeds"), configs.iter().map(|(key, value)| Write::new(key, value)));
}

fn tombstone(case: &Case, key: &str) {
    case.kafka.write(case.topic("feeds"), [Write { key: Some(key.into()), ..Write::default() }]);
}

/// The numbers of a feed's items, as they were written.
fn items(seen: &[Seen], feed: &str) -> Vec<u64> {
    seen.iter()
        .filter(|one| one.key_text() == feed)
        .map(|one| one.value_text().parse().expect("a number"))
        .collect()
}

/// The cursor of a changelog record, and whose it is.
fn cursor(record: &Seen) -> (String, u64) {
    let (key, value) = (record.key.as_deref().expect("a key"), record.value.as_deref().expect("a value"));
    let value: serde_json::Value = serde_json::from_slice(&value[1..]).expect("JSON");
    (String::from_utf8_lossy(&key[1..]).into_owned(), value["next"].as_u64().expect("a cursor"))
}

#[test]
fn a_page_is_one_transaction_of_messages_and_cursor() {
    let case = fetch(1);
    let source = Source::start();
    source.set("a", 25);
    configure(&case, &[("a", &source.value())]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    let all = seen.wait(25);
    assert_eq!(items(&all, "a"), (0..25).collect::<Vec<_>>());
    assert_eq!(transaction_sizes(&all), [10, 10, 5]);
    // Timestamps are those of the page, not of the config.
    assert!(all.iter().all(|one| one.timestamp > 1_600_000_000_000), "{:?}", all[0]);
    let log = Observer::start(&case.kafka, &case.changelog());
    let cursors: Vec<_> = log.wait(3).iter().map(cursor).collect();
    assert_eq!(cursors, [("a".into(), 10), ("a".into(), 20), ("a".into(), 25)]);
    // The lease, and one page after the other.
    wait_for("the last commit", || case.committed("feeds").is_some_and(|(_, stamp)| stamp.counter == 4));
    let (offset, stamp) = case.committed("feeds").expect("committed");
    assert_eq!((offset, stamp.counter), (0, 4));
    // What has nothing to say commits nothing, however often it is polled.
    let requests = source.requests();
    wait_for("more polls", || source.requests() > requests + 3);
    assert_eq!(case.committed("feeds").expect("committed").1, stamp);
    assert_eq!(instance.terminate(STOP), 0);
    // The cursor is where the next instance begins.
    source.set("a", 26);
    let mut instance = start(&case);
    assert_eq!(items(&seen.wait(26), "a"), (0..26).collect::<Vec<_>>());
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(source.repeated(), 0);
}

#[test]
fn without_a_config_topic_there_is_one_token() {
    let case = Case::new(RIG, "pulse", 3, &["items"]);
    let source = Source::start();
    source.set("pulse", 12);
    let rig = case.rig.clone().env("RIG_SOURCE", source.address());
    let seen = case.observe("items");
    let mut instances = [rig.start(), rig.start()];
    let mut all = items(&seen.wait(12), "pulse");
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
    assert_eq!(case.kafka.partitions(&case.changelog()), 1);
    let committed = case.kafka.committed(&case.application_id(), &case.changelog());
    assert_eq!(committed.keys().collect::<Vec<_>>(), [&0]);
    // One of them is a spare.
    let running = instances.iter().filter(|one| one.log().contains("token is running")).count();
    assert_eq!(running, 1);
    for instance in &mut instances {
        assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    }
    assert_eq!(source.repeated(), 0);
}

#[test]
fn a_config_belongs_to_the_token_of_its_key_wherever_it_lies() {
    let case = fetch(4);
    let source = Source::start();
    let names: Vec<String> = (0..12).map(|n| format!("feed-{n}")).collect();
    for name in &names {
        source.set(name, 3);
    }
    // All in one partition, which no partitioner would do.
    let value = source.value();
    let configs = names.iter().map(|name| Write { partition: Some(2), ..Write::new(name, &value) });
    case.kafka.write(case.topic("feeds"), configs);
    let seen = case.observe("items");
    let mut instance = start(&case);
    let all = seen.wait(36);
    let cursors = Observer::start(&case.kafka, &case.changelog());
    // The items' topic has as many partitions, and the same keys: the partitioner says where each belongs.
    for record in cursors.wait(12) {
        let (name, next) = cursor(&record);
        assert_eq!(next, 3);
        let item = all.iter().find(|one| one.key_text() == name).expect("an item");
        assert_eq!(record.partition, item.partition, "the token of {name}");
    }
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn configs_come_go_rest_and_return_while_it_runs() {
    let case = fetch(2);
    let source = Source::start();
    for name in ["a", "b", "c"] {
        source.set(name, 1);
    }
    configure(&case, &[("a", &source.value()), ("b", "off")]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    seen.wait(1);
    configure(&case, &[("c", &source.value())]);
    seen.wait(2);
    // Suspended and tombstoned: neither is asked for any more.
    configure(&case, &[("a", "off")]);
    tombstone(&case, "c");
    let quiet = || {
        let before = source.requests();
        std::thread::sleep(std::time::Duration::from_millis(600));
        source.requests() == before
    };
    wait_for("nothing is polled", quiet);
    for name in ["a", "b", "c"] {
        source.set(name, 2);
    }
    assert!(quiet());
    assert_eq!(seen.count(), 2);
    // They come back, with the cursors that they had.
    configure(&case, &[("a", &source.value()), ("b", &source.value()), ("c", &source.value())]);
    let all = seen.wait(6);
    for (name, expected) in [("a", [0, 1]), ("b", [0, 1]), ("c", [0, 1])] {
        assert_eq!(items(&all, name), expected, "{name}");
    }
    assert_eq!(instance.terminate(STOP), 0);
}
