//! A topic that is a function.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub fn words() {}

fn main() {}
