//! The settings of topics: which there are, what they may be, and what a log makes of them.

use std::collections::{BTreeMap, HashSet};

use crate::ErrorCode;
use crate::broker::Refusal;
use crate::log::{LogConfig, TimestampType};

/// The settings of one topic that differ from the defaults.
pub(crate) type TopicConfigs = BTreeMap<String, String>;

/// What values a setting takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConfigKind {
    Bool,
    Int {
        min: i64,
    },
    Long {
        min: i64,
    },
    /// How hard to compress.
    Level {
        min: i64,
        max: i64,
        default: i64,
    },
    /// A share from 0 to 1.
    Ratio,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Any of these, separated by commas.
    List(&'static [&'static str]),
    /// Replicas whose traffic Kafka would slow down: `*`, or `PARTITION:BROKER` and more, separated by commas.
    Replicas,
}

impl ConfigKind {
    /// The number of the type in DescribeConfigs.
    pub(crate) fn wire(self) -> i8 {
        match self {
            ConfigKind::Bool => 1,
            ConfigKind::Choice(_) => 2,
            ConfigKind::Int { .. } | ConfigKind::Level { .. } => 3,
            ConfigKind::Long { .. } => 5,
            ConfigKind::Ratio => 6,
            ConfigKind::List(_) | ConfigKind::Replicas => 7,
        }
    }

    fn is_list(self) -> bool {
        matches!(self, ConfigKind::List(_) | ConfigKind::Replicas)
    }

    fn accepts(self, value: &str) -> bool {
        let value = value.trim();
        let number = |min: i64, max: i64| value.parse::<i64>().is_ok_and(|n| n >= min && n <= max);
        match self {
            ConfigKind::Bool => matches!(value.to_ascii_lowercase().as_str(), "true" | "false"),
            ConfigKind::Int { min } => number(min, i64::from(i32::MAX)),
            ConfigKind::Long { min } => number(min, i64::MAX),
            ConfigKind::Level { min, max, default } => number(min, max) || number(default, default),
            ConfigKind::Ratio => value.parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n)),
            ConfigKind::Choice(of) => of.contains(&value),
            ConfigKind::List(of) => value.split(',').all(|item| of.contains(&item.trim())),
            ConfigKind::Replicas => {
                matches!(value, "" | "*") || value.split(',').all(|item| is_replica(item.trim()))
            }
        }
    }
}

fn is_replica(item: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    item.split_once(':').is_some_and(|(partition, broker)| number(partition) && number(broker))
}

impl ConfigKind {
    /// A value as it is kept: without blanks around it.
    fn normal(self, value: &str) -> String {
        match self {
            ConfigKind::Bool => value.trim().to_ascii_lowercase(),
            _ => value.trim().to_owned(),
        }
    }
}

/// The settings of a new topic, which were checked before.
pub(crate) fn of_new_topic(pairs: &[(String, String)]) -> TopicConfigs {
    let normal = |name: &str, value: &str| find(name).map_or(value.to_owned(), |def| def.kind.normal(value));
    pairs.iter().map(|(name, value)| (name.clone(), normal(name, value))).collect()
}

/// A setting that topics have.
#[derive(Debug)]
pub(crate) struct ConfigDef {
    pub(crate) name: &'static str,
    pub(crate) kind: ConfigKind,
    pub(crate) default: &'static str,
}

const fn def(name: &'static str, kind: ConfigKind, default: &'static str) -> ConfigDef {
    ConfigDef { name, kind, default }
}

/// The changes of IncrementalAlterConfigs.
pub(crate) const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
pub(crate) const OPERATIONS: [i8; 4] = [SET, DELETE, APPEND, SUBTRACT];

/// Smaller segments are refused (KIP-1030).
const MIN_SEGMENT: i64 = 1024 * 1024;

const CLEANUP: &str = "cleanup.policy";
const COMPRESSIONS: &[&str] = &["uncompressed", "producer", "none", "gzip", "snappy", "lz4", "zstd"];
const LONG_MAX: &str = "9223372036854775807";

/// All settings of topics in Apache Kafka, by name. Those the log doesn't know are kept and shown, and have no effect.
pub(crate) const TOPIC_CONFIGS: &[ConfigDef] = &[
    def(CLEANUP, ConfigKind::List(&["delete", "compact"]), "delete"),
    def("compression.gzip.level", ConfigKind::Level { min: 1, max: 9, default: -1 }, "-1"),
    def("compression.lz4.level", ConfigKind::Level { min: 1, max: 17, default: 9 }, "9"),
    def("compression.type", ConfigKind::Choice(COMPRESSIONS), "producer"),
    def("compression.zstd.level", ConfigKind::Level { min: -131_072, max: 22, default: 3 }, "3"),
    def("delete.retention.ms", ConfigKind::Long { min: 0 }, "86400000"),
    def("errors.deadletterqueue.group.enable", ConfigKind::Bool, "false"),
    def("file.delete.delay.ms", ConfigKind::Long { min: 0 }, "60000"),
    def("flush.messages", ConfigKind::Long { min: 1 }, LONG_MAX),
    def("flush.ms", ConfigKind::Long { min: 0 }, LONG_MAX),
    def("follower.replication.throttled.replicas", ConfigKind::Replicas, ""),
    def("index.interval.bytes", ConfigKind::Int { min: 0 }, "4096"),
    def("leader.replication.throttled.replicas", ConfigKind::Replicas, ""),
    def("local.retention.bytes", ConfigKind::Long { min: -2 }, "-2"),
    def("local.retention.ms", ConfigKind::Long { min: -2 }, "-2"),
    def("max.compaction.lag.ms", ConfigKind::Long { min: 1 }, LONG_MAX),
    def("max.decompressed.message.bytes", ConfigKind::Int { min: 1 }, "2147483639"),
    def("max.message.bytes", ConfigKind::Int { min: 0 }, "1048588"),
    def("message.timestamp.after.max.ms", ConfigKind::Long { min: 0 }, "3600000"),
    def("message.timestamp.before.max.ms", ConfigKind::Long { min: 0 }, LONG_MAX),
    def("message.timestamp.type", ConfigKind::Choice(&["CreateTime", "LogAppendTime"]), "CreateTime"),
    def("min.cleanable.dirty.ratio", ConfigKind::Ratio, "0.5"),
    def("min.compaction.lag.ms", ConfigKind::Long { min: 0 }, "0"),
    def("min.insync.replicas", ConfigKind::Int { min: 1 }, "1"),
    def("preallocate", ConfigKind::Bool, "false"),
    def("remote.copy.lag.bytes", ConfigKind::Long { min: -2 }, "-1"),
    def("remote.copy.lag.ms", ConfigKind::Long { min: -2 }, "0"),
    def("remote.log.copy.disable", ConfigKind::Bool, "false"),
    def("remote.log.delete.on.disable", ConfigKind::Bool, "false"),
    def("remote.storage.enable", ConfigKind::Bool, "false"),
    def("retention.bytes", ConfigKind::Long { min: i64::MIN }, "-1"),
    def("retention.ms", ConfigKind::Long { min: -1 }, "604800000"),
    def("segment.bytes", ConfigKind::Int { min: MIN_SEGMENT }, "1073741824"),
    def("segment.index.bytes", ConfigKind::Int { min: 4 }, "10485760"),
    def("segment.jitter.ms", ConfigKind::Long { min: 0 }, "0"),
    def("segment.ms", ConfigKind::Long { min: 1 }, "604800000"),
    def("unclean.leader.election.enable", ConfigKind::Bool, "false"),
];

fn find(name: &str) -> Result<&'static ConfigDef, Refusal> {
    TOPIC_CONFIGS
        .iter()
        .find(|def| def.name == name)
        .ok_or_else(|| Refusal::new(ErrorCode::INVALID_CONFIG, format!("unknown topic config name: {name}")))
}

/// Refuses a setting that no topic has, or a value it can't take.
pub(crate) fn check(name: &str, value: Option<&str>) -> Result<(), Refusal> {
    let def = find(name)?;
    match value {
        Some(value) if def.kind.accepts(value) => Ok(()),
        Some(value) => Err(Refusal::new(
            ErrorCode::INVALID_CONFIG,
            format!("invalid value {value} for configuration {name}"),
        )),
        None => Err(Refusal::new(ErrorCode::INVALID_CONFIG, format!("null value not supported for {name}"))),
    }
}

/// Refuses what a change can't be, whatever its topic is: as in Kafka, before anyone looks whether there is one.
pub(crate) fn check_change(name: &str, operation: i8, value: Option<&str>) -> Result<(), Refusal> {
    match (operation, value) {
        (DELETE, _) | (SET | APPEND | SUBTRACT, Some(_)) => {}
        (_, None) => {
            let why = format!("Null value not supported for: {name}");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        _ => {
            let why = format!("unknown operation {operation} for config key: {name}");
            return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, why));
        }
    }
    if matches!(operation, APPEND | SUBTRACT) && !find(name)?.kind.is_list() {
        let why = format!("config value append or subtract is not allowed for config key: {name}");
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
    }
    Ok(())
}

/// A change of one setting, by the numbers of IncrementalAlterConfigs.
pub(crate) fn alter(
    configs: &mut TopicConfigs,
    name: &str,
    operation: i8,
    value: Option<&str>,
) -> Result<(), Refusal> {
    check_change(name, operation, value)?;
    if operation == DELETE {
        // Also one that no topic has, as in Kafka.
        configs.remove(name);
        return Ok(());
    }
    let def = find(name)?;
    let items = |text: &str| {
        text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    };
    let current = || -> Vec<String> { items(configs.get(name).map_or(def.default, String::as_str)) };
    let changed = match operation {
        SET => {
            check(name, value)?;
            value.map(|value| def.kind.normal(value))
        }
        APPEND | SUBTRACT => {
            let given: Vec<String> = items(value.unwrap_or_default());
            let mut all = current();
            let known: HashSet<&String> = given.iter().collect();
            all.retain(|item| !known.contains(item));
            if operation == APPEND {
                all.extend(given);
            }
            let joined = all.join(",");
            check(name, Some(&joined))?;
            Some(joined)
        }
        _ => None,
    };
    match changed {
        Some(value) => configs.insert(name.to_owned(), value),
        None => configs.remove(name),
    };
    Ok(())
}

/// Where the value in force comes from, by Kafka's numbers: the topic's own settings, or a default.
pub(crate) fn source(configs: &TopicConfigs, def: &ConfigDef) -> i8 {
    match def.name {
        name if configs.contains_key(name) => 1,
        // A new cluster sets it for all its brokers (KIP-966).
        "min.insync.replicas" => 3,
        _ => 5,
    }
}

/// The value in force.
pub(crate) fn value<'a>(configs: &'a TopicConfigs, def: &'a ConfigDef) -> &'a str {
    configs.get(def.name).map_or(def.default, String::as_str)
}

/// What the log makes of the settings.
pub(crate) fn log_config(configs: &TopicConfigs) -> LogConfig {
    let mut config = LogConfig::default();
    let get = |name: &str| configs.get(name).map(String::as_str);
    let long = |name: &str, or: i64| get(name).and_then(|value| value.parse().ok()).unwrap_or(or);
    config.max_message_bytes =
        get("max.message.bytes").and_then(|value| value.parse().ok()).unwrap_or(config.max_message_bytes);
    config.timestamp_type = match get("message.timestamp.type") {
        Some("LogAppendTime") => TimestampType::LogAppendTime,
        _ => TimestampType::CreateTime,
    };
    config.timestamp_before_max_ms = long("message.timestamp.before.max.ms", config.timestamp_before_max_ms);
    config.timestamp_after_max_ms = long("message.timestamp.after.max.ms", config.timestamp_after_max_ms);
    config.delete_retention_ms = long("delete.retention.ms", config.delete_retention_ms);
    config.segment_ms = long("segment.ms", config.segment_ms);
    config.segment_bytes = usize::try_from(long("segment.bytes", 1 << 30)).unwrap_or(config.segment_bytes);
    if let Some(policy) = get(CLEANUP) {
        let has = |name: &str| policy.split(',').any(|item| item.trim() == name);
        config.compact = has("compact");
        config.delete = has("delete");
    }
    config
}
