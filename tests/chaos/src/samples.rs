//! Memory, threads, file handles and disk of the instances, as the system tells them (L).

use std::path::Path;

use serde::Serialize;

use crate::fleet::Fleet;
use crate::journal::Journal;

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
    fn a_folder_is_as_large_as_its_files() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("in")).expect("a folder");
        std::fs::write(dir.path().join("in/file"), "12345").expect("a file");
        assert_eq!(size(dir.path()), 5);
    }
}
