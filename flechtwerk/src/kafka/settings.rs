//! What all clients of one cluster are made of.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Settings of all clients. Those that the guarantees rest on are set by the adapters and win over `extra`.
#[derive(Clone)]
pub(crate) struct ClientSettings {
    pub(crate) bootstrap_servers: String,
    /// librdkafka's own settings, as the user gave them: security, compression, tuning.
    pub(crate) extra: BTreeMap<String, String>,
    pub(crate) client_id: String,
    pub(crate) session_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) transaction_timeout: Duration,
}

impl ClientSettings {
    /// The defaults, for these brokers.
    pub(crate) fn new(bootstrap_servers: impl Into<String>) -> Self {
        Self {
            bootstrap_servers: bootstrap_servers.into(),
            extra: BTreeMap::new(),
            client_id: "flechtwerk".to_owned(),
            session_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_millis(500),
            transaction_timeout: Duration::from_secs(15),
        }
    }
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of `extra` may be secrets, and no list of those that are would ever be complete.
        f.debug_struct("ClientSettings")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .field("client_id", &self.client_id)
            .field("session_timeout", &self.session_timeout)
            .field("heartbeat_interval", &self.heartbeat_interval)
            .field("transaction_timeout", &self.transaction_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_values_of_the_users_settings() {
        let mut settings = ClientSettings::new("127.0.0.1:9092");
        settings.extra.insert("sasl.password".to_owned(), "hunter2".to_owned());
        let shown = format!("{settings:?}");
        assert!(shown.contains("sasl.password"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
