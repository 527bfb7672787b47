//! Membership in a consumer group: a consumer that never fetches, polled by a thread of its own.
//!
//! It answers an assignment with an empty one of its own and a revocation with none at all: a member with the
//! right metadata for transactions, which has nothing to fetch. Partitions are read by [`super::reader`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ClientSettings;
use super::client::{Role, connect};
use super::errors::broker_error;
use super::ffi::{Api, Entry, Event, Handle, List, NativeError, Queue, Subscription, code};
use super::logging::{Source, no_thread};
use crate::port::{BrokerError, Committed, ErrorKind, Group, GroupEvent, TopicPartition};

/// How long one poll waits; a command interrupts it.
const POLL: Duration = Duration::from_millis(200);
/// One poll while leaving.
const LEAVING: Duration = Duration::from_millis(5);
/// How long a member that was never in the group, and so sends no `LeaveGroup`, waits for one to be sent.
const NEVER_JOINED: Duration = Duration::from_millis(500);

type Events = Box<dyn Fn(GroupEvent) + Send + Sync>;

/// What the polling thread is to do.
#[derive(Clone, Copy, Debug)]
enum Command {
    Poll,
    /// End without a word to the group.
    Vanish,
    Leave {
        stay: bool,
        until: Instant,
    },
}

/// A membership.
pub(super) struct KafkaGroup {
    name: String,
    source: Source,
    handle: Arc<Handle>,
    queue: Arc<Queue>,
    command: Arc<Mutex<Command>>,
    /// What becomes of the thread: a message (or its end) says that it has ended.
    ended: Mutex<Receiver<Result<(), BrokerError>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl KafkaGroup {
    /// Subscribes and starts to poll.
    pub(super) fn join(
        settings: &ClientSettings,
        group: &str,
        topics: &[Arc<str>],
        instance_id: Option<&str>,
        events: Events,
    ) -> Result<Self, BrokerError> {
        let role = Role::Member { group, instance_id };
        let handle = connect(settings, role)?;
        let queue =
            Arc::new(Queue::consumer(&handle).map_err(|error| broker_error(error, ErrorKind::Fatal))?);
        handle.subscribe(topics).map_err(|error| broker_error(error, ErrorKind::Hopeless))?;
        let command = Arc::new(Mutex::new(Command::Poll));
        let (end, ended) = sync_channel(1);
        let source = Source::new(settings, role);
        let member = Member {
            handle: Arc::clone(&handle),
            queue: Arc::clone(&queue),
            source: source.clone(),
            is_static: instance_id.is_some(),
            events,
        };
        let thread = {
            let command = Arc::clone(&command);
            std::thread::Builder::new()
                .name("kafka-member".to_owned())
                .spawn(move || member.run(&command, &end))
                .map_err(|error| no_thread(&error))?
        };
        let (ended, thread) = (Mutex::new(ended), Mutex::new(Some(thread)));
        Ok(Self { name: group.to_owned(), source, handle, queue, command, ended, thread })
    }

    /// The member, whose metadata goes into a transaction.
    pub(super) fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    fn order(&self, command: Command) {
        *self.command.lock().unwrap_or_else(PoisonError::into_inner) = command;
        self.queue.interrupt();
    }
}

impl Group for KafkaGroup {
    fn committed(
        &self,
        partitions: &[TopicPartition],
        limit: Duration,
    ) -> Result<Vec<Committed>, BrokerError> {
        let entries = self
            .handle
            .committed(partitions, limit)
            .map_err(|error| self.source.explain(broker_error(error, ErrorKind::Retriable)))?;
        committed(entries)
    }

    fn subscriptions(&self, limit: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError> {
        let found = self
            .handle
            .subscriptions(&self.name, limit)
            .map_err(|error| self.source.explain(broker_error(error, ErrorKind::Retriable)))?;
        let member = |Subscription { client_id, host, mut topics }| {
            topics.sort();
            (format!("{client_id} at {host}"), topics)
        };
        Ok(found.into_iter().map(member).collect())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    /// A dynamic member leaves even with `stay`: its id is gone with it, so nothing could come back to what it
    /// holds, and others would wait for its session to expire.
    fn leave(&self, stay: bool, limit: Duration) -> Result<(), BrokerError> {
        let until = Instant::now() + limit;
        self.order(Command::Leave { stay, until });
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.recv_timeout(until.saturating_duration_since(Instant::now()) + LEAVING) {
            Ok(outcome) => outcome,
            // Left before.
            Err(RecvTimeoutError::Disconnected) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(too_late()),
        }
    }
}

impl Drop for KafkaGroup {
    /// Without [`Group::leave`] the member vanishes: its session has to expire.
    fn drop(&mut self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) else {
            return;
        };
        self.order(Command::Vanish);
        // A panic of the callback was reported by the panic hook.
        let _ = thread.join();
    }
}

fn too_late() -> BrokerError {
    BrokerError {
        kind: ErrorKind::TimedOut,
        code: "_TIMED_OUT".to_owned(),
        text: "the group was not left in time; its session will expire".to_owned(),
        output: None,
        size: None,
    }
}

/// From the native list to the port's.
pub(super) fn committed(entries: Vec<Entry>) -> Result<Vec<Committed>, BrokerError> {
    entries
        .into_iter()
        .map(|entry| {
            if entry.code != code::NO_ERROR {
                let text = format!("committed offset of {}", entry.at);
                return Err(broker_error(NativeError::new(entry.code, text), ErrorKind::Retriable));
            }
            let offset = (entry.offset >= 0).then_some(entry.offset);
            Ok(Committed { at: entry.at, offset, metadata: entry.metadata })
        })
        .collect()
}

/// The polling thread's side.
struct Member {
    handle: Arc<Handle>,
    queue: Arc<Queue>,
    source: Source,
    is_static: bool,
    events: Events,
}

impl Member {
    fn run(self, command: &Mutex<Command>, end: &SyncSender<Result<(), BrokerError>>) {
        loop {
            // The guard must not live through the poll.
            let now = *command.lock().unwrap_or_else(PoisonError::into_inner);
            match now {
                Command::Poll => self.poll(POLL),
                Command::Vanish => return,
                Command::Leave { stay, until } => {
                    let outcome = self.leave(stay, until);
                    // Nobody may wait any longer.
                    let _ = end.try_send(outcome);
                    return;
                }
            }
        }
    }

    fn poll(&self, limit: Duration) {
        let Some(event) = self.queue.poll(limit).and_then(|event| self.source.heard(event)) else { return };
        match event {
            Event::Assign(entries) => {
                self.answer(Some(&List::new()));
                self.tell(GroupEvent::Assigned(entries.into_iter().map(|entry| entry.at).collect()));
            }
            Event::Revoke => {
                crash_point!(BeforeRevoke);
                // The answer resets the mark.
                let lost = self.handle.assignment_lost();
                self.answer(None);
                self.tell(if lost { GroupEvent::Lost } else { GroupEvent::Revoked });
            }
            Event::Error(error) => self.failed(error),
            _ => {}
        }
    }

    /// Calls the callback. If that panics, it is told so; what then still fails can only end the thread.
    fn tell(&self, event: GroupEvent) {
        if catch_unwind(AssertUnwindSafe(|| (self.events)(event))).is_err() {
            let text = "the receiver of the group's events panicked".to_owned();
            let code = "_APPLICATION".to_owned();
            let error = BrokerError { kind: ErrorKind::Fatal, code, text, output: None, size: None };
            (self.events)(GroupEvent::Failed(error));
        }
    }

    /// Answers a rebalance; a failure ends the membership.
    fn answer(&self, list: Option<&List>) {
        if let Err(error) = self.handle.assign(list) {
            self.tell(GroupEvent::Failed(broker_error(error, ErrorKind::Fatal)));
        }
    }

    /// Passes on what ends the membership; the client deals with the rest itself.
    fn failed(&self, error: NativeError) {
        let error = match error.code {
            code::LOCAL_FATAL => self.handle.fatal_error().unwrap_or(error),
            // A topic may be gone for a moment of the metadata; whoever hears it has to look again.
            code::UNKNOWN_TOPIC_OR_PART | code::LOCAL_UNKNOWN_TOPIC => {
                return self.tell(GroupEvent::UnknownTopic);
            }
            _ => error,
        };
        let error = broker_error(error, ErrorKind::Retriable);
        if matches!(
            error.kind,
            ErrorKind::Fatal | ErrorKind::FencedInstance | ErrorKind::Fenced | ErrorKind::Hopeless
        ) {
            self.tell(GroupEvent::Failed(error));
        }
    }

    fn leave(&self, stay: bool, until: Instant) -> Result<(), BrokerError> {
        // Closing alone sends no `LeaveGroup` for a static member; unsubscribing does, once the revocation that
        // follows was answered. Nothing says when it has arrived but its answer.
        if !(stay && self.is_static) && self.handle.fatal_error().is_none() {
            let watch = self.handle.watch();
            let done = || watch.answered(Api::LeaveGroup) + watch.lost(Api::LeaveGroup);
            let (sent, before) = (watch.sent(Api::LeaveGroup), done());
            let begun = Instant::now();
            self.handle.unsubscribe().map_err(|error| broker_error(error, ErrorKind::Fatal))?;
            while done() == before && Instant::now() < until {
                self.poll(LEAVING);
                if begun.elapsed() > NEVER_JOINED && watch.sent(Api::LeaveGroup) == sent {
                    break;
                }
            }
        }
        if self.handle.close(&self.queue).is_ok() {
            while !self.handle.closed() {
                if Instant::now() >= until {
                    return Err(too_late());
                }
                self.poll(LEAVING);
            }
        }
        Ok(())
    }
}
