//! When a local store is used again, when it is wiped and restored (S4.8), and what a spoilt one does.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Instance, Observer, STOP, Seen, wait_for};
use nix::sys::signal::Signal;
use rdkafka::producer::{BaseRecord, Producer};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// A case with a store on disk.
fn on_disk() -> Case {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let state_dir = state_dir(&case);
    case.arg("--store", "rocksdb").arg("--state-dir", &state_dir.to_string_lossy())
}

fn state_dir(case: &Case) -> PathBuf {
    case.rig.dir().join("state")
}

/// The folder of the task's database.
fn database(case: &Case) -> PathBuf {
    state_dir(case).join(case.application_id()).join("0")
}

/// Adds one to each of these and checks the sum; they have all been counted equally often.
#[track_caller]
fn add(case: &Case, joined: &Observer, sum: u64) {
    let before = joined.count();
    case.write("words", &[("a", "x"), ("b", "x"), ("c", "x")]);
    let seen = joined.wait(before + 3);
    let sums: Vec<_> = seen[before..].iter().map(Seen::value_text).collect();
    assert_eq!(sums, vec![sum.to_string(); 3]);
    // The store is written after the commit; the next commit comes after that.
    case.wait_committed("words", before as i64 + 3);
}

/// How often it has restored something.
fn restores(instance: &Instance) -> usize {
    instance.log().lines().filter(|line| line.contains(" restored ") && line.contains("took=")).count()
}

#[test]
fn a_store_on_disk_is_used_again_after_a_clean_stop() {
    let case = on_disk();
    let joined = case.observe("joined");
    for sum in 1..=3 {
        let mut instance = case.start();
        add(&case, &joined, sum);
        assert_eq!(restores(&instance), 0);
        assert_eq!(instance.terminate(STOP), 0);
    }
}

/// The metrics of an instance that serves them.
fn metrics(instance: &Instance) -> String {
    let log = instance.log();
    let line = log.lines().find(|line| line.contains("serving /metrics")).expect("the address in the log");
    let address =
        line.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("an address");
    let mut stream = std::net::TcpStream::connect(address).expect("connect");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_store_on_disk_is_used_again_after_a_kill_between_batches() {
    let case = on_disk().arg("--metrics-listen", "127.0.0.1:0");
    let joined = case.observe("joined");
    let mut instance = case.start();
    add(&case, &joined, 1);
    add(&case, &joined, 2);
    // Counted once the store has it.
    let counted = r#"flechtwerk_records_total{stage="tally",partition="0"} 6"#;
    wait_for("the store has the last batch", || metrics(&instance).lines().any(|line| line == counted));
    instance.kill();
    let mut instance = case.start();
    assert_eq!(restores(&instance), 0);
    add(&case, &joined, 3);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_store_that_others_have_overtaken_is_restored() {
    let case = on_disk();
    let joined = case.observe("joined");
    let mut instance = case.start();
    add(&case, &joined, 1);
    assert_eq!(instance.terminate(STOP), 0);

    // Another machine takes over.
    let other = case.rig.clone().arg("--state-dir", &case.rig.dir().join("elsewhere").to_string_lossy());
    let mut instance = other.start();
    instance.wait_for_log("task is running");
    assert_eq!(restores(&instance), 1);
    add(&case, &joined, 2);
    assert_eq!(instance.terminate(STOP), 0);
    assert_no_file_is_warned_of(&instance);

    let mut instance = case.start();
    assert_eq!(restores(&instance), 1);
    add(&case, &joined, 3);
    assert_eq!(instance.terminate(STOP), 0);
    let mut instance = case.start();
    assert_eq!(restores(&instance), 0);
    add(&case, &joined, 4);
    assert_eq!(instance.terminate(STOP), 0);
    assert_no_file_is_warned_of(&instance);
}

/// That a file was restored is nothing to worry about.
#[track_caller]
fn assert_no_file_is_warned_of(instance: &Instance) {
    let log = instance.log();
    assert!(!log.lines().any(|line| line.contains(" WARN ") && line.contains(".sst")), "{log}");
}

/// Overwrites every file of a folder.
fn spoil(folder: &Path) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the database") {
        let path = entry.expect("a file").path();
        let length = std::fs::metadata(&path).expect("a file").len() as usize;
        std::fs::write(&path, vec![0x5a; length.max(64)]).expect("overwrite");
        files += 1;
    }
    assert!(files > 2, "that was no database");
}

#[test]
fn a_damaged_store_is_wiped_and_restored_with_a_warning() {
    let case = on_disk();
    let joined = case.observe("joined");
    let mut instance = case.start();
    add(&case, &joined, 1);
    assert_eq!(instance.terminate(STOP), 0);
    spoil(&database(&case));
    let mut instance = case.start();
    let log = instance.log();
    assert!(log.contains("the store failed and is wiped and restored"), "{log}");
    assert_eq!(restores(&instance), 1);
    add(&case, &joined, 2);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_store_that_fails_twice_stops_the_process() {
    let case = on_disk();
    let joined = case.observe("joined");
    let mut instance = case.start();
    add(&case, &joined, 1);
    assert_eq!(instance.terminate(STOP), 0);
    // Where a lock file was there is a folder, which no wipe removes.
    let lock = state_dir(&case).join(case.application_id()).join("0.lock");
    std::fs::remove_file(&lock).expect("remove");
    std::fs::create_dir(&lock).expect("a folder");
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1);
    let log = instance.log();
    assert!(log.contains("failed again after it was restored") && log.contains("--state-dir"), "{log}");
}

#[test]
fn a_state_folder_that_another_process_uses_is_an_error() {
    let case = on_disk().arg("--session-timeout", "3s");
    let joined = case.observe("joined");
    let first = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    // It does not answer any more, its session expires, and it still holds the folder.
    first.signal(Signal::SIGSTOP);
    let mut second = case.rig.start();
    assert_eq!(second.wait(STOP), 1);
    let log = second.log();
    assert!(log.contains("stage tally: ") && log.contains("in use by another process"), "{log}");
    assert!(log.contains("--state-dir"), "{log}");
    assert!(database(&case).exists(), "it was not wiped");
}

#[test]
fn a_store_in_memory_is_used_again_by_its_process_and_restored_by_others() {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut first = case.start();
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(2);
    for partition in 0..2 {
        wait_for("both are committed", || {
            case.committed_of("words", partition).is_some_and(|(at, _)| at == 1)
        });
    }
    // One of the tasks moves to another instance, which does nothing with it, and comes back.
    let running = |instance: &Instance| instance.log().matches("task is running").count();
    let mut second = case.start();
    assert_eq!(restores(&second), 1);
    let before = running(&first);
    assert_eq!(second.terminate(STOP), 0);
    wait_for("the task is back", || running(&first) > before);
    assert_eq!(restores(&first), 0);
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    let mut sums: Vec<_> = joined.wait(4).iter().map(Seen::value_text).collect();
    sums.sort();
    assert_eq!(sums, ["1", "1", "2", "2"]);

    // Now the other one commits something in between.
    let mut second = case.start();
    wait_for("the first has one task left", || case.kafka.members(&case.application_id()) == 2);
    let before = running(&first);
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(6);
    assert_eq!(second.terminate(STOP), 0);
    wait_for("the task is back", || running(&first) > before);
    assert_eq!(restores(&first), 1);
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    let mut sums: Vec<_> = joined.wait(8).iter().map(Seen::value_text).collect();
    sums.sort();
    assert_eq!(sums, ["1", "1", "2", "2", "3", "3", "4", "4"]);
    assert_eq!(first.terminate(STOP), 0);
}

/// A store that can't be read interrupts a round before user code runs; the stall limit (S2.8) must not count from
/// there.
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
    for entry in std::fs::read_dir(state_dir.join(case.application_id()).join("0")).expect("the database") {
        let path = entry.expect("a file").path();
        let length = std::fs::metadata(&path).expect("a file").len() as usize;
        std::fs::write(&path, vec![0x5a; length.max(64)]).expect("overwrite");
    }
    // The restore is held back for longer than the limit: the line is repeated every ten seconds.
    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let changelog = case.changelog();
    let record =
        BaseRecord::to(&changelog).partition(0).key(&[0u8, b'z'][..]).payload(&[1u8, b'{', b'}'][..]);
    foreign.send(record).map_err(|(error, _)| error).expect("send");
    foreign.flush(STOP).expect("flush");
    case.write("words", &[("a", "x")]);
    instance.wait_for_log("the store failed and is wiped and restored");
    wait_for("the restore waits", || instance.log().matches("holds the changelog back").count() >= 2);
    foreign.abort_transaction(STOP).expect("abort");
    let seen = joined.wait(3);
    assert_eq!(seen[2].value_text(), "2");
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}
