//! A name that is no text.

use flechtwerk::prelude::*;

#[topic(7, key = Utf8, value = Utf8)]
pub struct Seven;

fn main() {}
