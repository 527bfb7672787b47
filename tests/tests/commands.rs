//! The commands of the binary (S11.1, S11.3, S6.3): what they print, what they change and what they refuse.

use std::time::{Duration, Instant};

use flechtwerk_tests::job::{answer, commit, logged, program, read_all, wait_for_tasks};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Job, Kafka, Load, wait_for, wait_within};
use rand::Rng;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);

/// A job that has counted three words of one key and was stopped.
fn stopped_job() -> Job {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2);
    job.write("words", 0, "a", &["x", "x", "x"]);
    run_to(&job, 3);
    job
}

/// Runs an instance until words/0 is committed up to `offset`, and stops it.
#[track_caller]
fn run_to(job: &Job, offset: i64) {
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.wait_for_offset("words", 0, offset);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
}

fn counts(job: &Job) -> Vec<String> {
    read_all(&job.kafka, job.topic("counts")).iter().map(|count| count.value_text()).collect()
}

/// Needs no cluster, and shows the names that a run would use.
#[test]
fn topology_in_all_formats() {
    let beginnings =
        [("text", "pipeline rig"), ("mermaid", "flowchart LR"), ("dot", "digraph \"rig\""), ("json", "{\n")];
    for (format, beginning) in beginnings {
        let arguments = [
            "topology",
            "--format",
            format,
            "--stage",
            "count",
            "--namespace",
            "ns-",
            "--topic",
            "words=prod.words",
        ];
        let (status, stdout, stderr) = answer(program(RIG, &arguments).output().expect("run it"));
        assert_eq!((status, &*stderr), (0, ""));
        assert!(stdout.starts_with(beginning), "{format}:\n{stdout}");
        for name in ["prod.words", "counts", "ns-rig-count", "ns-rig-count-changelog"] {
            assert!(stdout.contains(name), "{name} in {format}:\n{stdout}");
        }
        assert!(!stdout.contains("joined"), "only the chosen stage in {format}:\n{stdout}");
        if format == "json" {
            serde_json::from_str::<serde_json::Value>(&stdout).expect("JSON");
        }
    }
}

/// Makes what is missing, changelogs included, and nothing twice.
#[test]
fn topics_create() {
    let job = Job::without_topics(&Kafka::from_env(), RIG, "count");
    let (status, _, stderr) = job.tool(&["topics", "create"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("no number of partitions") && stderr.contains("--partitions N"), "{stderr}");
    assert_eq!(job.kafka.partitions(job.topic("words")), 0, "nothing was created");

    let (status, stdout, stderr) =
        job.tool(&["topics", "create", "--partitions", "3", "--replication-factor", "1"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(stdout.matches("created").count(), 3, "{stdout}");
    for topic in [job.topic("words"), job.topic("counts"), &job.changelog()] {
        assert_eq!(job.kafka.partitions(topic), 3, "{topic}");
    }
    let (status, stdout, _) = job.tool(&["topics", "create", "--partitions", "5"]);
    assert_eq!((status, stdout.matches("exists").count()), (0, 3), "{stdout}");
    let (status, stdout, stderr) = job.rig.run(&["check"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("all checks passed") && stdout.contains(&job.group()), "{stdout}");
}

/// `check` says what a run would make, and makes nothing.
#[test]
fn check_changes_nothing() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2);
    let (status, stdout, stderr) = job.rig.run(&["check"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains(&format!("{} (made by `run`)", job.changelog())), "{stdout}");
    assert_eq!(job.kafka.partitions(&job.changelog()), 0);
    assert_eq!(job.offsets("words").len(), 0);
}

/// A reset without `--execute` shows, with it it does: state and offsets begin anew.
#[test]
fn reset_begins_anew() {
    let job = stopped_job();
    let before = job.committed("words");
    let (status, stdout, stderr) = job.tool(&["reset"]);
    assert_eq!(status, 0, "{stderr}");
    for text in [&job.group(), &job.changelog(), job.topic("words"), "nothing was changed", "--execute"] {
        assert!(stdout.contains(text), "{text:?} in:\n{stdout}");
    }
    assert_eq!(job.committed("words"), before, "a dry run changes nothing");
    assert_eq!(job.state()["a"], 3, "a dry run changes nothing");

    let (status, stdout, stderr) = job.tool(&["reset", "--execute"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("done"), "{stdout}");
    assert_eq!(
        job.committed("words").into_values().collect::<Vec<_>>(),
        [(0, String::new()), (0, String::new())]
    );
    assert!(job.state().is_empty(), "the changelog is new and empty");
    run_to(&job, 3);
    assert_eq!(counts(&job), ["1", "2", "3", "1", "2", "3"], "counted anew; old outputs stay");
}

/// `--to` a time: the first record of that time or later.
#[test]
fn reset_to_a_time() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2);
    let minute = |minute: i64| Write {
        partition: Some(0),
        timestamp: Some(1_700_000_000_000 + 60_000 * minute),
        ..Write::new("a", "x")
    };
    job.kafka.write(job.topic("words"), (0..3).map(minute));
    run_to(&job, 3);
    let (status, _, stderr) = job.tool(&["reset", "--to", "yesterday", "--execute"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("2026-01-31T12:00:00Z"), "an example in:\n{stderr}");
    let (status, _, stderr) = job.tool(&["reset", "--to", "2023-11-14T22:13:21Z", "--execute"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(job.offsets("words")[&0], 1);
    run_to(&job, 3);
    assert_eq!(counts(&job), ["1", "2", "3", "1", "2"], "two records counted again, with empty state");
}

/// While members are alive nothing may be reset.
#[test]
fn reset_refuses_while_members_are_alive() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 1);
    for arguments in [&["reset"][..], &["reset", "--execute"]] {
        let (status, _, stderr) = job.tool(arguments);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains("the group still has 1 member"), "{stderr}");
    }
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 2);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    job.assert_counted(2);
}

/// The mark of a reset stops any start, until the reset was repeated to its end.
#[test]
fn reset_cut_short() {
    let job = stopped_job();
    let begin = Instant::now();
    assert_eq!(job.tool(&["reset", "--execute"]).0, 0);
    let mut whole = begin.elapsed();
    wait_within(Duration::from_secs(90), "a kill between the mark and the end of a reset", || {
        let begin = Instant::now();
        let mut reset = job.tool_command(&["reset", "--execute"]).spawn().expect("start it");
        // Somewhere on its way; where exactly is what this looks for.
        std::thread::sleep(whole.mul_f64(rand::rng().random_range(0.2..1.2)));
        // One that had ended tells how long it takes by now.
        if reset.try_wait().expect("its state").is_some() {
            whole = begin.elapsed();
        }
        reset.kill().and_then(|()| reset.wait()).expect("kill it");
        job.committed("words").values().any(|(_, metadata)| metadata == "resetting")
    });
    let (status, _, stderr) = job.rig.run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("was cut short") && stderr.contains("reset --stage count --execute"), "{stderr}");
    let (status, _, stderr) = job.tool(&["reset", "--execute"]);
    assert_eq!(status, 0, "{stderr}");
    run_to(&job, 3);
    assert_eq!(counts(&job), ["1", "2", "3", "1", "2", "3"]);
}

/// The same with the mark alone, on one partition, set while the changelog is whole.
#[test]
fn mark_of_a_reset_stops_a_start() {
    let job = stopped_job();
    commit(&job.kafka, &job.group(), job.topic("words"), &[(1, 0, "resetting")]);
    let (status, _, stderr) = job.rig.run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("was cut short"), "{stderr}");
    let (status, _, stderr) = job.tool(&["reset", "--execute"]);
    assert_eq!(status, 0, "{stderr}");
    run_to(&job, 3);
    assert_eq!(job.state()["a"], 3);
}

/// `--stage` runs those alone; an unknown one is refused with the one that was meant.
#[test]
fn stages_are_chosen() {
    let kafka = Kafka::from_env();
    let job = Job::new(&kafka, RIG, "count", 1);
    let joined = kafka.unique("joined");
    kafka.create_topic(&joined, 1, &[]);
    let (status, _, stderr) = job.rig.clone().stage("cuont").run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("no stage `cuont`") && stderr.contains("did you mean `count`?"), "{stderr}");

    let mut both = job.rig.clone().stage("obey").topic("joined", &joined).start();
    wait_for_tasks(&both, 2);
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 1);
    let obey = job.rig.application_id("rig", "obey");
    let committed = || kafka.committed(&obey, job.topic("words"));
    wait_for("the other stage has committed too", || {
        committed().get(&0).is_some_and(|(offset, _)| *offset == 1)
    });
    assert_eq!(both.terminate(STOP), 0, "a clean stop");
    job.write("words", 0, "a", &["x"]);
    let mut one = job.rig.start();
    job.wait_for_offset("words", 0, 2);
    assert_eq!(one.terminate(STOP), 0, "a clean stop");
    assert_eq!(committed()[&0].0, 1, "the other stage did not run");
    job.assert_counted(2);
}

/// S11.3: two namespaces read the same input side by side, each with its own groups, ids and state.
#[test]
fn two_namespaces_side_by_side() {
    let first = Job::new(&Kafka::from_env(), RIG, "count", 2);
    let second = first.beside(2);
    let load = Load::start(&first.kafka, first.topic("words"), 1000);
    let mut instances = [first.rig.start(), second.rig.start()];
    let outputs = [first.observe(), second.observe()];
    wait_for("both work at once", || outputs.iter().all(|output| output.count() > 1000));
    let written = load.finish();
    for output in outputs {
        output.wait(written);
    }
    for instance in &mut instances {
        assert_eq!(
            logged(instance, "task is running"),
            2,
            "each task started once; log:\n{}",
            instance.log()
        );
        assert_eq!(logged(instance, "was aborted"), 0, "undisturbed; log:\n{}", instance.log());
        assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    }
    assert_ne!(first.group(), second.group());
    first.assert_counted(written);
    second.assert_counted(written);
}
