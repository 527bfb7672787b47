//! What the person in front of it sees: in a terminal a table that is redrawn in place, elsewhere a line now and then.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use flight_delays::Delays;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Airports in the table.
const SHOWN: usize = 10;
/// Between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(3);

pub(crate) enum Screen {
    Terminal { all: MultiProgress, sent: ProgressBar, results: ProgressBar, table: ProgressBar },
    Lines { flights: u64, last: Instant },
}

impl Screen {
    pub(crate) fn new(flights: u64) -> anyhow::Result<Self> {
        if !std::io::stderr().is_terminal() {
            return Ok(Screen::Lines { flights, last: Instant::now() });
        }
        let style = ProgressStyle::with_template("{prefix:>8} {bar:40} {human_pos:>7} of {human_len}")?;
        let bar = |prefix| ProgressBar::new(flights).with_style(style.clone()).with_prefix(prefix);
        let all = MultiProgress::new();
        let (sent, results) = (all.add(bar("flights")), all.add(bar("results")));
        let table = all.add(ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{msg}")?));
        Ok(Screen::Terminal { all, sent, results, table })
    }

    /// Something happened.
    pub(crate) fn say(&self, what: &str) {
        match self {
            // Suspended rather than printed above the bars: stdout is one stream in both cases.
            Screen::Terminal { all, .. } => all.suspend(|| println!("{what}")),
            Screen::Lines { .. } => println!("{what}"),
        }
    }

    /// How far it is.
    pub(crate) fn update(&mut self, sent: u64, results: u64, latest: &BTreeMap<String, Delays>) {
        match self {
            Screen::Terminal { sent: sent_bar, results: results_bar, table, .. } => {
                sent_bar.set_position(sent);
                results_bar.set_position(results);
                table.set_message(busiest(latest).to_string());
            }
            Screen::Lines { flights, last } if last.elapsed() >= EVERY => {
                *last = Instant::now();
                let top = latest.iter().max_by_key(|(_, delays)| delays.figures.flights);
                let top = top.map_or(String::new(), |(code, delays)| {
                    let figures = &delays.figures;
                    format!(
                        "; {code}: {} flights, {} late, {:.1} min on average",
                        figures.flights,
                        figures.late,
                        figures.mean()
                    )
                });
                println!("  {sent:>6} flights sent, {results:>6} results of {flights}{top}");
            }
            Screen::Lines { .. } => {}
        }
    }

    /// Leaves the last state of things standing.
    pub(crate) fn finish(self, latest: &BTreeMap<String, Delays>) {
        if let Screen::Terminal { all, sent, results, table } = &self {
            [sent, results, table].into_iter().for_each(ProgressBar::finish_and_clear);
            let _ = all.clear();
        }
        // The bars would wipe out what is printed below them.
        drop(self);
        println!("{}", busiest(latest));
    }
}

/// The airports with most flights.
fn busiest(latest: &BTreeMap<String, Delays>) -> Table {
    let mut airports: Vec<_> = latest.iter().collect();
    airports.sort_by_key(|(_, delays)| std::cmp::Reverse(delays.figures.flights));
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["airport", "city", "flights", "late", "mean min", "deviation", "worst min"]);
    for (code, delays) in airports.iter().take(SHOWN) {
        let figures = &delays.figures;
        table.add_row([
            (*code).clone(),
            delays.city.clone().unwrap_or_default(),
            figures.flights.to_string(),
            figures.late.to_string(),
            format!("{:.1}", figures.mean()),
            format!("{:.1}", figures.deviation()),
            figures.max_delay.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
