//! Stages that tests of operations need beside those of the pipeline's own file.

use std::time::Duration;

use flechtwerk::prelude::*;

use crate::pipeline::{Count, Counts, Joined, Words, count};

/// Says in the log that it has begun with a record: `seen VALUE`. Then it does what the value says: `hang` waits for
/// ever, `block` keeps its thread for ever, `big:BYTES` sends a value of that size, everything else is copied.
#[transformer(inputs = [Words])]
pub async fn aloud(word: Record<Words>, out: &mut Out<Joined>) -> flechtwerk::Result {
    eprintln!("seen {}", word.value);
    match word.value.as_str() {
        "hang" => std::future::pending::<()>().await,
        "block" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        other => match other.strip_prefix("big:") {
            Some(size) => out.send(word.key, "x".repeat(size.parse()?)),
            None => out.send(word.key, word.value),
        },
    }
    Ok(())
}

/// Counts as `count` does, and says in the log that it has begun with a record: `seen VALUE`.
#[transformer(inputs = [Words], state = Count)]
pub async fn count_aloud(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    eprintln!("seen {}", word.value);
    count(word, state, out).await
}
