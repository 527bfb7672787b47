//! A codec whose feature is off.

use flechtwerk::prelude::*;

pub struct Place {
    pub town: String,
}

#[topic("places", key = Utf8, value = Protobuf<Place>)]
pub struct Places;

fn main() {}
