//! The guarantee of extractors under kills (S10): three instances share eight tokens and are killed again and again, while
//! the source grows. It counts what it served; what a read_committed observer sees must be every item once, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Instance, Observer, STOP, Source, wait_for, wait_within};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const FEEDS: usize = 60;
const TOKENS: i32 = 8;
const KILLS: usize = 30;
/// Items of each feed that may be there and not have come out.
const AHEAD: u64 = 300;

#[test]
fn thirty_kills_lose_and_double_no_page() {
    let seed: u64 =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let case = Case::new(env!("CARGO_BIN_EXE_rig"), "fetch", TOKENS, &["feeds", "items"])
        .arg("--session-timeout", "3s")
        .arg("--heartbeat-interval", "300ms");
    let source = Source::start();
    let names: Vec<String> = (0..FEEDS).map(|n| format!("feed-{n}")).collect();
    let value = source.value();
    case.kafka.write(case.topic("feeds"), names.iter().map(|name| Write::new(name, &value)));
    let seen = Arc::new(case.observe("items"));

    // Two instances come back under their ids, one is a stranger each time.
    let rigs = ["a", "b"].map(|id| case.rig.clone().arg("--instance-id", id));
    let rigs = [rigs[0].clone(), rigs[1].clone(), case.rig.clone()];
    let mut instances: Vec<Instance> = rigs.iter().map(|rig| rig.start()).collect();

    // Every feed grows all the time, so that every kill meets pages under way; but not further ahead of what came out than is soon made
    // up for, however slow the machine is.
    let (over, items) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let growing = std::thread::spawn({
        let (source, names, over, items) = (source.clone(), names.clone(), over.clone(), items.clone());
        let seen = seen.clone();
        move || {
            while !over.load(Ordering::SeqCst) {
                if items.load(Ordering::SeqCst) < (seen.count() / FEEDS) as u64 + AHEAD {
                    let count = items.fetch_add(5, Ordering::SeqCst) + 5;
                    names.iter().for_each(|name| source.set(name, count));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    });
    wait_for("the first items", || seen.count() > FEEDS * 10);
    for _ in 0..KILLS {
        let victim = random.random_range(0..instances.len());
        // An instance that has no tokens yet has nothing to lose.
        wait_for("the victim works", || instances[victim].log().contains("token is running"));
        std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
        instances[victim].kill();
        instances[victim] = rigs[victim].start();
    }
    over.store(true, Ordering::SeqCst);
    growing.join().expect("the source grows");
    let items = items.load(Ordering::SeqCst);
    let all = FEEDS * items as usize;
    wait_within(Duration::from_secs(120), "all items", || seen.count() >= all);
    for instance in &mut instances {
        assert_eq!(instance.terminate(STOP), 0, "clean stop; log:\n{}", instance.log());
    }

    let mut by_feed: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for one in seen.seen() {
        by_feed.entry(one.key_text()).or_default().push(one.value_text().parse().expect("a number"));
    }
    let expected: Vec<u64> = (0..items).collect();
    for name in &names {
        assert_eq!(by_feed.get(name), Some(&expected), "{name}");
    }
    println!("{items} items of {FEEDS} feeds; {} pages were served again after a kill", source.repeated());
    // The control: kills did hit pages that had been served, and only the transactions kept them from doubling.
    assert!(source.repeated() > 0, "no kill met a page that was served and not committed");
    // The cursors are where the items end.
    let changelog = Observer::start(&case.kafka, &case.changelog());
    let mut cursors: BTreeMap<String, u64> = BTreeMap::new();
    wait_for("the last cursors", || {
        cursors = changelog.seen().iter().map(cursor).collect();
        cursors.len() == FEEDS && cursors.values().all(|next| *next == items)
    });
    for topic in [case.topic("items"), &case.changelog()] {
        for partition in 0..TOKENS {
            let stable = case.kafka.watermarks(topic, partition, "read_committed").1;
            let high = case.kafka.watermarks(topic, partition, "read_uncommitted").1;
            assert_eq!(stable, high, "an open transaction is left in {topic}/{partition}");
        }
    }
}

/// Whose cursor a changelog record holds, and the cursor.
fn cursor(record: &flechtwerk_tests::Seen) -> (String, u64) {
    let (key, value) = (record.key.as_deref().expect("a key"), record.value.as_deref().expect("a value"));
    let value: serde_json::Value = serde_json::from_slice(&value[1..]).expect("JSON");
    (String::from_utf8_lossy(&key[1..]).into_owned(), value["next"].as_u64().expect("a cursor"))
}
