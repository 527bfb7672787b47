//! A union.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Input)]
pub union Any {
    word: std::mem::ManuallyDrop<Record<Words>>,
}

fn main() {}
