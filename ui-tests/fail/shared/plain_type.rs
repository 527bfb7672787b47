//! A type that is nothing shared.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Settings;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, settings: &Settings) -> flechtwerk::Result {
    let _ = (word, settings);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
