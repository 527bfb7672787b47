//! Finds timers that are due in the database without looking at others: beside the entry of a state key's timers (kind 1)
//! stands one for the earliest of each clock, whose key begins with the due time. It is derived from those entries, written
//! in one batch with them, and made anew after a restore.

use rocksdb::{DB, Direction, IteratorMode, WriteBatch};

use super::rocks::COLUMN_FAMILY;
use crate::format::{ChangelogRecord, Kind};
use crate::timers::{Clock, ListError, Summary, summary};

/// The first byte of the index's keys, no kind of a changelog key. Behind it: the clock's byte, the due time in eight bytes,
/// the highest first, and the state key.
pub(super) const PREFIX: u8 = 0xfe;
/// Under this key of the store's own is the number of pending timers.
const COUNT: &[u8] = b"\xfftimers";
/// Entries of the index that are written at once when it is made anew.
const CHUNK: usize = 20_000;

/// The index can't be read or written, or what lies under it can't.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Database(#[from] rocksdb::Error),
    #[error("stored timers can't be read: {0}")]
    Timers(#[from] ListError),
}

fn key(clock: Clock, due: i64, state_key: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(10 + state_key.len());
    key.extend([PREFIX, clock.byte()]);
    key.extend(due.to_be_bytes());
    key.extend(state_key);
    key
}

/// How many timers are pending, as it was written last.
pub(super) fn count(db: &DB) -> Result<u64, rocksdb::Error> {
    let count = db.get_pinned(COUNT)?;
    Ok(count.and_then(|count| count[..].try_into().ok()).map_or(0, u64::from_be_bytes))
}

/// Adds to `batch` what `changes` do to the index; says how many timers there are then, of `count` now. `before` is what the timers
/// among them had until now, where that is known: looking it up costs as much as all the rest.
pub(super) fn follow(
    db: &DB,
    changes: &[ChangelogRecord],
    before: Option<&[Summary]>,
    mut count: u64,
    batch: &mut WriteBatch,
) -> Result<u64, Error> {
    let mut timers: Vec<_> = changes.iter().filter(|change| change.is_of(Kind::Timer)).collect();
    if timers.is_empty() {
        return Ok(count);
    }
    let before = match before {
        Some(before) => {
            debug_assert_eq!(before, look_up(db, &timers, false)?, "what the timers had before");
            before.to_vec()
        }
        None => {
            // In key order, as the store looks others up; of several changes of one key the last stays the last.
            timers.sort_by(|a, b| a.key.cmp(&b.key));
            look_up(db, &timers, true)?
        }
    };
    let mut previous: Option<(&[u8], Summary)> = None;
    for (change, before) in timers.into_iter().zip(before) {
        let now = of(change.value.as_deref())?;
        let before = match previous {
            Some((key, summary)) if key == &change.key[..] => summary,
            _ => before,
        };
        previous = Some((&change.key, now));
        for clock in Clock::ALL {
            let (old, new) = (before.earliest_of(clock), now.earliest_of(clock));
            if old != new {
                old.iter().for_each(|due| batch.delete(key(clock, *due, &change.key[1..])));
                new.iter().for_each(|due| batch.put(key(clock, *due, &change.key[1..]), b""));
            }
        }
        count = (count + now.count).saturating_sub(before.count);
    }
    batch.put(COUNT, count.to_be_bytes());
    Ok(count)
}

/// What lies under the keys of these changes, which may be sorted by them.
fn look_up(db: &DB, changes: &[&ChangelogRecord], sorted: bool) -> Result<Vec<Summary>, Error> {
    let Some(column_family) = db.cf_handle(COLUMN_FAMILY) else { return Ok(Vec::new()) };
    let stored = db.batched_multi_get_cf(column_family, changes.iter().map(|change| &change.key), sorted);
    stored.into_iter().map(|stored| Ok(of(stored?.as_deref())?)).collect()
}

fn of(value: Option<&[u8]>) -> Result<Summary, ListError> {
    value.map_or(Ok(Summary::default()), summary)
}

/// Makes the index anew from the timers that are there; says how many they are.
pub(super) fn build(db: &DB) -> Result<u64, Error> {
    let mut batch = WriteBatch::default();
    let own = |kind: u8| {
        db.iterator(IteratorMode::From(&[kind], Direction::Forward))
            .take_while(move |entry| !matches!(entry, Ok((key, _)) if key.first() != Some(&kind)))
    };
    for entry in own(PREFIX) {
        batch.delete(entry?.0);
    }
    let mut count = 0;
    for entry in own(Kind::Timer.byte()) {
        let (of, value) = entry?;
        let summary = summary(&value)?;
        count += summary.count;
        summary.due().for_each(|(clock, due)| batch.put(key(clock, due, &of[1..]), b""));
        if batch.len() >= CHUNK {
            db.write(std::mem::take(&mut batch))?;
        }
    }
    if count > 0 || self::count(db)? > 0 {
        batch.put(COUNT, u64::to_be_bytes(count));
    }
    db.write(batch)?;
    Ok(count)
}

/// See [`Store::due`](crate::port::Store::due).
pub(super) fn visit(
    db: &DB,
    clock: Clock,
    from: i64,
    visit: &mut dyn FnMut(i64, &[u8]) -> bool,
) -> Result<(), rocksdb::Error> {
    let first = key(clock, from.max(0), b"");
    // One that lends what it finds, where the other copies each entry.
    let mut entries = db.raw_iterator();
    entries.seek(&first);
    while let Some(found) = entries.key().filter(|found| found.starts_with(&first[..2])) {
        let Some((due, state_key)) = found[2..].split_first_chunk() else { break };
        if !visit(i64::from_be_bytes(*due), state_key) {
            break;
        }
        entries.next();
    }
    entries.status()
}
