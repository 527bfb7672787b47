//! Single steps of a task, beside a cluster and a store that fail as a test says.

use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;

use super::*;
use crate::BoxError;
use crate::demo::SESSIONS;
use crate::glue::{AnyStage, BoxFuture, FailureKind, Round, RoundEnd, StageInfo};
use crate::port::{StoreFactory, StoreId};
use crate::runtime::stage::Notice;
use crate::runtime::testing::{Cluster, LONG, Shelf, context, limits, record};
use crate::task::{CommittedInput, InputRange};

/// A stage with timers that does nothing.
struct Reads;

static READS: Reads = Reads;

impl AnyStage for Reads {
    fn info(&self) -> &'static StageInfo {
        &SESSIONS
    }

    fn key(&self, _: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)> {
        Ok(Bytes::new())
    }

    fn round<'a>(
        &'a self,
        _: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, crate::glue::Failure>> {
        Box::pin(async { Ok(RoundEnd::Done) })
    }
}

/// A task whose machine is live, and which has not begun to read.
fn task(max_batch_time: Duration) -> (Task, Shelf, Receiver<Notice>) {
    let (cluster, shelf) = (Cluster::default(), Shelf::default());
    let limits = crate::runtime::Limits { max_batch_time, ..limits() };
    let context = Arc::new(context(&READS, &cluster, limits));
    let (sender, notices) = channel();
    let (reports, _) = unbounded_channel();
    let worker = Worker::start(context.clone(), 0, reports).unwrap();
    let (mut machine, _) = Machine::new(Config { inputs: 1, changelog: None, start_latest: false });
    let committed = CommittedInput { offset: Some(0), metadata: "a:1:-".into() };
    machine.step(Event::Fenced { owner: "b".into() });
    machine.step(Event::Offsets(vec![committed]));
    let range = InputRange { low: 0, stable: 9, high: 9 };
    assert_eq!(machine.step(Event::Ranges(vec![range])), [Command::Run { positions: vec![0] }]);
    let mut task = Task::new(context, 0, machine, worker, Notices { stage: 0, sender });
    let id = StoreId { application_id: "demo".into(), partition: 0 };
    task.store = Some(shelf.open(&id, false).unwrap());
    (task, shelf, notices)
}

/// What was said of whether it runs.
fn running(notices: &Receiver<Notice>) -> Vec<bool> {
    let running = |notice| match notice {
        Notice::Running { running, .. } => Some(running),
        _ => None,
    };
    notices.try_iter().filter_map(running).collect()
}

/// A store whose stream time can't be read is restored anew: what `/ready` answers until then is no.
#[test]
fn a_task_whose_store_fails_as_it_begins_does_not_run() {
    let (mut task, shelf, notices) = task(LONG);
    shelf.fail_reading();
    task.begin(vec![0]);
    assert!(task.reading.is_none(), "it is discarded");
    assert_eq!(running(&notices), [false]);
    task.begin(vec![0]);
    assert_eq!(running(&notices), [true]);
}

/// S2.8: one round after the other may hold a partition as long as one that hangs, so that their time counts together.
#[test]
fn the_user_code_of_all_rounds_of_a_batch_is_watched_as_one() {
    let spent = Duration::from_secs(40);
    let (mut task, _, _notices) = task(LONG);
    task.begin(vec![0]);
    (task.building.records, task.building.spent) = (1, spent);
    task.start(Taken { records: vec![record(1, b"k", None)], keys: Vec::new(), due: None });
    let overdue = |task: &Task, limit| task.context.watchdog.overdue(limit);
    let (partition, place) = overdue(&task, spent - Duration::from_secs(1)).expect("it is overdue");
    assert_eq!((partition, &*place), (0, "words/0 offsets 1 to 1"));
    assert_eq!(overdue(&task, LONG), None);

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let finished = runtime.block_on(rounds::next(&mut task.running));
    task.finished(finished);
    assert!(task.building.spent >= spent);
    assert_eq!(overdue(&task, Duration::ZERO), None, "nothing runs");
}

/// S2.8: what it then waits for is the cluster, and that may take longer than user code may.
#[test]
fn a_batch_whose_user_code_has_taken_half_of_its_time_takes_no_more() {
    let (mut task, _, _notices) = task(Duration::from_secs(8));
    task.building.records = 1;
    assert!(!task.is_full());
    task.building.spent = Duration::from_secs(4);
    assert!(task.is_full());
}
