//! A value of another type than the topic's.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, out: &mut Out<Counts>) -> flechtwerk::Result {
    out.send(word.key, "one");
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
