//! An `enrich` that makes something else.

use flechtwerk::prelude::*;

fn length(_: &String, item: String) -> flechtwerk::Result<usize> {
    Ok(item.len())
}

#[topic("items", key = Utf8, value = Utf8, row = u64, enrich = length)]
pub struct Items;

fn main() {}
