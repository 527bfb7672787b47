//! How restores go: a bar for each on a terminal, a log line every few seconds elsewhere, and a metric always.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::names;

/// Time between two log lines of a restore.
const LINES: Duration = Duration::from_secs(5);

/// Reports all restores of a process, which may run side by side.
#[derive(Clone, Default)]
pub(crate) struct Restores {
    bars: Option<Arc<MultiProgress>>,
}

impl Restores {
    /// `interactive`: standard error is a terminal, and log lines there are for people.
    pub(crate) fn new(interactive: bool) -> Self {
        let bars = || Arc::new(MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(4)));
        Restores { bars: interactive.then(bars) }
    }

    /// A restore of so many changelog offsets.
    pub(crate) fn begin(&self, stage: &str, partition: i32, offsets: u64) -> Restore {
        let remaining = names::restore_remaining(stage, partition);
        let place = Place::Task { stage: stage.to_owned(), partition };
        self.start(place, offsets, remaining)
    }

    /// The first reading of a table, of so many offsets.
    pub(crate) fn begin_table(&self, topic: &str, offsets: u64) -> Restore {
        self.start(Place::Table(topic.to_owned()), offsets, names::table_remaining(topic))
    }

    fn start(&self, place: Place, offsets: u64, remaining: metrics::Gauge) -> Restore {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(offsets));
            if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3}% {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(match &place {
                Place::Task { stage, partition } => format!("restoring {stage}/{partition}"),
                Place::Table(topic) => format!("reading table {topic}"),
            });
            bar
        });
        let now = Instant::now();
        let figures = Figures { offsets, left: offsets, records: 0, bytes: 0, elapsed: Duration::ZERO };
        remaining.set(offsets as f64);
        let inside = Mutex::new(Inside { figures, last_line: now });
        Restore { place, begun: now, inside, bar, remaining }
    }

    /// Runs something that writes to the terminal, with the bars out of its way.
    pub(crate) fn suspend(&self, work: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(work),
            None => work(),
        }
    }
}

/// One restore. Dropping it ends it: with a log line if nothing is left, else it was cancelled and says nothing.
pub(crate) struct Restore {
    place: Place,
    begun: Instant,
    inside: Mutex<Inside>,
    bar: Option<ProgressBar>,
    remaining: metrics::Gauge,
}

/// What is read.
enum Place {
    Task { stage: String, partition: i32 },
    Table(String),
}

struct Inside {
    figures: Figures,
    last_line: Instant,
}

impl Restore {
    /// Records and bytes that were added since the last call, and the offsets that are left.
    pub(crate) fn advance(&self, records: u64, bytes: u64, left: u64) {
        self.advance_at(Instant::now(), records, bytes, left);
    }

    /// True if a log line was due.
    fn advance_at(&self, now: Instant, records: u64, bytes: u64, left: u64) -> bool {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = &mut inside.figures;
        figures.left = left.min(figures.offsets);
        figures.records += records;
        figures.bytes += bytes;
        figures.elapsed = now.saturating_duration_since(self.begun);
        let figures = *figures;
        self.remaining.set(figures.left as f64);
        if let Some(bar) = &self.bar {
            bar.set_position(figures.offsets - figures.left);
            bar.set_message(figures.without_percent());
            return false;
        }
        let due = now.saturating_duration_since(inside.last_line) >= LINES;
        if due {
            inside.last_line = now;
            match &self.place {
                Place::Task { stage, partition } => tracing::info!(stage, partition, "restoring: {figures}"),
                Place::Table(table) => tracing::info!(table, "reading: {figures}"),
            }
        }
        due
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        self.remaining.set(0.0);
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let inside = self.inside.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Figures { left, records, bytes, .. } = inside.figures;
        if left == 0 {
            let took = crate::duration::duration_text(self.begun.elapsed());
            match &self.place {
                Place::Task { stage, partition } => {
                    tracing::info!(stage, partition, records, bytes, took, "restored");
                }
                Place::Table(table) => tracing::info!(table, records, bytes, took, "read"),
            }
        }
    }
}

/// What is known about a restore at one moment. Offsets, not records, are known beforehand: a compacted changelog has
/// holes, and nobody knows how many.
#[derive(Clone, Copy, Debug)]
struct Figures {
    offsets: u64,
    left: u64,
    records: u64,
    bytes: u64,
    elapsed: Duration,
}

impl Figures {
    fn percent(&self) -> u64 {
        match self.offsets {
            0 => 100,
            all => u64::try_from(u128::from(all - self.left) * 100 / u128::from(all)).unwrap_or(100),
        }
    }

    /// Records a second so far.
    fn rate(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (seconds > 0.0 && self.records > 0).then(|| self.records as f64 / seconds)
    }

    /// Time left at the pace so far.
    fn time_left(&self) -> Option<Duration> {
        let done = self.offsets - self.left;
        let seconds = (done > 0).then(|| self.elapsed.as_secs_f64() * self.left as f64 / done as f64)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// For a bar, which shows the percentage itself.
    fn without_percent(&self) -> String {
        let mut text = format!("{} records, {}", HumanCount(self.records), HumanBytes(self.bytes));
        if let Some(rate) = self.rate() {
            text += &format!(", {} records/s", HumanCount(rate as u64));
        }
        if let Some(left) = self.time_left() {
            text += &format!(", {} s left", left.as_secs_f64().ceil());
        }
        text
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%, {}", self.percent(), self.without_percent())
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::*;
    use crate::observe::recorder::recorder;

    #[test]
    fn figures_tell_records_bytes_rate_and_time_left() {
        let elapsed = Duration::from_secs(2);
        let figures = Figures { offsets: 400, left: 300, records: 80_000, bytes: 3 << 20, elapsed };
        assert_eq!(figures.to_string(), "25%, 80,000 records, 3.00 MiB, 40,000 records/s, 6 s left");
    }

    #[test]
    fn figures_of_odd_changelogs() {
        let empty = Figures { offsets: 0, left: 0, records: 0, bytes: 0, elapsed: Duration::ZERO };
        assert_eq!(empty.to_string(), "100%, 0 records, 0 B");
        let begun = Figures { offsets: 10, left: 10, records: 0, bytes: 0, elapsed: Duration::from_secs(1) };
        assert_eq!(begun.to_string(), "0%, 0 records, 0 B");
        let huge = Figures { offsets: u64::MAX, left: 0, ..begun };
        assert_eq!(huge.percent(), 100);
    }

    #[test]
    fn a_line_is_due_every_few_seconds() {
        let restore = Restores::default().begin("count", 3, 1000);
        let begun = restore.begun;
        assert!(!restore.advance_at(begun + LINES / 2, 10, 100, 990));
        assert!(restore.advance_at(begun + LINES, 10, 100, 980));
        assert!(!restore.advance_at(begun + LINES + LINES / 2, 10, 100, 970));
        assert!(restore.advance_at(begun + LINES * 2, 10, 100, 960));
        let figures = restore.inside.lock().unwrap().figures;
        assert_eq!((figures.records, figures.bytes, figures.left), (40, 400, 960));
    }

    #[test]
    fn the_metric_says_what_remains_and_ends_at_zero() {
        let recorder = recorder();
        let handle = recorder.handle();
        let line = |left: &str| {
            format!("flechtwerk_restore_remaining_offsets{{stage=\"count\",partition=\"3\"}} {left}\n")
        };
        metrics::with_local_recorder(&recorder, || {
            let restore = Restores::default().begin("count", 3, 1000);
            assert!(handle.render().contains(&line("1000")));
            restore.advance(400, 400, 600);
            assert!(handle.render().contains(&line("600")));
            drop(restore);
            assert!(handle.render().contains(&line("0")));
        });
    }

    #[test]
    fn bars_side_by_side_do_not_log_lines() {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let restores = Restores { bars: Some(Arc::new(bars)) };
        let (one, two) = (restores.begin("count", 0, 10), restores.begin("count", 1, 10));
        let late = one.begun + LINES * 2;
        assert!(!one.advance_at(late, 5, 5, 5));
        assert!(!two.advance_at(late, 10, 10, 0));
        assert_eq!(one.bar.as_ref().unwrap().position(), 5);
        let mut written = false;
        restores.suspend(|| written = true);
        assert!(written);
    }
}
