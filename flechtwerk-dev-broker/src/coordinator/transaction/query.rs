//! DescribeTransactions and ListTransactions.

use std::collections::HashSet;

use super::Transactions;
use super::types::{DescribedTransaction, ListFilter, Listed, ListedTransaction, TransactionState};
use crate::coordinator::{ErrorCode, Now};

impl Transactions {
    /// DescribeTransactions, for one transactional id.
    pub fn describe(&self, transactional_id: &str) -> Result<DescribedTransaction, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let transaction = self.ids.get(transactional_id).ok_or(ErrorCode::TransactionalIdNotFound)?;
        let record = transaction.record();
        Ok(DescribedTransaction {
            transactional_id: transactional_id.to_owned(),
            state: record.state,
            producer: record.producer,
            timeout_ms: record.timeout_ms,
            start: record.start,
            partitions: record.partitions.iter().cloned().collect(),
            groups: record.groups.iter().cloned().collect(),
        })
    }

    /// ListTransactions.
    pub fn list(&self, now: Now, filter: &ListFilter) -> Listed {
        let mut states = HashSet::new();
        let mut unknown_states = Vec::new();
        let mut seen = HashSet::new();
        let producer_ids: HashSet<i64> = filter.producer_ids.iter().copied().collect();
        for name in &filter.states {
            match TransactionState::from_name(name) {
                Some(state) => {
                    states.insert(state);
                }
                None => {
                    if seen.insert(name) {
                        unknown_states.push(name.clone());
                    }
                }
            }
        }
        let passes = |transaction: &super::Transaction| {
            let record = transaction.record();
            let lasted = now.wall.saturating_sub(record.start);
            (producer_ids.is_empty() || producer_ids.contains(&record.producer.id))
                && (filter.states.is_empty() || states.contains(&record.state))
                && (filter.duration_ms < 0 || lasted > filter.duration_ms)
        };
        let listed = |transaction: &super::Transaction| ListedTransaction {
            transactional_id: transaction.record().transactional_id.clone(),
            producer_id: transaction.record().producer.id,
            state: transaction.record().state,
        };
        let transactions = self.ids.values().filter(|transaction| passes(transaction)).map(listed).collect();
        Listed { unknown_states, transactions }
    }
}
