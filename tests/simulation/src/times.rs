//! The times that processes work by: shorter than the defaults, so that little of a history is waiting, and in the same order.

use std::time::Duration;

use flechtwerk::simulation::Times;

use crate::plan::{MS, Micros};

/// `session_timeout`
pub(crate) const SESSION: Micros = 900 * MS;
/// `heartbeat_interval`
pub(crate) const HEARTBEAT: Micros = 150 * MS;
/// `max.poll.interval.ms`, which is the group's rebalance time-out.
pub(crate) const REBALANCE: Micros = 2_000 * MS;
/// `transaction_timeout`
pub(crate) const TRANSACTION: Micros = 1_200 * MS;

/// For the runtime.
pub(crate) fn times(max_poll_records: usize) -> Times {
    Times {
        commit_interval: Duration::from_millis(15),
        broker_timeout: Duration::from_millis(2_500),
        revoke_timeout: Duration::from_millis(300),
        heartbeat_interval: Duration::from_micros(HEARTBEAT),
        transaction_timeout: Duration::from_micros(TRANSACTION),
        shutdown_timeout: Duration::from_secs(4),
        max_poll_records,
    }
}
