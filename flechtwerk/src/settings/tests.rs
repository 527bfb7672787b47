//! Precedence, provenance and refusals of the settings as a whole.

mod doubts;

use std::ffi::OsString;
use std::time::Duration;

use figment::value::{Dict, Value};
use proptest::prelude::*;

use super::keys::{KEYS, flag, variable};
use super::*;
use crate::startup::Problem;

fn flags(pairs: &[(&str, Value)]) -> Dict {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

/// The settings, or all that is wrong with them.
fn load(given: &Given) -> Result<load::Loaded, Vec<Problem>> {
    let (loaded, problems) = read(given);
    if problems.is_empty() { Ok(loaded) } else { Err(problems) }
}

/// A settings file that lives as long as the answer.
fn file(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

fn from_file(content: &str) -> Result<load::Loaded, Vec<Problem>> {
    let file = file(content);
    load(&Given { config: Some(file.path().into()), ..Given::default() })
}

fn from_environment(pairs: &[(&str, &str)]) -> Result<load::Loaded, Vec<Problem>> {
    load(&Given { environment: environment(pairs), ..Given::default() })
}

fn one_problem(result: Result<load::Loaded, Vec<Problem>>) -> Problem {
    let mut problems = result.unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

#[test]
fn nothing_given_is_the_defaults() {
    let loaded = load(&Given::default()).unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert!(loaded.warnings.is_empty());
}

#[test]
fn a_file_can_set_everything_in_its_own_types() {
    let loaded = from_file(
        r#"
        bootstrap_servers = "a:1,b:2"
        stage = ["count", "merge"]
        namespace = "007"
        stay_in_group = true
        instance_id = "one"
        store = "memory"
        max_poll_records = 17
        max_batch_bytes = "1MiB"
        commit_interval = "1s 500ms"
        log_format = "json"

        [topic]
        words = "prod.words"
        dotted.name = "x"

        [kafka]
        socket.keepalive.enable = true
        "statistics.interval.ms" = 1000
        "#,
    );
    let settings = loaded.unwrap().settings;
    assert_eq!(settings.bootstrap_servers, "a:1,b:2");
    assert_eq!(settings.stage, ["count", "merge"]);
    assert_eq!(settings.namespace, "007");
    assert!(settings.stay_in_group);
    assert_eq!(settings.max_poll_records, 17);
    assert_eq!(settings.max_batch_bytes, 1 << 20);
    assert_eq!(settings.commit_interval, Duration::from_millis(1500));
    assert_eq!(settings.log_format, LogFormat::Json);
    assert_eq!(settings.topic["words"], "prod.words");
    assert_eq!(settings.topic["dotted.name"], "x");
    let kafka: Vec<_> = settings.librdkafka.iter().collect();
    assert_eq!(kafka, [("socket.keepalive.enable", "true"), ("statistics.interval.ms", "1000")]);
}

#[test]
fn the_environment_is_text_and_stays_text() {
    let settings = from_environment(&[
        ("FLECHTWERK_NAMESPACE", "007"),
        ("FLECHTWERK_INSTANCE_ID", "true"),
        ("FLECHTWERK_STAGE", "count, merge"),
        ("FLECHTWERK_TOPIC", "words=a,counts=b"),
        ("FLECHTWERK_STAY_IN_GROUP", "true"),
        ("FLECHTWERK_KAFKA_SOCKET_KEEPALIVE_ENABLE", "true"),
        ("FLECHTWERK_STORE", ""),
    ]);
    let settings = settings.unwrap().settings;
    assert_eq!(settings.namespace, "007");
    assert_eq!(settings.instance_id.as_deref(), Some("true"));
    assert_eq!(settings.stage, ["count", "merge"]);
    assert_eq!(settings.topic["counts"], "b");
    assert_eq!(settings.librdkafka.get("socket.keepalive.enable"), Some("true"));
    assert_eq!(settings.store, Settings::default().store);
}

#[test]
fn entries_of_topic_and_kafka_are_overridden_one_by_one() {
    let file = file("[topic]\nwords = \"f\"\ncounts = \"f\"\nalerts = \"f\"");
    let given = Given {
        config: Some(file.path().into()),
        environment: environment(&[("FLECHTWERK_TOPIC", "counts=e,alerts=e")]),
        flags: flags(&[("topic", Value::from(vec!["alerts=c"]))]),
        ..Given::default()
    };
    let topic = load(&given).unwrap().settings.topic;
    assert_eq!(
        (topic["words"].as_str(), topic["counts"].as_str(), topic["alerts"].as_str()),
        ("f", "e", "c")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever of the three places speaks, the strongest one that does wins, for settings of different kinds.
    #[test]
    fn the_strongest_place_wins(
        in_file in proptest::option::of(1..1000u32),
        in_environment in proptest::option::of(1..1000u32),
        in_flags in proptest::option::of(1..1000u32),
        key in proptest::sample::select(vec![
            ("max_poll_records", ""), ("commit_interval", "ms"), ("max_batch_bytes", "KiB"), ("namespace", "-"),
        ]),
    ) {
        let (key, unit) = key;
        let value = |number: u32| format!("{number}{unit}");
        let content = in_file.map(|number| format!("{key} = {:?}", value(number))).unwrap_or_default();
        let file = file(&content);
        let given = Given {
            config: Some(file.path().into()),
            environment: in_environment.map(|n| (variable(key).into(), value(n).into())).into_iter().collect(),
            flags: in_flags.map(|n| (key.to_owned(), Value::from(value(n)))).into_iter().collect(),
            ..Given::default()
        };
        let settings = load(&given).unwrap().settings;
        let mut default = Settings::default();
        default.resources.file = Some(file.path().into());
        match (key, in_flags.or(in_environment).or(in_file)) {
            (_, None) => prop_assert_eq!(settings, default),
            ("max_poll_records", Some(n)) => prop_assert_eq!(settings, Settings { max_poll_records: n as usize, ..default }),
            ("commit_interval", Some(n)) => {
                let commit_interval = Duration::from_millis(n.into());
                prop_assert_eq!(settings, Settings { commit_interval, ..default });
            }
            ("max_batch_bytes", Some(n)) => prop_assert_eq!(settings, Settings { max_batch_bytes: (n as usize) << 10, ..default }),
            (_, Some(n)) => prop_assert_eq!(settings, Settings { namespace: value(n), ..default }),
        }
    }

    /// No text whatever makes reading panic, and a wrong value always names its setting and its place.
    #[test]
    fn any_text_is_read_or_refused_by_name(text in "[ -~]{1,20}", index in 0..KEYS.len()) {
        let key = &KEYS[index];
        if let Err(problems) = from_environment(&[(&variable(key.name), &text)]) {
            let named = problems.iter().any(|problem| problem.to_string().to_lowercase().contains(key.name));
            prop_assert!(named, "{:#?}", problems);
        }
    }
}

#[test]
fn a_wrong_value_names_setting_source_and_what_is_allowed() {
    let problem = one_problem(from_environment(&[("FLECHTWERK_COMMIT_INTERVAL", "50")]));
    assert_eq!(problem.what, "\"50\" is no value for `commit_interval`");
    assert_eq!(problem.place, "environment variable FLECHTWERK_COMMIT_INTERVAL");
    assert_eq!(problem.mend, "set it to a time with its unit, such as 50ms, 15s or 5min");
    let problem = one_problem(load(&Given { flags: flags(&[("store", "disk".into())]), ..Given::default() }));
    assert_eq!(problem.place, "flag --store");
    let problem = one_problem(from_file("max_poll_records = -3"));
    assert!(problem.place.starts_with("`max_poll_records` in /"), "{problem}");
}

#[test]
fn all_wrong_values_are_reported_together() {
    let given =
        [("FLECHTWERK_STORE", "disk"), ("FLECHTWERK_LOG", "loud"), ("FLECHTWERK_METRICS_LISTEN", "9100")];
    assert_eq!(from_environment(&given).unwrap_err().len(), 3);
}

#[test]
fn unknown_keys_of_a_file_are_errors_and_unknown_variables_warnings() {
    let problem = one_problem(from_file("comit_interval = \"1s\""));
    assert_eq!(problem.mend, "did you mean `commit_interval`?");
    let problem = one_problem(from_file("[zookeeper]\nconnect = \"a\""));
    assert_eq!(problem.what, "there is no setting `zookeeper`");
    let loaded = from_environment(&[("FLECHTWERK_COMIT_INTERVAL", "1s"), ("OTHER", "x")]).unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "environment variable FLECHTWERK_COMIT_INTERVAL names no setting and is ignored; did you mean FLECHTWERK_COMMIT_INTERVAL?"
        ]
    );
}

#[test]
fn a_named_file_must_be_there_and_be_toml() {
    let problem = one_problem(load(&Given { config: Some("/no/such/file".into()), ..Given::default() }));
    assert!(problem.what.contains("can't be read"), "{problem}");
    let problem = one_problem(from_environment(&[("FLECHTWERK_CONFIG", "/no/such/file")]));
    assert!(problem.place.contains("/no/such/file"), "{problem}");
    let problem = one_problem(from_file("namespace = \"a\"\nkafka.x = hunter2 oops"));
    assert!(problem.what.contains("line 2"), "{problem}");
    assert!(!problem.to_string().contains("hunter2"), "{problem}");
}

#[test]
fn secrets_come_from_files_and_the_environment() {
    let password = file("s3cret\n");
    let path = password.path().to_str().unwrap();
    let user = ("FLECHTWERK_SASL_USERNAME", "ann");
    let problems = |pairs: &[(&str, &str)]| from_environment(pairs).map(|loaded| loaded.settings.sasl);
    // Without the feature there is one problem, which is about the feature; the rest is read all the same.
    let sasl = |pairs: &[(&str, &str)]| match problems(pairs) {
        Ok(sasl) => sasl,
        Err(problems) => {
            assert!(problems.iter().all(|problem| problem.what.contains("built without")), "{problems:#?}");
            None
        }
    };
    if cfg!(feature = "sasl") {
        let expected = |text: &str| Sasl {
            mechanism: SaslMechanism::ScramSha512,
            username: "ann".into(),
            password: Secret::new(text),
        };
        assert_eq!(sasl(&[user, ("FLECHTWERK_SASL_PASSWORD_FILE", path)]), Some(expected("s3cret")));
        assert_eq!(sasl(&[user, ("FLECHTWERK_SASL_PASSWORD", "other")]), Some(expected("other")));
    } else {
        assert_eq!(sasl(&[user, ("FLECHTWERK_SASL_PASSWORD", "other")]), None);
    }
    let both = problems(&[user, ("FLECHTWERK_SASL_PASSWORD", "x"), ("FLECHTWERK_SASL_PASSWORD_FILE", path)]);
    assert!(both.unwrap_err().iter().any(|problem| problem.what.starts_with("both ")));
    let missing = problems(&[user]).unwrap_err();
    assert!(missing.iter().any(|problem| problem.mend.contains("--sasl-password-file")), "{missing:#?}");
}

#[test]
fn a_secret_in_the_settings_file_is_refused_and_not_shown() {
    let problem = one_problem(from_file("sasl_password = \"hunter2\""));
    assert!(
        problem.mend.contains("sasl_password_file") && problem.mend.contains("FLECHTWERK_SASL_PASSWORD"),
        "{problem}"
    );
    assert!(!problem.to_string().contains("hunter2"));
}

#[test]
fn an_empty_or_missing_password_file_is_named() {
    let empty = file("\n");
    let path = empty.path().to_str().unwrap();
    for path in [path, "/no/such/file"] {
        let problems = from_environment(&[("FLECHTWERK_SASL_PASSWORD_FILE", path)]).unwrap_err();
        assert!(problems.iter().any(|problem| problem.what.contains(path)), "{problems:#?}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let sasl =
        Sasl { mechanism: SaslMechanism::Plain, username: "ann".into(), password: Secret::new("hunter2") };
    let tls = Tls { key_password: Some(Secret::new("hunter2")), ..Tls::default() };
    let librdkafka = Librdkafka::new([("ssl.keystore.password".to_owned(), "hunter2".to_owned())].into());
    let settings = Settings { sasl: Some(sasl), tls, librdkafka, ..Settings::default() };
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn settings_that_contradict_each_other_are_refused_naming_both() {
    type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: &[Case] = &[
        (&[("FLECHTWERK_HEARTBEAT_INTERVAL", "4s")], &["heartbeat_interval", "session_timeout", "3s333ms"]),
        (&[("FLECHTWERK_REVOKE_TIMEOUT", "10s")], &["revoke_timeout", "session_timeout"]),
        (
            &[("FLECHTWERK_MAX_BATCH_BYTES", "64MiB")],
            &["max_batch_bytes", "transaction_timeout", "15MiB", "65s"],
        ),
        (&[("FLECHTWERK_KAFKA_SOCKET_TIMEOUT_MS", "60000")], &["socket.timeout.ms", "transaction_timeout"]),
        (&[("FLECHTWERK_STAY_IN_GROUP", "true")], &["stay_in_group", "instance_id"]),
        (&[("FLECHTWERK_INSTANCE_ID", "a b")], &["instance id", "' '"]),
        (&[("FLECHTWERK_SECURITY_PROTOCOL", "sasl_plaintext")], &["SASL"]),
        (&[("FLECHTWERK_TLS_CERT", "/dev/null")], &["tls_cert", "tls_key"]),
    ];
    for (given, expected) in cases {
        let text = format!("{:#?}", from_environment(given).unwrap_err());
        for word in *expected {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn a_store_that_is_not_compiled_in_says_how_to_get_it() {
    let loaded = from_environment(&[("FLECHTWERK_STORE", "rocksdb")]);
    if cfg!(feature = "rocksdb") {
        assert_eq!(loaded.unwrap().settings.store, StoreKind::RocksDb);
    } else {
        assert!(one_problem(loaded).mend.contains("feature `rocksdb`"));
    }
}

#[test]
fn malformed_pairs_are_refused_without_being_shown() {
    let given = Given { flags: flags(&[("kafka", Value::from(vec!["hunter2"]))]), ..Given::default() };
    let problem = one_problem(load(&given));
    assert_eq!(problem.place, "flag -X");
    assert!(!problem.to_string().contains("hunter2"));
}

#[test]
fn names_of_flags_and_variables_follow_from_the_setting() {
    assert_eq!(flag("max_batch_bytes"), "--max-batch-bytes");
    assert_eq!(flag("kafka"), "-X");
    assert_eq!(variable("max_batch_bytes"), "FLECHTWERK_MAX_BATCH_BYTES");
}

#[test]
fn a_namespace_that_is_blank_or_no_part_of_a_topic_name_says_what_it_may_be() {
    for namespace in ["", " ", "a b", "n/"] {
        let flags = flags(&[("namespace", namespace.into())]);
        let problem = one_problem(load(&Given { flags, ..Given::default() }));
        assert_eq!(problem.place, "flag --namespace");
        assert!(problem.mend.ends_with("such as test-, or leave it out for none"), "{problem}");
    }
    for namespace in ["test-", ".", "..", "a.b_C-9"] {
        let flags = flags(&[("namespace", namespace.into())]);
        assert_eq!(load(&Given { flags, ..Given::default() }).unwrap().settings.namespace, namespace);
    }
}

#[test]
fn one_place_that_maps_a_topic_twice_is_refused_naming_both() {
    let twice = Value::from(vec!["words=a", "words=b"]);
    let problem = one_problem(load(&Given { flags: flags(&[("topic", twice)]), ..Given::default() }));
    assert_eq!(problem.what, "`words` is mapped twice: to `a` and to `b`");
    assert_eq!(problem.place, "flag --topic");
    let problem = one_problem(from_environment(&[("FLECHTWERK_TOPIC", "words=a,words=b")]));
    assert_eq!(problem.place, "environment variable FLECHTWERK_TOPIC");
    let same = Value::from(vec!["words=a", "words=a"]);
    let loaded = load(&Given { flags: flags(&[("topic", same)]), ..Given::default() }).unwrap();
    assert_eq!(loaded.settings.topic["words"], "a");
    let twice = Value::from(vec!["debug=eos", "debug=hunter2"]);
    let problem = one_problem(load(&Given { flags: flags(&[("kafka", twice)]), ..Given::default() }));
    assert_eq!(problem.what, "`debug` is set twice");
    assert!(!problem.to_string().contains("hunter2"), "{problem}");
}
