//! Drives one task: takes records, runs user code, closes batches, and carries out what the state machine asks
//! for. It runs as one async task; whatever blocks is done by the task's [`Worker`] thread.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::batch::{Building, ClosedBatch, Held};
use super::context::StageContext;
use super::control::{Control, end_worker, start_worker, thread_died};
use super::early::Early;
use super::error::{Failure, chain};
use super::host;
use super::messages;
use super::reading::Reading;
use super::rounds::{self, Finished, OfBatch, Running, Taken};
use super::schemas;
use super::stage::Notices;
use super::timing::Timing;
use super::worker::{Report, Work, Worker};
use crate::glue::{Env, Mark, Outputs, RawRecord, Times};
use crate::observe::names;
use crate::port::{Store, StoreError};
use crate::task::{BatchId, Command, Config, Event, FIRST_POSITIONS, Machine, Outcome, Overlay};

mod closing;
mod firing;
mod taking;
#[cfg(test)]
mod tests;
mod waking;

/// Looks at the queues now and then even if nothing woke the task.
const FALLBACK_POLL: Duration = Duration::from_millis(500);

/// Runs a task to its end.
pub(super) async fn run(
    context: Arc<StageContext>,
    partition: i32,
    mut controls: UnboundedReceiver<Control>,
    notices: Notices,
) {
    let (report_sender, mut reports) = unbounded_channel();
    let Some(worker) = start_worker(&context, partition, report_sender, &notices) else { return };
    let (machine, commands) = Machine::new(Config {
        inputs: context.names.inputs.len(),
        changelog: context.changelog.as_ref().map(|changelog| changelog.id.clone()),
        start_latest: context.info.start == crate::glue::Start::Latest,
    });
    let mut task = Task::new(context, partition, machine, worker, notices);
    task.carry_out(commands);
    while !task.machine.is_ended() {
        task.work();
        if task.machine.is_ended() {
            break;
        }
        let wake_at = task.wake_at();
        let may_take = task.may_take();
        let notify = task.notify.clone();
        tokio::select! {
            biased;
            control = controls.recv() => match control {
                Some(control) => task.control(control),
                None => task.control(Control::Halt),
            },
            report = reports.recv() => match report {
                Some(Report::Event(event)) => task.report(event),
                Some(Report::Sent { id, outcome, applied }) => task.sent(id, outcome, applied),
                Some(Report::Store(store)) => task.store = Some(store),
                Some(Report::Failed(failure)) => task.fail(failure),
                Some(Report::Gone) | None => {
                    task.fail(thread_died(&task.context, partition));
                    task.control(Control::Lost);
                }
            },
            finished = rounds::next(&mut task.running) => task.finished(finished),
            () = notify.notified(), if may_take => {}
            () = async { match wake_at {
                Some(at) => host::sleep_until(at).await,
                None => pending().await,
            }} => {}
        }
    }
    end_worker(&task.context, partition, &mut reports).await;
}

struct Task {
    context: Arc<StageContext>,
    partition: i32,
    machine: Machine,
    worker: Worker,
    early: Early,
    notices: Notices,
    notify: Arc<Notify>,
    store: Option<Arc<dyn Store>>,
    reading: Option<Reading>,
    running: Option<Running>,
    /// What runs is no round, but asks for what one needs; its records are held.
    asking: bool,
    held: Held,
    /// Most records that the next round takes; shrinks where rounds grow too large.
    round_limit: usize,
    overlay: Overlay,
    building: Building,
    /// Of a stage that takes timers, while it reads.
    timing: Option<Timing>,
    /// The tables that the first of the discarded batches saw: what is computed again from its place sees them as well.
    again: Option<Env>,
    /// Empty, with room: a batch's worth of memory is not asked for again and again.
    spare_records: Vec<RawRecord>,
    /// The same for outputs.
    spare_outputs: Outputs,
    /// Closed batches that are not in the store yet: one in flight, one ready.
    closed: VecDeque<Arc<ClosedBatch>>,
    next_id: BatchId,
    /// When the previous commit was started.
    last_commit: Option<Instant>,
    /// Since when positions have been ahead of the committed ones with an empty batch.
    moved: Option<Instant>,
    wait_until: Option<Instant>,
    end_until: Option<Instant>,
    stopping: bool,
}

impl Task {
    fn new(
        context: Arc<StageContext>,
        partition: i32,
        machine: Machine,
        worker: Worker,
        notices: Notices,
    ) -> Task {
        Task {
            round_limit: context.limits.max_poll_records,
            held: Held::new(context.info.order),
            context,
            partition,
            machine,
            worker,
            early: Early::default(),
            notices,
            notify: Arc::new(Notify::new()),
            store: None,
            reading: None,
            running: None,
            asking: false,
            overlay: Overlay::default(),
            building: Building::default(),
            timing: None,
            again: None,
            spare_records: Vec::new(),
            spare_outputs: Outputs::default(),
            closed: VecDeque::new(),
            next_id: FIRST_POSITIONS + 1,
            last_commit: None,
            moved: None,
            wait_until: None,
            end_until: None,
            stopping: false,
        }
    }

    // ---- events and commands

    fn step(&mut self, event: Event) {
        let commands = self.machine.step(event);
        self.carry_out(commands);
    }

    fn report(&mut self, event: Event) {
        if let Event::Applied { id } = event
            && let Some(index) = self.closed.iter().position(|batch| batch.id == id)
        {
            // From here on the store has it.
            if let Some(batch) = self.closed.remove(index) {
                names::records(self.context.info.name, self.partition).increment(batch.records as u64);
                self.count_fired(batch.fired);
                messages::invalid(&self.context, self.partition, &batch.outputs.invalid);
                if let Ok(batch) = Arc::try_unwrap(batch) {
                    self.spare_outputs = batch.outputs;
                    self.spare_outputs.truncate(Mark::default());
                }
            }
            self.overlay.applied();
        }
        // A live machine has other committed positions only after one of these: it became live, or a commit was applied.
        let moved = matches!(event, Event::Applied { .. } | Event::Ranges(_));
        self.step(event);
        if moved && self.machine.is_live() {
            let committed = self.machine.committed().into_iter().flatten().collect();
            self.context.positions.set(self.partition, committed);
        }
    }

    fn sent(&mut self, id: BatchId, outcome: Outcome, applied: Option<Event>) {
        self.early.give(applied);
        self.report(Event::Sent { id, outcome });
        if let Some(applied) = self.early.take() {
            self.report(applied);
        }
    }

    fn control(&mut self, control: Control) {
        if let (Some(limit), None) = (control.limit(&self.context), self.end_until) {
            self.end_until = Some(host::now() + limit);
        }
        self.stopping |= control == Control::Stop;
        if self.stopping && self.asking {
            // What it asks for is of no use any more, and may not be had for long.
            self.stop_round();
        }
        self.step(control.event());
    }

    fn fail(&mut self, failure: Failure) {
        self.notices.failed(failure);
        self.control(Control::Halt);
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            tracing::debug!(stage = self.context.info.name, partition = self.partition, ?command, "next");
            match command {
                Command::Wait => self.wait_until = Some(host::now() + self.context.limits.heartbeat_interval),
                Command::Fence => self.worker.fence(),
                Command::DropProducer => self.worker.drop_producer(),
                Command::ReadOffsets => self.worker.ask(Work::ReadOffsets),
                Command::ReadChangelogEnd => self.worker.ask(Work::ReadChangelogEnd),
                Command::OpenStore { wiped } => {
                    self.store = None;
                    self.worker.ask(Work::OpenStore { wiped });
                }
                Command::Restore { end, stamp } => self.worker.ask(Work::Restore { end, stamp }),
                Command::ReadRanges => self.worker.ask(Work::ReadRanges),
                Command::Run { positions } => self.begin(positions),
                Command::Discard { keep } => self.discard(keep),
                Command::Send { id, stamp, positions, paced } => {
                    self.last_commit = Some(host::now());
                    let batch = self.batch(id);
                    self.overlay.committing(batch.layer.clone());
                    self.worker.ask(Work::Send { batch, stamp, positions, paced });
                }
                Command::Apply { id, stamp } => {
                    if !self.early.ask() {
                        let batch = self.batch(id);
                        self.worker.ask(Work::Apply { batch, stamp });
                    }
                }
                Command::Warn(warning) => messages::warn(&self.context, self.partition, &warning),
                Command::Fail(why) => {
                    self.notices.failed(messages::failure(&self.context, self.partition, &why));
                    self.finish(false);
                }
                Command::End { clean } => self.finish(clean),
            }
        }
    }

    /// The closed batch of this id.
    fn batch(&self, id: BatchId) -> Arc<ClosedBatch> {
        let batch = self.closed.iter().find(|batch| batch.id == id).cloned();
        // The commit of resolved start positions has nothing in it.
        debug_assert!(batch.is_some() || id == FIRST_POSITIONS);
        batch.unwrap_or_else(|| Arc::new(ClosedBatch { id, ..ClosedBatch::default() }))
    }

    fn begin(&mut self, positions: Vec<i64>) {
        match Reading::open(&self.context, self.partition, positions, &self.notify) {
            Ok(reading) => self.reading = Some(reading),
            Err(failure) => return self.fail(failure),
        }
        if let Err(error) = self.begin_timing() {
            // It is restored anew, and until then nothing runs.
            return self.store_failed(&error);
        }
        self.notices.running(self.partition, true);
        tracing::info!(stage = self.context.info.name, partition = self.partition, "task is running");
    }

    fn store_failed(&mut self, error: &StoreError) {
        self.step(Event::StoreFailed { error: chain(error) });
    }

    fn discard(&mut self, keep: Option<BatchId>) {
        self.stop_round();
        self.reading = None;
        self.held.clear();
        self.timing = None;
        self.overlay.discard();
        let building = std::mem::take(&mut self.building);
        let mut discarded =
            self.closed.iter().filter(|batch| Some(batch.id) != keep).filter_map(|batch| batch.env.clone());
        self.again = discarded.next().or(building.env).or(self.again.take());
        self.closed.retain(|batch| Some(batch.id) == keep);
        self.moved = None;
        self.context.positions.remove(self.partition);
        self.notices.running(self.partition, false);
    }

    fn stop_round(&mut self) {
        self.asking = false;
        if self.running.take().is_some() {
            self.context.watchdog.stop(self.partition);
        }
    }

    fn finish(&mut self, clean: bool) {
        self.discard(None);
        self.store = None;
        self.worker.cancel.cancel();
        self.worker.ask(Work::Quit { flush: clean });
    }

    // ---- batches

    /// Everything that can be done now without waiting.
    fn work(&mut self) {
        let now = host::now();
        if self.wait_until.take_if(|until| *until <= now).is_some() {
            self.step(Event::Waited);
        }
        if self.end_until.take_if(|until| *until <= now).is_some() {
            self.step(Event::Lost);
        }
        loop {
            // Behind a round of records, in the same batch.
            if self.may_take() && self.fire_by_event_time() {
                continue;
            }
            if self.close_if_due() {
                // What did not fit into it fires before anything else is taken (S12.2c).
                continue;
            }
            if !self.may_take() {
                break;
            }
            if self.fire_by_wall_clock() {
                continue;
            }
            match self.take() {
                Ok(records) if records.is_empty() => {
                    self.notice_ends();
                    if !self.records_had_their_turn() {
                        break;
                    }
                }
                Ok(records) => self.start(Taken { records, keys: Vec::new(), due: None }),
                Err(failure) => return self.fail(failure),
            }
        }
        self.drain_if_stopping();
    }

    fn start(&mut self, taken: Taken) {
        if let Some(asking) = schemas::first(&self.context, &taken.records) {
            self.held.put(taken.records);
            self.running = Some(asking);
            self.asking = true;
            return;
        }
        let times = self.timing.as_ref().map_or(Times::default(), |timing| timing.of(&taken.records));
        let input_bytes: usize = taken.records.iter().map(RawRecord::size).sum();
        let budget = self.context.limits.max_batch_bytes.saturating_sub(self.bytes() + input_bytes);
        let outputs = std::mem::take(&mut self.building.outputs);
        let store = self.store.as_deref();
        let (again, shared) = (&mut self.again, &self.context.shared);
        let env =
            self.building.env.get_or_insert_with(|| again.take().unwrap_or_else(|| shared.now())).clone();
        let spent = self.building.spent;
        let batch = OfBatch { env, outputs, budget, times, spent };
        match rounds::start(&self.context, self.partition, taken, &self.overlay, store, batch) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                // What is watched is user code, and none runs.
                self.context.watchdog.stop(self.partition);
                match error {
                    rounds::NotStarted::Store(error) => self.step(Event::StoreFailed { error }),
                    rounds::NotStarted::Failed(failure) => self.fail(failure),
                }
            }
        }
    }

    fn finished(&mut self, finished: Finished) {
        self.running = None;
        self.asking = false;
        let spent = self.context.watchdog.stop(self.partition);
        match finished {
            Finished::Asked => {}
            Finished::Done { mut grouped, outputs } => {
                self.round_limit = (self.round_limit * 2).min(self.context.limits.max_poll_records);
                self.building.outputs = outputs;
                self.building.records += grouped.round.records.len();
                if !grouped.round.records.is_empty() {
                    self.records_had_their_turn();
                }
                self.timers_changed(&mut grouped);
                if !self.building.is_empty() {
                    self.building.spent = spent;
                }
                let round = &mut grouped.round;
                self.building.input_bytes += round.records.iter().map(RawRecord::size).sum::<usize>();
                for bucket in round.buckets.drain(..) {
                    let before = rounds::before(bucket.state, self.store.as_deref(), &bucket.changelog_key);
                    self.overlay.change(bucket.changelog_key, before, bucket.change);
                }
                if flawed!(SkippedNotCommitted) {
                    let skipped = &self.building.outputs.invalid;
                    round.records.retain(|record| skipped.iter().all(|skipped| skipped.at != record.at()));
                }
                if let Some(reading) = &mut self.reading {
                    reading.processed(&round.records);
                    reading.reach_ends(&self.held);
                }
                self.spare_records = grouped.round.records;
                self.spare_records.clear();
            }
            Finished::OverBudget { grouped, outputs } => {
                // Nothing of the round counts: the batch goes out without it, or the next round takes less.
                self.building.outputs = outputs;
                if let Some(timing) = &mut self.timing {
                    timing.turns.undone();
                }
                if self.building.is_empty() {
                    let size = grouped.round.records.len().max(grouped.round.buckets.len());
                    self.round_limit = (size / 2).max(1);
                    self.held.put(grouped.round.records);
                } else {
                    self.held.put(grouped.round.records);
                    self.close();
                }
            }
            Finished::Failed(failure) => self.fail(failure),
        }
    }
}
