//! A topic without a name.

use flechtwerk::prelude::*;

#[topic(key = Utf8, value = Utf8)]
pub struct Nameless;

fn main() {}
