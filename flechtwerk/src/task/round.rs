//! Groups what was taken from the queues at once into buckets by state key (S2.4).

use std::hash::BuildHasher;

use bytes::Bytes;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::compact::CompactBytes;
use crate::format::{self, Kind};
use crate::glue::{Bucket, Order, RawRecord, Round};

/// A round and, for each bucket, where the changelog has its timers if the stage takes any.
pub(crate) struct Grouped {
    pub(crate) round: Round,
    pub(crate) timer_keys: Vec<CompactBytes>,
}

impl Grouped {
    /// Adds a bucket without records for each of these state keys. They are none of those that the round has.
    pub(crate) fn add_keys(&mut self, keys: &[Bytes]) {
        let end = self.round.records.len();
        self.round.buckets.extend(keys.iter().map(|key| Bucket::of(key, end..end)));
    }

    /// Names where the timers of all buckets lie.
    pub(crate) fn name_timers(&mut self) {
        let keys = self.round.buckets.iter().map(|bucket| format::key(Kind::Timer, bucket.key()));
        self.timer_keys = keys.collect();
    }
}

/// Groups records by state key. `records` come input by input, each in offset order; `keys` are their state keys
/// where the stage computes them, else the record keys count. Within a bucket the records are in `inputs` order
/// and then offset order, or merged by timestamp; offset order within an input always holds.
pub(crate) fn group(mut records: Vec<RawRecord>, keys: Option<&[Bytes]>, order: Order) -> Grouped {
    let (mut buckets, bucket_of) = assign(&records, keys);
    // Their ranges hold counts up to here; let each begin where the one before it ends.
    let mut next = 0;
    for bucket in &mut buckets {
        let count = bucket.records.end;
        bucket.records = next..next;
        next += count;
    }
    let places = bucket_of.iter().map(|bucket| {
        let range = &mut buckets[*bucket as usize].records;
        range.end += 1;
        (range.end - 1) as u32
    });
    let places = places.collect();
    permute(&mut records, places);
    for bucket in &buckets {
        let records = &mut records[bucket.records.clone()];
        if order == Order::Timestamp && records.len() > 1 {
            merge_by_timestamp(records);
        }
        if flawed!(InputsOrderIgnored) {
            records.sort_by_key(|record| (std::cmp::Reverse(record.input), record.offset));
        }
    }
    Grouped { round: Round::new(records, buckets), timer_keys: Vec::new() }
}

/// The buckets, with a count of records where their ranges end, and each record's bucket.
fn assign(records: &[RawRecord], keys: Option<&[Bytes]>) -> (Vec<Bucket>, Vec<u32>) {
    let hasher = DefaultHashBuilder::default();
    let mut known: HashTable<u32> = HashTable::with_capacity(records.len());
    let mut buckets: Vec<Bucket> = Vec::with_capacity(records.len());
    let mut bucket_of = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let key = match keys {
            Some(keys) => &keys[index][..],
            None => record.key.as_deref().unwrap_or_default(),
        };
        let place = known.entry(
            hasher.hash_one(key),
            |bucket| buckets[*bucket as usize].key() == key,
            |bucket| hasher.hash_one(buckets[*bucket as usize].key()),
        );
        let bucket = match place {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(place) => {
                let bucket = buckets.len() as u32;
                place.insert(bucket);
                buckets.push(Bucket::of(key, 0..0));
                bucket
            }
        };
        buckets[bucket as usize].records.end += 1;
        bucket_of.push(bucket);
    }
    (buckets, bucket_of)
}

/// Moves each record to its place.
fn permute(records: &mut [RawRecord], mut places: Vec<u32>) {
    for index in 0..records.len() {
        while places[index] as usize != index {
            let to = places[index] as usize;
            records.swap(index, to);
            places.swap(index, to);
        }
    }
}

/// Merges records that come input by input by the timestamps of the inputs' heads, ties in `inputs` order. A merge and not a
/// sort: timestamps may go back within an input, offsets may not.
pub(crate) fn merge_by_timestamp(records: &mut [RawRecord]) {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if records[run.start].input == record.input => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    if runs.len() < 2 {
        return;
    }
    let mut places = vec![0; records.len()];
    for place in 0..records.len() {
        let first = runs
            .iter_mut()
            .filter(|run| run.start < run.end)
            .min_by_key(|run| (records[run.start].timestamp, records[run.start].input));
        let Some(run) = first else { break };
        places[run.start] = place as u32;
        run.start += 1;
    }
    permute(records, places);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Headers;

    fn record(input: u16, offset: i64, timestamp: i64, key: Option<&str>) -> RawRecord {
        RawRecord {
            input,
            partition: 0,
            offset,
            timestamp,
            key: key.map(|key| Bytes::copy_from_slice(key.as_bytes())),
            value: None,
            headers: Headers::default(),
        }
    }

    fn places(grouped: &Grouped, bucket: usize) -> Vec<(u16, i64)> {
        grouped.round.records[grouped.round.buckets[bucket].records.clone()]
            .iter()
            .map(|record| (record.input, record.offset))
            .collect()
    }

    #[test]
    fn inputs_order_and_then_offset_order_within_a_bucket() {
        let records = vec![
            record(0, 5, 90, Some("a")),
            record(0, 6, 10, Some("b")),
            record(0, 7, 80, Some("a")),
            record(1, 1, 5, Some("a")),
            record(1, 2, 6, Some("b")),
        ];
        let grouped = group(records, None, Order::Inputs);
        assert_eq!(grouped.round.buckets.len(), 2);
        assert_eq!(places(&grouped, 0), [(0, 5), (0, 7), (1, 1)]);
        assert_eq!(places(&grouped, 1), [(0, 6), (1, 2)]);
        assert_eq!(&grouped.round.buckets[1].changelog_key[..], b"\0b");
        assert_eq!(grouped.round.buckets[1].key(), b"b");
    }

    #[test]
    fn timestamp_order_merges_heads_and_breaks_ties_by_input() {
        let records = vec![
            record(0, 1, 50, Some("a")),
            record(0, 2, 10, Some("a")),
            record(1, 1, 50, Some("a")),
            record(1, 2, 60, Some("a")),
        ];
        let grouped = group(records, None, Order::Timestamp);
        assert_eq!(places(&grouped, 0), [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    #[test]
    fn null_and_computed_keys() {
        let records = vec![record(0, 1, 0, None), record(0, 2, 0, None)];
        let grouped = group(records.clone(), None, Order::Inputs);
        assert_eq!(places(&grouped, 0), [(0, 1), (0, 2)]);
        let keys = [Bytes::from_static(b"x"), Bytes::from_static(b"y")];
        let grouped = group(records, Some(&keys), Order::Inputs);
        assert_eq!(grouped.round.buckets.len(), 2);
        assert_eq!(grouped.round.buckets[1].key(), b"y");
    }

    #[test]
    fn keys_without_records_and_timers_join_a_round() {
        let mut grouped = group(vec![record(0, 1, 0, Some("a"))], None, Order::Inputs);
        assert!(grouped.timer_keys.is_empty());
        grouped.add_keys(&[Bytes::from_static(b"long key"), Bytes::new()]);
        let keys: Vec<_> = grouped.round.buckets.iter().map(Bucket::key).collect();
        assert_eq!(keys, [&b"a"[..], b"long key", b""]);
        let keys: Vec<_> = grouped.round.buckets.iter().map(|bucket| &bucket.changelog_key[..]).collect();
        assert_eq!(keys, [&b"\0a"[..], b"\0long key", b"\0"]);
        assert_eq!(grouped.round.buckets[1].records, 1..1);
        assert_eq!(places(&grouped, 0), [(0, 1)]);
        grouped.name_timers();
        let keys: Vec<_> = grouped.timer_keys.iter().map(|key| &key[..]).collect();
        assert_eq!(keys, [&b"\x01a"[..], b"\x01long key", b"\x01"]);
    }

    proptest! {
        /// Every record is in the bucket of its key, once; offset order within an input and bucket holds in
        /// both orders; in timestamp order no head that is passed over is smaller.
        #[test]
        fn grouping_keeps_records_and_order(
            inputs in proptest::collection::vec(proptest::collection::vec((0u8..6, 0i64..8), 0..30), 1..4),
            by_timestamp: bool,
        ) {
            let mut records = Vec::new();
            for (input, list) in inputs.iter().enumerate() {
                for (offset, (key, timestamp)) in list.iter().enumerate() {
                    records.push(record(input as u16, offset as i64, *timestamp, Some(&key.to_string())));
                }
            }
            let order = if by_timestamp { Order::Timestamp } else { Order::Inputs };
            let total = records.len();
            let grouped = group(records, None, order);
            let mut seen = 0;
            for bucket in &grouped.round.buckets {
                let slice = &grouped.round.records[bucket.records.clone()];
                seen += slice.len();
                for (index, one) in slice.iter().enumerate() {
                    prop_assert_eq!(one.key.as_deref(), Some(bucket.key()));
                    for later in &slice[index + 1..] {
                        if later.input == one.input {
                            prop_assert!(one.offset < later.offset);
                        } else if !by_timestamp {
                            prop_assert!(one.input < later.input);
                        }
                    }
                    if by_timestamp {
                        // Among the heads of the other inputs none is smaller.
                        for input in 0..inputs.len() as u16 {
                            let head = slice[index..].iter().find(|other| other.input == input);
                            if let Some(head) = head {
                                prop_assert!((one.timestamp, one.input) <= (head.timestamp, head.input));
                            }
                        }
                    }
                }
            }
            prop_assert_eq!(seen, total);
        }
    }
}
