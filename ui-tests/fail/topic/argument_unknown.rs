//! An argument that does not exist.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8, partitions = 3)]
pub struct Words;

fn main() {}
