//! Two outputs to one topic.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, first: &mut Out<Counts>, second: &mut Out<Counts>) -> flechtwerk::Result {
    first.send(word.key.clone(), 1);
    second.send(word.key, 2);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
