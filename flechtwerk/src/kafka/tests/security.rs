//! Encrypted and authenticated connections.

use std::time::Duration;

use super::support::*;
use crate::kafka::{ClientSettings, Kafka};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: start the brokers with `scripts/kafka start --tls` and use what its `env` prints")
    })
}

fn secured(password: &str) -> Kafka {
    let mut settings =
        ClientSettings { bootstrap_servers: variable("FLECHTWERK_TEST_TLS_BROKERS"), ..settings() };
    for (name, value) in [
        ("security.protocol", "SASL_SSL"),
        ("ssl.ca.location", &variable("FLECHTWERK_TEST_CA")),
        ("sasl.mechanisms", "SCRAM-SHA-512"),
        ("sasl.username", &variable("FLECHTWERK_TEST_USER")),
        ("sasl.password", password),
    ] {
        settings.extra.insert(name.to_owned(), value.to_owned());
    }
    Kafka::new(settings)
}

#[test]
fn tls_and_scram_connect_every_kind_of_client() {
    let password = std::fs::read_to_string(variable("FLECHTWERK_TEST_PASSWORD_FILE")).unwrap();
    let kafka = secured(password.trim());
    let topic = topic(&kafka, "secured", 1);
    let group = unique("secured");
    let member = join(&kafka, &group, &topic, None);
    assert_eq!(member.assigned(), [0]);
    let mut producer = producer(&kafka, &group, &topic);
    write(&mut *producer, &topic, 0, ["secret"]);
    let reader = reader(&kafka);
    let mut queue = reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
    assert_eq!(values(&read_to(&mut *queue, 1)), ["secret"]);
    member.leave();
}

#[test]
fn a_wrong_password_is_said_and_not_shown() {
    let cluster = secured("hunter2").cluster().unwrap();
    let error = eventually("the reason", || {
        let error = cluster.brokers(Duration::from_millis(500)).unwrap_err();
        error.text.contains("uthentication").then_some(error)
    });
    assert!(!error.text.contains("hunter2"), "{error}");
}
