//! Scenarios of failure that the other tests do not hold: each is compared with a sequential model.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flechtwerk_tests::kafka::{Write, block_on, send};
use flechtwerk_tests::{Instance, Kafka, Observer, Rig, Seen, wait_within};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn secs(n: f64) -> Duration {
    Duration::from_secs_f64(n)
}

fn create(kafka: &Kafka, name: &str, partitions: i32) {
    let admin: AdminClient<DefaultClientContext> = kafka.config().create().expect("admin");
    let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(-1));
    for result in block_on(admin.create_topics([&topic], &AdminOptions::new())).expect("create") {
        result.expect("create");
    }
    wait_within(secs(30.0), "topic", || kafka.partitions(name) == partitions);
}

fn node(action: &str, node: i32) {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/kafka"))
        .args([action, &node.to_string()])
        .output()
        .expect("scripts/kafka");
    assert!(output.status.success(), "{action} {node}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What the writer writes.
type Make = Box<dyn Fn(&mut StdRng, usize) -> (String, String) + Send>;

struct World {
    name: String,
    kafka: Kafka,
    words: String,
    joined: String,
    changelog: String,
    rigs: Vec<Rig>,
    instances: Vec<Option<Instance>>,
    random: StdRng,
    observer: Observer,
    exits: Vec<String>,
    over: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    writer: Option<std::thread::JoinHandle<()>>,
}

impl World {
    fn new(name: &str, stage: &str, partitions: i32, rate: f64, make: Make, adjust: impl Fn(Rig) -> Rig) -> World {
        let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
        println!("{name}: SEED={seed}");
        let kafka = Kafka::from_env();
        let (words, joined) = (kafka.unique("words"), kafka.unique("joined"));
        create(&kafka, &words, partitions);
        create(&kafka, &joined, partitions);
        let rig = Rig::new(&kafka, RIG)
            .stage(stage)
            .topic("words", &words)
            .topic("joined", &joined)
            .arg("--session-timeout", "3s")
            .arg("--heartbeat-interval", "300ms")
            .arg("--revoke-timeout", "900ms")
            .arg("--commit-interval", "5ms");
        let rig = adjust(rig);
        let changelog = rig.application_id("rig", stage) + "-changelog";
        let observer = Observer::start(&kafka, &joined);
        let over = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicUsize::new(0));
        let writer = std::thread::spawn({
            let (kafka, words, over, written) = (kafka.clone(), words.clone(), over.clone(), written.clone());
            let mut random = StdRng::seed_from_u64(seed ^ 1);
            move || {
                let producer = kafka.producer();
                let began = Instant::now();
                let mut index = 0;
                while !over.load(Ordering::SeqCst) {
                    let (key, value) = make(&mut random, index);
                    send(&producer, &words, &Write::new(&key, &value));
                    index += 1;
                    written.store(index, Ordering::SeqCst);
                    producer.poll(Duration::ZERO);
                    let due = began + secs(index as f64 / rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                }
                producer.flush(Duration::from_secs(90)).expect("flush the input");
            }
        });
        World {
            name: name.into(),
            kafka,
            words,
            joined,
            changelog,
            rigs: vec![rig],
            instances: vec![],
            random: StdRng::seed_from_u64(seed),
            observer,
            exits: vec![],
            over,
            written,
            writer: Some(writer),
        }
    }

    /// As many instances as `rigs`.
    fn start(&mut self, adjust: impl Fn(usize, Rig) -> Rig, count: usize) {
        let base = self.rigs[0].clone();
        self.rigs = (0..count).map(|n| adjust(n, base.clone())).collect();
        self.instances = self.rigs.iter().map(|rig| Some(rig.start())).collect();
    }

    /// Restarts what has ended by itself.
    fn tend(&mut self) {
        for (instance, rig) in self.instances.iter_mut().zip(&self.rigs) {
            if let Some(one) = instance
                && let Some(status) = one.try_wait()
            {
                let log = one.log();
                let line = log.lines().rfind(|l| l.starts_with("error:") || l.contains("ERROR")).unwrap_or("-");
                self.exits.push(format!("{status}: {}", line.chars().take(420).collect::<String>()));
                if status.code().is_none() {
                    println!("!!! {} CRASH {status}\n{}", self.name, log.lines().rev().take(30).collect::<Vec<_>>().join("\n"));
                }
                *instance = Some(rig.start());
            }
        }
    }

    fn sleep(&mut self, time: f64) {
        let until = Instant::now() + secs(time);
        while Instant::now() < until {
            self.tend();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill(&mut self, n: usize) {
        if let Some(one) = &mut self.instances[n] {
            one.kill();
        }
        self.instances[n] = Some(self.rigs[n].start());
    }

    fn down(&mut self, n: usize, signal: Signal) {
        if let Some(mut one) = self.instances[n].take() {
            match signal {
                Signal::SIGKILL => one.kill(),
                _ => {
                    one.signal(signal);
                    let status = one.wait(secs(60.0));
                    if status != 0 {
                        self.exits.push(format!("after SIGTERM {status}: {}", one.log().lines().last().unwrap_or("-")));
                    }
                }
            }
        }
    }

    fn up(&mut self, n: usize) {
        if self.instances[n].is_none() {
            self.instances[n] = Some(self.rigs[n].start());
        }
    }

    fn signal_all(&self, signal: Signal) {
        for one in self.instances.iter().flatten() {
            one.signal(signal);
        }
    }

    /// Waits until outputs flow again; says how long it took.
    fn wait_flow(&mut self, what: &str, limit: f64) {
        let count = self.observer.count();
        let began = Instant::now();
        while self.observer.count() <= count + 20 {
            self.tend();
            if began.elapsed() > secs(limit) {
                for one in self.instances.iter().flatten() {
                    let to = format!("/work/try-break/out/hang-{}.log", one.pid());
                    std::fs::write(&to, one.log()).expect("log");
                    println!("--- {to}");
                }
                if let Ok(hold) = std::env::var("HOLD") {
                    std::thread::sleep(secs(hold.parse().expect("seconds")));
                    for one in self.instances.iter_mut().flatten() {
                        std::fs::write(format!("/work/try-break/out/hang-{}.log", one.pid()), one.log()).expect("log");
                        println!("{:?}", one.try_wait());
                    }
                }
                panic!("{}: no outputs within {limit}s after {what}", self.name);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{}: flows {:.1}s after {what}", self.name, began.elapsed().as_secs_f64());
    }

    fn finish(mut self, check: impl FnOnce(&[Seen], &[Seen], &[Seen])) {
        self.over.store(true, Ordering::SeqCst);
        self.writer.take().expect("writer").join().expect("writer");
        let written = self.written.load(Ordering::SeqCst);
        let began = Instant::now();
        let input = Observer::start(&self.kafka, &self.words);
        wait_within(secs(90.0), "the input", || input.count() >= written);
        let input = input.seen();
        println!("{}: written {written}, in topic {}", self.name, input.len());
        // Caught up: the committed offsets reach what was written.
        let group = self.changelog.trim_end_matches("-changelog").to_owned();
        let mut ends: BTreeMap<i32, i64> = BTreeMap::new();
        for one in &input {
            let end = ends.entry(one.partition).or_default();
            *end = (*end).max(one.offset + 1);
        }
        loop {
            self.tend();
            let committed = self.kafka.committed(&group, &self.words);
            if ends.iter().all(|(p, end)| committed.get(p).is_some_and(|(at, _)| at >= end)) {
                break;
            }
            if began.elapsed() > secs(120.0) {
                for one in self.instances.iter().flatten() {
                    println!("--- {}\n{}", one.pid(), tail(&one.log(), 40));
                }
                panic!("{}: not caught up: {ends:?} {committed:?}", self.name);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{}: caught up {:.1}s after the last word", self.name, began.elapsed().as_secs_f64());
        for n in 0..self.instances.len() {
            self.down(n, Signal::SIGTERM);
        }
        std::thread::sleep(Duration::from_secs(1));
        let (mut outputs, mut log) = (self.observer.seen(), vec![]);
        if self.kafka.partitions(&self.changelog) > 0 {
            log = flechtwerk_tests::job::read_all(&self.kafka, &self.changelog);
        }
        let all = flechtwerk_tests::job::read_all(&self.kafka, &self.joined);
        if all.len() != outputs.len() {
            println!("{}: observer {} read {}", self.name, outputs.len(), all.len());
            outputs = all;
        }
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for exit in &self.exits {
            *kinds.entry(exit.clone()).or_default() += 1;
        }
        println!("{}: {} outputs, {} changelog records, {} exits", self.name, outputs.len(), log.len(), self.exits.len());
        for (exit, n) in kinds {
            println!("{}:   {n} x {exit}", self.name);
        }
        check(&input, &outputs, &log);
        for topic in [&self.joined, &self.changelog] {
            for partition in 0..self.kafka.partitions(topic) {
                let stable = self.kafka.watermarks(topic, partition, "read_committed").1;
                let high = self.kafka.watermarks(topic, partition, "read_uncommitted").1;
                assert_eq!(stable, high, "an open transaction is left in {topic}/{partition}");
            }
        }
        println!("{}: HELD", self.name);
    }
}

fn tail(log: &str, n: usize) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// `obey` and `tally`: outputs of each key are exactly those of the model, and so is the state.
fn check_counts(input: &[Seen], outputs: &[Seen], log: &[Seen]) {
    let mut state: HashMap<String, (u64, usize)> = HashMap::new();
    let mut expected: HashMap<String, Vec<String>> = HashMap::new();
    for word in input {
        let (key, value) = (word.key_text(), word.value_text());
        match value.split_once(':').unwrap_or((&value, "")) {
            ("delete", _) => drop(state.remove(&key)),
            ("same", _) => {}
            ("grow", size) => state.entry(key).or_default().1 = size.parse().expect("size"),
            ("big", size) => {
                expected.entry(key).or_default().push("x".repeat(size.parse().expect("size")));
            }
            _ => {
                let one = state.entry(key.clone()).or_default();
                one.0 += 1;
                expected.entry(key).or_default().push(one.0.to_string());
            }
        }
    }
    let mut made: HashMap<String, Vec<String>> = HashMap::new();
    for output in outputs {
        made.entry(output.key_text()).or_default().push(output.value_text());
    }
    let mut wrong = 0;
    for (key, values) in &expected {
        let got = made.remove(key).unwrap_or_default();
        if &got != values {
            wrong += 1;
            if wrong < 4 {
                let at = got.iter().zip(values).position(|(a, b)| a != b).unwrap_or(got.len().min(values.len()));
                println!("key {key}: {} outputs, {} expected; differ at {at}: {:?} / {:?}", got.len(), values.len(),
                    &got[at.saturating_sub(2)..(at + 3).min(got.len())], &values[at.saturating_sub(2)..(at + 3).min(values.len())]);
            }
        }
    }
    assert_eq!(wrong, 0, "keys with wrong outputs");
    assert!(made.is_empty(), "outputs of nothing: {:?}", made.keys().next());
    let mut stored: HashMap<String, (u64, usize)> = HashMap::new();
    for record in log {
        let key = String::from_utf8_lossy(&record.key.as_deref().expect("key")[1..]).into_owned();
        match &record.value {
            None => assert!(stored.remove(&key).is_some(), "a tombstone of nothing for {key}"),
            Some(value) => {
                let value: serde_json::Value = serde_json::from_slice(&value[1..]).expect("JSON");
                let state = (value["n"].as_u64().expect("n"), value["padding"].as_str().map_or(0, str::len));
                assert_ne!(stored.insert(key.clone(), state), Some(state), "unchanged state of {key} written");
            }
        }
    }
    assert_eq!(stored.len(), state.len());
    assert!(stored == state, "the state differs");
}

fn ordinary(keys: u32) -> Make {
    Box::new(move |random, _| {
        let key = format!("word-{}", random.random_range(0..keys));
        let value = match random.random_range(0..20) {
            0 => "delete",
            1 => "same",
            _ => "x",
        };
        (key, value.into())
    })
}

fn faults(world: &mut World, count: usize) {
    for _ in 0..count {
        let n = world.random.random_range(0..world.instances.len());
        let pause = world.random.random_range(0.05..1.5);
        world.sleep(pause);
        match world.random.random_range(0..8) {
            0 => {
                world.down(n, Signal::SIGTERM);
                world.up(n);
            }
            1 => {
                if let Some(one) = &world.instances[n] {
                    one.signal(Signal::SIGSTOP);
                }
                let time = world.random.random_range(1.0..5.0);
                world.sleep(time);
                if let Some(one) = &world.instances[n] {
                    one.signal(Signal::SIGCONT);
                }
            }
            2 => {
                // All at once.
                for n in 0..world.instances.len() {
                    world.kill(n);
                }
            }
            _ => world.kill(n),
        }
    }
}

/// RocksDB, static ids, own folders: stores are used again after kills.
#[test]
fn rocks_kills() {
    let mut world = World::new("rocks_kills", "obey", 8, 600.0, ordinary(400), |rig| rig.arg("--store", "rocksdb"));
    world.start(
        |n, rig| {
            let dir = rig.dir().join(format!("state-{n}"));
            let rig = rig.arg("--state-dir", &dir.display().to_string());
            if n < 2 { rig.arg("--instance-id", &format!("id-{n}")) } else { rig }
        },
        3,
    );
    world.wait_flow("start", 60.0);
    faults(&mut world, 30);
    world.finish(check_counts);
}

/// Two instances in one folder.
#[test]
fn rocks_shared() {
    let mut world = World::new("rocks_shared", "obey", 6, 500.0, ordinary(300), |rig| {
        let dir = rig.dir().join("state");
        rig.arg("--store", "rocksdb").arg("--state-dir", &dir.display().to_string())
    });
    world.start(|_, rig| rig, 2);
    world.wait_flow("start", 60.0);
    faults(&mut world, 15);
    world.finish(check_counts);
}

/// The two inputs of a join.
#[test]
fn join_kills() {
    let profiles = Kafka::from_env().unique("profiles");
    let make: Make = Box::new(|random, index| (format!("key-{}", random.random_range(0..100)), format!("w{index}")));
    create(&Kafka::from_env(), &profiles, 6);
    let mut world = World::new("join_kills", "join", 6, 500.0, make, |rig| rig.topic("profiles", &profiles));
    world.start(|_, rig| rig, 3);
    let (kafka, to, over) = (world.kafka.clone(), profiles.clone(), world.over.clone());
    let writer = std::thread::spawn(move || {
        let producer = kafka.producer();
        let mut random = StdRng::seed_from_u64(7);
        let mut n = 0;
        while !over.load(Ordering::SeqCst) {
            n += 1;
            let key = format!("key-{}", random.random_range(0..100));
            send(&producer, &to, &Write::new(&key, &n.to_string()));
            producer.poll(Duration::ZERO);
            std::thread::sleep(Duration::from_millis(4));
        }
        producer.flush(Duration::from_secs(60)).expect("flush");
    });
    world.wait_flow("start", 60.0);
    faults(&mut world, 25);
    world.over.store(true, Ordering::SeqCst);
    writer.join().expect("profiles");
    let kafka = world.kafka.clone();
    let all = flechtwerk_tests::job::read_all(&kafka, &profiles);
    let group = world.changelog.trim_end_matches("-changelog").to_owned();
    wait_within(secs(60.0), "profiles are committed", || {
        world.tend();
        let committed = kafka.committed(&group, &profiles);
        all.iter().all(|p| committed.get(&p.partition).is_some_and(|(at, _)| *at > p.offset))
    });
    world.finish(move |input, outputs, log| {
        let mut words: HashMap<String, String> = input.iter().map(|w| (w.value_text(), w.key_text())).collect();
        let mut last: HashMap<String, u64> = HashMap::new();
        let mut order: HashMap<String, usize> = HashMap::new();
        for output in outputs {
            let value = output.value_text();
            let (word, profile) = value.split_once('@').expect("@");
            assert_eq!(words.remove(word), Some(output.key_text()), "second output of {word}");
            let at: u64 = profile.parse().unwrap_or(0);
            let before = last.insert(output.key_text(), at).unwrap_or(0);
            assert!(before <= at, "the profile of {} goes back: {before} {at}", output.key_text());
            let index: usize = word[1..].parse().expect("index");
            let before = order.insert(output.key_text(), index);
            assert!(before.is_none_or(|before| before < index), "out of order");
        }
        assert!(words.is_empty(), "{} words have no output", words.len());
        let model: HashMap<String, String> = all.iter().map(|p| (p.key_text(), p.value_text())).collect();
        let mut stored: HashMap<String, String> = HashMap::new();
        for record in log {
            let value: serde_json::Value = serde_json::from_slice(&record.value.as_deref().expect("value")[1..]).expect("JSON");
            let key = String::from_utf8_lossy(&record.key.as_deref().expect("key")[1..]).into_owned();
            let now = value["text"].as_str().expect("text").to_owned();
            if let Some(before) = stored.insert(key, now.clone()) {
                assert!(before.parse::<u64>().expect("n") < now.parse::<u64>().expect("n"), "the changelog goes back");
            }
        }
        assert_eq!(stored, model);
    });
}

/// 1, 3, 1, 5, 2 instances under load.
#[test]
fn scaling() {
    let mut world = World::new("scaling", "obey", 12, 600.0, ordinary(500), |rig| rig);
    world.start(|_, rig| rig, 5);
    for n in 1..5 {
        world.down(n, Signal::SIGTERM);
    }
    for (round, count) in [3, 1, 5, 2, 4, 1].into_iter().enumerate() {
        world.wait_flow(&format!("step {round}"), 40.0);
        for n in 0..5 {
            if n < count {
                world.up(n);
            } else {
                world.down(n, if round % 2 == 0 { Signal::SIGTERM } else { Signal::SIGKILL });
            }
        }
        world.sleep(4.0);
    }
    world.wait_flow("the last step", 40.0);
    world.finish(check_counts);
}

/// All instances stand still at once, past session and transaction time-out.
#[test]
fn all_stopped() {
    let mut world = World::new("all_stopped", "obey", 8, 500.0, ordinary(300), |rig| {
        rig.arg("--transaction-timeout", "2s").arg("--max-batch-bytes", "1MiB")
    });
    world.start(|_, rig| rig, 3);
    world.wait_flow("start", 60.0);
    for time in [5.0, 1.0, 2.5, 8.0, 4.0, 0.5, 6.0] {
        world.signal_all(Signal::SIGSTOP);
        std::thread::sleep(secs(time));
        world.signal_all(Signal::SIGCONT);
        world.wait_flow(&format!("{time}s"), 40.0);
    }
    world.finish(check_counts);
}

/// One record a batch.
#[test]
fn single_records() {
    let mut world = World::new("single_records", "obey", 4, 100.0, ordinary(100), |rig| {
        rig.arg("--max-poll-records", "1").arg("--transaction-timeout", "1s").arg("--max-batch-bytes", "512KiB").arg("--commit-interval", "1ms")
    });
    world.start(|_, rig| rig, 2);
    world.wait_flow("start", 60.0);
    faults(&mut world, 15);
    world.finish(check_counts);
}

/// Rounds that do not fit into a batch, halved again and again, with large outputs and states.
#[test]
fn tiny_batches() {
    let make: Make = Box::new(|random, _| {
        let key = format!("word-{}", random.random_range(0..200));
        let value = match random.random_range(0..12) {
            0 => "delete".into(),
            1 => format!("grow:{}", random.random_range(1..20_000)),
            2 => "same".into(),
            3 => "grow:0".into(),
            _ => "x".to_owned(),
        };
        (key, value)
    });
    let mut world = World::new("tiny_batches", "tally", 6, 300.0, make, |rig| {
        rig.arg("--max-batch-bytes", "2KiB").arg("--store", "rocksdb")
    });
    world.start(
        |n, rig| {
            let dir = rig.dir().join(format!("state-{n}"));
            rig.arg("--state-dir", &dir.display().to_string())
        },
        2,
    );
    world.wait_flow("start", 60.0);
    faults(&mut world, 15);
    world.finish(check_counts);
}

/// A state that grows, and is deleted in thousands.
#[test]
fn large_state() {
    let make: Make = Box::new(|random, index| {
        // Waves of growth and of deletion.
        let key = format!("word-{}", random.random_range(0..5000));
        let value = match (index / 6000) % 2 {
            0 if random.random_bool(0.5) => format!("grow:{}", random.random_range(100..3000)),
            1 if random.random_bool(0.8) => "delete".into(),
            _ => "x".to_owned(),
        };
        (key, value)
    });
    let mut world = World::new("large_state", "tally", 4, 1500.0, make, |rig| rig.arg("--store", "rocksdb"));
    world.start(
        |n, rig| {
            let dir = rig.dir().join(format!("state-{n}"));
            rig.arg("--state-dir", &dir.display().to_string()).arg("--instance-id", &format!("id-{n}"))
        },
        2,
    );
    world.wait_flow("start", 60.0);
    faults(&mut world, 12);
    world.finish(check_counts);
}

/// 64 tasks in one instance.
#[test]
fn many_partitions() {
    let mut world = World::new("many_partitions", "obey", 64, 500.0, ordinary(1000), |rig| rig);
    world.start(|_, rig| rig, 1);
    world.wait_flow("start", 60.0);
    for n in 0..3 {
        world.sleep(3.0);
        world.kill(0);
        world.wait_flow(&format!("kill {n}"), 60.0);
    }
    world.finish(check_counts);
}

/// A coordinator stands still, and right after that another node is killed and comes back.
#[test]
fn three_nodes() {
    let mut world = World::new("three_nodes", "obey", 6, 300.0, ordinary(300), |rig| {
        rig.arg("--max-batch-bytes", "1MiB").arg("--log", "info,flechtwerk=debug")
    });
    world.start(|_, rig| rig, 2);
    world.wait_flow("start", 60.0);
    for (what, time, victim) in [("kill", 4.0, 3), ("pause", 20.0, 1), ("kill", 0.0, 3), ("pause", 20.0, 2), ("kill", 0.0, 1), ("pause", 20.0, 3), ("kill", 0.0, 2)] {
        world.sleep(1.5);
        node(what, victim);
        world.sleep(time);
        node(if what == "pause" { "resume" } else { "restart" }, victim);
        world.wait_flow(&format!("{what} {time}s of node {victim}"), 60.0);
    }
    world.finish(check_counts);
}

/// The only node stands still, or is killed.
#[test]
fn broker_faults() {
    let nodes: i32 = std::env::var("NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let timeout = std::env::var("TXN").unwrap_or_else(|_| "15s".into());
    let mut world = World::new("broker_faults", "obey", 6, 300.0, ordinary(300), |rig| {
        let dir = rig.dir().join("state");
        rig.arg("--transaction-timeout", &timeout).arg("--log", "info,flechtwerk=debug").arg("--max-batch-bytes", "1MiB").arg("--store", "rocksdb")
            .arg("--state-dir", &dir.display().to_string())
    });
    world.start(
        |n, rig| {
            let dir = rig.dir().join(format!("state-{n}"));
            rig.arg("--state-dir", &dir.display().to_string())
        },
        2,
    );
    world.wait_flow("start", 60.0);
    for (round, (what, time)) in [("pause", 5.0), ("kill", 1.0), ("pause", 12.0), ("kill", 4.0), ("pause", 20.0), ("kill", 0.0), ("pause", 2.0)]
        .into_iter()
        .enumerate()
    {
        let victim = world.random.random_range(1..=nodes);
        world.sleep(1.5);
        node(what, victim);
        world.sleep(time);
        node(if what == "pause" { "resume" } else { "restart" }, victim);
        world.wait_flow(&format!("{what} {time}s of node {victim}, round {round}"), 90.0);
    }
    world.finish(check_counts);
}
