//! Groups records into the buckets of a round.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;

use crate::compact::CompactBytes;
use crate::glue::{AnyStage, Bucket, Order, RawRecord, Round, Trouble};

/// Makes a round of `records`, which come in the order of the inputs and then of offsets. A record whose state key can't
/// be computed is given back.
pub(super) fn round(
    stage: &dyn AnyStage,
    records: Vec<RawRecord>,
    states: &BTreeMap<Bytes, CompactBytes>,
) -> Result<Round, (RawRecord, Trouble)> {
    let info = stage.info();
    let mut places: HashMap<Bytes, usize> = HashMap::new();
    let mut groups: Vec<(Bytes, Vec<RawRecord>)> = vec![];
    for record in records {
        let key = match info.custom_key {
            true => match stage.key(&record) {
                Ok(key) => key,
                Err(trouble) => return Err((record, trouble)),
            },
            false => record.key.clone().unwrap_or_default(),
        };
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, vec![]));
            groups.len() - 1
        });
        groups[place].1.push(record);
    }
    let mut round = Round::new(vec![], vec![]);
    for (key, records) in groups {
        let start = round.records.len();
        match info.order {
            Order::Inputs => round.records.extend(records),
            Order::Timestamp => by_timestamp(records, info.inputs.len(), &mut round.records),
        }
        let state = states.get(&key).cloned();
        round.buckets.push(Bucket { state, ..Bucket::of(&key, start..round.records.len()) });
    }
    Ok(round)
}

/// Merges the inputs of a bucket: of those records that are next in their input, the one with the smallest timestamp.
fn by_timestamp(records: Vec<RawRecord>, inputs: usize, into: &mut Vec<RawRecord>) {
    let mut queues: Vec<VecDeque<RawRecord>> = vec![VecDeque::new(); inputs];
    for record in records {
        queues[usize::from(record.input)].push_back(record);
    }
    // The first of equal minima is taken: ties go in the order of the inputs.
    while let Some(queue) = queues
        .iter_mut()
        .filter(|queue| !queue.is_empty())
        .min_by_key(|queue| queue.front().map(|next| next.timestamp))
    {
        into.extend(queue.pop_front());
    }
}
