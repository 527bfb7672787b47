//! A token against a cluster in memory, whose answers get lost.

#[path = "world.rs"]
mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::sync::mpsc::unbounded_channel;

use self::world::{Fate, World};
use super::super::configs::Configs;
use super::super::context::{Cancel, Limits};
use super::super::schemas::Asking;
use super::super::stage::Notice;
use super::super::testing::{context, limits};
use super::*;
use crate::compact::CompactBytes;
use crate::format::{put_version, take_version};
use crate::glue::{
    AnyStage, BoxFuture, Cause, Config, ConfigChange, Env, ExtractorInfo, Failure as RoundFailure, Order,
    OutputRecord, Outputs, Part, Policy, RawRecord, Round, RoundEnd, Settled, StageInfo, Start, StateChange,
    StateInfo, TopicInfo, Trouble,
};
use crate::next::Next;

static ITEMS: TopicInfo = TopicInfo {
    name: "items",
    id: "Items",
    key_codec: "Utf8",
    value_codec: "Utf8",
    key_nullable: false,
    schemas: [None; 2],
};

static INFO: StageInfo = StageInfo {
    name: "pulse",
    id: "pulse",
    application_id: None,
    inputs: &[],
    parts: &[Part::State(StateInfo { type_name: "u64", version: 1, oldest: 1 }), Part::Output(&ITEMS)],
    start: Start::Earliest,
    order: Order::Inputs,
    shared: &[],
    policy: Policy::CRASH,
    custom_key: false,
    headers: true,
    extractor: Some(ExtractorInfo { poll_interval: Duration::from_millis(1), suspends: false }),
    stub: false,
};

/// Sends the numbers up to `items`, one a page.
struct Pulse {
    items: usize,
    /// Calls that made a page.
    made: AtomicUsize,
}

impl AnyStage for Pulse {
    fn info(&self) -> &'static StageInfo {
        &INFO
    }

    fn key(&self, _: &RawRecord) -> Result<Bytes, Trouble> {
        Ok(Bytes::new())
    }

    fn round<'a>(
        &'a self,
        _: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, RoundFailure>> {
        unreachable!("an extractor has no rounds")
    }

    fn config(&self, record: &RawRecord) -> Result<(ConfigChange, Option<Settled>), Trouble> {
        let config = Config { record: record.clone(), key: Bytes::new(), suspended: false };
        Ok((ConfigChange::Set(config), None))
    }

    fn page<'a>(
        &'a self,
        page: &'a mut crate::glue::Page,
        _: &'a Env,
    ) -> BoxFuture<'a, Result<Next, Trouble>> {
        Box::pin(async {
            let at = page.state.as_ref().map_or(0, cursor);
            if at == self.items {
                return Ok(Next::Idle);
            }
            self.made.fetch_add(1, Ordering::SeqCst);
            page.outputs.bytes = at.to_string().into_bytes();
            page.outputs.records.push(OutputRecord {
                topic: 0,
                key: None,
                value: Some(0..page.outputs.bytes.len()),
                timestamp: -1,
                partition: None,
                headers: Default::default(),
                cause: Cause { input: 0, partition: 0, offset: 0 },
            });
            let mut state = Vec::new();
            put_version(1, &mut state);
            state.extend_from_slice((at + 1).to_string().as_bytes());
            page.change = StateChange::Set(state.into());
            Ok(Next::Again)
        })
    }
}

fn cursor(state: &CompactBytes) -> usize {
    let (_, cursor) = take_version(state).unwrap();
    std::str::from_utf8(cursor).unwrap().parse().unwrap()
}

/// Runs a token until the last item is there; gives the number of calls that made a page.
fn run_to_end(world: &World, items: usize) -> usize {
    run_within(world, items, limits().broker_timeout)
}

fn run_within(world: &World, items: usize, broker_timeout: Duration) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, notices) = channel();
    let notices_of = Notices { stage: 0, sender };
    // What a program's stages are, they are for ever.
    let stage: &'static Pulse = Box::leak(Box::new(Pulse { items, made: AtomicUsize::new(0) }));
    let limits = Limits {
        commit_interval: Duration::from_millis(1),
        revoke_timeout: Duration::from_millis(100),
        broker_timeout,
        ..limits()
    };
    let mut context = context(stage, world, limits);
    let cancel = Cancel::default();
    let asking = Asking { schemas: None, who: "", limit: Duration::ZERO, cancel: &cancel };
    let configs = Configs::load(stage, &context.names, 1, &context.inputs, &asking, notices_of.clone());
    context.configs = configs.ok().flatten();
    let context = Arc::new(context);
    let (controls, receiver) = unbounded_channel();
    runtime.block_on(async {
        let token = tokio::spawn(run(context, 0, receiver, notices_of));
        let until = Instant::now() + Duration::from_secs(60);
        while world.state().messages.len() < items {
            if let Some(Notice::Failed(failure)) =
                notices.try_iter().find(|notice| matches!(notice, Notice::Failed(_)))
            {
                panic!("{}", failure.message);
            }
            assert!(Instant::now() < until, "not all items: {:?}", world.state().messages);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        controls.send(Control::Stop).unwrap();
        token.await.unwrap();
    });
    stage.made.load(Ordering::SeqCst)
}

/// What every history must leave behind.
#[track_caller]
fn assert_once(world: &World, items: usize) {
    let state = world.state();
    let expected: Vec<String> = (0..items).map(|item| item.to_string()).collect();
    assert_eq!(state.messages, expected);
    let cursors: Vec<usize> =
        state.changelog.iter().map(|change| cursor(change.value.as_ref().unwrap())).collect();
    assert_eq!(cursors, (1..=items).collect::<Vec<_>>());
    // The lease, and a transaction for each page.
    assert_eq!(state.commits, items + 1);
    assert!(state.committed.values().all(|(offset, _)| *offset == 0));
}

#[test]
fn a_page_whose_commit_is_unknown_counts_once() {
    for fate in
        [Fate::CommitsUnheard, Fate::DoesNotUnheard, Fate::Dies, Fate::CommitsSuspect, Fate::Generation]
    {
        let world = World::default();
        // The first commits the lease.
        world.state().fates.extend([Fate::Commits, Fate::Commits, fate]);
        run_to_end(&world, 5);
        assert_once(&world, 5);
        assert_eq!(world.state().fences, if fate == Fate::Generation { 1 } else { 2 }, "{fate:?}");
    }
}

#[test]
fn a_page_that_was_computed_is_not_asked_for_again() {
    let world = World::default();
    world.state().fates.extend([Fate::Commits, Fate::DoesNotUnheard, Fate::Dies, Fate::Generation]);
    assert_eq!(run_to_end(&world, 1), 1);
    assert_once(&world, 1);
    let world = World::default();
    world.state().fates.extend([Fate::Commits, Fate::Aborts]);
    // Here the token starts anew, and so the source is asked again.
    assert_eq!(run_to_end(&world, 1), 2);
    assert_once(&world, 1);
}

#[test]
fn a_token_that_comes_back_goes_on_at_the_cursor() {
    let world = World::default();
    run_to_end(&world, 3);
    run_to_end(&world, 7);
    let state = world.state();
    assert_eq!(state.messages, ["0", "1", "2", "3", "4", "5", "6"]);
    assert_eq!(state.fences, 2);
}

/// S6.2g
#[test]
#[should_panic(
    expected = "could not send a transaction of partition 0 within --broker-timeout (20ms): as the script says"
)]
fn pages_that_keep_aborting_stop_the_process() {
    let world = World::default();
    world.state().fates.push_back(Fate::Commits);
    // More than there is time for.
    world.state().fates.extend(std::iter::repeat_n(Fate::Aborts, 100_000));
    run_within(&world, 1, Duration::from_millis(20));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn whatever_gets_lost_every_page_counts_once(fates in proptest::collection::vec(0..7u8, 0..25)) {
        let world = World::default();
        world.state().fates.extend(fates.into_iter().map(|fate| match fate {
            0 => Fate::Commits,
            1 => Fate::CommitsSuspect,
            2 => Fate::CommitsUnheard,
            3 => Fate::DoesNotUnheard,
            4 => Fate::Dies,
            5 => Fate::Generation,
            _ => Fate::Aborts,
        }));
        run_to_end(&world, 10);
        assert_once(&world, 10);
    }
}
