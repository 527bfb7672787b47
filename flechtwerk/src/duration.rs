//! Durations in messages, as they would be written in a setting.

use std::time::Duration;

/// A time as it would be written in a setting, in milliseconds at the finest.
pub(crate) fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis(millis)).to_string().replace(' ', "")
}
