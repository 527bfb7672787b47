//! A parameter of one's own that keeps a state of which the attribute says nothing.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Mine((State<u64>, Out<Words>));

impl Slot for Mine {
    type Parts = (State<u64>, Out<Words>);

    fn from_parts(parts: Self::Parts) -> Self {
        Mine(parts)
    }

    fn parts(&mut self) -> &mut Self::Parts {
        &mut self.0
    }
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, mine: &mut Mine) -> flechtwerk::Result {
    let _ = (word, mine);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
