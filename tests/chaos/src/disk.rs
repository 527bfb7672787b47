//! What may have happened to the state on disk while its instance was away.

use std::fs;
use std::path::{Path, PathBuf};

use crate::schedule::Disk;

/// Does it; says what was done. `random` chooses the file and the place in it.
pub fn spoil(state: &Path, how: Disk, random: u64) -> String {
    let files = files(state);
    let file = files.get((random % files.len().max(1) as u64) as usize);
    let done = match (how, file) {
        (Disk::Truncated, Some(file)) => truncate(file).map(|()| format!("truncated {}", file.display())),
        (Disk::Flipped, Some(file)) => flip(file, random).map(|()| format!("a bit of {}", file.display())),
        (Disk::Old, _) if old(state).exists() => put_old(state).map(|()| "an older state".to_owned()),
        _ => fs::remove_dir_all(state).map(|()| "deleted".to_owned()),
    };
    done.unwrap_or_else(|error| format!("nothing: {error}"))
}

/// Keeps a copy, which may come back later.
pub fn keep_old(state: &Path) {
    // A copy that fails is as if there had been none.
    let _ = fs::remove_dir_all(old(state));
    let _ = copy(state, &old(state));
}

fn old(state: &Path) -> PathBuf {
    state.with_extension("old")
}

fn put_old(state: &Path) -> std::io::Result<()> {
    fs::remove_dir_all(state)?;
    copy(&old(state), state)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// All files that hold something, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.metadata().is_ok_and(|file| file.len() > 0) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn truncate(file: &Path) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    fs::OpenOptions::new().write(true).open(file)?.set_len(length / 2)
}

fn flip(file: &Path, random: u64) -> std::io::Result<()> {
    let mut bytes = fs::read(file)?;
    let at = (random >> 16) as usize % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (random >> 8 & 7);
    }
    fs::write(file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_spoilt_in_each_way() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path().join("state");
        let file = state.join("stage/0/data");
        let fresh = |content: &str| {
            fs::create_dir_all(state.join("stage/0")).expect("a folder");
            fs::write(&file, content).expect("a file");
        };
        fresh("older");
        keep_old(&state);
        fresh("12345678");
        spoil(&state, Disk::Truncated, 5);
        assert_eq!(fs::read(&file).expect("the file"), b"1234");
        fresh("12345678");
        spoil(&state, Disk::Flipped, 0x12345);
        let flipped = fs::read(&file).expect("the file");
        let bits: u32 = flipped.iter().zip(b"12345678").map(|(one, other)| (one ^ other).count_ones()).sum();
        assert_eq!(bits, 1);
        spoil(&state, Disk::Old, 0);
        assert_eq!(fs::read(&file).expect("the file"), b"older");
        spoil(&state, Disk::Deleted, 0);
        assert!(!state.exists());
    }
}
