//! The command line as a whole, against a cluster in memory.

#[cfg(feature = "broker-tests")]
mod broker;
mod environment;
mod extractors;
mod flags;
mod help;
mod topics;

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};

use super::*;
use crate::port::{Cluster, ErrorKind};
use crate::runtime::RunError;
use crate::startup::testing::{DEMO, FakeCluster};

/// A cluster in memory, and what a run does with it.
struct Fake {
    cluster: Arc<FakeCluster>,
    outcome: Result<(), &'static str>,
    /// Names and partitions of the stages that were launched.
    launched: Arc<Mutex<Vec<(String, i32, bool)>>>,
}

impl Fake {
    fn new(cluster: FakeCluster) -> Self {
        Fake { cluster: Arc::new(cluster), outcome: Ok(()), launched: Arc::default() }
    }
}

struct FakeConnection {
    cluster: Arc<FakeCluster>,
    outcome: Result<(), &'static str>,
    launched: Arc<Mutex<Vec<(String, i32, bool)>>>,
}

impl Backend for Fake {
    fn connect(&self, _: &Settings) -> Result<Box<dyn Connected>, Problem> {
        let (cluster, launched) = (self.cluster.clone(), self.launched.clone());
        Ok(Box::new(FakeConnection { cluster, outcome: self.outcome, launched }))
    }
}

impl Connected for FakeConnection {
    fn cluster(&self) -> &dyn Cluster {
        &*self.cluster
    }

    fn run(self: Box<Self>, launch: Launch) -> Result<(), RunError> {
        let stages = launch.stages.iter();
        let stages = stages
            .map(|stage| (stage.names.stage.to_owned(), stage.partitions, stage.changelog_id.is_some()));
        self.launched.lock().unwrap().extend(stages);
        self.outcome.map_err(|text| RunError(text.into()))
    }
}

/// What a call printed, and its exit status.
struct Ended {
    status: u8,
    out: String,
    err: String,
}

fn call_with(backend: &Fake, arguments: &str, environment: &[(&str, &str)]) -> Ended {
    call_of(&DEMO, backend, arguments, environment)
}

fn call_of(pipeline: &Pipeline, backend: &Fake, arguments: &str, environment: &[(&str, &str)]) -> Ended {
    let arguments =
        std::iter::once("./demo").chain(arguments.split_whitespace()).map(OsString::from).collect();
    let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut output = Output { out: &mut out, err: &mut err, terminal: false, colour: false };
    let status = main_with(
        pipeline,
        Call { arguments, environment, width: Some(100), signals: Signals::default },
        backend,
        &mut output,
    );
    Ended { status, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn call(backend: &Fake, arguments: &str) -> Ended {
    call_with(backend, arguments, &[])
}

fn sound() -> FakeCluster {
    FakeCluster::default().topic("words", 2).topic("counts", 2).topic("alerts", 1)
}

fn answers(backend: &Fake, arguments: &str, expected: Expect) {
    let ended = call(backend, arguments);
    assert_eq!((ended.status, ended.err.as_str()), (CLEAN, ""), "{}", ended.err);
    expected.assert_eq(&ended.out);
}

#[test]
fn wrong_usage_is_status_2_on_standard_error() {
    for arguments in ["--no-such-flag", "frobnicate", "run --store"] {
        let ended = call(&Fake::new(sound()), arguments);
        assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""), "{arguments}");
        assert!(ended.err.contains("error:"), "{arguments}: {}", ended.err);
    }
    let ended = call(&Fake::new(sound()), "topics");
    assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""));
    assert!(ended.err.contains("Usage: demo topics"), "{}", ended.err);
}

#[test]
fn wrong_settings_are_status_2_before_any_connection() {
    let cluster = sound();
    cluster.fail("", ErrorKind::Fatal);
    let ended = call(
        &Fake::new(cluster),
        "check --store disk -X acks=0 -X sasl.password=hunter2 --session-timeout 1s",
    );
    assert_eq!(ended.status, REFUSED);
    expect![[r#"
        5 problems with the settings

        1. "disk" is no value for `store`
           where  flag --store
           mend   set it to memory or rocksdb

        2. `acks` can't be set
           where  flag -X acks=..
           why    a commit must not count before all replicas in sync have it
           mend   remove it

        3. `sasl.password` has a setting of its own, `sasl_password_file`
           where  flag -X sasl.password=..
           why    two settings for one thing would contradict each other
           mend   use --sasl-password-file FILE, or set FLECHTWERK_SASL_PASSWORD

        4. `heartbeat_interval` (500ms) is more than a third of `session_timeout` (1s)
           where  flag --session-timeout
           why    one or two lost signs of life would cost the instance its partitions
           mend   set heartbeat_interval to at most 333ms

        5. `revoke_timeout` (1s) is not below `session_timeout` (1s)
           where  flag --session-timeout
           why    the partitions would be someone else's before the wait for the commit ends
           mend   lower revoke_timeout
    "#]]
    .assert_eq(&ended.err);
}

#[test]
fn flags_count_before_and_after_the_subcommand() {
    for arguments in ["run --max-poll-records x", "--max-poll-records x run", "--max-poll-records x"] {
        let ended = call(&Fake::new(sound()), arguments);
        assert!(ended.err.contains("\"x\" is no value for `max_poll_records`"), "{arguments}: {}", ended.err);
    }
    // The one after the subcommand is the more particular one.
    let ended = call(&Fake::new(sound()), "--max-poll-records x check --max-poll-records 7");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
}

#[test]
fn check_tells_what_would_run() {
    answers(
        &Fake::new(sound()),
        "check",
        expect![[r#"
        STAGE   GROUP        TASKS  CHANGELOG
        count   demo-count   2      demo-count-changelog (made by `run`)
        enrich  demo-enrich  2      -
        merge   demo-merge   2      demo-merge-changelog (made by `run`)

        all checks passed
    "#]],
    );
}

#[test]
fn check_changes_nothing_and_lists_all_problems_with_commands_that_can_be_copied() {
    let backend = Fake::new(FakeCluster::default().topic("words", 2).with_policy(
        "x-demo-count-changelog",
        3,
        "delete",
    ));
    let ended = call(&backend, "check --stage count --namespace x- --bootstrap-servers b:9");
    assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""));
    assert!(backend.cluster.changes().is_empty());
    expect![[r#"
        3 problems with the pipeline `demo` on b:9

        1. the changelog has 3 partitions, but the input has 2
           where  changelog `x-demo-count-changelog` of stage `count`
           why    keys now lie in other partitions than their state: repartitioning needs a state migration
           mend   give the inputs 3 partitions again, as new topics; or let the state be computed anew from them:
                  ./demo reset --stage count --execute --namespace x- --bootstrap-servers b:9

        2. the changelog has cleanup.policy=delete, not compact alone
           where  changelog `x-demo-count-changelog` of stage `count`
           why    Kafka deletes state with its old records
           mend   kafka-configs.sh --bootstrap-server b:9 --alter --entity-type topics --entity-name x-demo-count-changelog --add-config cleanup.policy=compact
                  and where records may be gone already, let the state be computed anew from the inputs:
                  ./demo reset --stage count --execute --namespace x- --bootstrap-servers b:9

        3. topic `counts` does not exist
           where  output of stage `count`
           why    its number of partitions decides where keys go, which is not guessed
           mend   ./demo topics create --partitions N --stage count --namespace x- --bootstrap-servers b:9
                  or start with --create-outputs, for the cluster's defaults
    "#]].assert_eq(&ended.err);
}

#[test]
fn a_run_makes_changelogs_and_hands_over_what_was_checked() {
    let backend = Fake::new(sound());
    let ended = call(&backend, "--log off");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    let expected = [("count", 2, true), ("enrich", 2, false), ("merge", 2, true)];
    assert_eq!(
        *backend.launched.lock().unwrap(),
        expected.map(|(name, n, state)| (name.to_owned(), n, state))
    );
    assert_eq!(
        backend.cluster.changes(),
        ["create demo-count-changelog x2 r-1 compact", "create demo-merge-changelog x2 r-1 compact"]
    );
}

#[test]
fn a_run_of_one_stage_looks_at_that_stage_alone() {
    let backend = Fake::new(FakeCluster::default().topic("words", 2).topic("alerts", 1));
    let ended = call_with(&backend, "run --log off", &[("FLECHTWERK_STAGE", "enrich")]);
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert_eq!(*backend.launched.lock().unwrap(), [("enrich".to_owned(), 2, false)]);
}

#[test]
fn a_run_that_fails_is_status_1_and_one_that_may_not_start_2() {
    let mut backend = Fake::new(sound());
    backend.outcome = Err("stage `count` failed");
    let ended = call(&backend, "run --log off");
    assert_eq!((ended.status, ended.err.as_str()), (FAILED, "error: stage `count` failed\n"));
    let backend = Fake::new(FakeCluster::default());
    let ended = call(&backend, "run --log off");
    assert_eq!(ended.status, REFUSED);
    assert!(backend.launched.lock().unwrap().is_empty());
    assert!(backend.cluster.changes().is_empty());
    assert!(ended.err.contains("topic `words` does not exist"), "{}", ended.err);
}

#[test]
fn startup_problems_are_log_lines_where_the_log_is_for_programs() {
    let ended = call(&Fake::new(FakeCluster::default()), "run --log off --log-format json");
    assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (REFUSED, "", ""));
}

#[test]
fn a_metrics_port_in_use_is_a_startup_problem() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let ended = call(&Fake::new(sound()), &format!("run --log off --metrics-listen {address}"));
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains(&format!("metrics can't be served at {address}")), "{}", ended.err);
}

#[test]
fn topology_needs_no_cluster() {
    let cluster = FakeCluster::default();
    cluster.fail("", ErrorKind::Fatal);
    let backend = Fake::new(cluster);
    for (format, start) in
        [("text", "pipeline demo\n"), ("mermaid", "flowchart LR\n"), ("dot", "digraph"), ("json", "{\n")]
    {
        let ended = call(&backend, &format!("topology --format {format}"));
        assert_eq!(ended.status, CLEAN);
        assert!(ended.out.starts_with(start), "{}", ended.out);
    }
}

fn used() -> FakeCluster {
    sound()
        .changelog("demo-count-changelog", 2)
        .records("words", 0, &[1_000, 2_000, 3_000])
        .records("words", 1, &[5_000])
        .committed("demo-count", "words", 0, 3, "a:1:x")
}

#[test]
fn reset_is_a_dry_run_by_default() {
    let backend = Fake::new(used());
    answers(
        &backend,
        "reset --stage count",
        expect![[r#"
        stage count, group demo-count
        INPUT  PARTITION  COMMITTED  NEW
        words  0          3          0
        words  1          none       0
        changelog demo-count-changelog: to be deleted with all state, and made anew with 2 partitions

        nothing was changed; add --execute to do it
    "#]],
    );
    assert!(backend.cluster.changes().is_empty());
}

#[test]
fn a_reset_to_a_time_to_come_says_where_that_is() {
    let backend = Fake::new(used());
    let ended = call(&backend, "reset --stage count --to 2999-01-01T00:00:00Z");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert!(
        ended.out.contains("words  0          3          3\nwords  1          none       1\n"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("warning: 2999-01-01T00:00:00Z lies ahead"), "{}", ended.out);
    let ended = call(&backend, "reset --stage count --to 1999-01-01T00:00:00Z");
    assert!(!ended.out.contains("warning"), "{}", ended.out);
}

#[test]
fn reset_marks_then_makes_the_changelog_anew_then_clears_the_mark() {
    let backend = Fake::new(used());
    let before = backend.cluster.id("demo-count-changelog");
    let ended =
        call(&backend, "reset --stage count --to 1970-01-01T00:00:02Z --replication-factor 2 --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert_eq!(
        backend.cluster.changes(),
        [
            r#"commit demo-count words/0 1 "resetting""#,
            r#"commit demo-count words/1 0 "resetting""#,
            "delete demo-count-changelog",
            "create demo-count-changelog x2 r2 compact",
            r#"commit demo-count words/0 1 """#,
            r#"commit demo-count words/1 0 """#,
        ]
    );
    assert_ne!(backend.cluster.id("demo-count-changelog"), before);
    assert_eq!(call(&backend, "check --stage count").status, CLEAN);
}

/// S11.1f: the beginning is where the oldest record is that Kafka still has; what lies before it could not be read.
#[test]
fn reset_to_the_beginning_is_to_the_oldest_record_there_is() {
    let backend = Fake::new(used().oldest("words", 0, 2));
    let ended = call(&backend, "reset --stage count --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    let changes = backend.cluster.changes();
    let commits: Vec<_> = changes.iter().filter(|change| change.starts_with("commit")).collect();
    assert_eq!(
        commits,
        [
            r#"commit demo-count words/0 2 "resetting""#,
            r#"commit demo-count words/1 0 "resetting""#,
            r#"commit demo-count words/0 2 """#,
            r#"commit demo-count words/1 0 """#,
        ]
    );
}

#[test]
fn reset_cut_short_at_any_step_stops_the_start_until_it_is_repeated() {
    // In the order of the steps; the last commit clears the mark.
    for (commits, step) in [(0, "commit "), (0, "delete"), (0, "create"), (1, "commit ")] {
        let backend = Fake::new(used());
        backend.cluster.fail_after(commits, step, ErrorKind::Hopeless);
        let ended = call(&backend, "reset --stage count --execute");
        assert_eq!(ended.status, REFUSED, "{step}");
        assert!(
            ended.err.contains("then repeat\n          ./demo reset --stage count --execute"),
            "{step}: {}",
            ended.err
        );
        backend.cluster.mend();
        let changes = backend.cluster.changes();
        let marks = changes.iter().filter(|change| change.contains("resetting")).count();
        let first = (commits, step) == (0, "commit ");
        assert_eq!((marks, changes.is_empty()), if first { (0, true) } else { (2, false) }, "{changes:?}");
        // A first step that failed has changed nothing; the stamp of the last run still stops the start.
        assert_eq!(call(&backend, "check --stage count").status, REFUSED, "{step}");
        assert_eq!(call(&backend, "reset --stage count --execute").status, CLEAN, "{step}");
        assert_eq!(call(&backend, "check --stage count").status, CLEAN, "{step}");
        assert!(backend.cluster.has("demo-count-changelog"));
    }
}

#[test]
fn reset_refuses_while_members_are_alive() {
    let backend = Fake::new(used().members("demo-count", 2));
    let ended = call(&backend, "reset --stage count --execute");
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("the group still has 2 members"), "{}", ended.err);
    assert!(backend.cluster.changes().is_empty());
}

#[test]
fn reset_of_a_stage_without_state_moves_offsets_alone() {
    let backend = Fake::new(used());
    let ended = call(&backend, "reset --stage enrich --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert!(backend.cluster.changes().iter().all(|change| change.starts_with("commit demo-enrich words/")));
}

#[test]
fn reset_of_all_stages_changes_nothing_where_one_can_not_be() {
    let backend = Fake::new(used().members("demo-merge", 1));
    assert_eq!(call(&backend, "reset --execute").status, REFUSED);
    assert!(backend.cluster.changes().is_empty());
}
