//! A row that nothing makes.

use flechtwerk::prelude::*;

#[topic("items", key = Utf8, value = Utf8, row = u64)]
pub struct Items;

fn main() {}
