//! A name that Kafka reserves.

use flechtwerk::prelude::*;

#[topic("..", key = Utf8, value = Utf8)]
pub struct Dots;

fn main() {}
