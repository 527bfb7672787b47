//! What becomes of a commit under way when its task ends, by a rebalance or by a failure elsewhere; and of a position when
//! its partition ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::stage::StageInstance;
use super::*;

/// A stage whose partition is taken away and comes back while a commit does not end.
fn taken_away(revoke_timeout: Duration) -> (World, Started) {
    let world = world(&[Commit::Fine, Commit::Late], 0);
    let started = start_with(&world, &ENRICHES, &ENRICH, Limits { revoke_timeout, ..limits() });
    world.wait("a commit that does not end", |inside| inside.tried > 2);
    assert_eq!(world.with(|inside| inside.fences), 1);
    world.tell(GroupEvent::Assigned(Vec::new()));
    world.tell(GroupEvent::Assigned(vec![TopicPartition { topic: "words".into(), partition: 0 }]));
    (world, started)
}

/// S5.1c: it is awaited, but no longer than `revoke_timeout`; the partition can be used again after that. The limit is the one
/// that was set: of two stages, that with the longer one still awaits its commit when the other has given its own up.
#[test]
fn a_commit_under_way_is_awaited_for_the_revoke_timeout_and_no_longer() {
    let (waits, waiting) = taken_away(LONG);
    let limit = Duration::from_millis(20);
    let since = Instant::now();
    let (gives_up, given_up) = taken_away(limit);
    gives_up.wait("the next task of the partition", |inside| inside.fences > 1);
    assert!(since.elapsed() >= limit, "not before the limit");
    assert_eq!(waits.with(|inside| (inside.fences, inside.fine)), (1, 1), "awaited still");
    // What is awaited counts.
    waits.with(|inside| inside.script = vec![Commit::Fine]);
    waits.wait("the next task of the partition", |inside| inside.fences > 1);
    assert!(waits.with(|inside| inside.fine) >= 2);
    given_up.stopper.stop();
    waiting.stopper.stop();
    waiting.end().unwrap();
}

/// A stage whose function fails at its second round, while the batch of the first one is being committed.
struct FailsLater {
    world: World,
    rounds: AtomicUsize,
}

impl AnyStage for FailsLater {
    fn info(&self) -> &'static StageInfo {
        &ENRICH
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
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        let first = self.rounds.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if first {
                return Ok(RoundEnd::Done);
            }
            while self.world.with(|inside| inside.tried == 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.world.with(|inside| inside.failed = true);
            Err(Failure { record: 0, timer: None, kind: FailureKind::User, error: "on purpose".into() })
        })
    }
}

/// S6.1c: it is awaited, and counts; then the group is left.
#[test]
fn after_a_failure_the_commit_under_way_is_awaited_and_the_group_is_left() {
    let world = world(&[Commit::Held], 0);
    let stage: &'static FailsLater =
        Box::leak(Box::new(FailsLater { world: world.clone(), rounds: AtomicUsize::new(0) }));
    let started = start_with(&world, stage, &ENRICH, limits());
    world.wait("a failure beside a commit", |inside| inside.failed);
    assert_eq!(world.with(|inside| (inside.fine, inside.left_after)), (0, None));
    world.with(|inside| inside.released = true);
    let text = started.failure();
    assert!(text.contains("stage enrich failed") && text.contains("on purpose"), "{text}");
    assert_eq!(world.with(|inside| (inside.fine, inside.left_after)), (1, Some(1)));
}

/// S6.1c: a further failure meanwhile, of the membership in a group, is no reason not to await it.
#[test]
fn a_second_failure_does_not_cut_short_the_awaiting_of_a_commit() {
    let world = world(&[Commit::Held], 0);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (sender, notices) = channel();
    let context = Arc::new(testing::context(&ENRICHES, &world, limits()));
    let told = super::stage::Notices { stage: 0, sender: sender.clone() };
    let mut stages = vec![StageInstance::new(context, told, runtime.handle().clone(), Health::default())];
    let words = TopicPartition { topic: "words".into(), partition: 0 };
    assert!(stages[0].group(GroupEvent::Assigned(vec![words])).is_ok());
    world.wait("a commit under way", |inside| inside.tried > 0);
    // What the supervisor hears comes in order: this before the end of the task, which waits for its commit.
    let event = GroupEvent::Failed(error(ErrorKind::Fatal, "_FATAL"));
    assert!(sender.send(super::stage::Notice::Group { stage: 0, event }).is_ok());
    world.with(|inside| inside.released = true);
    let first = super::error::Failure::new("the first".to_owned());
    let ended = super::supervisor::end_all(Err(first), &mut stages, &notices, LONG);
    assert_eq!(ended.err().map(|failure| failure.message).as_deref(), Some("the first"));
    assert!(stages[0].is_stopped(), "the end of the task was not awaited");
    assert_eq!(world.with(|inside| inside.fine), 1);
}

/// S3.3g: behind the records there may be markers and aborted records. A position that lies behind those is committed
/// without any further record, after a while.
#[test]
fn an_idle_task_commits_a_position_that_moved_by_the_end_of_its_partition_alone() {
    let world = world(&[Commit::Fine], 0);
    let limits = Limits { idle_commit: Duration::from_millis(20), ..limits() };
    let started = start_with(&world, &ENRICHES, &ENRICH, limits);
    let words = TopicPartition { topic: "words".into(), partition: 0 };
    let committed = |inside: &Inside| inside.committed.get(&words).and_then(|committed| committed.offset);
    world.wait("a commit of all records", |inside| committed(inside) == Some(10));
    world.with(|inside| inside.end = Some(13));
    world.wait("a commit of the end", |inside| committed(inside) == Some(13));
    started.stopper.stop();
    started.end().unwrap();
}

/// S3.3g: at a clean stop it is committed at once, also where the commit of the records before it is under way.
#[test]
fn a_position_that_moved_during_a_commit_is_committed_at_a_clean_stop() {
    let world = world(&[Commit::Held, Commit::Fine], 0);
    // One batch has all records.
    let limits = Limits { max_poll_records: 10, commit_interval: LONG, ..limits() };
    let started = start_with(&world, &ENRICHES, &ENRICH, limits);
    world.wait("a commit of all records", |inside| inside.tried == 1);
    world.with(|inside| inside.end = Some(13));
    world.wait("a look at the end", |inside| inside.ended);
    started.stopper.stop();
    world.with(|inside| inside.released = true);
    started.end().unwrap();
    let words = TopicPartition { topic: "words".into(), partition: 0 };
    let committed = world.with(|inside| inside.committed[&words].offset);
    assert_eq!((committed, world.with(|inside| inside.fine)), (Some(13), 2));
}
