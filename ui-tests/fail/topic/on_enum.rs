//! A topic that is an enum.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub enum Words {}

fn main() {}
