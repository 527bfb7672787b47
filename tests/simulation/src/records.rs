//! Batches of a log and what is in them, as a client reads them.

use bytes::Bytes;
use flechtwerk_checkers::Producer;
use flechtwerk_checkers::batches::{Batch, Content};
use flechtwerk_dev_broker::log::batch::BatchHeader;
use flechtwerk_dev_broker::log::{Marker, Records};

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
}

fn each(bytes: &Bytes, mut visit: impl FnMut(BatchHeader, &[u8])) {
    let mut at = 0;
    while let Ok(header) = BatchHeader::parse(&bytes[at..]) {
        visit(header, &bytes[at..at + header.size]);
        at += header.size;
    }
}

fn items(header: &BatchHeader, batch: &[u8]) -> Vec<Item> {
    let records = Records::open(header, batch).expect("a batch of the log can be read");
    let item = |record: flechtwerk_dev_broker::log::Record<'_>| Item {
        offset: header.base_offset + i64::from(record.offset_delta),
        timestamp: header.timestamp(record.timestamp_delta),
        key: record.key.map(Bytes::copy_from_slice),
        value: record.value.map(Bytes::copy_from_slice),
    };
    records.iter().map(|record| item(record.expect("a record of the log can be read"))).collect()
}

/// What a client takes out of what it fetched: from `from` on, without what `aborted` names. `until`: batches from here on are
/// not seen yet. Gives the position behind it as well.
pub(crate) fn read(bytes: &Bytes, from: i64, until: i64, aborted: &[(i64, i64)]) -> (Vec<Item>, i64) {
    let (mut found, mut next) = (Vec::new(), from);
    let mut aborted = aborted.to_vec();
    aborted.sort_unstable_by_key(|(_, first)| *first);
    let mut gone: Vec<i64> = Vec::new();
    each(bytes, |header, batch| {
        if header.base_offset >= until {
            return;
        }
        next = next.max(header.last_offset() + 1);
        aborted.retain(|(id, first)| {
            let begun = *first <= header.last_offset();
            if begun {
                gone.push(*id);
            }
            !begun
        });
        if header.is_control() {
            if let Ok(Some(marker)) = Marker::read(&header, batch)
                && !marker.commit
                && let Some(index) = gone.iter().position(|id| *id == header.producer_id)
            {
                gone.swap_remove(index);
            }
            return;
        }
        if header.is_transactional() && gone.contains(&header.producer_id) {
            return;
        }
        found.extend(items(&header, batch).into_iter().filter(|item| item.offset >= from));
    });
    (found, next)
}

/// All batches of a log as they lie there.
pub(crate) fn raw(bytes: &Bytes) -> Vec<Batch<Item>> {
    let mut found = Vec::new();
    each(bytes, |header, batch| {
        let producer = header
            .is_transactional()
            .then_some(Producer { id: header.producer_id, epoch: header.producer_epoch });
        let content = match Marker::read(&header, batch) {
            Ok(Some(marker)) if header.is_control() => Content::Marker { commit: marker.commit },
            _ if header.is_control() => return,
            _ => {
                Content::Records(items(&header, batch).into_iter().map(|item| (item.offset, item)).collect())
            }
        };
        found.push(Batch { base_offset: header.base_offset, producer, content });
    });
    found
}
