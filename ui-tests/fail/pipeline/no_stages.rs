//! A pipeline without stages.

use flechtwerk::prelude::*;

flechtwerk::pipeline!(pub DEMO = "demo": []);

fn main() {}
