//! A function in an `impl`, which a macro can't tell from a free one: rustc has its say.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Counter;

impl Counter {
    #[transformer(inputs = [Words])]
    pub async fn count(word: Record<Words>) -> flechtwerk::Result {
        let _ = word;
        Ok(())
    }
}

fn main() {}
