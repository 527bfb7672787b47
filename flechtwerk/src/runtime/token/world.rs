//! A cluster in memory for tokens: transactions that are all or nothing, committed offsets and a changelog, and answers
//! that get lost as a script says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use crate::format::ChangelogRecord;
use crate::glue::{Outputs, RawRecord};
use crate::port::{
    BrokerError, Committed, ErrorKind, Group, OffsetCommit, Producer, ProducerFactory, Queue, Reader, Taken,
    TopicNow, TopicPartition, Unanswered, Wake, Watermarks,
};

/// What becomes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It commits, and says so.
    Commits,
    /// It commits, and a request of it was never answered.
    CommitsSuspect,
    /// It commits, and nobody hears of it.
    CommitsUnheard,
    /// It does not, and nobody hears of it.
    DoesNotUnheard,
    /// The client dies before the end was sent.
    Dies,
    /// The group has moved on.
    Generation,
    /// The broker asks for an abort.
    Aborts,
}

#[derive(Default)]
pub(super) struct State {
    /// Messages that a read_committed reader sees.
    pub(super) messages: Vec<String>,
    pub(super) changelog: Vec<ChangelogRecord>,
    pub(super) committed: BTreeMap<TopicPartition, (i64, String)>,
    /// The last producer that fenced.
    epoch: u64,
    pub(super) fates: VecDeque<Fate>,
    /// Transactions that committed.
    pub(super) commits: usize,
    pub(super) fences: usize,
}

#[derive(Clone, Default)]
pub(super) struct World(Arc<Mutex<State>>);

fn error(kind: ErrorKind) -> BrokerError {
    BrokerError {
        kind,
        code: format!("{kind:?}"),
        text: "as the script says".into(),
        output: None,
        size: None,
    }
}

impl World {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

#[derive(Default)]
struct Pending {
    messages: Vec<String>,
    changes: Vec<ChangelogRecord>,
    offsets: Vec<OffsetCommit>,
}

struct FakeProducer {
    world: World,
    epoch: u64,
    pending: Pending,
    fate: Fate,
    unanswered: Unanswered,
    dead: bool,
}

impl ProducerFactory for World {
    fn create(&self, _: &str, _: &str) -> Result<Box<dyn Producer>, BrokerError> {
        Ok(Box::new(FakeProducer {
            world: self.clone(),
            epoch: 0,
            pending: Pending::default(),
            fate: Fate::Commits,
            unanswered: Unanswered::default(),
            dead: false,
        }))
    }
}

impl FakeProducer {
    fn check(&self) -> Result<(), BrokerError> {
        match () {
            () if self.dead => Err(error(ErrorKind::Fatal)),
            () if self.world.state().epoch != self.epoch => Err(error(ErrorKind::Fenced)),
            () => Ok(()),
        }
    }

    fn write(&mut self) {
        let Pending { messages, changes, offsets } = std::mem::take(&mut self.pending);
        let mut state = self.world.state();
        state.messages.extend(messages);
        state.changelog.extend(changes);
        state.committed.extend(offsets.into_iter().map(|one| (one.at, (one.offset, one.metadata))));
        state.commits += 1;
    }
}

impl Producer for FakeProducer {
    fn fence(&mut self, _: Duration) -> Result<(), BrokerError> {
        let mut state = self.world.state();
        state.epoch += 1;
        state.fences += 1;
        self.epoch = state.epoch;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), BrokerError> {
        self.check()?;
        assert_eq!(self.unanswered.lost_txn, 0, "a transaction on a suspect producer");
        self.pending = Pending::default();
        self.fate = self.world.state().fates.pop_front().unwrap_or(Fate::Commits);
        Ok(())
    }

    fn produce(&mut self, outputs: &Outputs, _: &[Arc<str>]) -> Result<(), BrokerError> {
        self.check()?;
        for record in &outputs.records {
            let value = record.value.as_ref().map(|range| outputs.slice(range)).unwrap_or_default();
            self.pending.messages.push(String::from_utf8_lossy(value).into_owned());
        }
        Ok(())
    }

    fn produce_changelog(
        &mut self,
        _: &Arc<str>,
        _: i32,
        changes: &[ChangelogRecord],
    ) -> Result<(), BrokerError> {
        self.check()?;
        self.pending.changes.extend_from_slice(changes);
        Ok(())
    }

    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        _: &dyn Group,
        _: Duration,
    ) -> Result<(), BrokerError> {
        self.check()?;
        self.pending.offsets = offsets.to_vec();
        match self.fate {
            Fate::Generation => Err(error(ErrorKind::Generation)),
            Fate::Aborts => Err(error(ErrorKind::Abortable)),
            _ => Ok(()),
        }
    }

    fn commit(&mut self, _: Duration) -> Result<(), BrokerError> {
        self.check()?;
        if self.fate == Fate::Dies {
            self.dead = true;
            return Err(error(ErrorKind::Fatal));
        }
        self.unanswered.sent_end_txn += 1;
        match self.fate {
            Fate::Commits => self.write(),
            Fate::CommitsSuspect => {
                self.write();
                self.unanswered.lost_txn += 1;
            }
            Fate::CommitsUnheard | Fate::DoesNotUnheard => {
                if self.fate == Fate::CommitsUnheard {
                    self.write();
                }
                self.dead = true;
                self.unanswered.open_txn += 1;
                return Err(error(ErrorKind::TimedOut));
            }
            Fate::Dies | Fate::Generation | Fate::Aborts => unreachable!("it did not come so far"),
        }
        Ok(())
    }

    fn abort(&mut self, _: Duration) -> Result<(), BrokerError> {
        self.pending = Pending::default();
        self.check()
    }

    fn delivery_error(&mut self) -> Option<BrokerError> {
        None
    }

    fn unanswered(&self) -> Unanswered {
        self.unanswered
    }

    fn serve(&mut self) {}
}

impl Group for World {
    fn committed(&self, partitions: &[TopicPartition], _: Duration) -> Result<Vec<Committed>, BrokerError> {
        let state = self.state();
        let committed = partitions.iter().map(|at| {
            let found = state.committed.get(at);
            Committed {
                at: at.clone(),
                offset: found.map(|(offset, _)| *offset),
                metadata: found.map(|(_, metadata)| metadata.clone()).unwrap_or_default(),
            }
        });
        Ok(committed.collect())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn subscriptions(&self, _: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError> {
        Ok(Vec::new())
    }

    fn leave(&self, _: bool, _: Duration) -> Result<(), BrokerError> {
        Ok(())
    }
}

impl Reader for World {
    fn open(
        &self,
        _: &TopicPartition,
        input: u16,
        offset: i64,
        _: Wake,
    ) -> Result<Box<dyn Queue>, BrokerError> {
        Ok(Box::new(FakeQueue { world: self.clone(), input, next: offset }))
    }

    fn watermarks(&self, _: &TopicPartition, _: Duration) -> Result<Watermarks, BrokerError> {
        let end = self.state().changelog.len() as i64;
        Ok(Watermarks { low: 0, stable: end, high: end })
    }

    fn topic(&self, _: &Arc<str>, _: Duration) -> Result<TopicNow, BrokerError> {
        Ok(TopicNow { id: "id".into(), partitions: 1 })
    }

    fn warm_up(&self, _: &[Arc<str>], _: Duration) {}
}

struct FakeQueue {
    world: World,
    input: u16,
    next: i64,
}

impl Queue for FakeQueue {
    fn take(&mut self, _: usize, _: usize, into: &mut Vec<RawRecord>) -> Result<Taken, BrokerError> {
        let state = self.world.state();
        let from = into.len();
        for change in &state.changelog[self.next as usize..] {
            into.push(RawRecord {
                input: self.input,
                partition: 0,
                offset: self.next,
                timestamp: 0,
                key: Some(change.key.clone().into()),
                value: change.value.clone().map(Into::into),
                headers: Default::default(),
            });
            self.next += 1;
        }
        let bytes = into[from..].iter().map(|record| record.value.as_ref().map_or(0, Bytes::len)).sum();
        Ok(Taken { records: into.len() - from, bytes, end: Some(self.next) })
    }

    #[cfg(feature = "broker-tests")]
    fn waiting(&self) -> usize {
        0
    }
}
