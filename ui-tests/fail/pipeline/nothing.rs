//! A pipeline of nothing at all.

use flechtwerk::prelude::*;

flechtwerk::pipeline!();

fn main() {}
