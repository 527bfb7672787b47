//! Whose turn it is, that of records or that of timers which are due by the wall clock (S12.2e). Timers that take longer to
//! fire than the next ones take to fall due must not keep the records out, nor the other way round.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The batch being built is one of the wall clock, and takes no records: its timers are those due by this time.
    batch: Option<i64>,
    /// More of them may be due than the batch has taken.
    more: bool,
    /// By this time those were due of which the last such batch could not take all.
    rest: Option<i64>,
    /// When the last such batch was begun that had not to take what another one had left.
    begun: Option<Instant>,
    /// Such a batch has ended, and since then no records had their turn.
    owed: bool,
}

impl Turns {
    /// Timers that are due by this time may fire now; `None`: it is not their turn. `now` is the present by both clocks.
    pub(super) fn due_by(&self, now: (i64, Instant), interval: Duration) -> Option<i64> {
        match (self.batch, self.begun) {
            (Some(by), _) => Some(by),
            _ if self.owed => None,
            (None, Some(begun)) if now.1.saturating_duration_since(begun) < interval => self.rest,
            _ => Some(now.0),
        }
    }

    /// By when timers of the wall clock are due in the batch being built; `None`: it is one of records.
    pub(super) fn batch(&self) -> Option<i64> {
        self.batch
    }

    /// A round of timers that are due by then begins, and with it their batch, unless it has begun already. `more`: it may not
    /// have all of them.
    pub(super) fn fires(&mut self, by: i64, more: bool, now: Instant) {
        if self.batch.is_none() && self.rest != Some(by) {
            self.begun = Some(now);
        }
        self.batch = Some(by);
        self.more = more;
    }

    /// None is due any more by the time that was asked for.
    pub(super) fn none_due(&mut self) {
        (self.more, self.rest) = (false, None);
    }

    /// What the last round has done does not count, and its timers are due as before.
    pub(super) fn undone(&mut self) {
        self.more = true;
    }

    /// The batch being built is closed.
    pub(super) fn closed(&mut self) {
        if let Some(by) = self.batch.take() {
            self.rest = std::mem::take(&mut self.more).then_some(by);
            self.owed = true;
        }
    }

    /// Records were processed, or there are none. True if that was owed to them.
    pub(super) fn records(&mut self) -> bool {
        std::mem::take(&mut self.owed)
    }

    /// Before when no such batch begins, though there are no records.
    pub(super) fn next_at(&self, interval: Duration) -> Option<Instant> {
        self.begun.map(|begun| begun + interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    /// A clock that goes on when it is told to.
    struct Clock(i64, Instant);

    impl Clock {
        fn after(&self, millis: i64) -> (i64, Instant) {
            (self.0 + millis, self.1 + Duration::from_millis(millis as u64))
        }
    }

    fn turns() -> (Turns, Clock) {
        (Turns::default(), Clock(1_000, Instant::now()))
    }

    /// Timers that fall due while others fire belong to the next batch; and that one begins only after the records' turn,
    /// however long ago the last one began.
    #[test]
    fn a_batch_ends_and_records_have_their_turn_before_the_next() {
        let (mut turns, clock) = turns();
        for round in 0..100 {
            // Each round takes longer than the interval.
            let now = clock.after(round * 200);
            assert_eq!(turns.due_by(now, INTERVAL), Some(now.0), "{turns:?}");
            turns.fires(now.0, false, now.1);
            let later = clock.after(round * 200 + 100);
            assert_eq!(turns.due_by(later, INTERVAL), Some(now.0), "what falls due meanwhile waits");
            turns.none_due();
            turns.closed();
            assert_eq!(turns.batch(), None);
            assert_eq!(turns.due_by(later, INTERVAL), None, "it is the records' turn");
            assert!(turns.records() && !turns.records());
            assert_eq!(turns.due_by(later, INTERVAL), Some(later.0));
        }
    }

    /// However it was closed: also because it was full, or because it was time to commit.
    #[test]
    fn at_most_one_batch_begins_in_each_interval() {
        let (mut turns, clock) = turns();
        turns.fires(clock.0, false, clock.1);
        turns.closed();
        turns.records();
        assert_eq!(turns.next_at(INTERVAL), Some(clock.after(50).1));
        for millis in 0..50 {
            assert_eq!(turns.due_by(clock.after(millis), INTERVAL), None, "{millis}");
            // A batch of records changes nothing.
            turns.closed();
        }
        assert_eq!(turns.due_by(clock.after(50), INTERVAL), Some(1_050));
        turns.fires(1_050, false, clock.after(50).1);
        turns.closed();
        turns.records();
        assert_eq!(turns.due_by(clock.after(99), INTERVAL), None);
        assert_eq!(turns.due_by(clock.after(100), INTERVAL), Some(1_100));
    }

    /// What did not fit into a batch need not wait for the interval, but what has fallen due since then must.
    #[test]
    fn what_does_not_fit_takes_the_next_batch_after_the_records_turn() {
        for undone in [false, true] {
            let (mut turns, clock) = turns();
            turns.fires(clock.0, !undone, clock.1);
            if undone {
                turns.undone();
            }
            turns.closed();
            let now = clock.after(10);
            assert_eq!(turns.due_by(now, INTERVAL), None, "records come first");
            turns.records();
            assert_eq!(turns.due_by(now, INTERVAL), Some(clock.0));
            turns.fires(clock.0, false, now.1);
            turns.closed();
            turns.records();
            assert_eq!(turns.due_by(clock.after(49), INTERVAL), None);
            assert_eq!(
                turns.due_by(clock.after(50), INTERVAL),
                Some(1_050),
                "counted from the first of them"
            );
        }
        let (mut turns, clock) = turns();
        turns.fires(clock.0, true, clock.1);
        turns.closed();
        turns.records();
        // It was full, and that was all.
        turns.none_due();
        assert_eq!(turns.due_by(clock.after(10), INTERVAL), None);
    }

    #[test]
    fn a_batch_of_records_owes_nothing() {
        let (mut turns, clock) = turns();
        turns.closed();
        assert!(!turns.records());
        assert_eq!(turns.next_at(INTERVAL), None);
        assert_eq!(turns.due_by(clock.after(0), INTERVAL), Some(1_000));
    }
}
