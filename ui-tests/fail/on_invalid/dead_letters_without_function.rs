//! A topic for dead letters, and no function that sends any.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Dead;

#[transformer(inputs = [Words], dead_letters = Dead)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
