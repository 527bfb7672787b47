//! The names of all settings.

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
    key("schema_registry"),
    key("schema_registry_username"),
    key("schema_registry_password_file"),
    secret("schema_registry_password"),
    key("schema_registry_token_file"),
    secret("schema_registry_token"),
    key("schema_registry_ca"),
    key("stage"),
    key("namespace"),
    key("topic"),
    key("create_outputs"),
    key("register_schemas"),
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

/// How to reach a cluster: of no use where the program brings its own.
pub(crate) fn is_connection(name: &str) -> bool {
    matches!(name, "bootstrap_servers" | "security_protocol")
        || name.starts_with("sasl_")
        || name.starts_with("tls_")
}

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// The flag of a setting, which `-X` is for librdkafka's own ones.
pub(crate) fn flag(name: &str) -> String {
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
