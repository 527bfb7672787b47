//! JSON of a type that can't go to another thread.

use flechtwerk::prelude::*;

#[topic("payloads", key = Utf8, value = Json<*const u8>)]
pub struct Payloads;

fn main() {}
