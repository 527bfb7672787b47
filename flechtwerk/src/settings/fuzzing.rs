//! What the fuzz targets reach of the settings, in plain types.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use figment::value::{Dict, Value};

use super::load::read_with;
use super::values::{Address, Bytes, LogFilter, Namespace, Setting};
use super::{Given, LogFormat, SaslMechanism, SecurityProtocol, StoreKind, bytes_text, duration_text};

/// Reads a file, lines `NAME=VALUE` of an environment, and such lines of flags. The messages, and whether all was good.
pub(crate) fn given(file: &[u8], variables: &[u8], flags: &[u8]) -> (Vec<String>, bool) {
    let pair = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b'=')?;
        Some((line[..at].to_vec(), line[at + 1..].to_vec()))
    };
    let lines = |part: &[u8]| part.split(|byte| *byte == b'\n').filter_map(pair).collect::<Vec<_>>();
    let environment = lines(variables)
        .into_iter()
        .map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value)));
    let mut dict = Dict::new();
    for (name, value) in lines(flags) {
        let text = |bytes| String::from_utf8(bytes).ok();
        let (Some(name), Some(value)) = (text(name), text(value)) else { continue };
        // Flags that may be given several times are lists.
        match dict.get_mut(&name) {
            Some(Value::Array(_, values)) => values.push(Value::from(value)),
            _ => drop(dict.insert(name, Value::from(vec![value]))),
        }
    }
    let single = |key: &str| !["topic", "kafka", "stage"].contains(&key);
    for (name, value) in &mut dict {
        if let Value::Array(_, values) = value
            && single(name)
            && let Some(last) = values.pop()
        {
            *value = last;
        }
    }
    let given = Given {
        flags: dict,
        environment: environment.filter(|(name, _)| name != "FLECHTWERK_CONFIG").collect(),
        config: Some("flechtwerk.toml".into()),
        resources: vec!["http", "http_proxy"],
        own_cluster: false,
    };
    let content = |_: &std::path::Path| {
        let text = std::str::from_utf8(file).map_err(|_| std::io::Error::other("not UTF-8"))?;
        Ok(text.to_owned())
    };
    let (loaded, problems) = read_with(&given, &content);
    let good = problems.is_empty();
    let shown = problems.iter().flat_map(|problem| [problem.to_string(), format!("{problem:?}")]);
    let mut messages: Vec<String> = shown.chain(loaded.warnings.iter().cloned()).collect();
    messages.push(format!("{:?}", loaded.settings));
    (messages, good)
}

/// Reads text as a value of every kind. What we write for a size or a time reads as the same. True if it is any kind of value.
pub(crate) fn values(text: &str) -> bool {
    let value = Value::from(text);
    let size = Bytes::read(&value);
    if let Some(Bytes(size)) = size {
        let again = Bytes::read(&Value::from(bytes_text(size)));
        assert_eq!(again.map(|again| again.0), Some(size));
    }
    let time = Duration::read(&value);
    if let Some(time) = time {
        let millis = u64::try_from(time.as_millis()).expect("a time of a setting has so many milliseconds");
        assert_eq!(Duration::read(&Value::from(duration_text(time))), Some(Duration::from_millis(millis)));
    }
    [
        size.is_some(),
        time.is_some(),
        bool::read(&value).is_some(),
        usize::read(&value).is_some(),
        SecurityProtocol::read(&value).is_some(),
        SaslMechanism::read(&value).is_some(),
        StoreKind::read(&value).is_some(),
        LogFormat::read(&value).is_some(),
        Namespace::read(&value).is_some(),
        Address::read(&value).is_some(),
        LogFilter::read(&value).is_some(),
    ]
    .contains(&true)
}
