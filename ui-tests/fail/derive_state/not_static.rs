//! A state that borrows.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Default)]
pub struct Count<'a> {
    text: &'a str,
}

fn main() {}
