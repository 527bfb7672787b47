//! READMEs of the examples: what a program prints stands there as it is.

use std::path::Path;
use std::process::Command;

/// What comes before the diagram in a README, and what behind it.
const FENCES: (&str, &str) = ("```mermaid\n", "```\n");

/// The README of a crate shows its pipeline as `topology` draws it. With UPDATE_EXPECT=1 the README is corrected instead.
/// `folder`: `env!("CARGO_MANIFEST_DIR")`; `binary`: `env!("CARGO_BIN_EXE_..")`.
#[track_caller]
pub fn assert_diagram(folder: &str, binary: &str) {
    let drawn = Command::new(binary).args(["topology", "--format", "mermaid"]).output().expect("topology");
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    let drawn = String::from_utf8(drawn.stdout).expect("the diagram is UTF-8");
    let path = Path::new(folder).join("README.md");
    let text = std::fs::read_to_string(&path).expect("the README");
    let begin = text.find(FENCES.0).expect("a diagram in the README") + FENCES.0.len();
    let end = begin + text[begin..].find(FENCES.1).expect("the end of the diagram");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = format!("{}{drawn}{}", &text[..begin], &text[end..]);
        std::fs::write(&path, text).expect("write the README");
        return;
    }
    assert_eq!(
        text[begin..end],
        drawn,
        "the diagram of {} is not that of the pipeline; run the test with UPDATE_EXPECT=1",
        path.display()
    );
}
