//! Where the active segment of a log begins. The log is one file all the same; what Kafka's cleaner leaves alone is what
//! lies in the segment that is still written to.

use super::LogConfig;
use super::batch::BatchHeader;
use super::chunks::Chunks;

/// The segment that is written to; none yet in a log to which nothing was ever appended.
#[derive(Debug, Default)]
pub(super) struct ActiveSegment(Option<Segment>);

#[derive(Debug)]
struct Segment {
    /// The offset of its first batch, when that was appended.
    begin: i64,
    /// The largest timestamp of that batch.
    since: i64,
    /// The bytes of its batches.
    size: usize,
}

impl ActiveSegment {
    /// Its first offset.
    pub(super) fn begin(&self) -> Option<i64> {
        self.0.as_ref().map(|segment| segment.begin)
    }

    /// A batch comes to the end of the log. One that is too large or too new for the segment begins the next one, as in
    /// Kafka: by the settings of the time at which it comes.
    pub(super) fn grow(&mut self, config: &LogConfig, header: &BatchHeader, size: usize) {
        let fits = |segment: &&mut Segment| {
            segment.size.saturating_add(size) <= config.segment_bytes
                && header.max_timestamp.saturating_sub(segment.since) <= config.segment_ms
        };
        match self.0.as_mut().filter(fits) {
            Some(segment) => segment.size = segment.size.saturating_add(size),
            None => self.0 = Some(Segment { begin: header.base_offset, since: header.max_timestamp, size }),
        }
    }

    /// Batches were taken out of the log: the segment stays where it is, and may have become smaller.
    pub(super) fn shrink(&mut self, chunks: &Chunks) {
        if let Some(segment) = &mut self.0 {
            segment.size = chunks.bytes_between(segment.begin, i64::MAX);
        }
    }
}
