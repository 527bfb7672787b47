//! Memory, threads, file handles and disk of the instances, as the system tells them (L), and whether they grow.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::fleet::Fleet;
use crate::journal::{Entry, Journal};

/// Instance, process and what is measured.
type Series = (String, u64, &'static str);

/// Of what lived shorter nothing is said.
const LONG: f64 = 300.0;

/// One look at a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The instance.
    pub slot: String,
    /// Its process.
    pub pid: u32,
    /// Resident memory in KiB.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Open files and sockets.
    pub files: u64,
}

/// What became of a number in the life of a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Which instance.
    pub who: String,
    /// How long it was looked at.
    pub minutes: f64,
    /// Which number.
    pub what: &'static str,
    /// At first, after the first tenth of its time: starting is not growing.
    pub first: f64,
    /// At last.
    pub last: f64,
    /// By the straight line that fits best, without the first tenth.
    pub per_hour: f64,
}

/// Whether the numbers of processes that lived for long have grown, and what is on their disks.
pub fn growth(entries: &[Entry]) -> Vec<Growth> {
    let mut series = BTreeMap::<Series, Vec<(f64, f64)>>::new();
    for entry in entries {
        let at = entry.at.as_secs_f64();
        let mut add = |who: &str, pid: u64, what, value: &serde_json::Value| {
            let Some(value) = value.as_f64() else { return };
            series.entry((who.to_owned(), pid, what)).or_default().push((at, value));
        };
        match entry.event.as_str() {
            "sample" => {
                let (who, pid) = (entry.data["slot"].as_str().unwrap_or("?"), entry.data["pid"].as_u64());
                for (what, name) in [("memory in KiB", "memory"), ("threads", "threads"), ("files", "files")]
                {
                    add(who, pid.unwrap_or(0), what, &entry.data[name]);
                }
            }
            "disk" => add("all", 0, "disk in KiB", &entry.data["kib"]),
            _ => {}
        }
    }
    let grown = |((who, _, what), points): (_, Vec<(f64, f64)>)| {
        let (begin, end) = (points.first()?.0, points.last()?.0);
        let settled: Vec<(f64, f64)> =
            points.into_iter().filter(|point| point.0 >= begin + (end - begin) / 10.0).collect();
        let per_hour = slope(&settled)? * 3600.0;
        (end - begin >= LONG).then_some(Growth {
            who,
            minutes: (end - begin) / 60.0,
            what,
            first: settled.first()?.1,
            last: settled.last()?.1,
            per_hour,
        })
    };
    series.into_iter().filter_map(grown).collect()
}

/// Looks at all instances.
pub fn take(fleet: &Fleet, journal: &Journal) {
    let names = fleet.names();
    for (slot, pid) in fleet.processes() {
        if let Some(sample) = of(names.get(slot).map_or("", String::as_str), pid) {
            journal.write("sample", sample);
        }
    }
    let disk: u64 = fleet.states().iter().map(|state| size(state)).sum();
    journal.write("disk", serde_json::json!({"kib": disk / 1024}));
}

fn of(slot: &str, pid: u32) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
    Some(Sample {
        slot: slot.to_owned(),
        pid,
        memory: field(&status, "VmRSS:")?,
        threads: field(&status, "Threads:")?,
        files,
    })
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// Bytes in a folder.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let about = entry.metadata().ok()?;
            Some(if about.is_dir() { size(&entry.path()) } else { about.len() })
        })
        .sum()
}

/// The slope of the straight line that fits best, in units of y for one of x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (points.len() > 1 && spread > 0.0).then(|| both / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_threads_and_files() {
        let sample = of("me", std::process::id()).expect("a sample of this process");
        assert!(sample.memory > 100 && sample.threads > 0 && sample.files > 2, "{sample:?}");
        assert_eq!(of("nobody", 0), None);
    }

    #[test]
    fn the_slope_is_that_of_the_best_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        assert_eq!(slope(&[(0.0, 4.0), (5.0, 4.0)]), Some(0.0));
        assert_eq!(slope(&[(1.0, 4.0)]), None);
    }

    #[test]
    fn only_of_long_lives_it_is_said_whether_they_grew() {
        let sample = |at: u64, pid: u64, memory: u64| Entry {
            at: std::time::Duration::from_secs(at),
            event: "sample".into(),
            data: serde_json::json!({"slot": "i0", "pid": pid, "memory": memory}),
        };
        let mut entries = vec![sample(0, 1, 9), sample(20, 1, 99)];
        entries.extend((0..100).map(|index| sample(index * 10, 2, 1000 + index)));
        let found = growth(&entries);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].who.as_str(), found[0].what, found[0].last), ("i0", "memory in KiB", 1099.0));
        assert!((found[0].per_hour - 360.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_folder_is_as_large_as_its_files() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("in")).expect("a folder");
        std::fs::write(dir.path().join("in/file"), "12345").expect("a file");
        assert_eq!(size(dir.path()), 5);
    }
}
