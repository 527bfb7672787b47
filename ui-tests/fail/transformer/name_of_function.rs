//! A function whose name can't be that of a stage.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn zähle(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

fn main() {}
