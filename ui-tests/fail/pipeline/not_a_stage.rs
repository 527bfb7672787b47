//! A type that is no stage.

use flechtwerk::prelude::*;

pub struct Counter;

flechtwerk::pipeline!(pub DEMO = "demo": [Counter]);

fn main() {}
