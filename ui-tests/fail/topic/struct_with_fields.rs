//! A topic that holds something.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words {
    word: String,
}

fn main() {}
