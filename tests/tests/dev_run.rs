//! `run --dev`: a first run that needs nothing but the program (S11.1).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Kafka, Observer, Seen, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Ended with the test, whatever becomes of it.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a stage; gives the process and where its log is.
fn run(binary: &str, stage: &str, dir: &Path) -> (Program, PathBuf) {
    let log = dir.join("log");
    let file = File::create(&log).expect("a log file");
    let child = Command::new(binary)
        .args(["run", "--dev", "--dev-partitions", "2", "--stage", stage])
        .env_clear()
        // Where the pipeline runs at other times (S11.1j).
        .env("FLECHTWERK_BOOTSTRAP_SERVERS", "127.0.0.1:1")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a log file"))
        .stderr(file)
        .spawn()
        .expect("start the program");
    (Program(child), log)
}

/// Tables that no stage writes, and configs: they are to be there, and compacted.
#[test]
fn what_is_read_whole_is_made_as_well() {
    for (binary, stage) in [(env!("CARGO_BIN_EXE_shared"), "measure"), (env!("CARGO_BIN_EXE_rig"), "fetch")] {
        let dir = tempfile::tempdir().expect("a folder");
        let (mut program, log) = run(binary, stage, dir.path());
        let said = || std::fs::read_to_string(&log).expect("the log");
        let runs = || said().matches(" is running").count() == 2;
        wait_for("all tasks run, or the end", || {
            runs() || program.0.try_wait().expect("its state").is_some()
        });
        assert!(runs() && !said().contains("cleanup.policy"), "{}", said());
    }
}

/// What the clients say of a broker that goes away would come after it.
#[test]
fn the_error_that_ends_it_is_the_last_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut program, log) = run(env!("CARGO_BIN_EXE_rig"), "count", dir.path());
    let said = || std::fs::read_to_string(&log).expect("the log");
    wait_for("all tasks run", || said().matches("task is running").count() == 2);
    let kafka = Kafka { brokers: address(&said()) };
    // No UTF-8.
    kafka.write("words", [Write { key: Some(vec![0xff]), ..Write::new("a", "x") }]);
    assert_eq!(program.0.wait().expect("its end").code(), Some(1), "{}", said());
    let said = said();
    assert!(said.lines().last().is_some_and(|last| last.starts_with("error: stage count")), "{said}");
}

/// The address that the program has printed.
fn address(said: &str) -> String {
    let line =
        said.lines().find(|line| line.contains("development broker")).expect("one line about the broker");
    let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).expect("its address");
    address.trim_end_matches([':', ',']).to_owned()
}

#[test]
fn a_development_broker_runs_inside_the_process_with_all_topics() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut program, log) = run(env!("CARGO_BIN_EXE_rig"), "count", dir.path());
    let said = || std::fs::read_to_string(&log).expect("the log");
    wait_for("all tasks run", || said().matches("task is running").count() == 2);

    let line = said().lines().find(|line| line.contains("development broker")).map(str::to_owned);
    let line = line.expect("one line about the broker");
    assert!(line.contains("for development only"), "{line}");
    assert!(
        said().contains("not used, since --dev runs on a broker of its own: environment variable FLECHTWERK_BOOTSTRAP_SERVERS"),
        "{}",
        said()
    );
    let kafka = Kafka { brokers: address(&said()) };
    assert_eq!((kafka.partitions("words"), kafka.partitions("counts")), (2, 2));

    let counts = Observer::start(&kafka, "counts");
    kafka.write("words", ["a", "b", "a"].map(|word| Write::new(word, "x")));
    let mut seen: Vec<_> =
        counts.wait(3).iter().map(|one: &Seen| (one.key_text(), one.value_text())).collect();
    seen.sort();
    let expected = [("a", "1"), ("a", "2"), ("b", "1")];
    assert_eq!(seen, expected.map(|(word, count)| (word.to_owned(), count.to_owned())));
    drop(counts);

    let pid = i32::try_from(program.0.id()).expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("SIGTERM");
    assert_eq!(program.0.wait().expect("its end").code(), Some(0), "{}", said());
    assert_eq!(said().matches("development broker").count(), 1, "{}", said());
    // State is in memory.
    assert_eq!(std::fs::read_dir(dir.path()).expect("the folder").count(), 1, "nothing but the log is left");
}
