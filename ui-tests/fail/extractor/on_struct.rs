//! On a struct.

use flechtwerk::prelude::*;

#[extractor(state = u64, poll_interval = "30s")]
pub struct Poll;

fn main() {}
