//! Flags: where they count, what is said about wrong ones, and which of them the command of a mend repeats.

use super::*;

/// Whoever reads a value, its mistake stands in the one report.
#[test]
fn mistakes_of_flags_environment_and_names_are_one_report() {
    let cluster = sound();
    cluster.fail("", ErrorKind::Fatal);
    let backend = Fake::new(cluster);
    let cases = [
        (
            "topics create --partitions 0 --replication-factor -1 --stage cuont --topic wrods=x --connect-timeout 1",
            &[
                "--partitions",
                "--replication-factor",
                "`cuont`",
                "`wrods`",
                "--connect-timeout",
                "LOG_FORMAT",
            ][..],
        ),
        (
            "reset --to yesterday --replication-factor 99999",
            &["flag --to", "flag --replication-factor", "LOG_FORMAT"],
        ),
        (
            "topology --format svg --topic words=a --topic words=b",
            &["\"svg\"", "`a` and to `b`", "LOG_FORMAT"],
        ),
        ("--max-poll-records -3 run --max-batch-bytes -4", &["\"-3\"", "\"-4\"", "LOG_FORMAT"]),
    ];
    for (arguments, expected) in cases {
        let ended = call_with(&backend, arguments, &[("FLECHTWERK_LOG_FORMAT", "xml")]);
        assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""), "{arguments}");
        let heading = format!("{} problems with the settings\n", expected.len());
        assert!(ended.err.starts_with(&heading), "{arguments}: {}", ended.err);
        for text in expected {
            assert!(ended.err.contains(text), "{text}: {}", ended.err);
        }
    }
}

/// Names made of settings that were not understood would be reported for what they are not; everything else about names is
/// told beside them.
#[test]
fn mistakes_of_names_stand_beside_settings_that_were_not_understood() {
    let long = format!("check --topic {}=x --topic words --stage cuont --stage enrcih", "t".repeat(9));
    let cases = [
        // `counts` may be mapped too, and then nothing clashes.
        ("check --topic words=counts --topic counts", &["NAME=TOPIC"][..]),
        ("check --namespace n/ --topic counts=n-demo-count-changelog", &["namespace"]),
        ("check --topic words=counts --namespace n/", &["namespace", "`counts` and `counts` have one name"]),
        (&long, &["NAME=TOPIC", "`ttttttttt`", "`cuont`", "`enrcih`"]),
        ("check --stage cuont --topic wrods=x -X debug", &["NAME=VALUE", "`cuont`", "`wrods`"]),
        ("check --stage cuont --topic wrods=x --config /no/such", &["/no/such", "`cuont`", "`wrods`"]),
        ("topology --stage cuont --topic words=a --topic words=b", &["mapped twice", "`cuont`"]),
    ];
    for (arguments, expected) in cases {
        let ended = call(&Fake::new(sound()), arguments);
        let heading = format!("{} with the settings", count(expected.len(), "problem"));
        assert!(ended.err.starts_with(&heading), "{arguments}: {}", ended.err);
        for text in expected {
            assert!(ended.err.contains(text), "{arguments}: {text}: {}", ended.err);
        }
    }
}

#[test]
fn what_may_be_repeated_counts_on_both_sides_of_the_subcommand() {
    let backend = Fake::new(sound().topic("w", 2));
    let ended = call(
        &backend,
        "--stage count --topic words=w topology --stage enrich --topic counts=c --topic alerts=a --format text",
    );
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    for text in ["─ count", "─ enrich", "mapped from words", "mapped from counts", "mapped from alerts"] {
        assert!(ended.out.contains(text), "{text}: {}", ended.out);
    }
    assert!(!ended.out.contains("─ merge"), "{}", ended.out);
    // And so in the command of a mend.
    let ended = call(&backend, "--topic counts=c -X debug=eos check --stage count --topic words=w");
    let command =
        "./demo topics create --partitions N --stage count --topic counts=c --topic words=w -X debug=eos";
    assert!(ended.err.contains(command), "{}", ended.err);
}

/// A mend's command does what it says when it is run as it stands, apart from the number that only a person knows.
#[test]
fn the_commands_of_mends_work_as_they_stand() {
    let backend = Fake::new(FakeCluster::default().topic("w", 2));
    let ended = call(&backend, "check --stage count --stage merge --namespace x- --topic words=w");
    assert_eq!(ended.status, REFUSED);
    let command = ended.err.lines().find_map(|line| line.split_once("./demo ")).unwrap().1;
    assert!(
        command.contains("--stage count --stage merge") && command.contains("--topic words=w"),
        "{command}"
    );
    let ended = call(&backend, &command.replace("--partitions N", "--partitions 2"));
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert!(backend.cluster.changes().iter().all(|change| !change.contains("enrich")));
    let ended = call(&backend, "check --stage count --stage merge --namespace x- --topic words=w");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
}

#[test]
fn a_reset_that_was_cut_short_is_repeated_with_its_own_flags() {
    let backend = Fake::new(used());
    backend.cluster.fail("create", ErrorKind::Hopeless);
    let ended =
        call(&backend, "reset --stage count --to 1970-01-01T00:00:02Z --replication-factor 2 --execute");
    let command = ended.err.lines().find_map(|line| line.split_once("./demo ")).unwrap().1;
    assert_eq!(command, "reset --stage count --execute --to 1970-01-01T00:00:02.000Z --replication-factor 2");
}

/// The development broker belongs to a run, and is the cluster.
#[test]
fn dev_goes_with_a_run_and_with_no_other_cluster() {
    let backend = Fake::new(sound());
    let cases = [
        ("check --dev", "error: unexpected argument '--dev' found"),
        ("--dev check", "the development broker lives as long as a run"),
        ("run --dev-partitions 3", "there is no development broker to create topics on"),
        ("run --dev --dev-partitions none", "\"none\" is no value for `dev-partitions`"),
        ("--dev --bootstrap-servers a:1", "two clusters are named"),
        ("--dev run --bootstrap-servers a:1", "two clusters are named"),
        (
            "--sasl-username ann run --dev --tls-ca none",
            "the one of --sasl-username, --tls-ca, and the development broker",
        ),
    ];
    for (arguments, expected) in cases {
        let ended = call(&backend, arguments);
        assert_eq!((ended.status, ended.out.as_str()), (REFUSED, ""), "{arguments}");
        assert!(ended.err.contains(expected), "{arguments}: {}", ended.err);
    }
    assert!(backend.launched.lock().unwrap().is_empty());
}

/// A flag is stronger than the environment and the file: what they say of a cluster is for other calls, and need not even
/// be right here.
#[test]
fn dev_wins_over_a_cluster_of_the_environment_and_of_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "sasl_username = \"ann\"\nnamespace = \"n-\"").unwrap();
    let environment = [
        ("FLECHTWERK_BOOTSTRAP_SERVERS", "prod:9092"),
        ("FLECHTWERK_TLS_CA", "/no/such/file"),
        ("FLECHTWERK_SASL_PASSWORD", "hunter2"),
    ];
    let given = Given {
        environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
        config: Some(file.path().into()),
        own_cluster: true,
        ..Given::default()
    };
    let (read, problems) = read(&given);
    assert!(problems.is_empty(), "{problems:#?}");
    let mut expected = Settings { namespace: "n-".into(), ..Settings::default() };
    expected.resources.file = Some(file.path().into());
    assert_eq!(read.settings, expected);
    let [warning] = &read.warnings[..] else { panic!("{:#?}", read.warnings) };
    for named in ["--dev", "`sasl_username` in /", "FLECHTWERK_BOOTSTRAP_SERVERS", "FLECHTWERK_TLS_CA"] {
        assert!(warning.contains(named), "{named}: {warning}");
    }
    assert!(!warning.contains("hunter2"));
    // And of no other call.
    let (_, problems) = crate::settings::read(&Given { own_cluster: false, ..given });
    assert!(problems.iter().any(|problem| problem.what.contains("/no/such/file")), "{problems:#?}");
}

#[cfg(not(feature = "dev-broker"))]
#[test]
fn dev_needs_its_feature() {
    let ended = call(&Fake::new(sound()), "run --dev");
    assert_eq!(ended.status, REFUSED);
    assert!(ended.err.contains("features = [\"dev-broker\"]"), "{}", ended.err);
}
