//! A codec with a schema registry, whose feature is off.

use flechtwerk::prelude::*;

#[topic("places", key = Utf8, value = Confluent<Avro<String>>)]
pub struct Places;

fn main() {}
