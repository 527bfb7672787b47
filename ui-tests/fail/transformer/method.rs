//! A method.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Counter;

impl Counter {
    #[transformer(inputs = [Words])]
    pub async fn count(&self, word: Record<Words>) -> flechtwerk::Result {
        let _ = word;
        Ok(())
    }
}

fn main() {}
