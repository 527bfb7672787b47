//! Rows of results: what was measured, beside what, and whether the target is met.

use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use serde::Serialize;

/// What a figure should reach.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Shown for information.
    None,
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub measure: String,
    /// Flechtwerk's figure, as a person reads it.
    pub flechtwerk: String,
    /// The figure beside it.
    pub reference: String,
    /// What is judged: a ratio, or a figure by itself.
    pub value: Option<f64>,
    /// The target, as a person reads it.
    pub target: String,
    /// Whether the target is met; `None` where there is none.
    pub passed: Option<bool>,
    /// Why there is no figure.
    pub failure: Option<String>,
}

impl Row {
    /// A figure beside a reference, judged by their ratio.
    pub fn ratio(
        measure: &str,
        unit: fn(f64) -> String,
        flechtwerk: f64,
        reference: f64,
        target: Target,
    ) -> Row {
        let mut row = Row::judged(measure, flechtwerk / reference, target);
        row.flechtwerk = unit(flechtwerk);
        row.reference = unit(reference);
        row
    }

    /// A figure that is judged by itself.
    pub fn figure(measure: &str, unit: fn(f64) -> String, value: f64, target: Target) -> Row {
        let mut row = Row::judged(measure, value, target);
        row.flechtwerk = unit(value);
        row.target = match target {
            Target::AtLeast(bound) => format!("at least {}", unit(bound)),
            Target::AtMost(bound) => format!("at most {}", unit(bound)),
            Target::None => String::new(),
        };
        row
    }

    /// Something that could not be measured.
    pub fn failed(measure: &str, error: &anyhow::Error) -> Row {
        let mut row = Row::judged(measure, f64::NAN, Target::None);
        row.value = None;
        row.failure = Some(format!("{error:#}"));
        row
    }

    fn judged(measure: &str, value: f64, target: Target) -> Row {
        let (text, passed) = match target {
            Target::AtLeast(bound) => (format!("at least {bound}"), Some(value >= bound)),
            Target::AtMost(bound) => (format!("at most {bound}"), Some(value <= bound)),
            Target::None => (String::new(), None),
        };
        Row {
            measure: measure.into(),
            flechtwerk: String::new(),
            reference: String::new(),
            value: Some(value),
            target: text,
            passed,
            failure: None,
        }
    }
}

/// All rows as a table.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["measure", "Flechtwerk", "beside", "ratio", "target", ""]);
    for row in rows {
        let ratio = if row.reference.is_empty() {
            String::new()
        } else {
            row.value.map_or(String::new(), |value| format!("{value:.2}"))
        };
        let verdict = match (row.passed, &row.failure) {
            (_, Some(why)) => Cell::new(format!("not measured: {why}")).fg(Color::Red),
            (Some(true), _) => Cell::new("met").fg(Color::Green),
            (Some(false), _) => Cell::new("missed").fg(Color::Yellow),
            (None, _) => Cell::new(""),
        };
        let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&row.measure),
            right(&row.flechtwerk),
            right(&row.reference),
            right(&ratio),
            Cell::new(&row.target),
            verdict,
        ]);
    }
    table.to_string()
}

/// Records a second.
pub fn rate(value: f64) -> String {
    format!("{:.0}/s", value)
}

/// Seconds of CPU time per million records.
pub fn cpu(value: f64) -> String {
    format!("{value:.2} s")
}

/// A time in seconds.
pub fn seconds(value: f64) -> String {
    match value {
        value if value.abs() < 0.001 => format!("{:.0} µs", value * 1e6),
        value if value.abs() < 1.0 => format!("{:.1} ms", value * 1e3),
        value => format!("{value:.2} s"),
    }
}

/// Bytes of memory.
pub fn memory(value: f64) -> String {
    format!("{:.1} MiB", value / f64::from(1 << 20))
}

/// The middle one.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// For figures in seconds.
pub fn in_seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_judged_by_its_target() {
        let row = Row::ratio("x", rate, 80.0, 100.0, Target::AtLeast(0.8));
        assert_eq!(
            (row.passed, row.flechtwerk.as_str(), row.reference.as_str()),
            (Some(true), "80/s", "100/s")
        );
        assert_eq!(Row::ratio("x", cpu, 3.1, 2.0, Target::AtMost(1.5)).passed, Some(false));
        assert_eq!(Row::figure("x", seconds, 0.5, Target::None).passed, None);
    }

    #[test]
    fn the_table_says_why_a_figure_is_missing() {
        let table = table(&[Row::failed("latency", &anyhow::anyhow!("no broker"))]);
        assert!(table.contains("no broker"), "{table}");
    }

    #[test]
    fn the_median_is_a_value_that_occurred() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    }
}
