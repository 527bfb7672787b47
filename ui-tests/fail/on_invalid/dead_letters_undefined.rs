//! A dead-letter topic that does not exist; rustc says so, and nothing else does.

use flechtwerk::invalid;
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Dead;

#[transformer(inputs = [Words], on_invalid = invalid::dead_letter, dead_letters = Ded)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
