//! A generic enum.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Input)]
pub enum Any<T: Topic> {
    Word(Record<T>),
}

fn main() {}
