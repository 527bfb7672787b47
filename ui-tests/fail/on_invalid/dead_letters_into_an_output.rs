//! Dead letters into a topic that a parameter sends to.

use flechtwerk::invalid;
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Dead;

#[transformer(inputs = [Words], on_invalid = invalid::dead_letter, dead_letters = Dead)]
pub async fn count(word: Record<Words>, out: &mut Out<Dead>) -> flechtwerk::Result {
    out.send(None, Some(word.value.into()));
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
