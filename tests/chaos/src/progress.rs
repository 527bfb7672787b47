//! How far a run is: a bar on a terminal, a line now and then elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between two lines.
const LINES: Duration = Duration::from_secs(10);

/// One line about the run.
pub struct Bar {
    bar: Option<ProgressBar>,
    told: Cell<Option<Instant>>,
    began: Instant,
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Bar {
    /// A bar if somebody looks at it.
    pub fn new() -> Bar {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1000);
            if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:30} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Bar { bar, told: Cell::new(None), began: Instant::now() }
    }

    /// So much is done, 0 to 1, and this is to be said.
    pub fn at(&self, part: f64, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position((part * 1000.0) as u64);
        }
        self.say(text);
    }

    /// Says something, not too often where it would be a line each time.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None if self.told.get().is_none_or(|told| told.elapsed() > LINES) => {
                self.told.set(Some(Instant::now()));
                eprintln!("{:>5.0} s: {text}", self.began.elapsed().as_secs_f64());
            }
            None => {}
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
