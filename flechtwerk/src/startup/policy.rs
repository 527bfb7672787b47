//! The cleanup policy of a topic that exists is changed by whoever owns the topic, with Kafka's own tool: the line to type,
//! complete for the cluster that this program talks to.

use crate::report::quoted;
use crate::settings::{SaslMechanism, Settings};

/// The file that the line names, where the cluster asks for more than its address.
const PROPERTIES: &str = "client.properties";

/// How to set the policy of a topic.
pub(super) fn setting(settings: &Settings, topic: &str, policy: &str) -> String {
    let properties = properties(settings);
    let config =
        if properties.is_empty() { String::new() } else { format!(" --command-config {PROPERTIES}") };
    let line = format!(
        "kafka-configs.sh --bootstrap-server {}{config} --alter --entity-type topics --entity-name {topic} \
         --add-config cleanup.policy={policy}",
        quoted(&settings.bootstrap_servers.replace(' ', "")),
    );
    match properties.is_empty() {
        true => line,
        false => format!("{line}\nwith a file {PROPERTIES} of these lines:\n{}", properties.join("\n")),
    }
}

/// What Kafka's tools need to know of a secured cluster. The password is for the reader to fill in: it is shown nowhere.
fn properties(settings: &Settings) -> Vec<String> {
    let protocol = settings.security_protocol;
    let mut lines = Vec::new();
    if protocol.tls() || protocol.sasl() {
        lines.push(format!("security.protocol={}", protocol.as_kafka()));
    }
    if let Some(sasl) = settings.sasl.as_ref().filter(|_| protocol.sasl()) {
        let module = match sasl.mechanism {
            SaslMechanism::Plain => "plain.PlainLoginModule",
            SaslMechanism::ScramSha256 | SaslMechanism::ScramSha512 => "scram.ScramLoginModule",
        };
        lines.push(format!("sasl.mechanism={}", sasl.mechanism.as_kafka()));
        let escaped = sasl.username.replace('\\', r"\\\\").replace('"', r#"\\""#);
        lines.push(format!(
            "sasl.jaas.config=org.apache.kafka.common.security.{module} required username=\"{escaped}\" \
             password=\"PASSWORD\";"
        ));
    }
    let tls = settings.tls.clone();
    if let Some(ca) = tls.ca.filter(|_| protocol.tls()) {
        lines.push("ssl.truststore.type=PEM".into());
        lines.push(format!("ssl.truststore.location={}", path(&ca)));
    }
    if let Some((cert, key)) = tls.cert.zip(tls.key).filter(|_| protocol.tls()) {
        lines.push("ssl.keystore.type=PEM".into());
        lines.push(format!(
            "ssl.keystore.location=FILE (key and certificate in one: {} and {})",
            path(&key),
            path(&cert)
        ));
        if tls.key_password.is_some() {
            lines.push("ssl.key.password=PASSWORD".into());
        }
    }
    lines
}

/// As a properties file has it; the tool may be started in another folder.
fn path(path: &std::path::Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.display().to_string().replace('\\', r"\\")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::settings::{Sasl, Secret, SecurityProtocol, Tls};

    #[test]
    fn a_plain_cluster_needs_one_line() {
        let settings = Settings { bootstrap_servers: "a:1, b:2".into(), ..Settings::default() };
        let expected = "kafka-configs.sh --bootstrap-server a:1,b:2 --alter --entity-type topics --entity-name t \
                        --add-config cleanup.policy=compact";
        assert_eq!(setting(&settings, "t", "compact"), expected);
    }

    #[test]
    fn a_secured_cluster_needs_a_file_that_is_told_without_its_secrets() {
        let sasl = Sasl {
            mechanism: SaslMechanism::ScramSha512,
            username: "ann".into(),
            password: Secret::new("hunter2"),
        };
        let tls = Tls {
            ca: Some("/etc/ca.pem".into()),
            cert: Some("/etc/c.pem".into()),
            key: Some("/etc/k.pem".into()),
            key_password: Some(Secret::new("hunter2")),
        };
        let secured = Settings {
            security_protocol: SecurityProtocol::SaslTls,
            sasl: Some(sasl),
            tls,
            ..Settings::default()
        };
        let text = setting(&secured, "t", "delete");
        assert!(!text.contains("hunter2"), "{text}");
        expect![[r#"
            kafka-configs.sh --bootstrap-server localhost:9092 --command-config client.properties --alter --entity-type topics --entity-name t --add-config cleanup.policy=delete
            with a file client.properties of these lines:
            security.protocol=SASL_SSL
            sasl.mechanism=SCRAM-SHA-512
            sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="PASSWORD";
            ssl.truststore.type=PEM
            ssl.truststore.location=/etc/ca.pem
            ssl.keystore.type=PEM
            ssl.keystore.location=FILE (key and certificate in one: /etc/k.pem and /etc/c.pem)
            ssl.key.password=PASSWORD"#]].assert_eq(&text);
        let plain = Settings { security_protocol: SecurityProtocol::SaslPlaintext, ..secured };
        let plain = Settings {
            sasl: plain.sasl.clone().map(|sasl| Sasl { mechanism: SaslMechanism::Plain, ..sasl }),
            tls: Tls::default(),
            ..plain
        };
        expect![[r#"
            kafka-configs.sh --bootstrap-server localhost:9092 --command-config client.properties --alter --entity-type topics --entity-name t --add-config cleanup.policy=delete
            with a file client.properties of these lines:
            security.protocol=SASL_PLAINTEXT
            sasl.mechanism=PLAIN
            sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="PASSWORD";"#]].assert_eq(&setting(&plain, "t", "delete"));
    }
}
