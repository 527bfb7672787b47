//! A stage that decides about records which don't decode, as their bytes say.

use flechtwerk::invalid::{Answer, Invalid};
use flechtwerk::prelude::*;

use crate::pipeline::{Joined, Words};
use crate::stages_state::{Sum, tally};

/// Where `judge` sends what does not decode.
#[topic("dead-words", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct DeadWords;

/// A byte that is no UTF-8, and what to do. Says in the log that it was asked: `judged OFFSET`.
fn sentence(record: &Invalid<'_>) -> Answer {
    eprintln!("judged {}", record.offset());
    match (record.value().map(|value| &value[..]), record.value_of::<Words>()) {
        (Some(b"\xffskip"), _) => Answer::Skip,
        (Some(b"\xffinstead"), Some(value)) => value.instead("x".into()),
        (Some(b"\xffcrash"), _) => Answer::Crash,
        _ => Answer::DeadLetter,
    }
}

/// `tally`, with dead letters.
#[transformer(inputs = [Words], state = Sum, on_invalid = sentence, dead_letters = DeadWords)]
pub async fn judge(word: Record<Words>, state: &mut State<Sum>, out: &mut Out<Joined>) -> flechtwerk::Result {
    tally(word, state, out).await
}
