//! An argument given twice.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8, key = Bytes)]
pub struct Words;

fn main() {}
