//! The help texts as they are shown, and what they must agree with.

use clap::CommandFactory;
use expect_test::expect;

use super::{Fake, answers, call, sound};
use crate::cli::CLEAN;
use crate::cli::args::Cli;
use crate::settings::Settings;

#[test]
fn the_grammar_is_sound() {
    Cli::command().debug_assert();
}

#[cfg(feature = "rocksdb")]
#[test]
fn short_help() {
    answers(
        &Fake::new(sound()),
        "-h",
        expect![[r#"
            The pipeline `demo`: stages `count`, `enrich` and `merge`

            Usage: demo [OPTIONS] [COMMAND]

            Commands:
              run       Runs the stages until SIGTERM or SIGINT (the default)
              check     Makes the startup checks and lists every problem with its mend; changes nothing
              topology  Shows stages, topics, groups and changelogs; needs no cluster
              topics    Creates topics
              reset     Lets stages begin anew: offsets to the beginning or a time, state empty

            Options:
              -h, --help     Print help (see more with '--help')
              -V, --version  Print version

            Pipeline:
                  --config <FILE>       Settings file (TOML) [env: FLECHTWERK_CONFIG]
                  --stage <NAME>        Stage to work on; repeatable [default: all]
                  --namespace <PREFIX>  Prefix of groups, transactional ids and changelogs, so that two
                                        environments can share a cluster
                  --topic <NAME=TOPIC>  Uses TOPIC in the cluster for the topic that the code calls NAME;
                                        repeatable

            Cluster:
                  --bootstrap-servers <HOST:PORT>  Brokers to ask first, comma separated [default:
                                                   localhost:9092]
                  --security-protocol <PROTOCOL>   plaintext, tls, sasl_plaintext or sasl_tls [default: by what
                                                   else is set]
                  --sasl-mechanism <MECHANISM>     PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 [default:
                                                   SCRAM-SHA-512]
                  --sasl-username <NAME>           User to log in as
                  --sasl-password-file <FILE>      File that holds the user's password
                  --tls-ca <FILE>                  Certificates of the authorities to trust, PEM [default: the
                                                   system's]
                  --tls-cert <FILE>                Certificate of this client, PEM
                  --tls-key <FILE>                 Its private key, PEM
                  --tls-key-password-file <FILE>   File that holds the key's password
                  --connect-timeout <TIME>         How long to wait for the cluster's first answer [default:
                                                   10s]
              -X <KEY=VALUE>                       Setting of librdkafka, such as socket.keepalive.enable=true;
                                                   repeatable

            Schema registry:
                  --schema-registry <URL>
                      Schema registry to ask, http://HOST:PORT; several with commas between
                  --schema-registry-username <NAME>
                      User to show to the schema registry
                  --schema-registry-password-file <FILE>
                      File that holds that user's password
                  --schema-registry-token-file <FILE>
                      File that holds a token to show to the schema registry, instead of a user
                  --schema-registry-ca <FILE>
                      Certificates of the authorities to trust for the schema registry, PEM [default: the
                      system's]
                  --register-schemas[=<BOOL>]
                      Registers the schemas of outputs that the schema registry does not have

            Observing:
                  --log <FILTER>                Log lines to write: a level, or levels by module as in
                                                info,flechtwerk=debug [default: info; other commands than run:
                                                warn]
                  --log-format <FORMAT>         text or json [default: text]
                  --metrics-listen <HOST:PORT>  Serves /metrics, /live and /ready [default: nowhere]

            Running:
                  --create-outputs[=<BOOL>]  Creates missing output topics with the cluster's defaults
                  --instance-id <ID>         Name of this instance, the same after a restart: it then has its
                                             partitions back at once
                  --stay-in-group[=<BOOL>]   Stays in its groups at a stop, to be waited for (rolling restarts);
                                             needs an --instance-id
                  --store <STORE>            Where state is kept: memory or rocksdb [default: rocksdb]
                  --state-dir <DIR>          Folder of the state on disk [default: flechtwerk-state]
                  --shutdown-timeout <TIME>  Longest time for the tasks at a clean stop; leaving takes up to 10s
                                             more [default: 30s]

            Batches:
                  --max-poll-records <N>      Most records of a transaction [default: 5000]
                  --max-batch-bytes <SIZE>    Most bytes of a transaction: inputs, outputs and changed state
                                              [default: 8MiB]
                  --max-batch-time <TIME>     Longest time for the user code of one batch, after which the
                                              process stops [default: 5m]
                  --commit-interval <TIME>    Shortest time between two commits of a task while records keep
                                              coming [default: 50ms]
                  --max-concurrent-polls <N>  Most calls of an extractor at a time [default: 100]

            Time limits:
                  --broker-timeout <TIME>       How long a failing request is repeated before the process stops
                                                [default: 2m]
                  --revoke-timeout <TIME>       How long a commit in flight may take when its partition is taken
                                                away [default: 1s]
                  --session-timeout <TIME>      How long an instance may be silent before the others take over
                                                [default: 10s]
                  --heartbeat-interval <TIME>   Time between two signs of life to the group [default: 500ms]
                  --transaction-timeout <TIME>  How long a transaction may be open before the cluster aborts it
                                                [default: 15s]

            Development:
                  --dev                 Runs on a development broker inside this process, with all topics
                                        created; state in memory, unless --store says otherwise. Everything is
                                        gone at the end. Never for production
                  --dev-partitions <N>  Partitions of the topics that --dev creates [default: 4]

            Exit status: 0 clean stop, 1 failed while running, 2 wrong usage or a failed startup check.
        "#]],
    );
}

#[test]
fn long_help_explains_where_settings_come_from() {
    let ended = call(&Fake::new(sound()), "--help");
    assert_eq!(ended.status, CLEAN);
    for part in ["FLECHTWERK_COMMIT_INTERVAL=50ms", "the first of these wins", "Exit status: 0 clean stop"] {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
}

/// Its limits belong to what `check` promises.
#[test]
fn help_of_check_says_what_is_not_looked_at() {
    let ended = call(&Fake::new(sound()), "check --help");
    assert!(ended.out.contains("reads no record"), "{}", ended.out);
    assert!(ended.out.contains("is seen only when it is restored"), "{}", ended.out);
}

#[test]
fn help_of_reset() {
    answers(
        &Fake::new(sound()),
        "reset --help",
        expect![[r#"
            Lets stages begin anew: offsets to the beginning or a time, state empty

            Shows what it would do; --execute does it. All instances of the stages must have stopped. What the
            stages have written to their output topics stays there. A reset that was cut short keeps the stage
            from starting until it is repeated.

            Usage: demo reset [OPTIONS]

            Options:
                  --to <WHERE>
                      Where to begin: `beginning`, or a time such as 2026-01-31T12:00:00Z [default: beginning]

                  --replication-factor <R>
                      Replicas of the changelogs made anew [default: the cluster's]

                  --execute
                      Does it, instead of showing what it would do

              -h, --help
                      Print help (see a summary with '-h')

            Pipeline:
                  --config <FILE>
                      Settings file (TOML) [env: FLECHTWERK_CONFIG]

                  --stage <NAME>
                      Stage to work on; repeatable [default: all]

                  --namespace <PREFIX>
                      Prefix of groups, transactional ids and changelogs, so that two environments can share a
                      cluster

                  --topic <NAME=TOPIC>
                      Uses TOPIC in the cluster for the topic that the code calls NAME; repeatable

            Cluster:
                  --bootstrap-servers <HOST:PORT>
                      Brokers to ask first, comma separated [default: localhost:9092]

                  --security-protocol <PROTOCOL>
                      plaintext, tls, sasl_plaintext or sasl_tls [default: by what else is set]

                  --sasl-mechanism <MECHANISM>
                      PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 [default: SCRAM-SHA-512]

                  --sasl-username <NAME>
                      User to log in as

                  --sasl-password-file <FILE>
                      File that holds the user's password

                  --tls-ca <FILE>
                      Certificates of the authorities to trust, PEM [default: the system's]

                  --tls-cert <FILE>
                      Certificate of this client, PEM

                  --tls-key <FILE>
                      Its private key, PEM

                  --tls-key-password-file <FILE>
                      File that holds the key's password

                  --connect-timeout <TIME>
                      How long to wait for the cluster's first answer [default: 10s]

              -X <KEY=VALUE>
                      Setting of librdkafka, such as socket.keepalive.enable=true; repeatable

            Schema registry:
                  --schema-registry <URL>
                      Schema registry to ask, http://HOST:PORT; several with commas between

                  --schema-registry-username <NAME>
                      User to show to the schema registry

                  --schema-registry-password-file <FILE>
                      File that holds that user's password

                  --schema-registry-token-file <FILE>
                      File that holds a token to show to the schema registry, instead of a user

                  --schema-registry-ca <FILE>
                      Certificates of the authorities to trust for the schema registry, PEM [default: the
                      system's]

            Observing:
                  --log <FILTER>
                      Log lines to write: a level, or levels by module as in info,flechtwerk=debug [default:
                      info; other commands than run: warn]

                  --log-format <FORMAT>
                      text or json [default: text]
        "#]],
    );
}

#[test]
fn help_of_topics_create() {
    let ended = call(&Fake::new(sound()), "topics create -h");
    expect![[r#"
        Creates the topics that are missing: inputs, outputs and changelogs

        Usage: demo topics create [OPTIONS]

        Options:
              --partitions <N>          Partitions of each new topic; changelogs always get as many as their
                                        stage's inputs have
              --replication-factor <R>  Replicas of each new topic, changelogs included [default: the
                                        cluster's]
          -h, --help                    Print help
    "#]]
    .assert_eq(ended.out.split("\nPipeline:").next().unwrap());
}

#[test]
fn every_flag_is_a_setting_and_every_setting_but_secrets_a_flag() {
    let mut flags: Vec<String> = Vec::new();
    for argument in Cli::command().get_arguments() {
        let long = argument.get_long().map(str::to_owned);
        flags.push(long.unwrap_or_else(|| argument.get_short().unwrap().to_string()));
    }
    let others = ["config", "dev", "dev-partitions", "help", "version"];
    flags.retain(|flag| !others.contains(&flag.as_str()));
    flags.sort();
    let mut settings: Vec<String> = crate::settings::flag_names().collect();
    settings.sort();
    assert_eq!(flags, settings);
}

#[test]
fn the_defaults_in_the_help_are_the_real_ones() {
    let help = Cli::command().term_width(usize::MAX).render_help().to_string();
    let default = Settings::default();
    let times = [
        ("--connect-timeout", default.connect_timeout),
        ("--broker-timeout", default.broker_timeout),
        ("--revoke-timeout", default.revoke_timeout),
        ("--session-timeout", default.session_timeout),
        ("--heartbeat-interval", default.heartbeat_interval),
        ("--transaction-timeout", default.transaction_timeout),
        ("--shutdown-timeout", default.shutdown_timeout),
        ("--max-batch-time", default.max_batch_time),
        ("--commit-interval", default.commit_interval),
    ];
    let mut expected: Vec<(&str, String)> =
        times.iter().map(|(flag, time)| (*flag, crate::settings::duration_text(*time))).collect();
    expected.extend([
        ("--bootstrap-servers", default.bootstrap_servers),
        ("--store", if cfg!(feature = "rocksdb") { "rocksdb" } else { "memory" }.into()),
        ("--state-dir", default.state_dir.display().to_string()),
        ("--max-poll-records", default.max_poll_records.to_string()),
        ("--max-concurrent-polls", default.max_concurrent_polls.to_string()),
        ("--max-batch-bytes", crate::settings::bytes_text(default.max_batch_bytes)),
    ]);
    for (flag, value) in expected {
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{flag} "))).unwrap();
        assert!(line.ends_with(&format!("[default: {value}]")), "{line} should say {value}");
    }
}
