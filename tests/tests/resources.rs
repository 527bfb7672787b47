//! Resources: made once, in order, before anything is read; closed at the end, whatever happens; secrets stay secret.

use flechtwerk_tests::{Case, STOP};
use nix::sys::signal::Signal;

const SHARED: &str = env!("CARGO_BIN_EXE_shared");
/// May stand nowhere.
const TOKEN: &str = "hunter2-token";

fn case(stage: &str) -> Case {
    let mut case = Case::new(SHARED, stage, 1, &["words", "joined", "items", "lengths"]);
    case.rig = case
        .rig
        .env("FLECHTWERK_RESOURCES_CLOCK_TOKEN", TOKEN)
        .env("FLECHTWERK_RESOURCES_CLOCK_LABEL", "ding");
    case
}

fn failing(fails: &str) -> Case {
    let mut case = case("ring");
    case.rig = case.rig.env("FLECHTWERK_RESOURCES_CLOCK_FAILS", fails);
    case
}

/// These lines stand in the log, in this order, once each.
#[track_caller]
fn assert_order(log: &str, lines: &[&str]) {
    let places: Vec<_> = lines
        .iter()
        .map(|line| {
            assert_eq!(log.matches(line).count(), 1, "{line:?} in:\n{log}");
            log.find(line)
        })
        .collect();
    assert!(places.is_sorted(), "{lines:?} in this order in:\n{log}");
}

/// Nobody joined a group, and nothing was read.
#[track_caller]
fn assert_nothing_began(case: &Case, log: &str) {
    assert_eq!(case.kafka.members(&case.application_id()), 0);
    assert!(!log.contains("assigned") && !log.contains("reading"), "{log}");
    assert_eq!(case.committed("words"), None);
}

#[test]
fn made_in_order_before_the_stages_and_closed_in_the_reverse_one_after_them() {
    let case = case("ring");
    let mut instance = case.start();
    let output = case.observe("joined");
    case.write("words", &[("k", "ding dong")]);
    assert_eq!(output.wait(1)[0].value.as_deref(), Some(&b"ding dong ding"[..]));
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
    let order = [
        "made spring",
        "made clock",
        "made bell",
        "task is running",
        "stopping; once more",
        "closed bell",
        "closed clock",
        "closed spring",
    ];
    assert_order(&instance.log(), &order);
}

/// Each is dropped when it was closed, after those that are made from it, and while the runtime is there; a failure, and one that
/// panics as it is dropped, change nothing for the others.
#[test]
fn dropped_one_after_the_other_in_the_runtime_and_before_the_clients_close() {
    for (fails, breaks) in [(false, false), (true, false), (false, true)] {
        let mut case = case("ring");
        let hammer = match breaks {
            false => "dropped hammer",
            true => "was not dropped well: its code panicked: the hammer breaks",
        };
        case.rig = case.rig.env("FLECHTWERK_RESOURCES_HAMMER_BREAKS_AT_LAST", &breaks.to_string());
        let mut instance = case.start();
        let output = case.observe("joined");
        case.write("words", &[("k", "ding dong")]);
        output.wait(1);
        let status = match fails {
            true => {
                let bad = flechtwerk_tests::kafka::Write { value: Some(vec![0xff]), ..Default::default() };
                case.kafka.write(case.topic("words"), [bad]);
                instance.wait(STOP)
            }
            false => instance.terminate(STOP),
        };
        let log = instance.log();
        assert_eq!(status, i32::from(fails), "{log}");
        let order = [
            hammer,
            "closed bell",
            "dropped bell",
            "closed clock",
            "dropped clock",
            "closed spring",
            "dropped spring",
        ];
        assert_order(&log, &order);
        assert!(!log.contains("have not closed in time"), "{log}");
    }
}

/// S11.4: a second signal is heeded here too.
#[test]
fn a_second_signal_leaves_what_does_not_close() {
    let case = failing("close-hang");
    let mut instance = case.start();
    instance.signal(Signal::SIGTERM);
    instance.wait_for_log("dropped bell");
    instance.signal(Signal::SIGTERM);
    let status = instance.wait(STOP);
    let log = instance.log();
    assert_eq!(status, 1, "{log}");
    assert_order(
        &log,
        &["dropped bell", "is left without being closed", "stopped at once by a second signal"],
    );
    assert!(!log.contains("closed spring") && !log.contains("has not closed within"), "{log}");
}

#[test]
fn a_function_that_fails_ends_the_start_with_its_chain_and_closes_what_was_made() {
    let case = failing("make");
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 2, "{}", instance.log());
    let log = instance.log();
    assert!(log.contains("resource `clock` can't be made: the clock is not set: the key is lost"), "{log}");
    assert_order(&log, &["made spring", "made clock", "closed spring"]);
    assert!(!log.contains("made bell") && !log.contains("closed clock"), "{log}");
    assert_nothing_began(&case, &log);
}

#[test]
fn a_function_that_panics_ends_the_start_as_well() {
    let case = failing("panic");
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 2, "{}", instance.log());
    let log = instance.log();
    assert!(log.contains("resource `clock` can't be made: its code panicked: the spring breaks"), "{log}");
    assert_nothing_began(&case, &log);
}

/// A stage that fails is no reason to leave resources open.
#[test]
fn closed_after_a_failure_too() {
    let case = case("ring");
    let mut instance = case.start();
    case.kafka.write(
        case.topic("words"),
        [flechtwerk_tests::kafka::Write { value: Some(vec![0xff]), ..Default::default() }],
    );
    assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
    assert_order(&instance.log(), &["closed bell", "closed clock", "closed spring"]);
}

#[test]
fn what_does_not_close_is_told_and_holds_nothing_up() {
    for (fails, expected) in [
        ("close", "was not closed: the clock is not set: it ticks on"),
        ("close-panic", "was not closed: its code panicked: the spring breaks"),
        ("close-hang", "has not closed within 5 s and is left"),
    ] {
        let case = failing(fails);
        let mut instance = case.start();
        assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
        assert_order(&instance.log(), &["closed bell", expected, "closed spring"]);
    }
}

#[test]
fn only_what_the_stages_need_is_made() {
    let case = case("look_up");
    let mut instance = case.start();
    assert_eq!(instance.terminate(STOP), 0);
    assert!(!instance.log().contains("made "), "{}", instance.log());
}

#[test]
fn check_makes_none_and_tells_what_is_wrong_with_their_settings() {
    let mut case = case("ring");
    let (status, out, err) = case.rig.run(&["check"]);
    assert_eq!((status, out.contains("all checks passed")), (0, true), "{out}{err}");
    assert!(!out.contains("made ") && !err.contains("made "), "{out}{err}");
    case.rig = case.rig.env("FLECHTWERK_RESOURCES_CLOCK_PIN", "hunter2-pin");
    for subcommand in ["check", "run"] {
        let (status, out, err) = case.rig.run(&[subcommand]);
        assert_eq!(status, 2, "{out}{err}");
        let expected = "setting `pin` of resource `clock`: the secret is no u16 (it is not shown)";
        assert!(err.contains(expected) && err.contains("variable FLECHTWERK_RESOURCES_CLOCK_PIN"), "{err}");
        assert!(!err.contains("hunter2"), "{err}");
    }
}

/// One start tells all that is wrong with the settings of two resources, and with others; the cluster need not be there.
#[test]
fn all_mistakes_of_all_resources_are_told_at_once() {
    let mut case = Case::new(SHARED, "ring", 1, &["words", "joined"]);
    let file = case.rig.dir().join("settings.toml");
    let settings = "max_batch_time = \"soon\"\n[resources.clock]\nlabel = 5\ntokn = \"hunter2\"\n[resources.hammer]\n\
                    weight = 70_000\n";
    std::fs::write(&file, settings).unwrap();
    case = case.arg("--config", file.to_str().unwrap());
    case.rig = case.rig.env("FLECHTWERK_RESOURCES_HAMMER_BREAKS", "hunter2");
    let of_resources = [
        "setting `label` of resource `clock`: this is a number, expected text",
        "setting `tokn` of resource `clock`: there is no such setting",
        "setting `token` of resource `clock`: missing",
        "setting `breaks` of resource `hammer`: text that will not do, expected true or false",
        "setting `weight` of resource `hammer`: a number that will not do, expected a whole number from 0 to 65535",
        "`resources.hammer.weight` in ",
        "environment variable FLECHTWERK_RESOURCES_HAMMER_BREAKS",
        "did you mean `token`?",
        "write `token = { file = \"..\" }` under [resources.clock]",
    ];
    for subcommand in ["check", "run"] {
        let (status, out, err) = case.rig.run(&[subcommand]);
        assert_eq!(status, 2, "{out}{err}");
        assert!(err.contains("6 problems"), "{err}");
        assert!(err.contains("is no value for `max_batch_time`") && !err.contains("hunter2"), "{err}");
        for expected in of_resources {
            assert_eq!(err.matches(expected).count(), 1, "{expected} in {err}");
        }
    }
    std::fs::write(&file, settings.replace("soon", "60s")).unwrap();
    for subcommand in ["check", "run"] {
        let (status, out, err) = case.rig.run(&[subcommand]);
        assert_eq!(status, 2, "{out}{err}");
        assert!(err.contains("5 problems") && !err.contains("hunter2"), "{err}");
        for expected in of_resources {
            assert_eq!(err.matches(expected).count(), 1, "{expected} in {err}");
        }
    }
}

/// What does not need the one that failed is tried all the same.
#[test]
fn all_that_fail_are_told() {
    let mut case = failing("make");
    case.rig = case.rig.env("FLECHTWERK_RESOURCES_HAMMER_BREAKS", "true");
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 2, "{}", instance.log());
    let log = instance.log();
    assert!(log.contains("resource `clock` can't be made: the clock is not set: the key is lost"), "{log}");
    assert!(log.contains("resource `hammer` can't be made: the handle of 0 g broke"), "{log}");
    assert!(!log.contains("made bell") && !log.contains("resource `big_bell`"), "{log}");
    assert_order(&log, &["made spring", "closed spring"]);
}

#[test]
fn secrets_are_shown_nowhere() {
    let case = case("ring").arg("--log", "trace");
    let mut instance = case.start();
    assert_eq!(instance.terminate(STOP), 0);
    let log = instance.log();
    assert!(log.contains("made clock ClockSettings { label: \"ding\", token: <secret>"), "{log}");
    assert!(log.contains(&format!(" {}\n", TOKEN.len())), "the token has arrived:\n{log}");
    assert!(!log.contains(TOKEN), "{log}");
    for subcommand in [&["--help"][..], &["run", "--help"], &["check"]] {
        let (status, out, err) = case.rig.run(subcommand);
        assert_eq!(status, 0, "{err}");
        assert!(!out.contains("hunter2") && !err.contains("hunter2"), "{subcommand:?}: {out}{err}");
    }
}

/// The settings file holds everything but the secrets, which have files of their own.
#[test]
fn settings_come_from_the_file_and_secrets_from_their_own() {
    let mut case = Case::new(SHARED, "ring", 1, &["words", "joined"]);
    let (file, token) = (case.rig.dir().join("settings.toml"), case.rig.dir().join("token"));
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let path = token.display();
    std::fs::write(&file, format!("[resources.clock]\nlabel = \"dong\"\ntoken = {{ file = \"{path}\" }}\n"))
        .unwrap();
    case = case.arg("--config", file.to_str().unwrap());
    let instance = case.start();
    let output = case.observe("joined");
    case.write("words", &[("k", "ding")]);
    assert_eq!(output.wait(1)[0].value.as_deref(), Some(&b"ding dong"[..]));
    assert!(instance.log().contains(&format!(" {}\n", TOKEN.len())), "{}", instance.log());
    drop(instance);

    std::fs::write(&file, format!("[resources.clock]\nlabel = \"dong\"\ntoken = \"{TOKEN}\"\n")).unwrap();
    let (status, _, err) = case.rig.run(&["run"]);
    assert_eq!(status, 2, "{err}");
    assert!(
        err.contains("setting `token` of resource `clock`: a secret has no place in the settings file"),
        "{err}"
    );
    assert!(!err.contains(TOKEN), "{err}");
}
