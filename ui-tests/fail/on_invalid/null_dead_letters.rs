//! A dead-letter topic whose keys may not be null.

use flechtwerk::invalid;
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("dead", key = Bytes, value = Nullable<Bytes>)]
pub struct Dead;

#[transformer(inputs = [Words], on_invalid = invalid::dead_letter, dead_letters = Dead)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
