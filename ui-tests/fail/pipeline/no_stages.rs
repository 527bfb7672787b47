//! A pipeline without stages.

flechtwerk::pipeline!(pub DEMO = "demo": []);

fn main() {}
