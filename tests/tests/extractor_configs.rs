//! What lies in an extractor's config topics and changelog, and should not: configs that do not decode, and a changelog that is gone
//! (S7.3, S9.2, S10.5).

use flechtwerk_tests::job::commit;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Observer, Probe, STOP, Source, Stamp, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// The numbers of a feed's items.
fn items(seen: &Observer, feed: &str) -> Vec<u64> {
    let of_feed = seen.seen().into_iter().filter(|one| one.key_text() == feed);
    of_feed.map(|one| one.value_text().parse().expect("a number")).collect()
}

fn config(key: &str, value: &[u8]) -> Write {
    Write { key: Some(key.into()), value: Some(value.into()), ..Write::default() }
}

/// S10.5d: as with a table, a config that is skipped leaves that of its key as it was, also at the next start, when only the last record
/// of a key would tell otherwise.
#[test]
fn the_topic_may_decide_about_configs_that_do_not_decode() {
    let case = Case::new(RIG, "fetch_odd", 2, &["odd-feeds", "items"]).arg(ANY_PORT.0, ANY_PORT.1);
    let source = Source::start();
    ["kept", "mended", "lost"].iter().for_each(|name| source.set(name, 5));
    let address = source.address();
    let mended = [b"\xff", address.as_bytes()].concat();
    case.kafka.write(
        case.topic("odd-feeds"),
        [
            config("kept", address.as_bytes()),
            config("kept", b"\xff"),
            config("mended", &mended),
            config("lost", b"\xff"),
        ],
    );
    let seen = case.observe("items");
    for total in [5, 9] {
        ["kept", "mended", "lost"].iter().for_each(|name| source.set(name, total));
        let mut instance = case.rig.start();
        let probe = Probe::of(&instance);
        seen.wait(2 * total as usize);
        for feed in ["kept", "mended"] {
            assert_eq!(items(&seen, feed), (0..total).collect::<Vec<_>>(), "{feed}");
        }
        let counted = |outcome: &str| {
            probe.metric("flechtwerk_invalid_records_total", &format!("outcome=\"{outcome}\""))
        };
        assert_eq!((counted("skip"), counted("instead")), (Some(2.0), Some(1.0)));
        assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    }
    assert_eq!(source.requests_for("lost"), 0);
}

/// S9.2f: a config that lies in two partitions is the one that was written later, whichever is read first. Where the keys that were
/// moved lie is told by which of both is right.
#[test]
fn of_a_config_in_two_partitions_the_latest_counts() {
    let case = Case::new(RIG, "repeat", 2, &["feeds", "items"]);
    let put = |partition, timestamp, key: &str, value: Option<&str>| {
        let value = value.map(|value| value.as_bytes().to_vec());
        let at = Write { partition: Some(partition), timestamp: Some(timestamp), ..Write::default() };
        case.kafka.write(case.topic("feeds"), [Write { key: Some(key.into()), value, ..at }]);
    };
    let said = |seen: &Observer, key: &str| {
        let of_key = seen.seen().into_iter().filter(|one| one.key_text() == key);
        let mut values: Vec<String> = of_key.map(|one| one.value_text()).collect();
        values.dedup();
        values
    };
    for (key, new, old) in [("a", 0, 1), ("b", 1, 0)] {
        put(new, 2_000, key, Some("new"));
        put(old, 1_000, key, Some("old"));
        put(new, 2_000, &format!("{key}-gone"), None);
        put(old, 1_000, &format!("{key}-gone"), Some("old"));
    }
    let seen = case.observe("items");
    let mut instance = case.rig.start();
    wait_for("both are polled", || !said(&seen, "a").is_empty() && !said(&seen, "b").is_empty());
    // While it runs.
    for (key, new, old) in [("a", 0, 1), ("b", 1, 0)] {
        put(new, 2_500, key, Some("new"));
        put(old, 1_500, key, Some("old"));
        put(old, 3_000, key, Some("newest"));
    }
    let last = |key| said(&seen, key).pop().as_deref() == Some("newest");
    wait_for("the last ones are polled", || last("a") && last("b"));
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    for key in ["a", "b"] {
        assert_eq!(said(&seen, key), ["new", "newest"]);
        assert_eq!(said(&seen, &format!("{key}-gone")), [""; 0]);
    }
}

/// S10.5d: nobody is asked about a null, whatever its key is, and nothing is counted.
#[test]
fn a_null_under_a_key_that_does_not_decode_is_no_config() {
    let case = Case::new(RIG, "fetch", 1, &["feeds", "items"]).arg(ANY_PORT.0, ANY_PORT.1);
    case.kafka.write(case.topic("feeds"), [Write { key: Some(b"\xff".into()), ..Write::default() }]);
    let mut instance = case.rig.start();
    instance.wait_for_log("token is running");
    let probe = Probe::of(&instance);
    let counted = probe.metric("flechtwerk_invalid_records_total", "outcome=\"crash\"");
    assert_eq!(counted.unwrap_or(0.0), 0.0);
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
}

/// S7.3c: the group has no offset left that could tell of the changelog, since Kafka forgets those of a topic that is deleted.
#[test]
fn a_changelog_that_is_gone_is_noticed_without_a_config_topic() {
    let mut case = Case::new(RIG, "pulse", 3, &["items"]);
    let source = Source::start();
    source.set("pulse", 12);
    case.rig = case.rig.env("RIG_SOURCE", source.address());
    let seen = case.observe("items");
    let mut instance = case.rig.start();
    seen.wait(12);
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    let (group, changelog) = (case.application_id(), case.changelog());
    let stamps = [&changelog, case.topic("items")].map(|topic| case.kafka.committed(&group, topic));
    assert_eq!(stamps[0], stamps[1], "both carry the last stamp, and no other partition does");
    assert!(Stamp::parse(&stamps[0][&0].1).counter > 1);

    case.kafka.delete_topic(&changelog);
    let refuses = |text: &str| {
        let mut instance = case.rig.start();
        assert_eq!(instance.wait(STOP), 2, "log:\n{}", instance.log());
        let log = instance.log();
        assert!(log.contains(text) && log.contains("reset --stage pulse --execute"), "{text:?} in:\n{log}");
    };
    refuses("the changelog that the last commit wrote to is gone");
    assert_eq!(case.kafka.partitions(&changelog), 0, "it is not created");
    case.kafka.create_topic(&changelog, 1, &[("cleanup.policy", "compact")]);
    refuses("the changelog was deleted and made anew since the last commit");

    // A reset makes it good, and is itself noticed where it is cut short.
    commit(&case.kafka, &group, case.topic("items"), &[(0, 0, "resetting")]);
    let mut stopped = case.rig.start();
    assert_eq!(stopped.wait(STOP), 2);
    assert!(stopped.log().contains("a reset of this stage is under way"), "{}", stopped.log());
    let (status, _, err) = case.rig.tool(&["reset", "--execute", "--replication-factor", "1"]);
    assert_eq!(status, 0, "{err}");
    let mut instance = case.rig.start();
    // It begins anew, as was asked for.
    wait_for("all items once more", || seen.count() == 24);
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
}
