//! JSON of a type that serde does not know.

use flechtwerk::prelude::*;

pub struct Payload;

#[topic("payloads", key = Utf8, value = Json<Payload>)]
pub struct Payloads;

fn main() {}
