//! An `on_invalid` that is no such function.

use flechtwerk::prelude::*;

fn decide(_: &Record<Items>) -> bool {
    true
}

#[topic("items", key = Utf8, value = Utf8, on_invalid = decide)]
pub struct Items;

fn main() {}
