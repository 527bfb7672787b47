//! Answers in words that are the same for two brokers that mean the same.

/// Fields whose values a broker chooses, or words for people.
const CHOSEN: &[&str] = &[
    "throttle_time_ms",
    "error_message",
    "batch_index_error_message",
    "topic_id",
    "cluster_id",
    "host",
    "port",
    "member_id",
    "producer_id",
    "unknown_tagged_fields",
    "log_append_time_ms",
    "transaction_start_time_ms",
    "last_timestamp",
    "client_host",
    "client_id",
    "leader",
    "coordinator_epoch",
    // A real Kafka cuts the last batch off at the limit; `differential_log` compares them.
    "records",
    // The development broker has no sessions.
    "session_id",
];

/// What a real Kafka has alone: the topic where it keeps the offsets of groups, and a setting that it is started with.
const ONE_SIDED: &[&str] = &["\"__consumer_offsets\"", "\"file.delete.delay.ms\""];

/// A message as it is written for debugging, without the values of the fields that a broker chooses.
pub(super) fn plain(message: &impl std::fmt::Debug) -> String {
    let text = format!("{message:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    'next: while !rest.is_empty() {
        let begins = out.ends_with(['{', ' ', '(']) || out.is_empty();
        for name in CHOSEN.iter().filter(|_| begins) {
            if let Some(value) = rest.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
                rest = &value[end_of_value(value)..];
                rest = rest.strip_prefix(", ").unwrap_or(rest);
                continue 'next;
            }
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        out.push_str(&rest[..first]);
        rest = &rest[first..];
    }
    sorted(&out)
}

/// With the items of each list in one order: a real Kafka keeps some in tables.
fn sorted(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let inner = &rest[begin + 1..];
        let mut items = Vec::new();
        let mut behind = inner;
        loop {
            let end = end_of_value(behind);
            items.push(sorted(behind[..end].trim()));
            match behind[end..].strip_prefix(',') {
                Some(next) => behind = next,
                None => {
                    behind = &behind[end..];
                    break;
                }
            }
        }
        items.retain(|item| !ONE_SIDED.iter().any(|one| item.contains(one)));
        items.sort();
        out.push_str(&rest[..=begin]);
        out.push_str(&items.join(", "));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Where the value at the start ends: at a comma or a bracket that is not within it.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (position, one) in text.char_indices() {
        match one {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return position,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return position,
            _ => {}
        }
    }
    text.len()
}
