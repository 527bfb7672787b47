//! A key function for another input.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

fn by_item(item: &Record<Items>) -> String {
    item.value.clone()
}

#[transformer(inputs = [Words], key = by_item)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
