//! An input of the user's own by reference: what is taken out of it is no mistake of its own.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("names", key = Utf8, value = Utf8)]
pub struct Names;

#[derive(Input)]
pub enum Event {
    Word(Record<Words>),
    Name(Record<Names>),
}

#[transformer(inputs = [Words, Names])]
pub async fn count(event: &Event, out: &mut Out<Names>) -> flechtwerk::Result {
    match event {
        Event::Word(word) => out.send(word.key, word.value),
        Event::Name(name) => out.send(name.key, name.value),
    }
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
