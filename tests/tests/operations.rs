//! What an operator sees and does: metrics and probes, clean stops, a function that hangs (S6.3, S11.4, docs on
//! metrics).

use std::time::Duration;

use flechtwerk_tests::job::{logged, read_all, wait_for_tasks};
use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Job, Kafka, Load, Probe, wait_for};
use nix::sys::signal::Signal;
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);
const METRICS: &str = include_str!("../../docs/src/metrics.md");

/// Every metric of the documentation that can have a value in a healthy pipeline is served, under its name.
#[test]
fn metrics_are_those_of_the_docs() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg(ANY_PORT.0, ANY_PORT.1));
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    let probe = Probe::of(&instance);
    job.write("words", 0, "a", &["x", "x", "x"]);
    job.write("words", 1, "b", &["x"]);
    wait_for("all records are counted", || probe.metric("flechtwerk_records_total", "") == Some(4.0));
    let of = |partition: u32| format!("partition=\"{partition}\"");
    assert_eq!(probe.metric("flechtwerk_records_total", &of(0)), Some(3.0));
    assert_eq!(probe.metric("flechtwerk_batch_records_sum", &of(0)), Some(3.0));
    assert_eq!(probe.metric("flechtwerk_fences_total", &of(1)), Some(1.0));
    assert_eq!(probe.metric("flechtwerk_store_entries", &of(1)), Some(1.0));
    assert_eq!(probe.metric("flechtwerk_tasks_running", "stage=\"count\""), Some(2.0));
    wait_for("no lag", || probe.metric("flechtwerk_lag_records", "") == Some(0.0));

    let (status, text) = probe.get("/metrics").expect("an answer");
    assert_eq!(status, 200);
    let served = |name: &str| {
        text.lines().any(|line| line.strip_prefix("# TYPE ").is_some_and(|rest| rest.starts_with(name)))
    };
    // These are counted where something goes wrong, and not before.
    let troubles = [
        "flechtwerk_aborts_total",
        "flechtwerk_rebuilds_total",
        "flechtwerk_suspect_producers_total",
        "flechtwerk_invalid_records_total",
        "flechtwerk_incomplete_tasks_total",
        "flechtwerk_restore_remaining_offsets",
    ];
    // This stage has neither tables, timers nor configs; `tables.rs`, `timers.rs` and `extractors.rs` look at theirs.
    let of_others = [
        "flechtwerk_table_",
        "flechtwerk_timers_",
        "flechtwerk_config",
        "flechtwerk_page",
        "flechtwerk_poll",
    ];
    let documented: Vec<&str> =
        METRICS.lines().filter_map(|line| line.strip_prefix("| `flechtwerk_")).collect();
    assert!(documented.len() > 10, "the table of the docs");
    for line in documented {
        let name = format!("flechtwerk_{}", line.split('`').next().unwrap_or_default());
        let elsewhere = of_others.iter().any(|prefix| name.starts_with(prefix));
        assert!(
            elsewhere || served(&name) || troubles.contains(&name.as_str()),
            "{name} is missing in:\n{text}"
        );
    }
    for line in text.lines().filter(|line| line.starts_with("# TYPE flechtwerk_")) {
        let name = line.split(' ').nth(2).unwrap_or_default();
        assert!(METRICS.contains(&format!("`{name}`")), "{name} is not in the docs");
    }
    assert_eq!(probe.status("/live"), 200);
    assert_eq!(probe.status("/nothing"), 404);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    assert_eq!(probe.status("/live"), 0, "nobody answers");
}

/// An instance is not ready while a task of it waits for its changelog, but live.
#[test]
fn not_ready_before_all_tasks_run() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg(ANY_PORT.0, ANY_PORT.1));
    job.kafka.create_topic(&job.changelog(), 2, &[("cleanup.policy", "compact")]);
    // An open transaction of somebody else keeps one of the tasks from starting.
    let foreign = job.kafka.open_transaction(&job.kafka.unique("foreign"));
    let record = Write { partition: Some(1), ..Write::new("\0x", "\u{1}{\"n\":7}") };
    send(&foreign, &job.changelog(), &record);
    foreign.flush(STOP).expect("flush");

    let mut instance = job.rig.start();
    let probe = Probe::of(&instance);
    instance.wait_for_log("holds the changelog back");
    wait_for("one of two tasks runs", || probe.tasks("count") == (2, 1));
    assert_eq!(probe.status("/ready"), 503);
    assert_eq!(probe.status("/live"), 200);
    assert_eq!(probe.metric("flechtwerk_changelog_blocked", "partition=\"1\""), Some(1.0));
    foreign.abort_transaction(STOP).expect("abort");
    wait_for("it is ready", || probe.status("/ready") == 200);
    assert_eq!(probe.metric("flechtwerk_changelog_blocked", "partition=\"1\""), Some(0.0));
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
}

/// S11.4a, S6.3a: both signals commit what was computed, though the next commit would not be due for an hour.
#[test]
fn both_signals_commit_what_is_in_flight() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let job =
            Job::new(&Kafka::from_env(), RIG, "aloud", 1).with(|rig| rig.arg("--commit-interval", "1h"));
        let mut instance = job.rig.start();
        wait_for_tasks(&instance, 1);
        // Whatever is written now waits for the end of the hour that the commit of the start has begun.
        job.write("words", 0, "a", &["x", "y"]);
        instance.wait_for_log("seen y");
        assert_eq!(job.offsets("words")[&0], 0, "nothing is committed yet");
        instance.signal(signal);
        assert_eq!(instance.wait(STOP), 0, "log:\n{}", instance.log());
        assert!(instance.log().contains(&format!("{signal}: stopping")), "{}", instance.log());
        assert_eq!(job.offsets("words")[&0], 2);
        assert_eq!(job.kafka.members(&job.group()), 0, "the group is left");
        assert_eq!(read_all(&job.kafka, job.topic("joined")).len(), 2);
    }
}

/// S6.3a: a stop that is asked for while the process still starts is a clean one, and nothing was begun.
#[test]
fn stop_while_it_starts() {
    // A port that was free a moment ago; nobody listens there.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port").port();
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1).with(|rig| {
        rig.arg("--bootstrap-servers", &format!("127.0.0.1:{port}")).arg("--connect-timeout", "1h")
    });
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut instance = job.rig.start();
        instance.wait_for_log("Connection refused");
        instance.signal(signal);
        assert_eq!(instance.wait(STOP), 0, "log:\n{}", instance.log());
        assert!(instance.log().contains("stopped before it had started"), "{}", instance.log());
    }
}

/// Under load a clean stop and a new start lose and double nothing, and leave no transaction open.
#[test]
fn stops_under_load() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 4).with(|rig| rig.arg("--commit-interval", "10ms"));
    let load = Load::start(&job.kafka, job.topic("words"), 2000);
    let output = job.observe();
    for _ in 0..3 {
        let mut instance = job.rig.start();
        let count = output.count();
        wait_for("it works", || output.count() > count + 500);
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        for partition in 0..4 {
            let marks = |isolation| job.kafka.watermarks(job.topic("counts"), partition, isolation).1;
            assert_eq!(marks("read_committed"), marks("read_uncommitted"), "a transaction is open");
        }
    }
    let written = load.finish();
    let mut instance = job.rig.start();
    output.wait(written);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    job.assert_counted(written);
}

/// A function that never returns does not keep the process: the stop ends within `--shutdown-timeout`, with status 1,
/// and what it held is taken up again.
#[test]
fn hung_function_ends_at_the_shutdown_timeout() {
    for value in ["hang", "block"] {
        let job =
            Job::new(&Kafka::from_env(), RIG, "aloud", 2).with(|rig| rig.arg("--shutdown-timeout", "1s"));
        let mut instance = job.rig.start();
        wait_for_tasks(&instance, 2);
        job.write("words", 0, "a", &[value]);
        job.write("words", 1, "b", &["x"]);
        job.wait_for_offset("words", 1, 1);
        instance.wait_for_log(&format!("seen {value}"));
        instance.signal(Signal::SIGTERM);
        // S11.4d: 10 seconds beyond the second that the tasks had, leaving the group included.
        assert_eq!(instance.wait(Duration::from_secs(11)), 1, "log:\n{}", instance.log());
        assert!(instance.log().contains("--shutdown-timeout (1s)"), "{}", instance.log());
        assert_eq!(job.offsets("words")[&0], 0, "the record was not processed");
        assert_eq!(job.kafka.members(&job.group()), 0, "the group is left");
    }
}

/// A second signal means at once.
#[test]
fn second_signal_stops_at_once() {
    let job = Job::new(&Kafka::from_env(), RIG, "aloud", 1).with(|rig| rig.arg("--shutdown-timeout", "1h"));
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 1);
    job.write("words", 0, "a", &["hang"]);
    instance.wait_for_log("seen hang");
    instance.signal(Signal::SIGTERM);
    instance.wait_for_log("once more to stop at once");
    instance.signal(Signal::SIGTERM);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    assert_eq!(logged(&instance, "stopping at once"), 1);
}
