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

/// Configures one feed, which stops the process; gives its log.
#[track_caller]
fn fails(case: &Case, value: &str) -> String {
    let mut instance = start(case);
    configure(case, &[("bad", value)]);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    instance.log()
}

#[track_caller]
fn says(log: &str, parts: &[&str]) {
    for part in parts {
        assert!(log.contains(part), "{part:?} in\n{log}");
    }
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
    // One of them is a spare; the token may have moved before that was settled.
    let holds = |one: &Instance| {
        let log = one.log();
        log.lines().rfind(|line| line.contains(" assigned ")).map(|line| line.ends_with("{0}"))
    };
    wait_for(
        "one has the token and the other nothing",
        || matches!([holds(&instances[0]), holds(&instances[1])], [Some(one), Some(other)] if one != other),
    );
    for instance in &mut instances {
        assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    }
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
    // One that is polled all the time tells how much time has passed for the others.
    configure(&case, &[("a", &source.value()), ("b", "off"), ("clock", &source.value())]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    seen.wait(1);
    configure(&case, &[("c", &source.value())]);
    seen.wait(2);
    // Suspended and tombstoned: neither is asked for any more.
    configure(&case, &[("a", "off")]);
    tombstone(&case, "c");
    let rounds = |count: usize| {
        let before = source.requests_for("clock");
        wait_for("polls of another config", || source.requests_for("clock") >= before + count);
    };
    let asked = || ["a", "b", "c"].map(|name| source.requests_for(name));
    wait_for("nothing else is polled", || {
        let before = asked();
        rounds(3);
        asked() == before
    });
    for name in ["a", "b", "c"] {
        source.set(name, 2);
    }
    let before = asked();
    rounds(3);
    assert_eq!((asked(), seen.count()), (before, 2));
    // They come back, with the cursors that they had.
    configure(&case, &[("a", &source.value()), ("b", &source.value()), ("c", &source.value())]);
    let all = seen.wait(6);
    for (name, expected) in [("a", [0, 1]), ("b", [0, 1]), ("c", [0, 1])] {
        assert_eq!(items(&all, name), expected, "{name}");
    }
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn an_error_stops_the_process_and_earlier_pages_stay() {
    for (command, what) in [("error", "failed"), ("panic", "panicked")] {
        let case = fetch(1);
        let source = Source::start();
        source.set("good", 20);
        configure(&case, &[("good", &source.value())]);
        let seen = case.observe("items");
        let mut instance = start(&case);
        seen.wait(20);
        configure(&case, &[("bad", command)]);
        assert_eq!(instance.wait(STOP), 1);
        let at = format!("{}/0 offset 1", case.topic("feeds"));
        let what = format!("stage fetch {what} at the config at {at}: asked for an {command}")
            .replace("an panic", "a panic");
        says(&instance.log(), &[&what, "all pages before it have"]);
        // Corrected, and everything goes on where it was.
        source.set("good", 21);
        source.set("bad", 1);
        configure(&case, &[("bad", &source.value())]);
        let mut instance = start(&case);
        let all = seen.wait(22);
        assert_eq!(items(&all, "good"), (0..21).collect::<Vec<_>>());
        assert_eq!(items(&all, "bad"), [0]);
        assert_eq!(instance.terminate(STOP), 0);
    }
}

#[test]
fn a_source_that_hangs_or_blocks_stops_the_process() {
    for command in ["hang", "block"] {
        let case = fetch(1).arg("--max-batch-time", "2s");
        let log = fails(&case, command);
        let place = format!("for token 0, the config at {}/0 offset 0", case.topic("feeds"));
        says(&log, &["stage fetch", "max_batch_time (2s)", &place]);
    }
}

#[test]
fn again_without_anything_new_stops_the_process() {
    let case = fetch(1);
    let seen = case.observe("items");
    let log = fails(&case, "again");
    let place = format!("100 pages in a row of the config at {}/0 offset 0", case.topic("feeds"));
    says(&log, &[&place, "`Next::Again`", "return `Next::Idle`"]);
    assert_eq!(seen.count(), 0);
    // The same messages for ever are nothing new.
    let case = fetch(1);
    says(&fails(&case, "same"), &["100 pages in a row"]);
}

#[test]
fn a_cursor_or_message_that_is_too_large_is_named() {
    let case = fetch(1);
    let log = fails(&case, "cursor:2000000");
    let place = format!("of the config at {}/0 offset 0", case.topic("feeds"));
    says(&log, &["the broker refused the cursor of 20", &place, "a cursor is a place in the source"]);
    let case = fetch(1);
    let log = fails(&case, "message:2000000");
    let to = format!("to topic {}", case.topic("items"));
    says(&log, &["the broker refused a message of 20", &to, "make the message smaller"]);
}

#[test]
fn a_config_that_does_not_decode_stops_the_stage_and_only_the_last_of_a_key_counts() {
    let case = fetch(1);
    let source = Source::start();
    source.set("bad", 1);
    let broken = || Write { key: Some("bad".into()), value: Some(vec![0xff]), ..Write::default() };
    // While it runs.
    let mut instance = start(&case);
    case.kafka.write(case.topic("feeds"), [broken()]);
    assert_eq!(instance.wait(STOP), 1);
    let place = format!("the value of the config at {}/0 offset 0", case.topic("feeds"));
    says(&instance.log(), &["stage fetch", &place, "(Utf8)", "write a correct one under the same key"]);
    // Before it runs.
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1);
    says(&instance.log(), &[&place]);
    assert!(!instance.log().contains("assigned"), "the group was joined:\n{}", instance.log());
    assert_eq!(case.kafka.members(&case.application_id()), 0);
    // Corrected: the old one is still in the topic and bothers nobody.
    configure(&case, &[("bad", &source.value())]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    assert_eq!(items(&seen.wait(1), "bad"), [0]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn no_more_calls_run_at_a_time_than_are_allowed() {
    let case = fetch(2).arg("--max-concurrent-polls", "3");
    let source = Source::start();
    source.delay(std::time::Duration::from_millis(50));
    let names: Vec<String> = (0..20).map(|n| format!("feed-{n}")).collect();
    let value = source.value();
    names.iter().for_each(|name| source.set(name, 30));
    configure(&case, &names.iter().map(|name| (name.as_str(), value.as_str())).collect::<Vec<_>>());
    let seen = case.observe("items");
    let mut instance = start(&case);
    let all = seen.wait(20 * 30);
    for name in &names {
        assert_eq!(items(&all, name), (0..30).collect::<Vec<_>>(), "{name}");
    }
    assert_eq!(source.most(), 3);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_clean_stop_cancels_calls_and_keeps_what_was_complete() {
    let case = fetch(1);
    let source = Source::start();
    source.set("a", 10);
    configure(&case, &[("a", &source.value())]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    seen.wait(10);
    source.silence(true);
    wait_for("a call that hangs", || source.open() > 0);
    // It ends long before the call would, which is cancelled.
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    wait_for("the call is cancelled", || source.open() == 0);
    source.silence(false);
    source.set("a", 20);
    let mut instance = start(&case);
    assert_eq!(items(&seen.wait(20), "a"), (0..20).collect::<Vec<_>>());
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_reset_forgets_the_cursors() {
    let case = fetch(2);
    let source = Source::start();
    source.set("a", 5);
    configure(&case, &[("a", &source.value())]);
    let seen = case.observe("items");
    let mut instance = start(&case);
    seen.wait(5);
    assert_eq!(instance.terminate(STOP), 0);
    let (status, _, err) = case.rig.tool(&["reset", "--execute"]);
    assert_eq!(status, 0, "{err}");
    let offsets = case.kafka.committed(&case.application_id(), case.topic("feeds"));
    assert!(offsets.values().all(|(offset, stamp)| *offset == 0 && stamp.is_empty()), "{offsets:?}");
    let mut instance = start(&case);
    assert_eq!(items(&seen.wait(10), "a"), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_stop_while_the_configs_are_read_is_clean() {
    let case = fetch(1);
    // Two hundred thousand configs take a while; the stop comes as soon as the process hears signals.
    case.kafka.write(case.topic("feeds"), (0..200_000).map(|n| Write::new(&format!("f{n}"), "off")));
    let mut instance = case.rig.start();
    instance.wait_for_log("reading configs");
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    assert_eq!(case.kafka.members(&case.application_id()), 0);
}
