//! How restores go: a bar for each on a terminal, a log line every few seconds elsewhere, and a metric always.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::metrics;

/// Time between two log lines of a restore.
const LINES: Duration = Duration::from_secs(5);

/// Reports all restores of a process, which may run side by side.
#[derive(Clone)]
pub(crate) struct Restoring {
    bars: Option<Arc<MultiProgress>>,
}

impl Restoring {
    /// `interactive`: standard error is a terminal, and log lines there are for people.
    pub(crate) fn new(interactive: bool) -> Self {
        let bars = || Arc::new(MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(4)));
        Restoring { bars: interactive.then(bars) }
    }

    /// A restore from changelog offset `from` to `end`.
    pub(crate) fn begin(&self, stage: &str, partition: i32, from: i64, end: i64) -> RestoreProgress {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(u64::try_from(end - from).unwrap_or(0)));
            if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3}% {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(format!("restoring {stage}-{partition}"));
            bar
        });
        let now = Instant::now();
        let figures = Figures { from, end, position: from, records: 0, bytes: 0, elapsed: Duration::ZERO };
        let remaining = metrics::restore_remaining(stage, partition);
        remaining.set(figures.remaining() as f64);
        RestoreProgress {
            stage: stage.to_owned(),
            partition,
            figures,
            begun: now,
            last_line: now,
            bar,
            remaining,
        }
    }

    /// Runs something that writes to the terminal, with the bars out of its way.
    pub(crate) fn suspend(&self, work: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(work),
            None => work(),
        }
    }
}

/// One restore. Dropping it before it is finished removes its bar and says nothing.
pub(crate) struct RestoreProgress {
    stage: String,
    partition: i32,
    figures: Figures,
    begun: Instant,
    last_line: Instant,
    bar: Option<ProgressBar>,
    remaining: ::metrics::Gauge,
}

impl RestoreProgress {
    /// Records and bytes that were added, and the changelog position after them.
    pub(crate) fn advance(&mut self, position: i64, records: u64, bytes: u64) {
        self.advance_at(Instant::now(), position, records, bytes);
    }

    /// True if a log line was due.
    fn advance_at(&mut self, now: Instant, position: i64, records: u64, bytes: u64) -> bool {
        let figures = &mut self.figures;
        figures.position = position;
        figures.records += records;
        figures.bytes += bytes;
        figures.elapsed = now.saturating_duration_since(self.begun);
        self.remaining.set(figures.remaining() as f64);
        if let Some(bar) = &self.bar {
            bar.set_position(u64::try_from(position - figures.from).unwrap_or(0));
            bar.set_message(figures.to_string());
            return false;
        }
        let due = now.saturating_duration_since(self.last_line) >= LINES;
        if due {
            self.last_line = now;
            tracing::info!(stage = self.stage, partition = self.partition, "restoring: {}", self.figures);
        }
        due
    }

    /// The end is reached.
    pub(crate) fn finish(mut self) {
        self.figures.elapsed = self.begun.elapsed();
        let Figures { records, bytes, elapsed, .. } = self.figures;
        self.clear();
        tracing::info!(
            stage = self.stage,
            partition = self.partition,
            records,
            bytes,
            millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "restored"
        );
    }

    fn clear(&mut self) {
        self.remaining.set(0.0);
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for RestoreProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What is known about a restore at one moment.
#[derive(Clone, Copy, Debug)]
struct Figures {
    from: i64,
    end: i64,
    position: i64,
    records: u64,
    bytes: u64,
    elapsed: Duration,
}

impl Figures {
    /// Offsets, not records: a compacted changelog has holes, and nobody knows how many.
    fn remaining(&self) -> u64 {
        u64::try_from(self.end - self.position).unwrap_or(0)
    }

    fn percent(&self) -> u64 {
        let whole = u64::try_from(self.end - self.from).unwrap_or(0).max(1);
        (whole - self.remaining().min(whole)) * 100 / whole
    }

    /// Records a second so far.
    fn rate(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (seconds > 0.0 && self.records > 0).then(|| self.records as f64 / seconds)
    }

    /// Time left at the pace so far.
    fn left(&self) -> Option<Duration> {
        let done = u64::try_from(self.position - self.from).ok().filter(|done| *done > 0)?;
        let left = self.elapsed.as_secs_f64() * self.remaining() as f64 / done as f64;
        Duration::try_from_secs_f64(left).ok()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%, {} records, {}", self.percent(), HumanCount(self.records), HumanBytes(self.bytes))?;
        if let Some(rate) = self.rate() {
            write!(f, ", {} records/s", HumanCount(rate as u64))?;
        }
        match self.left() {
            Some(left) => write!(f, ", {} s left", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_tell_records_bytes_rate_and_time_left() {
        let elapsed = Duration::from_secs(2);
        let figures =
            Figures { from: 100, end: 500, position: 200, records: 80_000, bytes: 3 << 20, elapsed };
        assert_eq!(figures.to_string(), "25%, 80,000 records, 3.00 MiB, 40,000 records/s, 6 s left");
    }

    #[test]
    fn figures_of_odd_changelogs() {
        let zero = Duration::ZERO;
        let empty = Figures { from: 7, end: 7, position: 7, records: 0, bytes: 0, elapsed: zero };
        assert_eq!(empty.to_string(), "100%, 0 records, 0 B");
        let beyond = Figures { from: 0, end: 10, position: 12, records: 3, bytes: 9, elapsed: zero };
        assert_eq!((beyond.percent(), beyond.remaining()), (100, 0));
        let begun =
            Figures { from: 0, end: 10, position: 0, records: 0, bytes: 0, elapsed: Duration::from_secs(1) };
        assert_eq!(begun.to_string(), "0%, 0 records, 0 B");
    }

    #[test]
    fn a_line_is_due_every_few_seconds() {
        let mut progress = Restoring::new(false).begin("count", 3, 0, 1000);
        let begun = progress.begun;
        assert!(!progress.advance_at(begun + LINES / 2, 10, 10, 100));
        assert!(progress.advance_at(begun + LINES, 20, 10, 100));
        assert!(!progress.advance_at(begun + LINES + LINES / 2, 30, 10, 100));
        assert!(progress.advance_at(begun + LINES * 2, 40, 10, 100));
        assert_eq!((progress.figures.records, progress.figures.bytes), (40, 400));
    }

    #[test]
    fn the_metric_says_what_remains_and_ends_at_zero() {
        let recorder = metrics::recorder();
        let handle = recorder.handle();
        let line = |left: &str| {
            format!("flechtwerk_restore_remaining_offsets{{stage=\"count\",partition=\"3\"}} {left}\n")
        };
        ::metrics::with_local_recorder(&recorder, || {
            let mut progress = Restoring::new(false).begin("count", 3, 0, 1000);
            assert!(handle.render().contains(&line("1000")));
            progress.advance(400, 400, 400);
            assert!(handle.render().contains(&line("600")));
            progress.finish();
            assert!(handle.render().contains(&line("0")));
        });
    }

    #[test]
    fn bars_side_by_side_do_not_log_lines() {
        let restoring =
            Restoring { bars: Some(Arc::new(MultiProgress::with_draw_target(ProgressDrawTarget::hidden()))) };
        let (mut one, mut two) = (restoring.begin("count", 0, 0, 10), restoring.begin("count", 1, 0, 10));
        let late = one.begun + LINES * 2;
        assert!(!one.advance_at(late, 5, 5, 5));
        assert!(!two.advance_at(late, 10, 10, 10));
        assert_eq!(one.bar.as_ref().unwrap().position(), 5);
        let mut written = false;
        restoring.suspend(|| written = true);
        assert!(written);
        two.finish();
    }
}
