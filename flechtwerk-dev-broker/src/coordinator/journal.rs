//! The records that the journal keeps of the coordinators: what must be known again after the broker was killed.
//!
//! A record is bytes of a form of our own, with the version of that form in front; the check sum is the storage's. Each replaces what an earlier
//! one said of the same thing, so they can be read again from the start, and a prefix of them is an earlier state.

use bytes::Bytes;
use thiserror::Error;

/// A change to keep in the journal, or to read from it.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    bytes: Bytes,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("bytes", &self.bytes.len()).finish()
    }
}

impl Record {
    /// The bytes to keep.
    pub fn encode(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The record that these bytes are.
    pub fn decode(bytes: Bytes) -> Result<Self, JournalError> {
        Ok(Self { bytes })
    }
}

/// Why bytes are no record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Written by another version.
    #[error(
        "the journal has a record of version {version}, and this broker knows version {known}: start with an empty data folder"
    )]
    Version {
        /// What was found.
        version: u8,
        /// What is known.
        known: u8,
    },
    /// Of a kind that is not known.
    #[error("the journal has a record of the unknown kind {kind}: start with an empty data folder")]
    Kind {
        /// What was found.
        kind: u8,
    },
    /// Cut off, or longer than it should be, or with numbers that lie.
    #[error("the journal has a damaged record ({place}): start with an empty data folder")]
    Damaged {
        /// Where in the record.
        place: &'static str,
    },
}
