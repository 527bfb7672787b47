//! Both coordinators together, as they are built again from the journal.

use super::group::GroupSettings;
use super::transaction::TransactionSettings;
use super::{Effects, Groups, Now, Record, Transactions};

/// How both coordinators behave.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Groups.
    pub groups: GroupSettings,
    /// Transactions.
    pub transactions: TransactionSettings,
}

/// Both coordinators of a broker. They know nothing of each other; the caller carries effects from one to the other.
#[derive(Debug)]
pub struct Coordinators {
    /// Groups and offsets.
    pub groups: Groups,
    /// Transactions and producer ids.
    pub transactions: Transactions,
}

impl Coordinators {
    /// Of a broker without a past.
    pub fn new(settings: Settings) -> Self {
        Self { groups: Groups::new(settings.groups), transactions: Transactions::new(settings.transactions) }
    }

    /// Of a broker with a journal. Members have a session's time to show themselves, and transactions that were decided but not
    /// completed have their markers written (again), as an effect.
    pub fn restore(
        settings: Settings,
        now: Now,
        records: impl IntoIterator<Item = Record>,
        out: &mut Effects,
    ) -> Self {
        let mut restored = Self::new(settings);
        for record in records {
            restored.groups.replay(now, &record);
            restored.transactions.replay(now, &record);
        }
        restored.transactions.resume(out);
        restored
    }

    /// The records that build the durable state of both again, to replace a journal that has grown long.
    pub fn snapshot(&self) -> Vec<Record> {
        let mut records = self.groups.snapshot();
        records.extend(self.transactions.snapshot());
        records
    }
}
