//! A variant whose topic `inputs` does not name.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[derive(Input)]
pub enum Any {
    Word(Record<Words>),
    Item(Record<Items>),
}

#[transformer(inputs = [Words])]
pub async fn count(any: Any) -> flechtwerk::Result {
    let _ = any;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
