//! From raw batches of a partition to the fate of each record: the markers tell, not the reader.

use std::collections::HashMap;

use crate::Producer;

/// A batch as it lies in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<T> {
    /// Offset of the first record, or of the marker.
    pub base_offset: i64,
    /// Who wrote it; `None` outside of transactions.
    pub producer: Option<Producer>,
    /// What is in it.
    pub content: Content<T>,
}

/// What a batch holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// Records, by their offsets.
    Records(Vec<(i64, T)>),
    /// The end of a transaction: the epoch of the batch may be above that of the records.
    Marker {
        /// Committed, otherwise aborted.
        commit: bool,
    },
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// Committed, or outside of any transaction.
    Committed,
    /// Aborted.
    Aborted,
    /// Its transaction is still open.
    Open,
}

/// A record with its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fated<T> {
    /// Its offset.
    pub offset: i64,
    /// Who wrote it.
    pub producer: Option<Producer>,
    /// What became of it.
    pub fate: Fate,
    /// The record.
    pub record: T,
}

/// Reads the markers of one partition; the batches in the order of the log.
pub fn fates<T: Clone>(batches: &[Batch<T>]) -> Vec<Fated<T>> {
    let mut found: Vec<Fated<T>> = Vec::new();
    let mut open: HashMap<i64, Vec<usize>> = HashMap::new();
    for batch in batches {
        match (&batch.content, batch.producer) {
            (Content::Records(records), producer) => {
                for (offset, record) in records {
                    if let Some(producer) = producer {
                        open.entry(producer.id).or_default().push(found.len());
                    }
                    let fate = if producer.is_some() { Fate::Open } else { Fate::Committed };
                    found.push(Fated { offset: *offset, producer, fate, record: record.clone() });
                }
            }
            (Content::Marker { commit }, Some(producer)) => {
                for index in open.remove(&producer.id).unwrap_or_default() {
                    found[index].fate = if *commit { Fate::Committed } else { Fate::Aborted };
                }
            }
            (Content::Marker { .. }, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_ends_what_its_producer_has_open() {
        let by = |id, epoch| Some(Producer { id, epoch });
        let records = |at: i64| Content::Records(vec![(at, at)]);
        let batches = [
            Batch { base_offset: 0, producer: by(1, 0), content: records(0) },
            Batch { base_offset: 1, producer: by(2, 0), content: records(1) },
            Batch { base_offset: 2, producer: by(1, 1), content: Content::Marker { commit: false } },
            Batch { base_offset: 3, producer: by(1, 1), content: records(3) },
            Batch { base_offset: 4, producer: by(1, 1), content: Content::Marker { commit: true } },
            Batch { base_offset: 5, producer: None, content: records(5) },
        ];
        let fates: Vec<Fate> = fates(&batches).into_iter().map(|record| record.fate).collect();
        assert_eq!(fates, [Fate::Aborted, Fate::Open, Fate::Committed, Fate::Committed]);
    }
}
