//! For programs.

use super::Topology;

impl Topology {
    /// The model itself, indented.
    pub(crate) fn json(&self) -> String {
        // Strings, numbers and lists of them always serialize.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
