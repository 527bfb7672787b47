//! The pipelines that the behaviour tests run as child processes, one stage for each behaviour.

use std::time::Duration;

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{stages_extract, stages_invalid, stages_operations, stages_state, stages_timers, stages_upgrade};

/// One word a record, its key; the value is anything.
#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

/// A word and its count so far.
#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

/// A second input for the joins.
#[topic("profiles", key = Utf8, value = Nullable<Utf8>)]
pub struct Profiles;

/// What the joins write.
#[topic("joined", key = Utf8, value = Utf8)]
pub struct Joined;

/// Raw bytes, null allowed on both sides.
#[topic("raw", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Raw;

/// What `copy` writes.
#[topic("copies", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Copies;

/// How often a word was seen.
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Count {
    n: u64,
}

/// The place of an input record, as it stands in the header `at` of what was made of it.
fn place<T: Topic>(record: &Record<T>) -> String {
    format!("{}:{}", record.partition, record.offset)
}

/// Counts; the counts' header `at` names the input record.
#[transformer(inputs = [Words], state = Count)]
pub async fn count(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    let at = place(&word);
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send_record(OutRecord::new(word.key, count.n).header("at", at));
    Ok(())
}

/// Does what the value says: `error`, `panic`, `hang`, `block`, `slow`, `big:BYTES`, `delete`, `same`; everything
/// else is counted.
#[transformer(inputs = [Words], state = Count)]
pub async fn obey(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    match word.value.as_str() {
        "error" => return Err(std::io::Error::other("asked for an error").into()),
        "panic" => panic!("asked for a panic"),
        "hang" => std::future::pending::<()>().await,
        "block" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "slow" => tokio::time::sleep(Duration::from_millis(300)).await,
        "delete" => {
            **state = None;
            return Ok(());
        }
        "same" => {
            // Looks like a change and is none.
            let same = state.clone();
            **state = same;
            return Ok(());
        }
        other => {
            if let Some(size) = other.strip_prefix("big:") {
                out.send(word.key, "x".repeat(size.parse()?));
                return Ok(());
            }
        }
    }
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send(word.key, count.n.to_string());
    Ok(())
}

/// Either side of a join.
#[derive(Input)]
pub enum Side {
    /// A profile, or its removal.
    Profile(Record<Profiles>),
    /// A word.
    Word(Record<Words>),
}

/// The last profile of a key.
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Profile {
    text: String,
}

/// Joins words with the last profile of their key; profiles come first within a round.
#[transformer(inputs = [Profiles, Words], state = Profile)]
pub async fn join(side: Side, state: &mut State<Profile>, out: &mut Out<Joined>) -> flechtwerk::Result {
    match side {
        Side::Profile(profile) => **state = profile.value.map(|text| Profile { text }),
        Side::Word(word) => {
            let profile = state.as_ref().map_or("-", |profile| &profile.text);
            out.send(word.key, format!("{}@{profile}", word.value));
        }
    }
    Ok(())
}

/// The same, merged by timestamp.
#[transformer(inputs = [Profiles, Words], state = Profile, order = timestamp)]
pub async fn join_by_time(
    side: Side,
    state: &mut State<Profile>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    join(side, state, out).await
}

/// Copies records as they are, with their headers; no state.
#[transformer(inputs = [Raw])]
pub async fn copy(raw: Record<Raw>, out: &mut Out<Copies>) -> flechtwerk::Result {
    let mut copy = OutRecord::new(raw.key.clone(), raw.value.clone());
    for header in raw.headers.iter() {
        copy = copy.header(&*header.name, header.value.clone().unwrap_or_default());
    }
    out.send_record(copy);
    Ok(())
}

/// Starts at the end of its input.
#[transformer(inputs = [Words], start = latest)]
pub async fn tail(word: Record<Words>, out: &mut Out<Joined>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

/// A state key that refines the record key: key and first letter of the value.
fn first_letter(word: &Record<Words>) -> Vec<u8> {
    let letter = word.value.chars().next().unwrap_or('-');
    format!("{}/{letter}", word.key).into_bytes()
}

/// Counts by a key of its own.
#[transformer(inputs = [Words], state = Count, key = first_letter)]
pub async fn count_letters(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Joined>,
) -> flechtwerk::Result {
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send(word.key, format!("{}{}", &word.value[..1], count.n));
    Ok(())
}

/// Sends to the partition and at the timestamp that the value names: `PARTITION:TIMESTAMP`.
#[transformer(inputs = [Words])]
pub async fn place_output(word: Record<Words>, out: &mut Out<Joined>) -> flechtwerk::Result {
    let (partition, timestamp) = word.value.split_once(':').ok_or("the value is PARTITION:TIMESTAMP")?;
    let record = OutRecord::new(word.key, "placed".to_owned());
    out.send_record(record.partition(partition.parse()?).timestamp(timestamp.parse()?));
    Ok(())
}

flechtwerk::pipeline!(
    /// Every stage that a test runs.
    pub RIG = "rig": [
    count, obey, join, join_by_time, copy, tail, count_letters, place_output,
    stages_state::tally, stages_state::merge, stages_state::merge_by_time, stages_state::route, stages_state::ratio,
    stages_state::turn, stages_state::describe, stages_state::named,
    stages_operations::aloud, stages_operations::count_aloud,
    stages_extract::fetch, stages_extract::fetch_odd, stages_extract::pulse, stages_extract::repeat,
    stages_invalid::judge,
    stages_upgrade::first::aged,
    stages_timers::plan, stages_timers::remind,
]);
