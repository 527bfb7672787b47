//! An `enrich` whose result has no name.

use flechtwerk::prelude::*;

fn length(_: &String, item: String) -> flechtwerk::Result<usize> {
    Ok(item.len())
}

#[topic("items", key = Utf8, value = Utf8, enrich = length)]
pub struct Items;

fn main() {}
