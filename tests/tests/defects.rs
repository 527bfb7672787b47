//! What went wrong when somebody tried to break it.

use std::time::{Duration, Instant};

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Case, STOP, Seen, wait_for, wait_within};
use nix::sys::signal::Signal;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseRecord, Producer};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// A transaction that no repetition can mend ends the process at once: nothing is in flight that could be awaited.
#[test]
fn a_hopeless_transaction_ends_the_process_without_waiting_for_it() {
    let case = Case::new(RIG, "obey", 1, &["words", "joined"]);
    let mut instance = case.start();
    case.write("words", &[("a", "big:3000000")]);
    instance.wait_for_log("refused an output");
    let began = Instant::now();
    assert_eq!(instance.wait(STOP), 1);
    println!("ended after {:?}\n{}", began.elapsed(), instance.log());
}

/// The same, from the moment at which the record is there.
#[test]
fn a_hopeless_transaction_ends_soon() {
    let case = Case::new(RIG, "obey", 1, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    case.write("words", &[("a", "big:3000000")]);
    let began = Instant::now();
    assert_eq!(instance.wait(STOP), 1);
    let took = began.elapsed();
    println!("ended after {took:?}");
    assert!(took < Duration::from_secs(7), "it took {took:?}:\n{}", instance.log());
}

/// A store that can't be read interrupts a round before user code runs; the stall limit must not count from there.
#[test]
fn a_store_that_fails_at_a_look_up_does_not_look_like_a_stall() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let state_dir = case.rig.dir().join("state");
    let case = case
        .arg("--store", "rocksdb")
        .arg("--state-dir", &state_dir.to_string_lossy())
        .arg("--max-batch-time", "2s");
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x"), ("b", "x")]);
    joined.wait(2);
    // More than RocksDB reads ahead when it opens a file.
    let many = (0..3000).map(|n| Write { partition: Some(0), ..Write::new(&format!("k{n}"), "grow:1000") });
    case.kafka.write(case.topic("words"), many);
    case.wait_committed("words", 3002);
    assert_eq!(instance.terminate(STOP), 0);
    let mut instance = case.start();
    // The database is spoilt under the hands of the running task, and the restore is held back for a while.
    for entry in std::fs::read_dir(state_dir.join(case.application_id()).join("0")).expect("the database") {
        let path = entry.expect("a file").path();
        let length = std::fs::metadata(&path).expect("a file").len() as usize;
        std::fs::write(&path, vec![0x5a; length.max(64)]).expect("overwrite");
    }
    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let changelog = case.changelog();
    foreign
        .send(BaseRecord::to(&changelog).partition(0).key(&[0u8, b'z'][..]).payload(&[1u8, b'{', b'}'][..]))
        .map_err(|e| e.0)
        .expect("send");
    foreign.flush(STOP).expect("flush");
    case.write("words", &[("a", "x")]);
    instance.wait_for_log("the store failed and is wiped and restored");
    instance.wait_for_log("holds the changelog back");
    std::thread::sleep(Duration::from_secs(5));
    foreign.abort_transaction(STOP).expect("abort");
    let seen = joined.wait(3);
    assert_eq!(seen[2].value_text(), "2");
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}

/// A changelog that is deleted and made anew while instances run.
#[test]
fn a_changelog_made_anew_while_running_loses_no_state_silently() {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]).arg("--session-timeout", "3s");
    let joined = case.observe("joined");
    let mut first = case.start();
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(2);
    let mut second = case.start();
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(4);
    for partition in 0..2 {
        wait_for("committed", || case.committed_of("words", partition).is_some_and(|(at, _)| at == 2));
    }
    case.kafka.delete_topic(&case.changelog());
    case.kafka.create_topic(&case.changelog(), 2, &[("cleanup.policy", "compact")]);
    println!("second: {}", second.terminate(STOP));
    std::thread::sleep(Duration::from_secs(3));
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    let until = Instant::now() + Duration::from_secs(40);
    while joined.count() < 6 && first.try_wait().is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let sums: Vec<(i32, String)> = joined.seen().iter().map(|s| (s.partition, s.value_text())).collect();
    println!("{sums:?} {:?}\n{}", first.try_wait(), first.log());
    let values: Vec<String> = joined.seen().iter().map(Seen::value_text).collect();
    assert_eq!(first.wait(STOP), 1);
    assert!(first.log().contains("made anew") && first.log().contains("`reset`"), "{}", first.log());
    assert!(values.iter().filter(|v| *v == "1").count() == 2, "the state was lost silently: {sums:?}");
}

/// The same, deleted only.
#[test]
fn a_changelog_deleted_while_running() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut first = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    case.kafka.delete_topic(&case.changelog());
    case.write("words", &[("a", "x")]);
    let began = Instant::now();
    wait_within(Duration::from_secs(150), "it ends", || first.try_wait().is_some());
    println!("changelog deleted: ended after {:?} {:?}\n{}", began.elapsed(), first.try_wait(), first.log());
}

/// An input that is deleted while it is read.
#[test]
fn an_input_deleted_while_running() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut first = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    case.kafka.delete_topic(case.topic("words"));
    let began = Instant::now();
    while first.try_wait().is_none() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("input deleted: after {:?} {:?}\n{}", began.elapsed(), first.try_wait(), first.log());
}

/// A member of the group with another assignor, by another tool.
#[test]
fn a_foreign_member_with_another_assignor_is_named() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let foreign: BaseConsumer = case
        .kafka
        .config()
        .set("group.id", case.application_id())
        .set("partition.assignment.strategy", "roundrobin")
        .set("session.timeout.ms", "6000")
        .create()
        .expect("a consumer");
    foreign.subscribe(&[case.topic("words")]).expect("subscribe");
    wait_for("it is a member", || {
        foreign.poll(Duration::from_millis(100));
        foreign.assignment().is_ok_and(|a| a.count() == 1)
    });
    let mut instance = case.rig.start();
    let until = Instant::now() + Duration::from_secs(15);
    while Instant::now() < until {
        foreign.poll(Duration::from_millis(100));
    }
    println!("foreign assignor: {:?}\n{}", instance.try_wait(), instance.log());
    drop(foreign);
    instance.wait_for_log("task is running");
    assert_eq!(instance.terminate(STOP), 0);
}

/// Once and twice, at any moment of the start.
#[test]
fn signals_during_the_start() {
    let case = Case::new(RIG, "tally", 4, &["words", "joined"]).arg("--store", "rocksdb");
    let state = |n: usize| case.rig.dir().join(format!("state-{n}")).to_string_lossy().into_owned();
    let producer = case.kafka.producer();
    for n in 0..60_000 {
        send(&producer, case.topic("words"), &Write::new(&format!("k{n}"), "grow:300"));
    }
    producer.flush(STOP).expect("flush");
    let rig = case.rig.clone().arg("--state-dir", &state(999));
    let mut instance = rig.start();
    wait_for("all", || {
        (0..4).filter_map(|p| case.committed_of("words", p)).map(|(at, _)| at).sum::<i64>() == 60_000
    });
    assert_eq!(instance.terminate(STOP), 0);
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    let mut slowest = Duration::ZERO;
    for n in 0..24 {
        let rig = case
            .rig
            .clone()
            .arg("--state-dir", &state(n))
            .arg("--shutdown-timeout", if n % 3 == 2 { "1s" } else { "30s" });
        let mut instance = rig.start();
        wait_for("started", || instance.log().contains("starting"));
        std::thread::sleep(Duration::from_millis(40 * n as u64));
        let began = Instant::now();
        instance.signal(Signal::SIGTERM);
        if n % 2 == 1 {
            std::thread::sleep(Duration::from_millis(30));
            instance.signal(Signal::SIGTERM);
        }
        wait_within(STOP, "end", || instance.try_wait().is_some());
        let took = began.elapsed();
        slowest = slowest.max(took);
        let status = instance.try_wait().expect("ended");
        *seen.entry(format!("{} {status}", if n % 2 == 1 { "twice" } else { "once" })).or_default() += 1;
        if status.code().is_none() || took > Duration::from_secs(6) {
            println!("n={n} {status} after {took:?}:\n{}", instance.log());
        }
    }
    println!("signals: {seen:?}, slowest {slowest:?}");
    let mut instance = case.rig.clone().arg("--state-dir", &state(5)).start();
    wait_for("running", || instance.log().matches("task is running").count() == 4);
    assert_eq!(instance.terminate(STOP), 0);
}

/// After a broker was restarted its partitions have another leader epoch. A client that reads none of them at that time
/// (the reader of changelogs, mostly) must learn of it when it asks for their offsets.
#[test]
fn a_task_that_comes_back_after_a_broker_restart_starts() {
    let cluster = flechtwerk_tests::Cluster::start(1);
    let kafka = cluster.kafka.clone();
    let (words, joined) = (kafka.unique("words"), kafka.unique("joined"));
    cluster.create_topic(&words, 2, 1);
    cluster.create_topic(&joined, 2, 1);
    let rig = flechtwerk_tests::Rig::new(&kafka, RIG)
        .stage("tally")
        .topic("words", &words)
        .topic("joined", &joined)
        .arg("--session-timeout", "60s")
        .arg("--broker-timeout", "25s")
        .arg("--log", "info,flechtwerk=debug");
    let mut first = rig.start();
    wait_for("both tasks run", || first.log().matches("task is running").count() == 2);
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    kafka.write(&words, [on(0), on(1)]);
    let seen = flechtwerk_tests::Observer::start(&kafka, &joined);
    seen.wait(2);
    cluster.node("kill", 1);
    cluster.node("restart", 1);
    kafka.write(&words, [on(0), on(1)]);
    seen.wait(4);
    assert_eq!(first.log().matches("task is running").count(), 2);
    // One task moves to another instance and comes back.
    let mut second = rig.start();
    second.wait_for_log("task is running");
    kafka.write(&words, [on(0), on(1)]);
    seen.wait(6);
    assert_eq!(second.terminate(STOP), 0);
    let began = Instant::now();
    wait_for("the task is back", || {
        assert!(first.try_wait().is_none(), "it has stopped:\n{}", first.log());
        first.log().matches("task is running").count() == 3
    });
    println!("back after {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(10), "back after {:?}\n{}", began.elapsed(), first.log());
    assert_eq!(first.terminate(STOP), 0);
}
