//! What the state machine is told and what it asks for. Drivers carry commands out and answer with events.

use super::Stamp;

/// Names a batch of one task; grows by one with each.
pub type BatchId = u64;

/// What the group has committed for one input of the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CommittedInput {
    /// `None` where nothing is committed.
    pub offset: Option<i64>,
    /// The metadata beside it, a stamp where one of us wrote it.
    pub metadata: String,
}

/// First and next offset of an input partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputRange {
    pub low: i64,
    /// Where a read_committed reader ends.
    pub stable: i64,
    pub high: i64,
}

/// Why a transaction was aborted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Abort {
    /// The group moved on: no failure of the batch (S5.2).
    Generation,
    /// Anything else that an abort remedies.
    Other(String),
}

/// How sending a batch ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Committed. With `suspect`, a request was sent and never answered: the producer must not be used again.
    Committed { suspect: bool },
    /// Not committed, and aborted: the producer may go on unless it is `suspect`.
    Aborted { why: Abort, suspect: bool },
    /// The producer is dead and EndTxn was never sent: not committed.
    Dead { fenced: bool, error: String },
    /// EndTxn may have reached the broker: the stamps must tell.
    Unknown { fenced: bool, error: String },
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A new assignment, with or without this task.
    Assigned { mine: bool },
    /// A rebalance has begun; the task stays ours until the next assignment.
    Revoked,
    /// The session expired: gone at once (S5.1).
    Lost,
    /// Stop, committing what was computed.
    Stop,
    /// Stop, starting no further commit (S6.1).
    Halt,
    /// One heartbeat interval has passed since [`Command::Wait`].
    Waited,
    /// The task's producer is fenced in, under this random name.
    Fenced { owner: String },
    /// The fence did not succeed because another one came after it, or the client died.
    FenceLost { error: String },
    /// The committed offsets, one for each input.
    Offsets(Vec<CommittedInput>),
    /// The changelog partition's end, with nothing open before it.
    ChangelogEnd(i64),
    /// The store is open; its stamp, if it is whole.
    StoreOpened { stamp: Option<String> },
    /// The store failed to open, read or write.
    StoreFailed { error: String },
    /// The store is restored up to the end.
    Restored { empty: bool },
    /// The ranges of the inputs.
    Ranges(Vec<InputRange>),
    /// The driver has closed a batch: its positions behind it, one for each input.
    Closed { id: BatchId, positions: Vec<i64> },
    /// A batch was sent.
    Sent { id: BatchId, outcome: Outcome },
    /// A committed batch is in the store.
    Applied { id: BatchId },
    /// The driver has nothing left to close after [`Event::Stop`].
    Drained,
}

/// Something an operator should know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// These inputs are new to the stage and start where `start` says.
    NewInputs(Vec<usize>),
    /// The store is wiped and restored.
    StoreRebuilt { error: String },
    /// Offsets were committed by a stage without state, which now has one.
    StateAdded,
    /// The task starts anew.
    Anew { why: String },
}

/// What stops the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// A committed offset lies outside its partition.
    OutOfRange { input: usize, offset: i64, range: InputRange },
    /// State without any committed offset.
    StateWithoutOffsets,
    /// The committed stamp names another changelog than the one there is.
    OtherChangelog { named: String },
    /// `reset` was begun and not finished.
    Resetting,
    /// The store failed twice.
    Store { error: String },
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Answer with `Waited` after one heartbeat interval.
    Wait,
    /// Drop the producer, if there is one, and fence with a fresh one.
    Fence,
    /// Drop the producer.
    DropProducer,
    /// Read the committed offsets and their metadata, stable ones only.
    ReadOffsets,
    /// Read the changelog partition's end; wait while an open transaction holds it back.
    ReadChangelogEnd,
    /// Open the store; `wiped`: delete first what is there.
    OpenStore { wiped: bool },
    /// Wipe the store, restore it up to `end` and stamp it, where the committed offsets name one transaction.
    Restore { end: i64, stamp: Option<String> },
    /// Read the ranges of the inputs.
    ReadRanges,
    /// Read the inputs from these positions and compute.
    Run { positions: Vec<i64> },
    /// Stop reading and forget everything that was computed, but for the batch that is still being committed.
    Discard { keep: Option<BatchId> },
    /// Send this batch in one transaction. `paced`: it was just refused because the group moved on; let a short
    /// while pass first.
    Send { id: BatchId, stamp: Stamp, positions: Vec<i64>, paced: bool },
    /// Write this committed batch to the store.
    Apply { id: BatchId, stamp: Stamp },
    /// Tell the operator.
    Warn(Warning),
    /// Stop the process.
    Fail(Stop),
    /// The task is over. `clean`: flush the store.
    End { clean: bool },
}
