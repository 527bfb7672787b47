//! The kinds of values that settings have: how they are written, and what a message says is allowed.
//!
//! Each kind reads text, since flags and the environment have nothing else; where a file has numbers and booleans
//! of its own, these are taken too.

use std::fmt;
use std::time::Duration;

use figment::value::Value;

use super::{LogFormat, SaslMechanism, SecurityProtocol, StoreKind};
use crate::naming::check_topic_name;

/// A value that no message, log line or `Debug` shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The value itself, for the client that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// Something a setting can be.
pub(super) trait Setting: Sized {
    /// What is allowed; continues "allowed: ".
    const ALLOWED: &'static str;

    fn read(value: &Value) -> Option<Self>;
}

/// A flag's, variable's or file's single value as text; numbers and booleans of a file included.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(_, text) => Some(text.clone()),
        Value::Char(_, c) => Some(c.to_string()),
        Value::Bool(_, b) => Some(b.to_string()),
        Value::Num(_, number) => number
            .to_u128()
            .map(|n| n.to_string())
            .or_else(|| number.to_i128().map(|n| n.to_string()))
            .or_else(|| number.to_f64().map(|n| n.to_string())),
        Value::Empty(..) | Value::Dict(..) | Value::Array(..) => None,
    }
}

impl Setting for String {
    const ALLOWED: &'static str = "text that is not empty";

    fn read(value: &Value) -> Option<Self> {
        text(value).filter(|text| !text.trim().is_empty())
    }
}

impl Setting for bool {
    const ALLOWED: &'static str = "true or false";

    fn read(value: &Value) -> Option<Self> {
        match text(value)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

/// A whole number above zero.
impl Setting for usize {
    const ALLOWED: &'static str = "a whole number from 1 on, such as 5000";

    fn read(value: &Value) -> Option<Self> {
        text(value)?.trim().parse().ok().filter(|number| *number > 0)
    }
}

/// A number of bytes.
pub(super) struct Bytes(pub(super) usize);

impl Setting for Bytes {
    const ALLOWED: &'static str = "a size from 1 byte on, such as 8MiB, 512KiB or 1000000";

    fn read(value: &Value) -> Option<Self> {
        let text = text(value)?;
        let text = text.trim();
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let factor: usize = match unit.trim() {
            "" | "B" => 1,
            "kB" | "KB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return None,
        };
        number.parse::<usize>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0).map(Bytes)
    }
}

/// Longer was hardly meant, and a sum of such times and a point in time may be none: adding them would panic.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// A time of at most a hundred years.
impl Setting for Duration {
    const ALLOWED: &'static str = "a time with its unit, such as 50ms, 15s or 5min";

    fn read(value: &Value) -> Option<Self> {
        humantime::parse_duration(text(value)?.trim()).ok().filter(|time| *time <= LONGEST)
    }
}

impl Setting for SecurityProtocol {
    const ALLOWED: &'static str = "plaintext, tls, sasl_plaintext or sasl_tls";

    fn read(value: &Value) -> Option<Self> {
        // Kafka says SSL where it means TLS; both are understood.
        match text(value)?.to_ascii_lowercase().as_str() {
            "plaintext" => Some(SecurityProtocol::Plaintext),
            "tls" | "ssl" => Some(SecurityProtocol::Tls),
            "sasl_plaintext" => Some(SecurityProtocol::SaslPlaintext),
            "sasl_tls" | "sasl_ssl" => Some(SecurityProtocol::SaslTls),
            _ => None,
        }
    }
}

impl Setting for SaslMechanism {
    const ALLOWED: &'static str = "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";

    fn read(value: &Value) -> Option<Self> {
        match text(value)?.to_ascii_uppercase().as_str() {
            "PLAIN" => Some(SaslMechanism::Plain),
            "SCRAM-SHA-256" => Some(SaslMechanism::ScramSha256),
            "SCRAM-SHA-512" => Some(SaslMechanism::ScramSha512),
            _ => None,
        }
    }
}

impl Setting for StoreKind {
    const ALLOWED: &'static str = "memory or rocksdb";

    fn read(value: &Value) -> Option<Self> {
        match text(value)?.as_str() {
            "memory" => Some(StoreKind::Memory),
            "rocksdb" => Some(StoreKind::RocksDb),
            _ => None,
        }
    }
}

impl Setting for LogFormat {
    const ALLOWED: &'static str = "text or json";

    fn read(value: &Value) -> Option<Self> {
        match text(value)?.as_str() {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }
}

/// What is put before application ids, which are parts of topic names.
pub(super) struct Namespace(pub(super) String);

impl Setting for Namespace {
    const ALLOWED: &'static str =
        "a prefix of the characters A-Z a-z 0-9 . _ -, such as test-, or leave it out for none";

    fn read(value: &Value) -> Option<Self> {
        let text = text(value)?;
        check_topic_name(&text).ok().or_else(|| text.chars().all(|c| c == '.').then_some(()))?;
        (!text.is_empty()).then_some(Namespace(text))
    }
}

/// `host:port`.
pub(super) struct Address(pub(super) String);

impl Setting for Address {
    const ALLOWED: &'static str = "HOST:PORT, such as 127.0.0.1:9100; port 0 takes a free one";

    fn read(value: &Value) -> Option<Self> {
        let text = text(value)?;
        let (host, port) = text.trim().rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        (!host.is_empty()).then(|| Address(text.trim().to_owned()))
    }
}

/// Which log lines are written.
pub(super) struct LogFilter(pub(super) String);

impl Setting for LogFilter {
    const ALLOWED: &'static str =
        "error, warn, info, debug, trace, off, or such levels by module, such as info,flechtwerk=debug";

    fn read(value: &Value) -> Option<Self> {
        let text = text(value)?;
        let text = text.trim();
        // A lone word that is no level would be taken for a module, and silence everything else.
        let sensible = text.split(',').all(|part| part.contains(['=', ':']) || is_level(part.trim()));
        let parsed = tracing_subscriber::EnvFilter::try_new(text);
        (sensible && parsed.is_ok()).then(|| LogFilter(text.to_owned()))
    }
}

fn is_level(word: &str) -> bool {
    word == "off"
        || word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok() && word.parse::<u8>().is_err()
}

/// Several names: a list of a file, or comma separated.
impl Setting for Vec<String> {
    const ALLOWED: &'static str = "names, as a list or comma separated";

    fn read(value: &Value) -> Option<Self> {
        let parts = match value {
            Value::Array(_, parts) => parts.iter().map(text).collect::<Option<Vec<_>>>()?,
            single => vec![text(single)?],
        };
        let names = parts.iter().flat_map(|part| part.split(','));
        let names: Vec<String> =
            names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        (!names.is_empty()).then_some(names)
    }
}

/// A number of bytes as it would be written in a setting.
pub(crate) fn bytes_text(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::duration_text;

    fn read<T: Setting>(text: &str) -> Option<T> {
        T::read(&Value::from(text))
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("8MiB", 8 << 20), ("512 KiB", 512 << 10), ("1000000", 1_000_000), ("3kB", 3000), ("7B", 7)]
        {
            assert_eq!(read::<Bytes>(text).map(|b| b.0), Some(bytes), "{text}");
        }
        for text in ["", "0", "MiB", "-1", "1.5MiB", "8 mib", "99999999999999999999", "99999999999GiB"] {
            assert!(read::<Bytes>(text).is_none(), "{text}");
        }
    }

    #[test]
    fn sizes_and_times_read_what_they_write() {
        for bytes in [1, 1023, 1024, 8 << 20, 3 << 30, 1_000_001] {
            assert_eq!(read::<Bytes>(&bytes_text(bytes)).map(|b| b.0), Some(bytes));
        }
        for millis in [0, 1, 50, 1500, 15_000, 300_000, 86_400_000] {
            let time = Duration::from_millis(millis);
            assert_eq!(read::<Duration>(&duration_text(time)), Some(time));
        }
    }

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(read::<Duration>("50"), None);
        assert_eq!(Duration::read(&Value::from(50)), None);
    }

    #[test]
    fn a_time_is_one_that_can_be_added_to_now() {
        assert_eq!(read::<Duration>("100y"), Some(Duration::from_secs(100 * 31_557_600)));
        for text in ["101y", "2100400092y", "500000000000y"] {
            assert_eq!(read::<Duration>(text), None, "{text}");
        }
    }

    #[test]
    fn a_lone_module_is_no_log_filter() {
        assert!(read::<LogFilter>("info,flechtwerk=debug").is_some());
        assert!(read::<LogFilter>("off").is_some());
        assert!(read::<LogFilter>("flechtwerk").is_none());
        assert!(read::<LogFilter>("verbose").is_none());
        assert!(read::<LogFilter>("flechtwerk=loud").is_none());
    }

    #[test]
    fn addresses_need_a_port() {
        for good in ["127.0.0.1:0", "localhost:9100", "[::1]:9100"] {
            assert!(read::<Address>(good).is_some(), "{good}");
        }
        for bad in ["9100", ":9100", "host", "host:port", "host:70000"] {
            assert!(read::<Address>(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "<secret>");
        assert_eq!(Secret::new("hunter2").expose(), "hunter2");
    }
}
