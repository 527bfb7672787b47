//! An empty name.

use flechtwerk::prelude::*;

#[topic("", key = Utf8, value = Utf8)]
pub struct Empty;

fn main() {}
