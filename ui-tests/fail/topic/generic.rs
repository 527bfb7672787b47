//! A topic with a type parameter.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words<const N: usize>;

fn main() {}
