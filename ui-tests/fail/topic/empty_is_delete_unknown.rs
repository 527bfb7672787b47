//! An `empty_is_delete` that is neither true nor false.

use flechtwerk::prelude::*;

#[topic("items", key = Utf8, value = Utf8, empty_is_delete = yes)]
pub struct Items;

fn main() {}
