//! A topic whose keys can not be looked up.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("items", key = Json<f64>, value = Utf8)]
pub struct Items;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, items: &Table<Items>) -> flechtwerk::Result {
    let _ = (word, items);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
