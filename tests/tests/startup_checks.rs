//! The checks at startup (S7): what they find, that everything is found at once, and that nothing was created or
//! joined before they passed.

use std::time::Duration;

use flechtwerk_tests::job::{commit, delete_group, program, read_all, wait_for_tasks};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Job, Kafka};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);

/// `run` must refuse with status 2 and all of these texts.
#[track_caller]
fn refuses(job: &Job, texts: &[&str]) -> String {
    let (status, stdout, stderr) = job.rig.run(&["run"]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    for text in texts {
        assert!(stderr.contains(text), "{text:?} in:\n{stderr}");
    }
    stderr
}

/// A job that has worked and was stopped: three records, all committed.
fn stopped_job(stage: &'static str) -> Job {
    let job = Job::new(&Kafka::from_env(), RIG, stage, 2);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 0, "a", &["x", "x", "x"]);
    job.wait_for_offset("words", 0, 3);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    job
}

/// `check` lists all faults of a cluster, each with its mend, with status 2; `run` does the same. Nothing is made.
#[test]
fn three_faults_are_one_report() {
    let kafka = Kafka::from_env();
    let job = Job::without_topics(&kafka, RIG, "join");
    kafka.create_topic(job.topic("profiles"), 2, &[]);
    kafka.create_topic(job.topic("words"), 3, &[]);
    kafka.create_topic(&job.changelog(), 2, &[("cleanup.policy", "delete")]);
    let counts = format!("`{}` has 2, `{}` has 3", job.topic("profiles"), job.topic("words"));
    let missing = format!("topic `{}` does not exist", job.topic("joined"));
    for command in ["check", "run"] {
        let (status, stdout, stderr) = job.rig.run(&[command]);
        assert_eq!(status, 2, "{stdout}{stderr}");
        assert!(stderr.contains("3 problems"), "{stderr}");
        for text in [&counts, &missing, "cleanup.policy=delete, not compact alone"] {
            assert!(stderr.contains(text), "{text:?} in:\n{stderr}");
        }
        let mends = stderr.lines().filter(|line| line.trim_start().starts_with("mend ")).count();
        assert_eq!(mends, 3, "{stderr}");
        for mend in
            ["topics create --partitions N", "--topic words=TOPIC", "--add-config cleanup.policy=compact"]
        {
            assert!(stderr.contains(mend), "{mend:?} in:\n{stderr}");
        }
    }
    assert_eq!(kafka.partitions(job.topic("joined")), 0, "nothing was created");
    assert_eq!(kafka.partitions(&job.changelog()), 2, "nothing was created");
    assert!(!has_group(&job), "no group was joined");

    // Each mend works while the other faults stand.
    let (status, stdout, stderr) = job.tool(&["topics", "create", "--partitions", "4"]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(
        stdout.lines().any(|line| line.contains(job.topic("joined")) && line.ends_with("created")),
        "{stdout}"
    );
    assert!(stderr.contains("2 problems") && !stderr.contains(&missing), "{stderr}");
    assert_eq!(kafka.partitions(job.topic("joined")), 4);
}

fn has_group(job: &Job) -> bool {
    use rdkafka::consumer::Consumer;
    let consumer = job.kafka.consumer("read_committed");
    let list = consumer.fetch_group_list(None, STOP).expect("the groups");
    list.groups().iter().any(|group| group.name() == job.group())
}

/// S7.1: missing topics are named, and neither changelog nor group is made; the mend is a command that works.
#[test]
fn missing_topics() {
    let job = Job::without_topics(&Kafka::from_env(), RIG, "count");
    let (words, counts) = (job.topic("words").to_owned(), job.topic("counts").to_owned());
    let stderr =
        refuses(&job, &["2 problems", &words, &counts, "input of stage `count`", "output of stage `count`"]);
    assert_eq!(job.kafka.partitions(&job.changelog()), 0, "no changelog");
    assert!(!has_group(&job), "no group was joined");

    let line = stderr.lines().find(|line| line.contains("topics create")).expect("a command");
    let at = line.find(RIG).expect("the program's name");
    let command = line[at..].replace("--partitions N", "--partitions 2");
    let mut words_of_it = command.split_whitespace().skip(1).collect::<Vec<_>>();
    // The mend names topics and cluster; the stage is this test's.
    words_of_it.extend(["--stage", "count"]);
    let output = program(RIG, &words_of_it).output().expect("run the mend");
    assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(job.kafka.partitions(&words), 2);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
}

/// S7.1b: a missing output is made where that was asked for.
#[test]
fn outputs_are_created_on_request() {
    let kafka = Kafka::from_env();
    let job = Job::without_topics(&kafka, RIG, "count").with(|rig| rig.flag("--create-outputs"));
    kafka.create_topic(job.topic("words"), 1, &[]);
    let mut instance = job.rig.start();
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 1);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    job.assert_counted(1);
}

/// S7.3b: a changelog with another count.
#[test]
fn changelog_with_another_count() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 3);
    job.kafka.create_topic(&job.changelog(), 2, &[("cleanup.policy", "compact")]);
    refuses(
        &job,
        &["1 problem ", "has 2 partitions", "input has 3", "needs a state migration", "reset --stage count"],
    );
    assert!(!has_group(&job), "no group was joined");
}

/// S7.3b: compaction and deletion together are not compaction alone.
#[test]
fn changelog_that_forgets() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1);
    job.kafka.create_topic(&job.changelog(), 1, &[("cleanup.policy", "compact,delete")]);
    refuses(&job, &["1 problem ", "not compact alone", &job.changelog()]);
}

/// S7.3c: a changelog that is gone is not created, and one made anew is not taken for the old one; `reset` is named.
#[test]
fn changelog_that_is_gone_or_another_one() {
    let job = stopped_job("count");
    job.kafka.delete_topic(&job.changelog());
    refuses(&job, &["the changelog that the last commit wrote to is gone", "reset --stage count --execute"]);
    assert_eq!(job.kafka.partitions(&job.changelog()), 0, "it is not created");
    job.kafka.create_topic(&job.changelog(), 2, &[("cleanup.policy", "compact")]);
    refuses(&job, &["deleted and made anew", "reset --stage count --execute"]);
    assert_eq!(job.offsets("words")[&0], 3, "the offsets stay");
}

/// S7.5a: offsets below and above what the input holds stop the stage, with the numbers.
#[test]
fn offset_out_of_range() {
    let job = stopped_job("count");
    let words = job.topic("words").to_owned();
    let stamp = job.committed("words")[&0].1.clone();
    let message = |offset: i64, low: i64, high: i64| {
        format!(
            "the committed offset {offset} of {words}/0 lies outside of the partition, which holds {low} to {high}"
        )
    };
    let stops = |text: &str| {
        let mut instance = job.rig.start();
        assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
        assert!(instance.log().contains(text), "{text:?} in:\n{}", instance.log());
        assert!(instance.log().contains("`reset`"), "{}", instance.log());
    };
    commit(&job.kafka, &job.group(), &words, &[(0, 7, &stamp)]);
    stops(&message(7, 0, 3));
    assert_eq!(job.offsets("words")[&0], 7, "never a silent reset");

    job.kafka.delete_records(&words, 0, 2);
    commit(&job.kafka, &job.group(), &words, &[(0, 1, &stamp)]);
    stops(&message(1, 2, 3));
    assert_eq!(job.offsets("words")[&0], 1, "never a silent reset");
}

/// S7.5a while running: records that retention takes away before they are read stop the stage.
#[test]
fn records_deleted_while_stopped_below_the_position_do_not_matter() {
    let job = stopped_job("count");
    job.kafka.delete_records(job.topic("words"), 0, 3);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 4);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    let counts: Vec<String> =
        read_all(&job.kafka, job.topic("counts")).iter().map(|one| one.value_text()).collect();
    assert_eq!(counts, ["1", "2", "3", "4"]);
}

/// S7.5b: state without offsets would be counted twice.
#[test]
fn state_without_offsets() {
    let job = stopped_job("count");
    delete_group(&job.kafka, &job.group());
    let mut instance = job.rig.start();
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    for text in ["partition 0 has state", &job.changelog(), "no committed offset", "`reset`"] {
        assert!(log.contains(text), "{text:?} in:\n{log}");
    }
    assert_eq!(job.offsets("words").get(&0), None, "nothing was committed");
    assert_eq!(read_all(&job.kafka, job.topic("counts")).len(), 3, "nothing was counted again");
}

/// S7.5c: an input without offsets beside one that has some is new: it starts at its beginning, with a warning.
#[test]
fn new_input_starts_with_a_warning() {
    let job = Job::new(&Kafka::from_env(), RIG, "join", 1);
    job.write("words", 0, "a", &["old", "new"]);
    job.kafka.write(job.topic("profiles"), [Write { partition: Some(0), ..Write::new("a", "ann") }]);
    commit(&job.kafka, &job.group(), job.topic("words"), &[(0, 1, "")]);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 1);
    job.wait_for_offset("words", 0, 2);
    job.wait_for_offset("profiles", 0, 1);
    let log = instance.log();
    let warning = log.lines().find(|line| line.contains("new to the stage")).unwrap_or_default();
    assert!(warning.contains("WARN") && warning.contains(job.topic("profiles")), "{log}");
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    let joined = read_all(&job.kafka, job.topic("joined"));
    assert_eq!(joined.len(), 1, "only the word behind the committed offset");
    assert!(joined[0].value_text().starts_with("new@"));
}

/// S1.2d: after mapping the names are checked again.
#[test]
fn mapped_names_are_checked() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1);
    for (topic, text) in
        [("a b", "a b"), ("..", ".."), ("", "topic"), (job.topic("words"), job.topic("words"))]
    {
        let job = Job::new(&job.kafka, RIG, "count", 1)
            .with(|rig| rig.topic("joined", topic).topic("counts", topic));
        let (status, _, stderr) = job.rig.run(&["run"]);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
        assert_eq!(job.kafka.partitions(&job.changelog()), 0, "nothing was created");
    }
}
