//! A Rust type where a codec belongs.

use flechtwerk::prelude::*;

#[topic("typed", key = String, value = Utf8)]
pub struct Typed;

fn main() {}
