//! A pipeline of nothing at all.

flechtwerk::pipeline!();

fn main() {}
