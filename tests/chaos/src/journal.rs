//! Everything that happens, as JSON lines with the time since the run began: for programs, and for the report.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};

/// What it is called in the folder of a run.
pub const FILE: &str = "log.jsonl";

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Since the run began.
    pub at: Duration,
    /// What kind of thing it is.
    pub event: String,
    /// The rest of the line.
    pub data: Value,
}

/// Where lines go. Clones write to one file.
#[derive(Clone)]
pub struct Journal {
    began: SystemTime,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    file: BufWriter<File>,
    entries: Vec<Entry>,
    /// The first line that could not be written.
    failed: Option<std::io::Error>,
}

impl Journal {
    /// A new file. Times count from now on.
    pub fn create(path: &Path) -> anyhow::Result<Journal> {
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        let inner = Inner { file: BufWriter::new(file), entries: Vec::new(), failed: None };
        Ok(Journal { began: SystemTime::now(), inner: Arc::new(Mutex::new(inner)) })
    }

    /// When times began to count.
    pub fn began(&self) -> SystemTime {
        self.began
    }

    /// Now, as a time of the journal.
    pub fn now(&self) -> Duration {
        self.since(SystemTime::now())
    }

    /// A time of the machine's clock as one of the journal.
    pub fn since(&self, time: SystemTime) -> Duration {
        time.duration_since(self.began).unwrap_or_default()
    }

    /// Writes a line. `data` is an object.
    pub fn write(&self, event: &str, data: impl Serialize) {
        let at = self.now();
        let data = serde_json::to_value(data).unwrap_or_default();
        let mut line = json!({"at": at.as_secs_f64(), "event": event});
        if let (Some(line), Some(data)) = (line.as_object_mut(), data.as_object()) {
            line.extend(data.clone());
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(inner.file, "{line}").and_then(|()| inner.file.flush());
        inner.failed = inner.failed.take().or_else(|| written.err());
        inner.entries.push(Entry { at, event: event.to_owned(), data });
    }

    /// Something else of the run that could not be written.
    pub fn failed(&self, error: Option<std::io::Error>) {
        if error.is_some() {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.failed = inner.failed.take().or(error);
        }
    }

    /// An error if something could not be written: most likely the disk is full.
    pub fn written(&self) -> anyhow::Result<()> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &inner.failed {
            None => Ok(()),
            Some(error) => bail!("what happens can't be kept in the folder of the run: {error}"),
        }
    }

    /// All lines so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).entries.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_object_with_time_and_event() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("log.jsonl");
        let journal = Journal::create(&path).expect("a journal");
        journal.write("kill", json!({"slot": 2}));
        journal.clone().write("end", json!({}));
        let text = std::fs::read_to_string(&path).expect("the file");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["event"], &lines[0]["slot"]), (&json!("kill"), &json!(2)));
        assert!(lines[1]["at"].as_f64().is_some_and(|at| at >= 0.0));
        assert_eq!(journal.entries()[0].event, "kill");
    }
}
