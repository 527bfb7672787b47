//! I6 and I9: at the end no transaction hangs, and within a bound after the last fault all that is there was processed.

use std::time::Duration;

use crate::{Check, Partition, Violation};

/// Both ends of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The partition.
    pub at: Partition,
    /// The last stable offset.
    pub stable: i64,
    /// The high watermark.
    pub high: i64,
}

/// I6: `open` are the transactions that the cluster's own tool calls hanging, or that its coordinator says are open.
pub fn hanging(ends: &[Ends], open: &[String]) -> Vec<Violation> {
    let held = ends.iter().filter(|ends| ends.stable != ends.high).map(|ends| {
        let what = format!("{} is stable up to {} of {}", ends.at, ends.stable, ends.high);
        Violation::new(Check::Hanging, "held back", what)
    });
    let open = open.iter().map(|name| Violation::new(Check::Hanging, "open transaction", name.clone()));
    held.chain(open).collect()
}

/// How far the processing of one input partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The input.
    pub at: Partition,
    /// Offset of the last data record that a read_committed reader sees; `None`: there is none.
    pub last: Option<i64>,
    /// The committed position.
    pub committed: Option<i64>,
}

/// I9: looked at when `waited` has passed since the last fault. `waiting` names the instances that have stopped making progress
/// though something is theirs to do.
pub fn liveness(progress: &[Progress], waiting: &[String], waited: Duration) -> Vec<Violation> {
    let behind = progress
        .iter()
        .filter(|one| one.last.is_some_and(|last| one.committed.is_none_or(|committed| committed <= last)))
        .map(|one| {
            let what = format!(
                "{} {waited:?} after the last fault: committed is {:?}, the last record is {:?}",
                one.at, one.committed, one.last
            );
            Violation::new(Check::Liveness, "behind", what)
        });
    let waiting = waiting.iter().map(|name| Violation::new(Check::Liveness, "waits for ever", name.clone()));
    behind.chain(waiting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn an_open_transaction_is_seen_from_both_sides() {
        let at = Partition::new("counts", 0);
        assert_eq!(hanging(&[Ends { at: at.clone(), stable: 4, high: 4 }], &[]), []);
        assert_eq!(kinds(&hanging(&[Ends { at, stable: 3, high: 4 }], &[])), ["held back"]);
        assert_eq!(kinds(&hanging(&[], &["x-0".into()])), ["open transaction"]);
    }

    #[test]
    fn what_is_left_behind_is_named() {
        let progress = |last, committed| Progress { at: Partition::new("words", 0), last, committed };
        let run = |one: Progress| liveness(&[one], &[], Duration::from_secs(60));
        assert_eq!(run(progress(Some(3), Some(4))), []);
        assert_eq!(run(progress(None, None)), []);
        assert_eq!(kinds(&run(progress(Some(3), Some(3)))), ["behind"]);
        assert_eq!(kinds(&run(progress(Some(3), None))), ["behind"]);
        assert_eq!(kinds(&liveness(&[], &["b".into()], Duration::ZERO)), ["waits for ever"]);
    }
}
