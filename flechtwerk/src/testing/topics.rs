//! Topics in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::glue::{Outputs, RawRecord};
use crate::partitioner::partition_of;
use crate::record::Headers;

pub(super) struct Topics {
    partitions: i32,
    by_name: BTreeMap<&'static str, Partitions>,
    /// How many records got their timestamp here.
    clock: i64,
    /// Records without a key go to each partition in turn.
    unkeyed: i32,
}

struct Partitions {
    records: Vec<Vec<RawRecord>>,
    /// How far each partition was read by the test.
    read: Vec<usize>,
}

impl Topics {
    pub(super) fn new(partitions: i32) -> Self {
        Topics { partitions, by_name: BTreeMap::new(), clock: 0, unkeyed: 0 }
    }

    pub(super) fn partitions(&self) -> i32 {
        self.partitions
    }

    /// The next timestamp.
    pub(super) fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock - 1
    }

    /// Appends outputs, all or none of them. `names` are the topics that they refer to.
    pub(super) fn append(&mut self, outputs: &Outputs, names: &[&'static str]) -> Result<(), String> {
        for output in &outputs.records {
            if let Some(partition) = output.partition
                && partition >= self.partitions
            {
                let topic = names[usize::from(output.topic)];
                let count = self.partitions;
                return Err(format!(
                    "a record was sent to {topic}/{partition}, but there are {count} partitions"
                ));
            }
        }
        for output in &outputs.records {
            let part = |range: &Option<std::ops::Range<usize>>| {
                range.as_ref().map(|range| Bytes::copy_from_slice(outputs.slice(range)))
            };
            let (key, value) = (part(&output.key), part(&output.value));
            let partition = output.partition.unwrap_or_else(|| self.place(key.as_deref()));
            let topic = self.topic(names[usize::from(output.topic)]);
            let records = &mut topic.records[partition as usize];
            let (timestamp, headers) = (output.timestamp, output.headers.clone());
            records.push(RawRecord {
                input: 0,
                partition,
                offset: records.len() as i64,
                timestamp,
                key,
                value,
                headers,
            });
        }
        Ok(())
    }

    /// Appends a record of any bytes.
    pub(super) fn push(&mut self, name: &'static str, key: Option<Bytes>, value: Option<Bytes>) {
        let partition = self.place(key.as_deref());
        let timestamp = self.tick();
        let records = &mut self.topic(name).records[partition as usize];
        let offset = records.len() as i64;
        let headers = Headers::default();
        records.push(RawRecord { input: 0, partition, offset, timestamp, key, value, headers });
    }

    /// Where a key lies.
    pub(super) fn partition_of(&self, key: &[u8]) -> i32 {
        partition_of(key, self.partitions)
    }

    /// The partition of a record that names none.
    fn place(&mut self, key: Option<&[u8]>) -> i32 {
        match key {
            Some(key) => partition_of(key, self.partitions),
            None => {
                self.unkeyed += 1;
                (self.unkeyed - 1) % self.partitions
            }
        }
    }

    fn topic(&mut self, name: &'static str) -> &mut Partitions {
        let count = self.partitions as usize;
        self.by_name
            .entry(name)
            .or_insert_with(|| Partitions { records: vec![vec![]; count], read: vec![0; count] })
    }

    /// The records of one partition from a position on.
    pub(super) fn from(
        &self,
        name: &str,
        partition: i32,
        position: usize,
    ) -> impl Iterator<Item = &RawRecord> {
        self.by_name
            .get(name)
            .into_iter()
            .flat_map(move |topic| &topic.records[partition as usize][position..])
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &RawRecord> {
        self.by_name.get(name).into_iter().flat_map(|topic| topic.records.iter().flatten())
    }

    /// What came since this was asked last.
    pub(super) fn unread(&mut self, name: &'static str) -> Vec<RawRecord> {
        let topic = self.topic(name);
        let mut unread = vec![];
        for (records, read) in topic.records.iter().zip(&mut topic.read) {
            unread.extend_from_slice(&records[*read..]);
            *read = records.len();
        }
        unread
    }
}
