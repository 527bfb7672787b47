//! A shared type made of an output.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Both {
    pub out: Out<Words>,
}

impl Shared for Both {
    type Parts = Out<Words>;

    fn from_parts(out: Self::Parts) -> Self {
        Both { out }
    }
}

fn main() {}
