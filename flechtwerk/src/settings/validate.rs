//! Checks that take more than one setting, or what is compiled in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Settings, Source, StoreKind, bytes_text, duration_text, keys};
use crate::naming::check_topic_name;
use crate::startup::Problem;

/// Bytes per second that a connection to the cluster is trusted to carry at the least. A full batch must pass within
/// the transaction's time limit at this rate, or the cluster could abort each of them for ever.
const SLOWEST: usize = 1 << 20;

/// librdkafka's limits that must end before the transaction's.
const LIMITS: [(&str, &str); 3] = [
    ("socket.timeout.ms", "a request"),
    ("message.timeout.ms", "a record"),
    ("delivery.timeout.ms", "a record"),
];

/// Where each setting came from.
pub(super) struct Places {
    pub(super) sources: BTreeMap<&'static str, Source>,
    /// The settings that are as they were meant. What follows from the others was not asked for by anybody.
    pub(super) sure: BTreeSet<&'static str>,
}

impl Places {
    fn sure(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.sure.contains(key))
    }

    /// As a message names them.
    pub(super) fn of(&self, keys: &[&str]) -> String {
        let all: Vec<(&str, &Source)> =
            keys.iter().filter_map(|key| Some((*key, self.sources.get(key)?))).collect();
        let (unsaid, said): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, source)| **source == Source::Default);
        // What was said is what can be changed; defaults are worth naming only among themselves.
        let shown = if said.is_empty() { unsaid } else { said };
        shown.iter().map(|(key, source)| source.place(key)).collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn check(settings: &Settings, places: &Places, problems: &mut Vec<Problem>) {
    let mut problem = |keys: &[&str], what: String, why: &str, mend: String| {
        problems.push(Problem { what, place: places.of(keys), why: why.to_owned(), mend });
    };
    let s = settings;
    let keys = ["heartbeat_interval", "session_timeout"];
    if places.sure(&keys) && s.heartbeat_interval * 3 > s.session_timeout {
        problem(
            &keys,
            format!(
                "`heartbeat_interval` ({}) is more than a third of `session_timeout` ({})",
                duration_text(s.heartbeat_interval),
                duration_text(s.session_timeout)
            ),
            "one or two lost signs of life would cost the instance its partitions",
            format!("set heartbeat_interval to at most {}", duration_text(s.session_timeout / 3)),
        );
    }
    let keys = ["revoke_timeout", "session_timeout"];
    if places.sure(&keys) && s.revoke_timeout >= s.session_timeout {
        problem(
            &keys,
            format!(
                "`revoke_timeout` ({}) is not below `session_timeout` ({})",
                duration_text(s.revoke_timeout),
                duration_text(s.session_timeout)
            ),
            "the partitions would be someone else's before the wait for the commit ends",
            "lower revoke_timeout".into(),
        );
    }
    let needed = Duration::from_secs_f64(s.max_batch_bytes as f64 / SLOWEST as f64);
    let keys = ["max_batch_bytes", "transaction_timeout"];
    if places.sure(&keys) && needed > s.transaction_timeout {
        problem(
            &keys,
            format!(
                "a full batch of `max_batch_bytes` ({}) may take longer than `transaction_timeout` ({})",
                bytes_text(s.max_batch_bytes),
                duration_text(s.transaction_timeout)
            ),
            "the cluster aborts a transaction that takes longer, again and again; 1 MiB a second is counted on",
            format!(
                "set max_batch_bytes to at most {}, or transaction_timeout to at least {}s",
                bytes_text(((s.transaction_timeout.as_secs_f64() * SLOWEST as f64) as usize).max(1)),
                needed.as_secs() + 1
            ),
        );
    }
    for (name, unit) in LIMITS.iter().filter(|_| places.sure(&["transaction_timeout"])) {
        let Some(Ok(millis)) = s.librdkafka.get(name).map(str::parse::<u64>) else { continue };
        if Duration::from_millis(millis) > s.transaction_timeout {
            problem(
                &["kafka", "transaction_timeout"],
                format!(
                    "`{name}` ({millis}) is longer than `transaction_timeout` ({})",
                    duration_text(s.transaction_timeout)
                ),
                &format!(
                    "{unit} of a transaction must have failed or passed before the cluster aborts the transaction"
                ),
                format!("set {name} to at most {}", s.transaction_timeout.as_millis()),
            );
        }
    }
    if places.sure(&["instance_id"]) && s.stay_in_group && s.instance_id.is_none() {
        problem(
            &["stay_in_group"],
            "`stay_in_group` is set, but `instance_id` is not".into(),
            "the group can't wait for an instance that it does not know by an id: its partitions would lie idle",
            "use --instance-id ID, one for each instance that stays the same over restarts".into(),
        );
    }
    if let Some(Err(reason)) = s.instance_id.as_deref().map(check_topic_name) {
        problem(
            &["instance_id"],
            format!("the instance id {reason}"),
            "Kafka refuses such ids",
            "use another one".into(),
        );
    }
    if s.store == StoreKind::RocksDb && !cfg!(feature = "rocksdb") {
        problem(
            &["store"],
            "this binary was built without RocksDB".into(),
            "the feature `rocksdb` of flechtwerk is switched off in it",
            "build it with the feature `rocksdb` of flechtwerk (it is on by default), or use --store memory"
                .into(),
        );
    }
    security(settings, places, &mut problem);
}

fn security(s: &Settings, places: &Places, problem: &mut impl FnMut(&[&str], String, &str, String)) {
    const TOGETHER: &str = "user and password are needed together";
    const SASL: &[&str] =
        &["security_protocol", "sasl_mechanism", "sasl_username", "sasl_password", "sasl_password_file"];
    const TLS: &[&str] =
        &["security_protocol", "tls_ca", "tls_cert", "tls_key", "tls_key_password", "tls_key_password_file"];
    let protocol = s.security_protocol;
    let sure = |keys: &[&str]| places.sure(keys);
    let protocol_is_sure = sure(&["security_protocol"]);
    if protocol_is_sure && protocol.sasl() && !cfg!(feature = "sasl") {
        problem(
            SASL,
            "this binary was built without SASL".into(),
            "the feature `sasl` of flechtwerk is switched off in it",
            "build it with the feature `sasl` of flechtwerk".into(),
        );
    }
    if protocol_is_sure && protocol.tls() && !cfg!(feature = "tls") {
        problem(
            TLS,
            "this binary was built without TLS".into(),
            "the feature `tls` of flechtwerk is switched off in it",
            "build it with the feature `tls` of flechtwerk".into(),
        );
    }
    if protocol_is_sure && sure(&["sasl_username"]) && protocol.sasl() && s.sasl.is_none() {
        problem(
            SASL,
            format!("`security_protocol` is {}, but no user is set", protocol.as_kafka()),
            "the brokers would refuse the connection",
            format!(
                "use --sasl-username NAME with --sasl-password-file FILE or {}",
                keys::variable("sasl_password")
            ),
        );
    }
    if protocol_is_sure && s.sasl.is_some() && !protocol.sasl() {
        problem(
            SASL,
            format!("a user is set, but `security_protocol` is {}", protocol.as_kafka()),
            "the connection would not be authenticated",
            "use --security-protocol sasl_tls, or remove the user".into(),
        );
    }
    if protocol_is_sure && s.tls != super::Tls::default() && !protocol.tls() {
        problem(
            TLS,
            format!("certificates are set, but `security_protocol` is {}", protocol.as_kafka()),
            "the connection would not be encrypted",
            "use --security-protocol tls or sasl_tls, or remove the certificates".into(),
        );
    }
    if let Some(sasl) = &s.sasl
        && sasl.username.is_empty()
        && sure(&["sasl_username"])
    {
        problem(SASL, "`sasl_username` is not set".into(), TOGETHER, "use --sasl-username NAME".into());
    }
    if let Some(sasl) = &s.sasl
        && sasl.password.expose().is_empty()
        && sure(&["sasl_password", "sasl_password_file"])
    {
        let mend = format!("use --sasl-password-file FILE, or set {}", keys::variable("sasl_password"));
        problem(SASL, "`sasl_password` is not set".into(), TOGETHER, mend);
    }
    let keys = ["tls_cert", "tls_key"];
    if sure(&keys) && s.tls.cert.is_some() != s.tls.key.is_some() {
        problem(
            &keys,
            "`tls_cert` and `tls_key` are not set together".into(),
            "a certificate is of no use without its key",
            "use --tls-cert FILE and --tls-key FILE".into(),
        );
    }
}
