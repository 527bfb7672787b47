//! Requests, answers, and the connections between clients and nodes: in order on each, in any order across them, and broken as
//! the plan says.

use std::rc::Rc;

use bytes::Bytes;
use flechtwerk::simulation::Unanswered;
use flechtwerk_dev_broker::coordinator::group::{
    FetchedOffset, JoinRequest, JoinResponse, LeavingMember, OffsetCommit, SyncRequest, SyncResponse,
};
use flechtwerk_dev_broker::coordinator::{Producer, TopicPartition};

use crate::plan::Micros;

/// Nodes of the cluster.
pub const NODES: usize = 3;

/// The node that coordinates the group; the others coordinate transactions.
pub const GROUP_NODE: usize = 2;

/// The kinds of requests, as faults name them.
pub const KINDS: [&str; 12] = [
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "Produce",
    "EndTxn",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "OffsetFetch",
    "ListOffsets",
    "Fetch",
];

/// A request.
#[derive(Clone)]
pub(crate) enum Request {
    Init {
        id: Rc<str>,
        timeout: i32,
        current: Producer,
    },
    AddPartitions {
        id: Rc<str>,
        producer: Producer,
        partitions: Vec<TopicPartition>,
    },
    AddOffsets {
        id: Rc<str>,
        producer: Producer,
        group: Rc<str>,
    },
    TxnCommit {
        id: Rc<str>,
        producer: Producer,
        group: Rc<str>,
        member: (i32, String, Option<String>),
        offsets: Vec<OffsetCommit>,
    },
    /// Outside of any transaction.
    Commit {
        group: Rc<str>,
        offsets: Vec<OffsetCommit>,
    },
    Produce {
        id: Rc<str>,
        producer: Producer,
        log: usize,
        batch: Bytes,
    },
    EndTxn {
        id: Rc<str>,
        producer: Producer,
        commit: bool,
    },
    Join(Box<JoinRequest>),
    Sync(Box<SyncRequest>),
    Heartbeat {
        group: Rc<str>,
        generation: i32,
        member: String,
        fixed: Option<String>,
    },
    Leave {
        group: Rc<str>,
        member: LeavingMember,
    },
    OffsetFetch {
        group: Rc<str>,
        partitions: Vec<TopicPartition>,
        stable: bool,
    },
    ListOffsets {
        log: usize,
    },
    Fetch {
        queue: usize,
    },
}

impl Request {
    /// An index into [`KINDS`].
    pub(crate) fn kind(&self) -> usize {
        match self {
            Request::Init { .. } => 0,
            Request::AddPartitions { .. } => 1,
            Request::AddOffsets { .. } => 2,
            Request::TxnCommit { .. } | Request::Commit { .. } => 3,
            Request::Produce { .. } => 4,
            Request::EndTxn { .. } => 5,
            Request::Join(_) => 6,
            Request::Sync(_) => 7,
            Request::Heartbeat { .. } | Request::Leave { .. } => 8,
            Request::OffsetFetch { .. } => 9,
            Request::ListOffsets { .. } => 10,
            Request::Fetch { .. } => 11,
        }
    }

    /// The node that answers it.
    pub(crate) fn node(&self) -> usize {
        match self {
            Request::Init { id, .. }
            | Request::AddPartitions { id, .. }
            | Request::AddOffsets { id, .. }
            | Request::EndTxn { id, .. } => {
                usize::from(id.as_bytes().last().copied().unwrap_or(0)) % (NODES - 1)
            }
            Request::Produce { log, .. } | Request::ListOffsets { log } => log % NODES,
            // Fetches have connections of their own; a queue's are one after the other anyway.
            Request::Fetch { queue } => queue % NODES,
            _ => GROUP_NODE,
        }
    }

    /// Waits at the broker for others.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Request::Join(_) | Request::Sync(_) | Request::Fetch { .. })
    }
}

/// First offset, last stable offset, high watermark.
pub(crate) type Marks = (i64, i64, i64);

/// What a fetch has brought.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) batches: Bytes,
    /// Aborted transactions in it: producer id and first offset.
    pub(crate) aborted: Vec<(i64, i64)>,
    /// The end of what may be read, where nothing more is there.
    pub(crate) end: Option<i64>,
}

/// An answer.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Kafka's code, 0 for none.
    Code(i16),
    Init(Producer),
    Join(JoinResponse),
    Sync(SyncResponse),
    Offsets(Vec<FetchedOffset>),
    Marks(Marks),
    Fetched(Fetched),
}

impl Answer {
    pub(crate) fn code(&self) -> i16 {
        match self {
            Answer::Code(code) => *code,
            Answer::Join(response) => response.error.code(),
            Answer::Sync(response) => response.error.code(),
            _ => 0,
        }
    }
}

/// What has become of a request.
#[derive(Clone)]
pub(crate) enum State {
    Pending,
    Answered(Answer),
    /// Its connection broke before an answer.
    Lost,
}

/// A request on its way.
pub(crate) struct Slot {
    pub(crate) client: usize,
    pub(crate) node: usize,
    /// Which of the client's connections to the node.
    pub(crate) connection: u32,
    pub(crate) kind: usize,
    /// Of a fetch: for which queue.
    pub(crate) queue: Option<usize>,
    pub(crate) waits: bool,
    /// Until it has arrived.
    pub(crate) request: Option<Request>,
    /// On its way back.
    pub(crate) answer: Option<Answer>,
    pub(crate) arrived: bool,
    pub(crate) silent: bool,
    pub(crate) cut_after: bool,
    pub(crate) state: State,
}

/// A connection of a client to a node.
#[derive(Clone, Copy, Default)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    /// When the last request arrives, and when the last answer.
    pub(crate) there: Micros,
    pub(crate) back: Micros,
}

/// A client.
pub(crate) struct Client {
    pub(crate) process: usize,
    /// Which start of the process.
    pub(crate) life: u32,
    pub(crate) connections: [Connection; NODES],
    pub(crate) unanswered: Unanswered,
    pub(crate) pending: Vec<usize>,
}

impl Client {
    /// Counts a request that was sent, by its kind.
    pub(crate) fn sent(&mut self, kind: usize) {
        match kind {
            3 => self.unanswered.open_txn += 1,
            4 => self.unanswered.open_produce += 1,
            5 => {
                self.unanswered.open_txn += 1;
                self.unanswered.sent_end_txn += 1;
            }
            _ => {}
        }
    }

    /// Counts a request that is answered or lost.
    pub(crate) fn done(&mut self, kind: usize, lost: bool) {
        let watch = &mut self.unanswered;
        match kind {
            3 | 5 => {
                watch.open_txn -= 1;
                watch.lost_txn += u32::from(lost);
            }
            4 => {
                watch.open_produce -= 1;
                watch.lost_produce += u32::from(lost);
            }
            _ => {}
        }
    }
}
