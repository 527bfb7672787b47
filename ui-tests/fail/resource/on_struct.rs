//! The attribute on a struct.

use flechtwerk::prelude::*;

#[resource]
pub struct Http;

fn main() {}
