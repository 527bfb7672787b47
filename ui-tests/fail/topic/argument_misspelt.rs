//! An argument that does not exist, but nearly.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, vale = Utf8)]
pub struct Words;

fn main() {}
