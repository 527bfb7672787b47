//! What goes into the group coordinator and comes out of it.

use std::fmt;

use bytes::Bytes;

use crate::coordinator::{ErrorCode, Millis, Producer, TopicPartition};

/// How the group coordinator behaves. The defaults are Kafka's, but for the delay of a group's first rebalance, which is 0.
#[derive(Debug, Clone)]
pub struct GroupSettings {
    /// The shortest session time-out a member may ask for (`group.min.session.timeout.ms`).
    pub min_session_timeout: Millis,
    /// The longest session time-out a member may ask for (`group.max.session.timeout.ms`).
    pub max_session_timeout: Millis,
    /// How long the first rebalance of an empty group waits for more members (`group.initial.rebalance.delay.ms`).
    pub initial_rebalance_delay: Millis,
    /// The most members a group may have (`group.max.size`).
    pub max_size: usize,
    /// The longest metadata of a committed offset, in UTF-16 units (`offset.metadata.max.bytes`).
    pub max_offset_metadata: usize,
    /// How long offsets outlive their group (`offsets.retention.minutes`); `None` keeps them.
    pub offsets_retention: Option<Millis>,
    /// What the ids given to members are made from. Two starts of a broker need two seeds.
    pub member_id_seed: u128,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            min_session_timeout: Millis(6_000),
            max_session_timeout: Millis(1_800_000),
            initial_rebalance_delay: Millis(0),
            max_size: usize::MAX,
            max_offset_metadata: 4_096,
            offsets_retention: None,
            member_id_seed: 0,
        }
    }
}

/// The state of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// No members. There may be offsets.
    Empty,
    /// Waits for its members to join again.
    PreparingRebalance,
    /// Waits for the leader's assignment.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
    /// Gone.
    Dead,
}

impl GroupState {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A way of assigning partitions that a member supports, with what the member tells the leader about itself.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinProtocol {
    /// The protocol's name, such as `range`.
    pub name: String,
    /// The member's metadata for it.
    pub metadata: Bytes,
}

/// A JoinGroup request.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// The group's id.
    pub group: String,
    /// The member's id, empty at the first attempt.
    pub member_id: String,
    /// The id of a static member (KIP-345).
    pub instance_id: Option<String>,
    /// The client id of the request's header.
    pub client_id: String,
    /// Where the client is.
    pub client_host: String,
    /// Milliseconds without a heartbeat after which the member is thrown out.
    pub session_timeout: i32,
    /// Milliseconds that a rebalance waits for the member; negative means as long as the session (version 0).
    pub rebalance_timeout: i32,
    /// `consumer`, or another class of protocols.
    pub protocol_type: String,
    /// What the member supports, the one it likes best first.
    pub protocols: Vec<JoinProtocol>,
    /// Whether a new dynamic member is first given an id and asked to join again with it (version 4 and above).
    pub member_id_required: bool,
    /// Whether the client knows `skip_assignment` (version 9 and above).
    pub knows_skip_assignment: bool,
}

/// The answer to a JoinGroup request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinResponse {
    /// Why it failed.
    pub error: ErrorCode,
    /// The group's generation, -1 if it failed.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The protocol that was selected. Versions below 7 have an empty string for `None`.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: String,
    /// The member's id.
    pub member_id: String,
    /// Whether the leader is to keep the assignment as it is.
    pub skip_assignment: bool,
    /// All members, for the leader alone.
    pub members: Vec<JoinedMember>,
}

impl JoinResponse {
    /// The answer to a request that failed.
    pub fn error(error: ErrorCode, member_id: &str) -> Self {
        Self {
            error,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: String::new(),
            member_id: member_id.to_owned(),
            skip_assignment: false,
            members: Vec::new(),
        }
    }
}

/// A member, as its leader sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// The member's id.
    pub member_id: String,
    /// Its static id.
    pub instance_id: Option<String>,
    /// Its metadata for the selected protocol.
    pub metadata: Bytes,
}

/// A SyncGroup request.
#[derive(Clone)]
pub struct SyncRequest {
    /// The group's id.
    pub group: String,
    /// The generation of the member.
    pub generation: i32,
    /// The member's id.
    pub member_id: String,
    /// Its static id.
    pub instance_id: Option<String>,
    /// The protocol type the member joined with (version 5 and above).
    pub protocol_type: Option<String>,
    /// The protocol that was selected (version 5 and above).
    pub protocol: Option<String>,
    /// The leader's assignments by member id; empty for others.
    pub assignments: Vec<(String, Bytes)>,
}

/// The answer to a SyncGroup request.
#[derive(Clone, PartialEq, Eq)]
pub struct SyncResponse {
    /// Why it failed.
    pub error: ErrorCode,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The protocol that was selected.
    pub protocol: Option<String>,
    /// The member's assignment.
    pub assignment: Bytes,
}

impl SyncResponse {
    /// The answer to a request that failed.
    pub fn error(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}

/// A member that leaves: by its member id, or by its static id alone with an empty member id (version 3 and above).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    /// The member's id, or empty.
    pub member_id: String,
    /// Its static id.
    pub instance_id: Option<String>,
}

/// An OffsetCommit request.
#[derive(Debug, Clone)]
pub struct CommitRequest {
    /// The group's id.
    pub group: String,
    /// The generation, negative for a consumer that is in no group.
    pub generation: i32,
    /// The member's id, empty for a consumer that is in no group.
    pub member_id: String,
    /// Its static id.
    pub instance_id: Option<String>,
    /// What to commit.
    pub offsets: Vec<OffsetCommit>,
}

/// A TxnOffsetCommit request.
#[derive(Debug, Clone)]
pub struct TxnCommitRequest {
    /// The group's id.
    pub group: String,
    /// The producer whose transaction the offsets belong to.
    pub producer: Producer,
    /// The generation, -1 for versions below 3.
    pub generation: i32,
    /// The member's id, empty for versions below 3.
    pub member_id: String,
    /// The member's static id.
    pub instance_id: Option<String>,
    /// What to commit with the transaction.
    pub offsets: Vec<OffsetCommit>,
}

/// An offset to commit.
#[derive(Clone, PartialEq, Eq)]
pub struct OffsetCommit {
    /// For which partition.
    pub partition: TopicPartition,
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the record before it, -1 if not known.
    pub leader_epoch: i32,
    /// What the client wants to keep with it; `None` is kept as empty.
    pub metadata: Option<String>,
}

/// A partition's committed offset.
#[derive(Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    /// The partition.
    pub partition: TopicPartition,
    /// The offset, -1 if there is none.
    pub offset: i64,
    /// The leader epoch, -1 if not known.
    pub leader_epoch: i32,
    /// What the client kept with it.
    pub metadata: String,
    /// Why there is no answer.
    pub error: ErrorCode,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group's id.
    pub group: String,
    /// Its protocol type, empty for one that only has offsets.
    pub protocol_type: String,
    /// Its state.
    pub state: GroupState,
}

impl ListedGroup {
    /// The type of all groups here, on the wire.
    pub const TYPE: &'static str = "classic";
}

/// A group in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    /// The group's id.
    pub group: String,
    /// Its state.
    pub state: GroupState,
    /// Its protocol type.
    pub protocol_type: String,
    /// The selected protocol of a stable group.
    pub protocol: String,
    /// Its generation; not on the wire, but tests want it.
    pub generation: i32,
    /// Its leader's member id; not on the wire, but tests want it.
    pub leader: Option<String>,
    /// Its members, by member id.
    pub members: Vec<DescribedMember>,
}

impl DescribedGroup {
    /// What versions below 6 answer for a group that is not there.
    pub fn dead(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            state: GroupState::Dead,
            protocol_type: String::new(),
            protocol: String::new(),
            generation: -1,
            leader: None,
            members: Vec::new(),
        }
    }
}

/// A member in detail.
#[derive(Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// The member's id.
    pub member_id: String,
    /// Its static id.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Where it is.
    pub client_host: String,
    /// Its metadata for the selected protocol, empty unless the group is stable.
    pub metadata: Bytes,
    /// Its assignment, of the generation before while a rebalance goes on.
    pub assignment: Bytes,
}
