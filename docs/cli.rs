//! The command line that the pages speak of: `pages.rs` asks it for its flags.

use flechtwerk::prelude::*;

/// Any topic will do.
#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

/// Any stage will do.
#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word.key;
    Ok(())
}

flechtwerk::pipeline!(
    /// Never run.
    pub PAGES = "pages": [count]
);
flechtwerk::main!(PAGES);
