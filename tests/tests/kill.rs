//! The guarantee under kills (S3.1, S4, S5): three instances over eight partitions are killed, and stopped past
//! their session, again and again, while input flows. What a read_committed observer sees, and the state in the
//! changelog, must be what a plain sequential model says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Instance, Kafka, Observer, Rig, Seen, wait_for, wait_within};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;

const PARTITIONS: i32 = 8;
const RECORDS: usize = 200_000;
const KEYS: u32 = 1000;
const KILLS: usize = 30;
const STOPS: usize = 5;
const SESSION: Duration = Duration::from_secs(3);

#[test]
fn thirty_kills_and_five_zombies_lose_and_double_nothing() {
    let seed: u64 =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let kafka = Kafka::from_env();
    let (words, counts) = (kafka.unique("words"), kafka.unique("counts"));
    kafka.create_topic(&words, PARTITIONS, &[]);
    kafka.create_topic(&counts, PARTITIONS, &[]);
    let rig = Rig::new(&kafka, env!("CARGO_BIN_EXE_rig"))
        .stage("count")
        .topic("words", &words)
        .topic("counts", &counts)
        .arg("--session-timeout", &format!("{}s", SESSION.as_secs()))
        .arg("--heartbeat-interval", "300ms")
        // One transaction after the other, so that many kills meet an open one.
        .arg("--commit-interval", "5ms");
    let changelog = rig.application_id("rig", "count") + "-changelog";

    // Two instances come back under their ids, one is a stranger each time.
    let rigs = [rig.clone().arg("--instance-id", "a"), rig.clone().arg("--instance-id", "b"), rig.clone()];
    let mut instances: Vec<Instance> = rigs.iter().map(Rig::start).collect();
    let observer = Observer::start(&kafka, &counts);

    let faults_over = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicUsize::new(0));
    let writer = std::thread::spawn({
        let (kafka, words) = (kafka.clone(), words.clone());
        let (faults_over, written) = (faults_over.clone(), written.clone());
        let mut random = StdRng::seed_from_u64(seed ^ 1);
        move || write(&kafka, &words, &mut random, &faults_over, &written)
    });
    wait_within(Duration::from_secs(60), "the first outputs", || observer.count() > 1000);

    let peek = Peek::new(&kafka, &counts);
    let mut left_open = 0;
    let (mut kills, mut stops) = (0, 0);
    while kills < KILLS || stops < STOPS {
        let victim = random.random_range(0..instances.len());
        let share = (KILLS - kills) as f64 / (KILLS - kills + STOPS - stops) as f64;
        if random.random_bool(share) {
            // An instance that has no partitions yet has nothing to lose.
            wait_for("the victim works", || {
                instances[victim].log().contains("task is running") || instances[victim].try_wait().is_some()
            });
            left_open += usize::from(kill(&mut instances[victim], &peek, &mut random));
            kills += 1;
            instances[victim] = rigs[victim].start();
        } else {
            stops += 1;
            instances[victim].signal(Signal::SIGSTOP);
            let count = observer.count();
            std::thread::sleep(SESSION + Duration::from_secs(1));
            // The others go on meanwhile.
            wait_within(Duration::from_secs(30), "outputs beside a stopped instance", || {
                observer.count() > count
            });
            instances[victim].signal(Signal::SIGCONT);
        }
        for (instance, rig) in instances.iter_mut().zip(&rigs) {
            // A zombie whose id or session is gone may have stopped itself: a supervisor starts it again.
            if instance.try_wait().is_some() {
                *instance = rig.start();
            }
        }
    }
    assert!(written.load(Ordering::SeqCst) < RECORDS, "the input did not last through all faults");
    faults_over.store(true, Ordering::SeqCst);
    writer.join().expect("the writer");
    println!("{left_open} of {KILLS} kills left a transaction open");

    wait_within(Duration::from_secs(120), "all outputs", || observer.count() >= RECORDS);
    for mut instance in instances {
        assert_eq!(instance.terminate(Duration::from_secs(40)), 0, "clean stop; log:\n{}", instance.log());
    }
    assert!(left_open * 10 >= KILLS * 3, "only {left_open} of {KILLS} kills left a transaction open");
    check(&kafka, &words, &observer.seen(), &changelog);
    for topic in [&counts, &changelog] {
        for partition in 0..PARTITIONS {
            let stable = kafka.watermarks(topic, partition, "read_committed").1;
            let high = kafka.watermarks(topic, partition, "read_uncommitted").1;
            assert_eq!(stable, high, "an open transaction is left in {topic}/{partition}");
        }
    }
}

/// Writes the input: slowly while faults go on, and the rest at once.
fn write(kafka: &Kafka, topic: &str, random: &mut StdRng, faults_over: &AtomicBool, written: &AtomicUsize) {
    let producer = kafka.producer();
    let began = Instant::now();
    let (rate, reserve) = (1000.0, RECORDS / 10);
    for index in 0..RECORDS {
        let key = format!("word-{}", random.random_range(0..KEYS));
        send(&producer, topic, &Write::new(&key, "x"));
        written.store(index + 1, Ordering::SeqCst);
        if index % 20 == 0 {
            producer.poll(Duration::ZERO);
            let due = began + Duration::from_secs_f64(index as f64 / rate);
            while !faults_over.load(Ordering::SeqCst) && (Instant::now() < due || index > RECORDS - reserve) {
                producer.poll(Duration::from_millis(5));
            }
        }
    }
    producer.flush(Duration::from_secs(60)).expect("flush the input");
}

/// Kills an instance at a random moment, preferring one at which it has a transaction open; says whether it had.
fn kill(instance: &mut Instance, peek: &Peek, random: &mut StdRng) -> bool {
    const TRIES: u32 = 8;
    for _ in 0..TRIES {
        std::thread::sleep(Duration::from_millis(random.random_range(20..250)));
        instance.signal(Signal::SIGSTOP);
        if peek.is_transaction_open() {
            instance.kill();
            return true;
        }
        instance.signal(Signal::SIGCONT);
    }
    instance.kill();
    peek.is_transaction_open()
}

/// Sees the stable end and the end of every partition of a topic.
struct Peek {
    topic: String,
    committed: BaseConsumer,
    uncommitted: BaseConsumer,
}

impl Peek {
    fn new(kafka: &Kafka, topic: &str) -> Peek {
        let (committed, uncommitted) = (kafka.consumer("read_committed"), kafka.consumer("read_uncommitted"));
        Peek { topic: topic.to_owned(), committed, uncommitted }
    }

    fn ends(&self) -> Vec<(i64, i64)> {
        let end = |consumer: &BaseConsumer, partition| {
            consumer.fetch_watermarks(&self.topic, partition, Duration::from_secs(10)).expect("watermarks").1
        };
        (0..PARTITIONS).map(|one| (end(&self.committed, one), end(&self.uncommitted, one))).collect()
    }

    /// True if some partition's stable end stands still behind its end, with one of the instances stopped: the
    /// transactions of those that work end within milliseconds.
    fn is_transaction_open(&self) -> bool {
        let first = self.ends();
        if first.iter().all(|(stable, high)| stable >= high) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(150));
        first
            .iter()
            .zip(self.ends())
            .any(|(before, after)| before.0 < before.1 && before.0 == after.0 && after.0 < after.1)
    }
}

/// Compares outputs and changelog with a sequential model of the input.
fn check(kafka: &Kafka, words: &str, outputs: &[Seen], changelog: &str) {
    let input = Observer::start(kafka, words);
    let input = input.wait(RECORDS);
    assert_eq!(input.len(), RECORDS);
    let mut model: HashMap<String, u64> = HashMap::new();
    let mut expected: BTreeMap<(i32, i64), (String, u64)> = BTreeMap::new();
    for record in &input {
        let count = model.entry(record.key_text()).or_default();
        *count += 1;
        expected.insert((record.partition, record.offset), (record.key_text(), *count));
    }
    // Each input made exactly one output, with the right value, and the outputs of a key are in order.
    let mut made: BTreeSet<(i32, i64)> = BTreeSet::new();
    let mut last: HashMap<String, u64> = HashMap::new();
    for output in outputs {
        let at = output.header("at").expect("the header `at`");
        let (partition, offset) = at.split_once(':').expect("PARTITION:OFFSET");
        let place = (partition.parse().expect("a partition"), offset.parse().expect("an offset"));
        let (key, count) = (output.key_text(), output.value_text().parse::<u64>().expect("a count"));
        assert_eq!(expected.get(&place), Some(&(key.clone(), count)), "the output of {at}");
        assert!(made.insert(place), "two outputs of {at}");
        let before = last.insert(key.clone(), count).unwrap_or(0);
        assert_eq!(before + 1, count, "the outputs of {key} are out of order");
    }
    assert_eq!(made.len(), RECORDS, "outputs are missing");

    // The state: one JSON object behind a version byte, under a kind byte and the key.
    let log = Observer::start(kafka, changelog);
    let mut state: HashMap<String, u64> = HashMap::new();
    wait_within(Duration::from_secs(60), "the state in the changelog equals the model", || {
        state = log.seen().iter().map(stored).collect();
        state == model
    });
    let mut by_key: HashMap<String, u64> = HashMap::new();
    for (key, count) in log.seen().iter().map(stored) {
        let before = by_key.insert(key.clone(), count).unwrap_or(0);
        assert!(before < count, "the changelog of {key} goes back from {before} to {count}");
    }
}

fn stored(record: &Seen) -> (String, u64) {
    let (key, value) = (record.key.as_deref().expect("a key"), record.value.as_deref().expect("a value"));
    assert_eq!((key[0], value[0]), (0, 1), "kind and version");
    let value: serde_json::Value = serde_json::from_slice(&value[1..]).expect("JSON");
    (String::from_utf8_lossy(&key[1..]).into_owned(), value["n"].as_u64().expect("a count"))
}
