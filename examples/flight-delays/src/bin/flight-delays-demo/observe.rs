//! Reads the results while they come, for the screen: committed ones only, as every consumer should.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use flight_delays::Delays;

use crate::cluster::{Read, Reader};
use crate::run::Progress;

/// Follows the results until told to stop.
pub(crate) fn observe(reader: &Reader, progress: &Arc<Progress>) -> anyhow::Result<()> {
    while !progress.stop.load(Ordering::Relaxed) {
        if let Read::Record(key, value) = reader.next(Duration::from_millis(100))? {
            let (airport, delays) = decode(&key, &value)?;
            progress.latest().insert(airport, delays);
            progress.results.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// A result: the airport's code and its figures.
pub(crate) fn decode(key: &[u8], value: &[u8]) -> anyhow::Result<(String, Delays)> {
    let airport = std::str::from_utf8(key).context("the key of a result is not text")?;
    let delays =
        serde_json::from_slice(value).with_context(|| format!("a result of {airport} can't be decoded"))?;
    Ok((airport.to_owned(), delays))
}
