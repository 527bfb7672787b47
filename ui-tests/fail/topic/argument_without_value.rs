//! An argument without a value.

use flechtwerk::prelude::*;

#[topic("words", key, value = Utf8)]
pub struct Words;

fn main() {}
