//! Two types for one topic, one of them a table's.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[topic("items", key = Utf8, value = Json<u64>)]
pub struct Counts;

#[transformer(inputs = [Words])]
pub async fn write(word: Record<Words>, out: &mut Out<Counts>) -> flechtwerk::Result {
    out.send(word.key, 1);
    Ok(())
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, items: &Table<Items>) -> flechtwerk::Result {
    let _ = (word, items);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [write, count]);

fn main() {}
