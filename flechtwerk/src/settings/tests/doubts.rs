//! One mistake is one problem: nothing is concluded from what stands in for a setting that was not understood, and a
//! second mistake is told all the same.

use super::*;

/// What is wrong with these variables, a line for each problem.
fn whats(pairs: &[(&str, &str)]) -> Vec<String> {
    let pairs: Vec<(String, &str)> =
        pairs.iter().map(|(name, value)| (format!("FLECHTWERK_{name}"), *value)).collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    match from_environment(&pairs) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|problem| problem.what).collect(),
    }
}

#[test]
fn nothing_is_concluded_from_a_default_that_stands_in_for_a_mistake() {
    let nobody = "/no/such/file";
    let cases: &[&[(&str, &str)]] = &[
        // Each would not go together with the default of the one that is wrong.
        &[("MAX_BATCH_BYTES", "eight"), ("TRANSACTION_TIMEOUT", "1s")],
        &[("MAX_BATCH_BYTES", "64MiB"), ("TRANSACTION_TIMEOUT", "100")],
        &[("SESSION_TIMEOUT", "one minute"), ("HEARTBEAT_INTERVAL", "15s")],
        &[("SESSION_TIMEOUT", "0s"), ("REVOKE_TIMEOUT", "30s")],
        &[("HEARTBEAT_INTERVAL", "300"), ("SESSION_TIMEOUT", "1200ms")],
        &[("REVOKE_TIMEOUT", "300"), ("SESSION_TIMEOUT", "1s"), ("HEARTBEAT_INTERVAL", "300ms")],
        &[("TRANSACTION_TIMEOUT", "1"), ("KAFKA_SOCKET_TIMEOUT_MS", "60000")],
        // Nothing can be too long where it can't be at all.
        &[("KAFKA_SOCKET_TIMEOUT_MS", "99999999999")],
        &[("STAY_IN_GROUP", "true"), ("INSTANCE_ID", " ")],
        &[("SECURITY_PROTOCOL", "sasl-plaintext"), ("SASL_USERNAME", "ann"), ("SASL_PASSWORD", "x")],
        &[("SECURITY_PROTOCOL", "sasl"), ("TLS_CA", "/dev/null")],
        &[("SASL_USERNAME", " "), ("SASL_PASSWORD", "x")],
        &[("TLS_CERT", nobody), ("TLS_KEY", "/dev/null")],
        &[("TLS_CERT", "/dev/null"), ("TLS_KEY", nobody)],
    ];
    for case in cases {
        let found = whats(case);
        // That a feature is missing is true whatever was meant.
        let told = found.iter().filter(|what| !what.contains("built without"));
        assert_eq!(told.count(), 1, "{case:?}: {found:#?}");
    }
}

/// A user is asked for twice only where both halves are missing.
#[test]
fn a_password_that_can_not_be_read_is_there_all_the_same() {
    let given = [("SASL_USERNAME", "ann"), ("SASL_PASSWORD_FILE", "/no/such/file")];
    let found = whats(&given);
    assert!(found.iter().any(|what| what.contains("/no/such/file")), "{found:#?}");
    assert!(!found.iter().any(|what| what.contains("is not set")), "{found:#?}");
    let found = whats(&[("SECURITY_PROTOCOL", "sasl_plaintext"), ("SASL_PASSWORD_FILE", "/no/such/file")]);
    assert!(found.iter().any(|what| what.contains("no user is set")), "{found:#?}");
}

/// What a file that was not understood says is not known, unless something stronger speaks.
#[test]
fn a_file_that_was_not_read_may_have_said_anything() {
    let load_with = |content: &str, pairs: &[(&str, &str)]| {
        let file = file(content);
        let given =
            Given { config: Some(file.path().into()), environment: environment(pairs), ..Given::default() };
        load(&given)
    };
    let timeouts = ("FLECHTWERK_SESSION_TIMEOUT", "1s");
    assert!(load_with("", &[timeouts]).is_err(), "this does not go together with the defaults");
    one_problem(load_with("= not TOML", &[timeouts]));
    one_problem(load_with("hartbeat_interval = \"100ms\"\nrevoke_timeout = \"300ms\"", &[timeouts]));
    one_problem(load_with("sasl_password = \"x\"", &[("FLECHTWERK_NAMESPACE", "a-")]));
    let all = [timeouts, ("FLECHTWERK_HEARTBEAT_INTERVAL", "500ms")];
    let problems = load_with("= not TOML", &all).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[1].what.contains("`heartbeat_interval` (500ms)"), "{problems:#?}");
}

/// A mistake hides none that has nothing to do with it.
#[test]
fn mistakes_that_go_together_are_all_told() {
    let given = [
        ("SESSION_TIMEOUT", "x"),
        ("MAX_BATCH_BYTES", "64MiB"),
        ("KAFKA_ACKS", "0"),
        ("KAFKA_SOCKET_TIMEOUT_MS", "60000"),
        ("STAY_IN_GROUP", "true"),
        ("LOG", "loud"),
    ];
    let found = whats(&given);
    assert_eq!(found.len(), 6, "{found:#?}");
}
