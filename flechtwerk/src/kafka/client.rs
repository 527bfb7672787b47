//! From settings to clients: what each kind of client is configured with, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ClientSettings;
use super::errors::broker_error;
use super::ffi::{Handle, Kind, NativeError};
use crate::port::{BrokerError, ErrorKind, ReaderKind, Stability};

/// What a client is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role<'a> {
    Cluster,
    Producer {
        transactional_id: &'a str,
    },
    Member {
        group: &'a str,
        instance_id: Option<&'a str>,
    },
    Reader {
        group: &'a str,
        kind: ReaderKind,
    },
    /// Only asks what a group has committed.
    Offsets {
        group: &'a str,
        which: Stability,
    },
}

impl Role<'_> {
    fn kind(self) -> Kind {
        match self {
            Self::Cluster | Self::Producer { .. } => Kind::Producer,
            Self::Member { .. } | Self::Reader { .. } | Self::Offsets { .. } => Kind::Consumer,
        }
    }

    /// Its name in logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Producer { .. } => "producer",
            Self::Member { .. } => "member",
            Self::Reader { kind: ReaderKind::Inputs { .. }, .. } => "inputs",
            Self::Reader { kind: ReaderKind::Changelogs, .. } => "changelog",
            Self::Reader { kind: ReaderKind::Tables, .. } => "tables",
            Self::Offsets { .. } => "offsets",
        }
    }

    /// Whose it is, in logs: a transactional id or a group.
    pub(super) fn owner(&self) -> &str {
        match self {
            Self::Cluster => "",
            Self::Producer { transactional_id } => transactional_id,
            Self::Member { group, .. } | Self::Reader { group, .. } | Self::Offsets { group, .. } => group,
        }
    }
}

/// Makes a client.
pub(super) fn connect(settings: &ClientSettings, role: Role<'_>) -> Result<Arc<Handle>, BrokerError> {
    let config = config(settings, role);
    let pairs = config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Handle::new(role.kind(), pairs).map_err(|error: NativeError| broker_error(error, ErrorKind::Hopeless))
}

/// Defaults, then the user's settings, then those that the guarantees rest on.
fn config(settings: &ClientSettings, role: Role<'_>) -> BTreeMap<String, String> {
    let mut config = BTreeMap::new();
    defaults(&mut config, role);
    config.extend(settings.extra.clone());
    fixed(&mut config, settings, role);
    config
}

fn defaults(config: &mut BTreeMap<String, String>, role: Role<'_>) {
    let mut set = |name: &str, value: &str| config.insert(name.to_owned(), value.to_owned());
    // The bootstrap connection is dropped at the first metadata answer: the next connection must not wait. After
    // an outage nobody wants to wait for a back-off of ten seconds.
    set("reconnect.backoff.ms", "20");
    set("reconnect.backoff.max.ms", "1000");
    match role {
        Role::Cluster | Role::Offsets { .. } => {}
        Role::Member { .. } => {
            // By this it hears of inputs that were deleted or have got more partitions; both must stop the stage soon.
            set("topic.metadata.refresh.interval.ms", "10000");
        }
        Role::Producer { .. } => {
            // The first request for a partition and the first for offsets are refused while the coordinator ends
            // the previous transaction, and are repeated by this back-off. `retry.backoff.max.ms` stays.
            set("retry.backoff.ms", "1");
            // A commit flushes at once; until then records of a batch may gather.
            set("linger.ms", "5");
            // A batch of outputs and changelog must fit, else `produce` waits in the middle of it.
            set("queue.buffering.max.messages", "1000000");
            set("queue.buffering.max.kbytes", "1048576");
        }
        Role::Reader { kind, .. } => {
            // After a full queue has been emptied, the next fetch must not wait for a second.
            set("fetch.queue.backoff.ms", "10");
            // A partition that is added waits until the fetch in flight is answered.
            match kind {
                ReaderKind::Inputs { .. } => {
                    set("fetch.wait.max.ms", "100");
                    // Per partition.
                    set("queued.max.messages.kbytes", "16384");
                }
                ReaderKind::Changelogs | ReaderKind::Tables => {
                    // An idle table asks less often: it is read for as long as the process lives.
                    set("fetch.wait.max.ms", if kind == ReaderKind::Tables { "100" } else { "10" });
                    set("fetch.message.max.bytes", "8388608");
                    set("queued.max.messages.kbytes", "32768");
                    set("queued.min.messages", "1000000");
                }
            }
        }
    }
}

fn fixed(config: &mut BTreeMap<String, String>, settings: &ClientSettings, role: Role<'_>) {
    let mut set = |name: &str, value: String| config.insert(name.to_owned(), value);
    set("bootstrap.servers", settings.bootstrap_servers.clone());
    set("client.id", settings.client_id.clone());
    match role {
        Role::Cluster => {}
        Role::Producer { transactional_id } => {
            set("transactional.id", transactional_id.to_owned());
            set("transaction.timeout.ms", settings.transaction_timeout.as_millis().to_string());
            set("enable.idempotence", "true".to_owned());
            set("acks", "all".to_owned());
            set("partitioner", "murmur2_random".to_owned());
            set("delivery.report.only.error", "true".to_owned());
        }
        Role::Member { group, instance_id } => {
            consumer(&mut set, group);
            set("group.protocol", "classic".to_owned());
            set("partition.assignment.strategy", "range".to_owned());
            set("session.timeout.ms", settings.session_timeout.as_millis().to_string());
            set("heartbeat.interval.ms", settings.heartbeat_interval.as_millis().to_string());
            // The member polls all the time, so this is only how long a rebalance waits for a member that
            // heartbeats and doesn't rejoin.
            let max_poll = settings.session_timeout.as_millis().max(60_000);
            set("max.poll.interval.ms", max_poll.to_string());
            if let Some(instance_id) = instance_id {
                set("group.instance.id", instance_id.to_owned());
            }
        }
        Role::Reader { group, .. } => {
            consumer(&mut set, group);
            set("enable.partition.eof", "true".to_owned());
        }
        Role::Offsets { group, which } => {
            consumer(&mut set, group);
            if which == Stability::Any {
                // The client asks for stable offsets exactly where it reads committed records.
                set("isolation.level", "read_uncommitted".to_owned());
            }
        }
    }
}

fn consumer(set: &mut impl FnMut(&str, String) -> Option<String>, group: &str) {
    set("group.id", group.to_owned());
    set("isolation.level", "read_committed".to_owned());
    set("enable.auto.commit", "false".to_owned());
    set("enable.auto.offset.store", "false".to_owned());
    // An offset that is not there is an error, never a silent jump.
    set("auto.offset.reset", "error".to_owned());
    set("allow.auto.create.topics", "false".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_can_tune_but_not_weaken() {
        let mut settings = ClientSettings::new("127.0.0.1:9092");
        for (name, value) in [("linger.ms", "50"), ("acks", "0"), ("isolation.level", "read_uncommitted")] {
            settings.extra.insert(name.to_owned(), value.to_owned());
        }
        let producer = config(&settings, Role::Producer { transactional_id: "app-0" });
        assert_eq!(producer["linger.ms"], "50");
        assert_eq!(producer["acks"], "all");
        let reader =
            config(&settings, Role::Reader { group: "app", kind: ReaderKind::Inputs { headers: true } });
        assert_eq!(reader["isolation.level"], "read_committed");
    }

    #[test]
    fn every_role_can_be_made_without_a_broker() {
        let settings = ClientSettings::new("127.0.0.1:1");
        let roles = [
            Role::Cluster,
            Role::Producer { transactional_id: "app-0" },
            Role::Member { group: "app", instance_id: Some("one") },
            Role::Reader { group: "app", kind: ReaderKind::Inputs { headers: true } },
            Role::Reader { group: "app", kind: ReaderKind::Changelogs },
        ];
        for role in roles {
            connect(&settings, role).map(drop).unwrap_or_else(|error| panic!("{role:?}: {error}"));
        }
    }

    #[test]
    fn a_bad_setting_is_named_and_its_value_is_not() {
        for (name, value) in
            [("sasl.mechanisms", "hunter2"), ("no.such.setting", "hunter2"), ("linger.ms", "hunter2")]
        {
            let mut settings = ClientSettings::new("127.0.0.1:1");
            settings.extra.insert(name.to_owned(), value.to_owned());
            let Err(error) = connect(&settings, Role::Producer { transactional_id: "app-0" }) else {
                // A value that only matters once a connection is made.
                continue;
            };
            assert_eq!(error.kind, ErrorKind::Hopeless);
            assert!(error.text.contains(name) && !error.text.contains("hunter2"), "{error}");
        }
    }
}
