//! Up to which time the changes of a database are complete.
//!
//! A change gets its time when it is made, and is seen when its transaction commits, maybe minutes later. A reader that goes by the time
//! alone passes by changes that appear behind its back. So it looks, together with the time, which transactions are under way. Each
//! change that was made before that time belongs to one of these, or is there already, or never will be: a transaction gets its number
//! before its first change gets its time (see `schema.sql`). When all of them have ended, the changes before that time are complete.
//!
//! Snapshots don't tell this: the `xmax` of one is the number behind the last transaction that has *ended*, and one that has begun and not
//! ended may well have that number.

use std::collections::BTreeSet;

/// A moment of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since the epoch, by the database's clock.
    pub time: i64,
    /// Numbers of the transactions that were under way then, and may have changed something.
    pub running: BTreeSet<i64>,
}

/// How far the changes are complete, from one look at the database to the next.
#[derive(Clone, Debug, Default)]
pub struct Horizon {
    /// Complete before this time.
    complete: i64,
    /// The moment whose transactions are waited for: those that are still under way.
    waiting: Option<Moment>,
}

impl Horizon {
    /// Takes a look; gives the time before which every change is there, now and for good.
    pub fn advance(&mut self, now: Moment) -> i64 {
        if let Some(waiting) = &mut self.waiting {
            waiting.running.retain(|number| now.running.contains(number));
        }
        // The newer moment may be over as well, or is the next one to wait for.
        if let Some(over) = self.waiting.take_if(|waiting| waiting.running.is_empty()) {
            self.complete = self.complete.max(over.time);
        }
        if now.running.is_empty() {
            self.complete = self.complete.max(now.time);
        } else {
            self.waiting.get_or_insert(now);
        }
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<const N: usize>(time: i64, running: [i64; N]) -> Moment {
        Moment { time, running: running.into() }
    }

    #[test]
    fn where_nothing_is_under_way_all_is_complete() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.advance(at(10, [])), 10);
        assert_eq!(horizon.advance(at(20, [])), 20);
    }

    #[test]
    fn a_transaction_under_way_is_waited_for_however_long_it_takes() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.advance(at(10, [])), 10);
        // Number 7 is under way, others come and go.
        for (time, other) in [(20, 8), (30, 9), (40, 10)] {
            assert_eq!(horizon.advance(at(time, [7, other])), 10);
        }
        // 7 has ended. What was made before 20 is complete; what 11 has made since 45 may not be.
        assert_eq!(horizon.advance(at(50, [11])), 20);
        assert_eq!(horizon.advance(at(60, [])), 60);
    }

    #[test]
    fn under_constant_load_it_follows() {
        let mut horizon = Horizon::default();
        let mut complete = 0;
        // There is always somebody: each transaction overlaps the next one.
        for step in 1..100 {
            complete = horizon.advance(at(step * 10, [step, step + 1]));
        }
        assert!(complete > 950, "{complete}");
    }

    #[test]
    fn a_clock_that_is_set_back_takes_nothing_back() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.advance(at(100, [])), 100);
        assert_eq!(horizon.advance(at(90, [])), 100);
    }
}
