//! Timers under kills (S12.1): two instances are killed again and again while records set timers of both clocks. Each timer
//! fires, and what it did is to be seen once, in its outputs and in the state of its key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Instance, Kafka, Observer, Rig, Seen, wait_for, wait_within};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rdkafka::producer::Producer;

const PARTITIONS: i32 = 4;
const KEYS: u32 = 300;
const KILLS: usize = 30;
/// Records are written at this pace while kills go on.
const PER_SECOND: u64 = 2_000;

#[test]
fn thirty_kills_lose_and_double_no_timer() {
    let seed: u64 =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let kafka = Kafka::from_env();
    let (words, joined) = (kafka.unique("words"), kafka.unique("joined"));
    kafka.create_topic(&words, PARTITIONS, &[]);
    kafka.create_topic(&joined, PARTITIONS, &[]);
    let rig = Rig::new(&kafka, env!("CARGO_BIN_EXE_rig"))
        .stage("remind")
        .topic("words", &words)
        .topic("joined", &joined)
        .arg("--session-timeout", "3s")
        .arg("--heartbeat-interval", "300ms")
        // One transaction after the other, so that many kills meet an open one.
        .arg("--commit-interval", "5ms");
    let rigs = [on_disk(rig.clone().arg("--instance-id", "a")), rig.arg("--instance-id", "b")];
    let mut instances: Vec<Instance> = rigs.iter().map(Rig::start).collect();
    let observer = Observer::start(&kafka, &joined);

    let over = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (kafka, words, over) = (kafka.clone(), words.clone(), over.clone());
        let random = StdRng::seed_from_u64(seed ^ 1);
        move || write(&kafka, &words, random, &over)
    });
    wait_within(Duration::from_secs(60), "the first timers", || observer.count() > 100);
    for kill in 0..KILLS {
        let victim = random.random_range(0..instances.len());
        // An instance that has no partitions yet has nothing to lose.
        wait_for("the victim works", || {
            instances[victim].log().contains("task is running") || instances[victim].try_wait().is_some()
        });
        let count = observer.count();
        wait_within(Duration::from_secs(60), "timers fire between the kills", || {
            observer.count() > count + 300
        });
        std::thread::sleep(Duration::from_millis(random.random_range(0..200)));
        println!("kill {kill} of instance {victim}, after {} timers", observer.count());
        instances[victim].kill();
        instances[victim] = rigs[victim].start();
    }
    over.store(true, Ordering::SeqCst);
    let written = writer.join().expect("the writer");

    wait_within(Duration::from_secs(120), "all timers", || observer.count() >= written.len());
    for mut instance in instances {
        assert_eq!(instance.terminate(Duration::from_secs(40)), 0, "clean stop; log:\n{}", instance.log());
    }
    check(&observer.seen(), &written);
}

fn on_disk(rig: Rig) -> Rig {
    if !cfg!(feature = "rocksdb") {
        return rig;
    }
    let state_dir = rig.dir().join("state-of-a");
    rig.arg("--store", "rocksdb").arg("--state-dir", &state_dir.to_string_lossy())
}

/// Writes records until it is over, and then one in each partition that makes all timers due. The key of each timer.
fn write(kafka: &Kafka, words: &str, mut random: StdRng, over: &AtomicBool) -> BTreeMap<String, String> {
    let producer = kafka.producer();
    let mut written = BTreeMap::new();
    let mut time = 1_000_000;
    let mut n = 0;
    while !over.load(Ordering::SeqCst) {
        for _ in 0..PER_SECOND / 20 {
            n += 1;
            time += random.random_range(0..3);
            let clock = if random.random_bool(0.3) { 'w' } else { 'e' };
            let (key, name) = (format!("key-{}", random.random_range(0..KEYS)), format!("{clock}{n}"));
            // Some are late.
            let timestamp = time - if random.random_bool(0.1) { 1_000 } else { 0 };
            send(&producer, words, &Write { timestamp: Some(timestamp), ..Write::new(&key, &name) });
            written.insert(name, key);
        }
        producer.poll(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(50));
    }
    for partition in 0..PARTITIONS {
        let (partition, timestamp) = (Some(partition), Some(time + 10_000));
        send(&producer, words, &Write { partition, timestamp, ..Write::new("end", "-") });
    }
    producer.flush(Duration::from_secs(60)).expect("flush the input");
    written
}

/// Each timer once, under its key, and numbered in its key without a gap.
fn check(outputs: &[Seen], written: &BTreeMap<String, String>) {
    let mut fired = BTreeSet::new();
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    for output in outputs {
        let (key, value) = (output.key_text(), output.value_text());
        let (name, number) = value.split_once(' ').expect("NAME NUMBER");
        assert_eq!(written.get(name), Some(&key), "the key of timer {name}");
        assert!(fired.insert(name.to_owned()), "timer {name} fired twice");
        let before = numbers.insert(key.clone(), number.parse().expect("a number")).unwrap_or(0);
        assert_eq!(numbers[&key], before + 1, "the timers of {key}");
    }
    let missing: Vec<_> = written.keys().filter(|name| !fired.contains(*name)).collect();
    assert!(missing.is_empty(), "{} of {} timers did not fire: {missing:?}", missing.len(), written.len());
}
