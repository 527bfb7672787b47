//! A listener with TLS and SCRAM: how to get in, what is said to those who don't, and that nobody reads a password.

use std::time::Duration;

use flechtwerk_tests::job::{answer, program, wait_for_tasks};
use flechtwerk_tests::{Job, Kafka, Rig};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run these tests with `make test`, or start the broker with `scripts/kafka start --tls`")
    })
}

fn password() -> String {
    let path = variable("FLECHTWERK_TEST_PASSWORD_FILE");
    std::fs::read_to_string(path).expect("the password's file").trim().to_owned()
}

/// Goes to the secured listener, with a user and without a password yet.
fn secured(rig: Rig) -> Rig {
    rig.arg("--bootstrap-servers", &variable("FLECHTWERK_TEST_TLS_BROKERS"))
        .arg("--tls-ca", &variable("FLECHTWERK_TEST_CA"))
        .arg("--sasl-username", &variable("FLECHTWERK_TEST_USER"))
        .arg("--connect-timeout", "5s")
}

/// Both ways to give a password lead in; with everything logged, it is in no line.
#[test]
fn password_by_file_and_by_environment() {
    let file = variable("FLECHTWERK_TEST_PASSWORD_FILE");
    let password = password();
    let ways: [&dyn Fn(Rig) -> Rig; 2] = [&|rig| rig.arg("--sasl-password-file", &file), &|rig| {
        rig.env("FLECHTWERK_SASL_PASSWORD", &password)
    }];
    for way in ways {
        let job = Job::new(&Kafka::from_env(), RIG, "count", 2)
            .with(|rig| way(secured(rig)).arg("--log", "trace").arg("-X", "debug=security,broker,conf"));
        let mut instance = job.rig.start();
        wait_for_tasks(&instance, 2);
        job.write("words", 0, "a", &["x", "x"]);
        job.wait_for_offset("words", 0, 2);
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        job.assert_counted(2);
        assert!(instance.log().contains("SCRAM-SHA-512"), "librdkafka's own lines are in the log");
        assert!(!instance.log().contains(&password), "the password is in the log");
    }
}

/// S7.3b: the line that mends a policy is complete, for an open cluster and for a secured one, up to the password.
#[test]
fn the_line_that_mends_a_policy_works_as_it_stands() {
    let file = variable("FLECHTWERK_TEST_PASSWORD_FILE");
    let ways: [&dyn Fn(Rig) -> Rig; 2] = [&|rig| rig, &|rig| secured(rig).arg("--sasl-password-file", &file)];
    for way in ways {
        let job = Job::new(&Kafka::from_env(), RIG, "count", 1).with(way);
        job.kafka.create_topic(&job.changelog(), 1, &[("cleanup.policy", "compact,delete")]);
        let (status, _, stderr) = job.rig.run(&["check"]);
        assert_eq!(status, 2, "{stderr}");
        assert!(!stderr.contains(&password()), "{stderr}");
        let lines: Vec<&str> = stderr.lines().map(str::trim_start).collect();
        let at = lines.iter().position(|line| line.contains("kafka-configs.sh")).expect("the line");
        let (_, line) = lines[at].split_once("kafka-configs.sh").expect("the tool");
        let dir = tempfile::tempdir().expect("a folder");
        let properties = lines[at + 1..].iter().take_while(|line| !line.starts_with("and where"));
        let properties = properties.skip(1).map(|line| line.replace("PASSWORD", &password()) + "\n");
        std::fs::write(dir.path().join("client.properties"), properties.collect::<String>()).expect("a file");

        let line = format!("{} tool configs{line}", variable("FLECHTWERK_TEST_KAFKA"));
        let mut shell = std::process::Command::new("sh");
        let (status, stdout, stderr) =
            answer(shell.args(["-c", &line]).current_dir(dir.path()).output().expect("run the line"));
        assert_eq!(status, 0, "{line}: {stdout}{stderr}");
        let (status, stdout, stderr) = job.rig.run(&["check"]);
        assert_eq!(status, 0, "{stdout}{stderr}");
    }
}

/// A wrong password is named as what it is, with status 2, and not repeated.
#[test]
fn wrong_password() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1)
        .with(|rig| secured(rig).env("FLECHTWERK_SASL_PASSWORD", "hunter2-wrong").arg("--log", "trace"));
    let (status, stdout, stderr) = job.rig.run(&["run"]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(stderr.contains("Authentication failed") && stderr.contains("SCRAM-SHA-512"), "{stderr}");
    assert!(!stderr.contains("hunter2") && !stdout.contains("hunter2"), "{stdout}{stderr}");
    assert_eq!(job.kafka.partitions(&job.changelog()), 0, "nothing was created");
}

/// Without the right authority the broker is not believed.
#[test]
fn certificate_of_a_stranger() {
    let arguments = [
        "check",
        "--bootstrap-servers",
        &variable("FLECHTWERK_TEST_TLS_BROKERS"),
        "--sasl-username",
        &variable("FLECHTWERK_TEST_USER"),
        "--sasl-password-file",
        &variable("FLECHTWERK_TEST_PASSWORD_FILE"),
        "--connect-timeout",
        "2s",
    ];
    let (status, _, stderr) = answer(program(RIG, &arguments).output().expect("run it"));
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("certificate could not be verified"), "{stderr}");
    assert!(!stderr.contains(&password()), "{stderr}");
}

/// A secret on the command line is refused without being shown, and so is one in the file.
#[test]
fn secrets_have_their_places() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("settings.toml");
    std::fs::write(&path, "sasl_password = \"hunter2-file\"\n").expect("write the file");
    let cases = [
        vec!["run", "-X", "sasl.password=hunter2-flag"],
        vec!["run", "-X", "ssl.keystore.password=hunter2-flag"],
        vec!["run", "--sasl-password", "hunter2-flag"],
        vec!["run", "--config", path.to_str().expect("a path")],
    ];
    for arguments in cases {
        let (status, stdout, stderr) = answer(program(RIG, &arguments).output().expect("run it"));
        assert_eq!(status, 2, "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains("password"), "{stderr}");
        assert!(
            !stderr.contains("hunter2") && !stdout.contains("hunter2"),
            "{arguments:?}: {stdout}{stderr}"
        );
    }
    let mut unfinished = program(RIG, &["check", "--sasl-username", "ann"]);
    let (status, _, stderr) = answer(unfinished.output().expect("run it"));
    assert_eq!(status, 2, "{stderr}");
    assert!(
        stderr.contains("FLECHTWERK_SASL_PASSWORD") && stderr.contains("--sasl-password-file"),
        "{stderr}"
    );
}
