//! The names of all settings, and the search for the one that was meant.

/// One setting: its name in the file. The flag is the same with `-`, the variable in capitals after `FLECHTWERK_`.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Only the environment may hold it: the file and the command line are seen by too many.
    pub(super) secret: bool,
}

const fn key(name: &'static str) -> Key {
    Key { name, secret: false }
}

const fn secret(name: &'static str) -> Key {
    Key { name, secret: true }
}

pub(super) const KEYS: &[Key] = &[
    key("bootstrap_servers"),
    key("security_protocol"),
    key("sasl_mechanism"),
    key("sasl_username"),
    key("sasl_password_file"),
    secret("sasl_password"),
    key("tls_ca"),
    key("tls_cert"),
    key("tls_key"),
    key("tls_key_password_file"),
    secret("tls_key_password"),
    key("stage"),
    key("namespace"),
    key("topic"),
    key("create_outputs"),
    key("instance_id"),
    key("stay_in_group"),
    key("store"),
    key("state_dir"),
    key("max_poll_records"),
    key("max_batch_bytes"),
    key("max_batch_time"),
    key("commit_interval"),
    key("max_concurrent_polls"),
    key("connect_timeout"),
    key("broker_timeout"),
    key("revoke_timeout"),
    key("session_timeout"),
    key("heartbeat_interval"),
    key("transaction_timeout"),
    key("shutdown_timeout"),
    key("metrics_listen"),
    key("log_format"),
    key("log"),
    key("kafka"),
];

/// The prefix of environment variables.
pub(super) const PREFIX: &str = "FLECHTWERK_";

pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// The flag of a setting, which `-X` is for librdkafka's own ones.
pub(super) fn flag(name: &str) -> String {
    match name {
        "kafka" => "-X".into(),
        _ => format!("--{}", name.replace('_', "-")),
    }
}

/// The flags of all settings that have one, without their dashes.
#[cfg(test)]
pub(crate) fn flag_names() -> impl Iterator<Item = String> {
    KEYS.iter().filter(|key| !key.secret).map(|key| flag(key.name).trim_start_matches('-').to_owned())
}

/// The candidate that `name` is most likely a misspelling of.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.'], "_");
    let name = plain(name);
    let scored = candidates.into_iter().map(|candidate| (distance(&name, &plain(candidate)), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().max(3) / 3).then_some(candidate)
}

/// Number of characters to insert, delete or replace, or neighbours to swap.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("wrods", "words", 1), ("kitten", "sitting", 3), ("ab", "ba", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_must_be_near() {
        let names = ["commit_interval", "session_timeout"];
        assert_eq!(nearest("comit-interval", names), Some("commit_interval"));
        assert_eq!(nearest("SESSION_TIMEOUTS", names), Some("session_timeout"));
        assert_eq!(nearest("zookeeper", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
