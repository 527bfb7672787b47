//! Timers of the wall clock beside records (S12.2e), in a stage whose timers fall due faster than they fire.

use crate::compact::CompactBytes;
use crate::demo::REMIND;
use crate::glue::StateChange;
use crate::timers::{Clock, Pending, encode, wall_clock};

use super::*;

/// Rounds that a stage may have without any record: it has ten.
const MOST: usize = 500;

/// Each record and each timer sets a timer, and ends only when that one is due.
struct Ticks {
    world: World,
    /// It is due from the beginning.
    late: bool,
    /// The offset of each round's record; `None`: timers.
    rounds: Mutex<Vec<Option<i64>>>,
}

impl Ticks {
    fn rounds(&self) -> Vec<Option<i64>> {
        self.rounds.lock().unwrap().clone()
    }
}

fn timer(due: i64) -> CompactBytes {
    let mut value = Vec::new();
    encode(&[Pending { name: "tick".to_owned(), clock: Clock::WallClock, due }], &mut value);
    value.into()
}

impl AnyStage for Ticks {
    fn info(&self) -> &'static StageInfo {
        &REMIND
    }

    fn key(&self, _: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)> {
        Ok(Bytes::new())
    }

    fn round<'a>(
        &'a self,
        round: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        Box::pin(async move {
            let count = {
                let mut rounds = self.rounds.lock().unwrap();
                rounds.push(round.records.first().map(|record| record.offset));
                rounds.len()
            };
            if count > MOST {
                self.world.with(|inside| inside.failed = true);
                let error = "records are starved".into();
                return Err(Failure { record: 0, timer: None, kind: FailureKind::User, error });
            }
            let due = if self.late { count as i64 } else { wall_clock() + 1 };
            for bucket in &mut round.buckets {
                bucket.fired = u64::from(bucket.records.is_empty());
                bucket.timers_change = StateChange::Set(timer(due));
            }
            while wall_clock() < due {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(RoundEnd::Done)
        })
    }
}

fn ticks(late: bool, commit_interval: Duration) -> (World, &'static Ticks, Started) {
    let world = world(&[Commit::Fine], 0);
    let stage: &'static Ticks =
        Box::leak(Box::new(Ticks { world: world.clone(), late, rounds: Mutex::default() }));
    let started = start_with(&world, stage, &REMIND, Limits { commit_interval, ..limits() });
    (world, stage, started)
}

/// However fast timers fall due, and however many did long ago.
#[test]
fn records_are_processed_while_each_timer_that_fires_makes_another_one_due() {
    for late in [false, true] {
        let (world, stage, started) = ticks(late, Duration::ZERO);
        world.wait("the end of the records", |inside| inside.offsets.last() == Some(&10) || inside.failed);
        assert!(!world.with(|inside| inside.failed), "late: {late}, rounds: {:?}", stage.rounds());
        let rounds = stage.rounds();
        assert!(rounds.contains(&None), "timers have their turns as well: {rounds:?}");
        started.stopper.stop();
        started.end().unwrap();
    }
}

/// Their batch has nothing else in it, so that positions are as before; and within `commit_interval` there is one.
#[test]
fn timers_of_the_wall_clock_fire_in_a_batch_of_their_own_and_that_once_in_each_interval() {
    let (world, stage, started) = ticks(false, LONG);
    let all = || stage.rounds().len() >= 11;
    let until = Instant::now() + LONG / 2;
    while !all() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    started.stopper.stop();
    started.end().unwrap();
    let expected = [Some(0), None].into_iter().chain((1..10).map(Some));
    assert_eq!(stage.rounds(), expected.collect::<Vec<_>>());
    // The first record was alone, since a timer was due behind it; the others are as many as a batch takes.
    assert_eq!(world.with(|inside| inside.offsets.clone()), [1, 1, 6, 10]);
}
