//! Settings (S11.2, S7.6): where they come from, and that what is wrong is named with its place before anything starts.

use std::path::PathBuf;
use std::process::Command;

use flechtwerk_tests::job::{answer, program};
use flechtwerk_tests::{Job, Kafka};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn file(dir: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("settings.toml");
    std::fs::write(&path, text).expect("write the file");
    path
}

fn run(mut command: Command) -> (i32, String) {
    let (status, stdout, stderr) = answer(command.output().expect("run it"));
    (status, stdout + &stderr)
}

/// Refused with status 2, and all of these texts in one report.
#[track_caller]
fn refuses(command: Command, texts: &[&str]) -> String {
    let (status, text) = run(command);
    assert_eq!(status, 2, "{text}");
    for wanted in texts {
        assert!(text.contains(wanted), "{wanted:?} in:\n{text}");
    }
    text
}

/// The flag wins over the environment, that over the file, and the file over the default.
#[test]
fn flags_win_over_environment_over_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path =
        file(&dir, "namespace = \"file-\"\n[topic]\nwords = \"file.words\"\ncounts = \"file.counts\"\n");
    let group = |flags: &[&str], environment: &[(&str, &str)], with_file: bool| {
        let mut command = program(RIG, &["topology", "--stage", "count"]);
        command.args(flags).envs(environment.iter().copied());
        if with_file {
            command.arg("--config").arg(&path);
        }
        let (status, text) = run(command);
        assert_eq!(status, 0, "{text}");
        text
    };
    let (flag, environment) = (["--namespace", "flag-"], [("FLECHTWERK_NAMESPACE", "env-")]);
    assert!(group(&flag, &environment, true).contains("flag-rig-count-changelog"));
    assert!(group(&[], &environment, true).contains("env-rig-count-changelog"));
    let from_file = group(&[], &[], true);
    assert!(
        from_file.contains("file-rig-count-changelog") && from_file.contains("file.words"),
        "{from_file}"
    );
    assert!(group(&[], &[], false).contains("in rig-count-changelog"));
    assert!(group(&[], &[("FLECHTWERK_NAMESPACE", "")], true).contains("file-rig-count"), "empty is not set");
    let by_variable = [("FLECHTWERK_CONFIG", path.to_str().expect("a path"))];
    assert!(group(&[], &by_variable, false).contains("file-rig-count"));
}

/// S7.6: what the guarantees rest on is refused wherever it stands, with the place, all in one report.
#[test]
fn protected_settings() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "[kafka]\nenable.idempotence = false\n\"group.id\" = \"mine\"\n");
    let mut command = program(RIG, &["run", "-X", "acks=0", "-X", "transaction.timeout.ms=1"]);
    command.arg("--config").arg(&path);
    command.env("FLECHTWERK_KAFKA_ISOLATION_LEVEL", "read_uncommitted");
    let text = refuses(
        command,
        &[
            "5 problems",
            "`acks` can't be set",
            "flag -X acks",
            "`isolation.level` can't be set",
            "FLECHTWERK_KAFKA_ISOLATION_LEVEL",
            "`enable.idempotence` can't be set",
            "settings.toml",
            "`group.id` can't be set",
            "`transaction.timeout.ms` has a setting of its own",
            "--transaction-timeout",
        ],
    );
    assert!(!text.contains("mine"), "{text}");
}

#[test]
fn unknown_names_and_wrong_values() {
    refuses(program(RIG, &["run", "--comit-interval", "5ms"]), &["--comit-interval", "'--commit-interval'"]);
    refuses(program(RIG, &["rnu"]), &["unrecognized subcommand 'rnu'"]);
    refuses(program(RIG, &["run", "-X", "no.such.thing=1"]), &["`no.such.thing` can't be set"]);

    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "comit_interval = \"5ms\"\nmax_poll_records = \"many\"\n");
    let mut command = program(RIG, &["run", "--store", "disk"]);
    command.arg("--config").arg(&path).env("FLECHTWERK_SESSION_TIMEOUT", "soon");
    refuses(
        command,
        &[
            "4 problems",
            "comit_interval",
            "commit_interval",
            "settings.toml",
            "\"many\" is no value for `max_poll_records`",
            "\"disk\" is no value for `store`",
            "memory or rocksdb",
            "\"soon\" is no value for `session_timeout`",
            "FLECHTWERK_SESSION_TIMEOUT",
        ],
    );
    let missing = dir.path().join("missing.toml");
    refuses(program(RIG, &["run", "--config", missing.to_str().expect("a path")]), &["missing.toml"]);
    refuses(program(RIG, &["run", "--stay-in-group"]), &["stay_in_group", "--instance-id"]);
    let (status, text) = run(program(RIG, &["--help"]));
    assert!(status == 0 && text.contains("--commit-interval") && text.contains("Exit status: 0"), "{text}");
}

/// A cluster that does not answer at the start is an error with the address, status 2.
#[test]
fn broker_that_is_down_at_the_start() {
    // A port that was free a moment ago; nobody listens there.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port").port();
    let address = format!("127.0.0.1:{port}");
    for command in ["run", "check"] {
        let arguments =
            [command, "--bootstrap-servers", &address, "--connect-timeout", "1s", "--store", "memory"];
        refuses(
            program(RIG, &arguments),
            &[
                &format!("no broker at {address} answered within 1s"),
                "`bootstrap_servers`",
                "start the brokers",
            ],
        );
    }
}

/// A port that is taken is told as such, before a group is joined.
#[test]
fn metrics_port_that_is_taken() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (status, _, stderr) = job.rig.clone().arg("--metrics-listen", &address).run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains(&address) && stderr.contains("metrics_listen"), "{stderr}");
    assert_eq!(job.kafka.partitions(&job.changelog()), 0, "nothing was created");
}
