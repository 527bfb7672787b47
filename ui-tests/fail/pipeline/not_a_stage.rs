//! A type that is no stage.

pub struct Counter;

flechtwerk::pipeline!(pub DEMO = "demo": [Counter]);

fn main() {}
