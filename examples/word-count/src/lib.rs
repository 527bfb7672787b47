//! Counts words.
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;
#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Count { n: u64 }

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: Record<Words>, state: &mut State<Count>, out: &mut Out<Counts>) -> flechtwerk::Result {
    let c = state.get_or_insert_default();
    c.n += 1;
    out.send(word.key, c.n);
    Ok(())
}
flechtwerk::pipeline!(pub WORD_COUNT = "word-count": [count]);
