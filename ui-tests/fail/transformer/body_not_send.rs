//! An `Rc` that lives across an await.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

async fn tick() {}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let length = std::rc::Rc::new(word.value.len());
    tick().await;
    let _ = length;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
