//! The type of a CBOR codec can be read, but not written.

use flechtwerk::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Place {
    pub town: String,
}

#[topic("places", key = Utf8, value = Cbor<Place>)]
pub struct Places;

fn main() {}
