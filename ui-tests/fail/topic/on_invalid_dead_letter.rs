//! Dead letters of a table, which is read outside of any transaction.

use flechtwerk::prelude::*;

#[topic("items", key = Utf8, value = Utf8, on_invalid = flechtwerk::invalid::dead_letter)]
pub struct Items;

fn main() {}
