//! No comma between two arguments.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8 value = Utf8)]
pub struct Words;

fn main() {}
