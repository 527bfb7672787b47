//! S11.2b: who uses the library in a program of their own decides what it is told; variables are the command line's.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, into),
            false => into.push(path),
        }
    }
}

#[test]
fn the_program_alone_reads_the_environment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    assert!(all.len() > 100, "these are not the sources");
    let reads = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        ["env::var", "vars_os(", "getenv"].iter().any(|call| text.contains(call))
    };
    let mut readers: Vec<String> = all
        .iter()
        .map(|path| (path, path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/")))
        .filter(|(path, name)| !name.contains("tests") && reads(path))
        .map(|(_, name)| name)
        .collect();
    readers.sort();
    assert_eq!(readers, ["cli/mod.rs"]);
}
