//! Which transactions are open in a partition, and which were aborted: what read-committed readers need to know.

use std::collections::BTreeMap;

/// A transaction that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub(crate) producer_id: i64,
    /// Where its data begins.
    pub(crate) first_offset: i64,
    /// Where its marker lies.
    pub(crate) marker_offset: i64,
    /// Where the earliest transaction that was still open behind it began, or the marker's next offset: no transaction
    /// that ended later has data before this.
    pub(crate) stable_offset: i64,
}

/// The open and the aborted transactions of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Transactions {
    /// Producer ids by the first offset of their open transactions.
    open: BTreeMap<i64, i64>,
    /// In the order of their markers.
    aborted: Vec<Aborted>,
}

impl Transactions {
    /// The first offset of the earliest open transaction.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    pub(crate) fn begin(&mut self, producer_id: i64, first_offset: i64) {
        self.open.insert(first_offset, producer_id);
    }

    /// Ends a transaction whose marker lies at that offset.
    pub(crate) fn end(&mut self, producer_id: i64, first_offset: i64, marker_offset: i64, commit: bool) {
        self.open.remove(&first_offset);
        if !commit {
            let stable_offset = self.first_open().unwrap_or(marker_offset.saturating_add(1));
            self.aborted.push(Aborted { producer_id, first_offset, marker_offset, stable_offset });
        }
    }

    /// The aborted transactions that reach into the offsets from `from` to before `until`.
    pub(crate) fn aborted_between(&self, from: i64, until: i64) -> Vec<(i64, i64)> {
        let start = self.aborted.partition_point(|aborted| aborted.marker_offset < from);
        let mut found = Vec::new();
        for aborted in self.aborted.iter().skip(start) {
            if aborted.first_offset < until {
                found.push((aborted.producer_id, aborted.first_offset));
            }
            if aborted.stable_offset >= until {
                break;
            }
        }
        found
    }

    /// The aborted transactions in the order of their markers.
    pub(crate) fn aborted(&self) -> &[Aborted] {
        &self.aborted
    }

    /// Keeps only these aborted transactions, which are some of the present ones in their order.
    pub(crate) fn set_aborted(&mut self, aborted: Vec<Aborted>) {
        self.aborted = aborted;
    }

    /// Forgets the aborted transactions whose marker lies before an offset.
    pub(crate) fn remove_before(&mut self, offset: i64) {
        let gone = self.aborted.partition_point(|aborted| aborted.marker_offset < offset);
        self.aborted.drain(..gone);
    }
}
