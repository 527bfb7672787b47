//! A parameter made of something else.

use flechtwerk::prelude::*;

pub struct Mine(String);

impl Slot for Mine {
    type Parts = String;

    fn from_parts(parts: String) -> Self {
        Mine(parts)
    }

    fn parts(&mut self) -> &mut String {
        &mut self.0
    }
}

fn main() {}
