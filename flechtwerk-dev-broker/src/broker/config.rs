//! The settings of topics: which there are, what they may be, and what a log makes of them.

use std::collections::BTreeMap;

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
    /// A share from 0 to 1.
    Ratio,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Any of these, separated by commas.
    List(&'static [&'static str]),
    /// Kept as it is.
    Text,
}

impl ConfigKind {
    /// The number of the type in DescribeConfigs.
    pub(crate) fn wire(self) -> i8 {
        match self {
            ConfigKind::Bool => 1,
            ConfigKind::Choice(_) => 2,
            ConfigKind::Int { .. } => 3,
            ConfigKind::Long { .. } => 5,
            ConfigKind::Ratio => 6,
            ConfigKind::List(_) | ConfigKind::Text => 7,
        }
    }

    fn is_list(self) -> bool {
        matches!(self, ConfigKind::List(_) | ConfigKind::Text)
    }

    fn accepts(self, value: &str) -> bool {
        let number = |min: i64, max: i64| value.parse::<i64>().is_ok_and(|n| n >= min && n <= max);
        match self {
            ConfigKind::Bool => matches!(value, "true" | "false"),
            ConfigKind::Int { min } => number(min, i64::from(i32::MAX)),
            ConfigKind::Long { min } => number(min, i64::MAX),
            ConfigKind::Ratio => value.parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n)),
            ConfigKind::Choice(of) => of.contains(&value),
            ConfigKind::List(of) => value.split(',').all(|item| of.contains(&item.trim())),
            ConfigKind::Text => true,
        }
    }
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

const CLEANUP: &str = "cleanup.policy";
const COMPRESSIONS: &[&str] = &["uncompressed", "producer", "none", "gzip", "snappy", "lz4", "zstd"];
const LONG_MAX: &str = "9223372036854775807";

/// All settings of topics in Apache Kafka, by name. Those the log doesn't know are kept and shown, and have no effect.
pub(crate) const TOPIC_CONFIGS: &[ConfigDef] = &[
    def(CLEANUP, ConfigKind::List(&["delete", "compact"]), "delete"),
    def("compression.gzip.level", ConfigKind::Int { min: -1 }, "-1"),
    def("compression.lz4.level", ConfigKind::Int { min: 1 }, "9"),
    def("compression.type", ConfigKind::Choice(COMPRESSIONS), "producer"),
    def("compression.zstd.level", ConfigKind::Int { min: -131_072 }, "3"),
    def("delete.retention.ms", ConfigKind::Long { min: 0 }, "86400000"),
    def("file.delete.delay.ms", ConfigKind::Long { min: 0 }, "60000"),
    def("flush.messages", ConfigKind::Long { min: 1 }, LONG_MAX),
    def("flush.ms", ConfigKind::Long { min: 0 }, LONG_MAX),
    def("follower.replication.throttled.replicas", ConfigKind::Text, ""),
    def("index.interval.bytes", ConfigKind::Int { min: 0 }, "4096"),
    def("leader.replication.throttled.replicas", ConfigKind::Text, ""),
    def("local.retention.bytes", ConfigKind::Long { min: -2 }, "-2"),
    def("local.retention.ms", ConfigKind::Long { min: -2 }, "-2"),
    def("max.compaction.lag.ms", ConfigKind::Long { min: 1 }, LONG_MAX),
    def("max.message.bytes", ConfigKind::Int { min: 0 }, "1048588"),
    def("message.timestamp.after.max.ms", ConfigKind::Long { min: 0 }, "3600000"),
    def("message.timestamp.before.max.ms", ConfigKind::Long { min: 0 }, LONG_MAX),
    def("message.timestamp.type", ConfigKind::Choice(&["CreateTime", "LogAppendTime"]), "CreateTime"),
    def("min.cleanable.dirty.ratio", ConfigKind::Ratio, "0.5"),
    def("min.compaction.lag.ms", ConfigKind::Long { min: 0 }, "0"),
    def("min.insync.replicas", ConfigKind::Int { min: 1 }, "1"),
    def("preallocate", ConfigKind::Bool, "false"),
    def("remote.log.copy.disable", ConfigKind::Bool, "false"),
    def("remote.log.delete.on.disable", ConfigKind::Bool, "false"),
    def("remote.storage.enable", ConfigKind::Bool, "false"),
    def("retention.bytes", ConfigKind::Long { min: i64::MIN }, "-1"),
    def("retention.ms", ConfigKind::Long { min: -1 }, "604800000"),
    def("segment.bytes", ConfigKind::Int { min: 1 }, "1073741824"),
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

/// A change of one setting, by the numbers of IncrementalAlterConfigs.
pub(crate) fn alter(
    configs: &mut TopicConfigs,
    name: &str,
    operation: i8,
    value: Option<&str>,
) -> Result<(), Refusal> {
    let def = find(name)?;
    let items = |text: &str| {
        text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    };
    let current = || -> Vec<String> { items(configs.get(name).map_or(def.default, String::as_str)) };
    let changed = match operation {
        0 => {
            check(name, value)?;
            value.map(str::to_owned)
        }
        1 => None,
        2 | 3 if !def.kind.is_list() => {
            let why = format!("config value append or subtract is not allowed for config key: {name}");
            return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
        }
        2 | 3 => {
            let given: Vec<String> = items(value.unwrap_or_default());
            let mut all = current();
            all.retain(|item| !given.contains(item));
            if operation == 2 {
                all.extend(given);
            }
            let joined = all.join(",");
            check(name, Some(&joined))?;
            Some(joined)
        }
        other => {
            let why = format!("unknown operation {other} for config key: {name}");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
    };
    match changed {
        Some(value) => configs.insert(name.to_owned(), value),
        None => configs.remove(name),
    };
    Ok(())
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
