//! Drives one token of an extractor: polls its configs, and carries out what the state machine asks for. It lives as a
//! task does, with the same machine and the same worker thread (S10.3); what differs is that a batch is one page.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::batch::ClosedBatch;
use super::configs::Change;
use super::context::StageContext;
use super::control::{Control, end_worker, start_worker, thread_died};
use super::early::Early;
use super::error::Failure;
use super::messages;
use super::polls::{Finished, Polls};
use super::stage::Notices;
use super::worker::{Report, Work, Worker};
use crate::observe::names;
use crate::port::Store;
use crate::task::{BatchId, Command, Config as MachineConfig, Event, FIRST_POSITIONS, Machine, Outcome};

/// Looks for what is due now and then even if nothing woke the token.
const FALLBACK: Duration = Duration::from_secs(5);

/// Runs a token to its end.
pub(super) async fn run(
    context: Arc<StageContext>,
    number: i32,
    mut controls: UnboundedReceiver<Control>,
    notices: Notices,
) {
    let (report_sender, mut reports) = unbounded_channel();
    let Some(worker) = start_worker(&context, number, report_sender, &notices) else { return };
    names::token_begins(context.info.name, number);
    let leases = context.names.stamped().count();
    let (machine, commands) = Machine::new(MachineConfig {
        inputs: leases,
        changelog: context.changelog.as_ref().map(|changelog| changelog.id.clone()),
        start_latest: false,
    });
    let mut token = Token {
        context,
        number,
        positions: vec![0; leases],
        machine,
        worker,
        early: Early::default(),
        notices,
        store: None,
        changes: None,
        polls: None,
        pages: VecDeque::new(),
        closed: VecDeque::new(),
        next_id: FIRST_POSITIONS + 1,
        wait_until: None,
        end_until: None,
        stopping: false,
    };
    token.carry_out(commands);
    while !token.machine.is_ended() {
        token.work();
        if token.machine.is_ended() {
            break;
        }
        let wake_at = token.wake_at();
        tokio::select! {
            biased;
            control = controls.recv() => token.control(control.unwrap_or(Control::Halt)),
            report = reports.recv() => match report {
                Some(Report::Event(event)) => token.report(event),
                Some(Report::Sent { id, outcome, applied }) => token.sent(id, outcome, applied),
                Some(Report::Store(store)) => token.store = Some(store),
                Some(Report::Failed(failure)) => token.fail(failure),
                Some(Report::Gone) | None => {
                    token.fail(thread_died(&token.context, number));
                    token.control(Control::Lost);
                }
            },
            change = next_change(&mut token.changes) => token.change(change),
            finished = next_finished(&mut token.polls) => token.finished(finished),
            () = async { match wake_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }} => {}
        }
    }
    end_worker(&token.context, number, &mut reports).await;
}

/// What happens to the token's configs; never, while it does not poll.
async fn next_change(changes: &mut Option<UnboundedReceiver<Change>>) -> Change {
    let change = match changes {
        Some(changes) => changes.recv().await,
        None => None,
    };
    match change {
        Some(change) => change,
        None => pending().await,
    }
}

/// The end of a call; never, while the token does not poll.
async fn next_finished(polls: &mut Option<Polls>) -> Finished {
    match polls {
        Some(polls) => polls.next().await,
        None => pending().await,
    }
}

/// A page that is complete: sent as it is, as often as need be.
struct Page {
    finished: super::polls::Page,
    batch: ClosedBatch,
}

struct Token {
    context: Arc<StageContext>,
    number: i32,
    /// Offset zero of each lease: they are no positions.
    positions: Vec<i64>,
    machine: Machine,
    worker: Worker,
    early: Early,
    notices: Notices,
    store: Option<Arc<dyn Store>>,
    changes: Option<UnboundedReceiver<Change>>,
    /// Its configs and the calls under way; while it is live.
    polls: Option<Polls>,
    /// Complete pages that wait for their turn.
    pages: VecDeque<Page>,
    /// Pages that were handed over and are not in the store yet: one in flight, one ready.
    closed: VecDeque<(super::polls::Page, Arc<ClosedBatch>)>,
    next_id: BatchId,
    wait_until: Option<Instant>,
    end_until: Option<Instant>,
    stopping: bool,
}

impl Token {
    fn stage(&self) -> &'static str {
        self.context.info.name
    }

    // ---- events and commands

    fn step(&mut self, event: Event) {
        let commands = self.machine.step(event);
        self.carry_out(commands);
    }

    fn report(&mut self, event: Event) {
        if let Event::Applied { id } = event
            && let Some(index) = self.closed.iter().position(|(_, batch)| batch.id == id)
            && let Some((page, _)) = self.closed.remove(index)
        {
            // From here on the store has its cursor.
            names::pages(self.stage(), self.number).increment(1);
            if let Some(polls) = &mut self.polls {
                polls.done(&page);
            }
        }
        self.step(event);
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
            self.end_until = Some(Instant::now() + limit);
        }
        if control == Control::Stop {
            self.stopping = true;
            // What is complete still counts, and nothing else is waited for.
            self.cancel_calls();
        }
        self.step(control.event());
    }

    fn fail(&mut self, failure: Failure) {
        self.notices.failed(failure);
        self.control(Control::Halt);
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            tracing::debug!(stage = self.stage(), token = self.number, ?command, "next");
            match command {
                Command::Wait => {
                    self.wait_until = Some(Instant::now() + self.context.limits.heartbeat_interval)
                }
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
                Command::Run { .. } => self.begin(),
                Command::Discard { keep } => self.discard(keep),
                Command::Send { id, stamp, positions, paced } => {
                    let batch = self.batch(id);
                    self.worker.ask(Work::Send { batch, stamp, positions, paced });
                }
                Command::Apply { id, stamp } => {
                    if !self.early.ask() {
                        let batch = self.batch(id);
                        self.worker.ask(Work::Apply { batch, stamp });
                    }
                }
                Command::Warn(warning) => messages::warn(&self.context, self.number, &warning),
                Command::Fail(why) => {
                    self.notices.failed(messages::failure(&self.context, self.number, &why));
                    self.finish(false);
                }
                Command::End { clean } => self.finish(clean),
            }
        }
    }

    /// The handed over page of this id.
    fn batch(&self, id: BatchId) -> Arc<ClosedBatch> {
        let batch = self.closed.iter().map(|(_, batch)| batch).find(|batch| batch.id == id).cloned();
        // The commit of the leases has nothing in it.
        debug_assert!(batch.is_some() || id == FIRST_POSITIONS);
        batch.unwrap_or_else(|| Arc::new(ClosedBatch { id, ..ClosedBatch::default() }))
    }

    fn begin(&mut self) {
        let Some(configs) = &self.context.configs else { return };
        let (mine, changes) = configs.of(self.number);
        self.changes = Some(changes);
        if !self.stopping {
            self.polls = Some(Polls::begin(self.context.clone(), self.number, mine));
        }
        self.notices.running(self.number, true);
        tracing::info!(stage = self.stage(), token = self.number, "token is running");
    }

    fn cancel_calls(&mut self) {
        self.polls = None;
        self.changes = None;
        names::token_rests(self.stage(), self.number);
    }

    fn discard(&mut self, keep: Option<BatchId>) {
        self.cancel_calls();
        self.pages.clear();
        self.closed.retain(|(_, batch)| Some(batch.id) == keep);
        self.notices.running(self.number, false);
    }

    fn finish(&mut self, clean: bool) {
        self.discard(None);
        self.store = None;
        self.worker.cancel.cancel();
        self.worker.ask(Work::Quit { flush: clean });
    }

    // ---- time

    /// When to look again even if nothing happens.
    fn wake_at(&self) -> Option<Instant> {
        let due = self.polls.as_ref().filter(|_| self.has_room()).and_then(Polls::next_at);
        let fallback = self.polls.is_some().then(|| Instant::now() + FALLBACK);
        [self.wait_until, self.end_until, due, fallback].into_iter().flatten().min()
    }

    // ---- pages

    /// Everything that can be done now without waiting.
    fn work(&mut self) {
        let now = Instant::now();
        if self.wait_until.take_if(|until| *until <= now).is_some() {
            self.step(Event::Waited);
        }
        if self.end_until.take_if(|until| *until <= now).is_some() {
            self.step(Event::Lost);
        }
        self.hand_over();
        let room = self.has_room();
        if let Some(polls) = &mut self.polls
            && let Err(error) = polls.start_due(self.store.as_deref(), now, room)
        {
            self.step(Event::StoreFailed { error });
        }
        if self.stopping && self.pages.is_empty() && !self.machine.is_ended() {
            self.step(Event::Drained);
        }
    }

    /// Pages that wait for their commit take memory.
    fn has_room(&self) -> bool {
        let waiting: usize = self.pages.iter().map(|page| page.batch.outputs.bytes.len()).sum();
        waiting < self.context.limits.max_batch_bytes
    }

    /// Gives the next page to the machine, as soon as it takes one.
    fn hand_over(&mut self) {
        while self.machine.may_close()
            && let Some(Page { finished, mut batch }) = self.pages.pop_front()
        {
            let id = self.next_id;
            self.next_id += 1;
            batch.id = id;
            self.closed.push_back((finished, Arc::new(batch)));
            self.step(Event::Closed { id, positions: self.positions.clone() });
        }
    }

    fn change(&mut self, change: Change) {
        let mut all = vec![change];
        if let Some(changes) = &mut self.changes {
            all.extend(std::iter::from_fn(|| changes.try_recv().ok()));
        }
        if let Some(polls) = &mut self.polls {
            polls.change(all);
        }
    }

    fn finished(&mut self, finished: Finished) {
        match finished {
            Finished::Nothing => {}
            Finished::Failed(failure) => self.fail(failure),
            Finished::Page(finished, batch) => self.pages.push_back(Page { finished, batch: *batch }),
        }
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests;
