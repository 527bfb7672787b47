//! Settings that go to librdkafka as they are, except those that the guarantees rest on, those that have a setting
//! of their own, and secrets on the command line (S7.6).

use std::collections::BTreeMap;
use std::fmt;

use super::Source;
use super::keys;
use crate::startup::Problem;

/// Names and values for librdkafka. `Debug` shows no value that may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Librdkafka(BTreeMap<String, String>);

impl Librdkafka {
    pub(super) fn new(pairs: BTreeMap<String, String>) -> Self {
        Librdkafka(pairs)
    }

    /// All names and values, secrets included: for the client alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Debug for Librdkafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .0
            .iter()
            .map(|(name, value)| (name, if is_secret(name) { "<secret>" } else { value.as_str() }));
        f.debug_map().entries(shown).finish()
    }
}

/// What the guarantees rest on, and why.
const PROTECTED: &[(&str, &str)] = &[
    ("isolation.level", "readers must not see records of open and aborted transactions"),
    ("enable.auto.commit", "offsets are committed in the transaction of the outputs, and only there"),
    ("enable.auto.offset.store", "offsets are committed in the transaction of the outputs, and only there"),
    ("auto.commit.enable", "offsets are committed in the transaction of the outputs, and only there"),
    ("auto.offset.reset", "an offset out of range must stop the stage, not lose or repeat records"),
    ("transactional.id", "it is made of application id and partition, and fences the previous owner"),
    ("acks", "a commit must not count before all replicas in sync have it"),
    ("request.required.acks", "a commit must not count before all replicas in sync have it"),
    ("enable.idempotence", "a repeated request must not append its records twice"),
    ("partitioner", "records of one key must lie in one partition, for every client"),
    ("group.id", "it is the application id of the stage"),
    ("group.protocol", "partitions of the same number must be assigned together"),
    ("partition.assignment.strategy", "partitions of the same number must be assigned together"),
    ("enable.partition.eof", "the end of a changelog is told by it"),
];

/// librdkafka's names of what has a setting here.
const OWN: &[(&str, &str)] = &[
    ("bootstrap.servers", "bootstrap_servers"),
    ("metadata.broker.list", "bootstrap_servers"),
    ("client.id", "instance_id"),
    ("group.instance.id", "instance_id"),
    ("session.timeout.ms", "session_timeout"),
    ("heartbeat.interval.ms", "heartbeat_interval"),
    ("max.poll.interval.ms", "max_batch_time"),
    ("transaction.timeout.ms", "transaction_timeout"),
    ("security.protocol", "security_protocol"),
    ("sasl.mechanism", "sasl_mechanism"),
    ("sasl.mechanisms", "sasl_mechanism"),
    ("sasl.username", "sasl_username"),
    ("sasl.password", "sasl_password_file"),
    ("ssl.ca.location", "tls_ca"),
    ("ssl.certificate.location", "tls_cert"),
    ("ssl.key.location", "tls_key"),
    ("ssl.key.password", "tls_key_password_file"),
    ("log_level", "log"),
];

/// True for names whose values nobody may see.
fn is_secret(name: &str) -> bool {
    name.contains("password")
        || name.contains("secret")
        || name.contains(".key.pem")
        || name.contains(".private.key")
        || matches!(name, "sasl.oauthbearer.config" | "ssl_key" | "ssl.keystore.pem")
}

/// Everything that is wrong with one name and value.
pub(super) fn check(name: &str, value: &str, source: &Source, problems: &mut Vec<Problem>) {
    let place = match source {
        Source::Environment => {
            format!("environment variable {}", keys::variable(&format!("kafka_{}", name.replace('.', "_"))))
        }
        Source::Flags => format!("flag -X {name}=.."),
        other => format!("`{name}` of {}", other.place("kafka")),
    };
    let mut refuse = |what: String, why: &str, mend: String| {
        problems.push(Problem { what, place: place.clone(), why: why.to_owned(), mend });
    };
    if let Some((_, own)) = OWN.iter().find(|(theirs, _)| *theirs == name) {
        let secret = own.strip_suffix("_file").filter(|_| is_secret(name));
        let mend = match secret {
            Some(secret) => format!("use {} FILE, or set {}", keys::flag(own), keys::variable(secret)),
            None => format!(
                "use {} (in the file `{own}`, in the environment {})",
                keys::flag(own),
                keys::variable(own)
            ),
        };
        refuse(
            format!("`{name}` has a setting of its own, `{own}`"),
            "two settings for one thing would contradict each other",
            mend,
        );
        return;
    }
    if let Some((_, why)) = PROTECTED.iter().find(|(theirs, _)| *theirs == name) {
        refuse(format!("`{name}` can't be set"), why, "remove it".into());
        return;
    }
    if is_secret(name) && *source == Source::Flags {
        let mend = format!("set {}", keys::variable(&format!("kafka_{}", name.replace('.', "_"))));
        refuse(format!("`{name}` may be a secret"), "every user of the machine sees the command line", mend);
        return;
    }
    let mut config = rdkafka::ClientConfig::new();
    config.set(name, value);
    if let Err(error) = config.create_native_config() {
        let reason = match &error {
            rdkafka::error::KafkaError::ClientConfig(_, description, ..) if !is_secret(name) => {
                description.clone()
            }
            _ => "librdkafka does not take its value".into(),
        };
        let mend = match reason.contains("not available at build time") {
            true => "build the binary with the feature of flechtwerk that it needs: `tls`, `sasl` or `zstd`",
            false => "see the list of settings of librdkafka 2.12",
        };
        refuse(format!("`{name}` can't be set: {}", lower(&reason)), "", mend.into());
    }
}

/// Begins in lower case, as all messages do.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, value: &str, source: Source) -> Vec<Problem> {
        let mut problems = Vec::new();
        check(name, value, &source, &mut problems);
        problems
    }

    #[test]
    fn every_protected_and_own_name_exists_in_librdkafka_and_is_refused() {
        for (name, _) in PROTECTED.iter().chain(OWN) {
            let found = problems(name, "1", Source::Flags);
            assert_eq!(found.len(), 1, "{name}");
            assert!(!found[0].mend.is_empty());
            let mut config = rdkafka::ClientConfig::new();
            config.set(*name, "no such value");
            if let Err(rdkafka::error::KafkaError::ClientConfig(_, text, ..)) = config.create_native_config()
            {
                assert!(!text.contains("No such configuration property"), "{name}: {text}");
            }
        }
    }

    /// The page of the semantics names them; none may be dropped from here unseen.
    #[test]
    fn what_the_semantics_protect_is_protected() {
        let page = include_str!("../../../docs/src/semantics.md");
        let from = page.find("- S7.6a").expect("the sentence");
        let sentences = &page[from..];
        let (protected, rest) = sentences.split_once("- S7.6b").expect("the next one");
        let own = rest.split_once("Tests:").expect("its tests").0;
        let names = |text: &str| -> Vec<String> {
            let text = text.split("Tests:").next().unwrap_or_default();
            text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let (protected, own) = (names(protected), names(own));
        assert!(protected.len() >= 12 && own.len() >= 2, "{protected:?} {own:?}");
        for name in protected {
            let found = problems(&name, "1", Source::Environment);
            assert_eq!(found[0].what, format!("`{name}` can't be set"));
        }
        for name in own {
            let found = problems(&name, "1", Source::Environment);
            assert!(found[0].what.starts_with(&format!("`{name}` has a setting of its own")), "{found:?}");
        }
    }

    #[test]
    fn every_own_name_leads_to_a_setting() {
        for (theirs, own) in OWN {
            assert!(keys::find(own).is_some(), "{own}");
            let found = problems(theirs, "1", Source::Environment);
            assert!(found[0].mend.contains(&keys::flag(own)), "{found:?}");
        }
    }

    #[test]
    fn unknown_names_and_values_are_refused() {
        let found = problems("socket.keepalive.enabled", "true", Source::Flags);
        assert!(found[0].what.contains("no such configuration property"), "{found:?}");
        let found = problems("socket.keepalive.enable", "maybe", Source::Flags);
        assert!(found[0].what.contains("socket.keepalive.enable"), "{found:?}");
        assert!(problems("socket.keepalive.enable", "true", Source::Flags).is_empty());
    }

    #[test]
    fn what_is_not_built_in_names_the_feature() {
        let found = problems("compression.type", "zstd", Source::Flags);
        assert_eq!(found.is_empty(), cfg!(feature = "zstd"), "{found:?}");
        assert!(found.iter().all(|problem| problem.mend.contains("`zstd`")), "{found:?}");
    }

    #[test]
    fn secrets_are_refused_on_the_command_line_alone_and_never_shown() {
        let found = problems("ssl.keystore.password", "hunter2", Source::Flags);
        assert_eq!(found[0].mend, "set FLECHTWERK_KAFKA_SSL_KEYSTORE_PASSWORD");
        assert!(!format!("{found:?}").contains("hunter2"));
        let found = problems("sasl.password", "hunter2", Source::Flags);
        assert_eq!(found[0].mend, "use --sasl-password-file FILE, or set FLECHTWERK_SASL_PASSWORD");
        assert!(!format!("{found:?}").contains("hunter2"));
        let pairs = [("sasl.oauthbearer.client.secret", "hunter2"), ("debug", "eos")];
        let shown = Librdkafka::new(pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).into());
        assert_eq!(format!("{shown:?}"), r#"{"debug": "eos", "sasl.oauthbearer.client.secret": "<secret>"}"#);
    }
}
