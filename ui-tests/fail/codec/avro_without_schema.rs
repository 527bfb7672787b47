//! The type of an Avro codec has no schema.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Place {
    pub town: String,
}

#[topic("places", key = Utf8, value = Avro<Place>)]
pub struct Places;

fn main() {}
