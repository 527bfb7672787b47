//! Two types for one topic.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("words", key = Utf8, value = Bytes)]
pub struct Again;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

#[transformer(inputs = [Words])]
pub async fn other(word: Record<Words>, _out: &mut Out<Again>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count, other]);

fn main() {}
