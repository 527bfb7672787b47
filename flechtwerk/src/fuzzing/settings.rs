//! Settings: their three places as one input, and single values.

use super::{SECRET, Target, quiet};
pub(super) use crate::settings::fuzzing::{given, values};

pub(super) const TARGETS: &[Target] = &[
    Target { name: "settings", good: good_settings, read: settings, memory: (4 << 10, 4 << 20) },
    Target { name: "values", good: good_values, read: value, memory: (4 << 10, 1 << 20) },
];

const FILE: &str = "bootstrap_servers = \"a:1,b:2\"
max_batch_bytes = \"8MiB\"
max_poll_records = 100
session_timeout = \"10s\"
stage = [\"one\", \"two\"]
create_outputs = true
log = \"info,flechtwerk=debug\"
[topic]
words = \"prod.words\"
[kafka]
\"socket.keepalive.enable\" = true
debug.x = 1.5
[resources.http]
url = \"https://x\"
nested = { deep = [1, 2.5, { a = false }] }
";

/// A file, variables and flags, with zeroes in between.
fn good_settings() -> Vec<Vec<u8>> {
    let secrets = format!(
        "FLECHTWERK_SASL_USERNAME=ann\nFLECHTWERK_SASL_PASSWORD={SECRET}\nFLECHTWERK_RESOURCES_HTTP_NESTED__TOKEN={SECRET}"
    );
    let others = "FLECHTWERK_TOPIC=a=b,c=d\nFLECHTWERK_KAFKA_SOCKET_TIMEOUT_MS=5000\nFLECHTWERK_NAMESPACE=test-\nFLECHTWERK_STRANGE=1";
    let flags = "heartbeat_interval=100ms\nstage=one\ntopic=words=x\nkafka=debug=all\nstore=memory";
    let line = format!("sasl_password = \"{SECRET}\"\n");
    let in_file = format!("{line}{FILE}");
    // A secret whose name was misspelt is one all the same.
    let misspelt = format!("sasl_passwrod = \"{SECRET}\"\n\0FLECHTWERK_SASL_PASSWROD={SECRET}");
    vec![
        line.into(),
        misspelt.into(),
        [FILE, "\0", &secrets, "\0", flags].concat().into(),
        ["\0", others, "\0", flags].concat().into(),
        [&in_file, "\0", others].concat().into(),
        [FILE].concat().into(),
        format!("{FILE}\0{secrets}\n{others}").into(),
    ]
}

/// Messages must not show what is in a variable or a line that is secret by its name.
fn settings(bytes: &[u8]) -> bool {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (file, variables, flags) = (part(), part(), part());
    let secret_line = |line: &[u8], allowed: &[&str]| match std::str::from_utf8(line) {
        Ok(line) => !line.contains(SECRET) || allowed.iter().any(|prefix| line.starts_with(prefix)),
        Err(_) => false,
    };
    let of_file = ["sasl_password = \"p4yl0ad\"", "sasl_passwrod = \"p4yl0ad\""];
    let of_variables = [
        "FLECHTWERK_SASL_PASSWORD=",
        "FLECHTWERK_SASL_PASSWROD=",
        "FLECHTWERK_RESOURCES_HTTP_NESTED__TOKEN=",
    ];
    let lines = |part: &[u8], allowed: &[&str]| {
        part.split(|byte| *byte == b'\n').all(|line| secret_line(line, allowed))
    };
    let kept = lines(file, &of_file) && lines(variables, &of_variables) && lines(flags, &[]);
    let (messages, good) = given(file, variables, flags);
    if kept {
        messages.iter().for_each(quiet);
    }
    good
}

fn good_values() -> Vec<Vec<u8>> {
    let texts = [
        "8MiB",
        "512 KiB",
        "1000000",
        "7B",
        "15s",
        "1h 30min",
        "50ms",
        "99y",
        "true",
        "5000",
        "ssl",
        "sasl_tls",
        "PLAIN",
        "memory",
        "json",
        "test-",
        "[::1]:9100",
        "info,flechtwerk=debug",
        "off",
    ];
    texts.map(Vec::from).into()
}

fn value(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(values)
}
