//! The error codes that coordinators answer.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// What a coordinator answers: `None`, or Kafka's reason for a refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// The number on the wire.
            pub fn code(self) -> i16 {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

codes! {
    /// No error.
    None = 0,
    /// The metadata of a committed offset is too long.
    OffsetMetadataTooLarge = 12,
    /// The group is gone; find its coordinator again.
    CoordinatorNotAvailable = 15,
    /// The generation is not the group's current one.
    IllegalGeneration = 22,
    /// The member has no protocol in common with the group.
    InconsistentGroupProtocol = 23,
    /// The group id is not valid here.
    InvalidGroupId = 24,
    /// The member is not in the group.
    UnknownMemberId = 25,
    /// The session time-out lies outside the limits.
    InvalidSessionTimeout = 26,
    /// The group rebalances; join again.
    RebalanceInProgress = 27,
    /// The request makes no sense.
    InvalidRequest = 42,
    /// The producer's epoch is not the current one.
    InvalidProducerEpoch = 47,
    /// The transaction is not in a state for this.
    InvalidTxnState = 48,
    /// The transactional id is not known with this producer id.
    InvalidProducerIdMapping = 49,
    /// The transaction time-out is not positive, or above the maximum.
    InvalidTransactionTimeout = 50,
    /// The transaction is being completed; try again.
    ConcurrentTransactions = 51,
    /// The group has members.
    NonEmptyGroup = 68,
    /// There is no such group.
    GroupIdNotFound = 69,
    /// The member has its id now, and must join again with it.
    MemberIdRequired = 79,
    /// The group has as many members as it may have.
    GroupMaxSizeReached = 81,
    /// Another member has taken over the instance id.
    FencedInstanceId = 82,
    /// The group consumes the topic.
    GroupSubscribedToTopic = 86,
    /// Offsets of an open transaction are pending; try again.
    UnstableOffsetCommit = 88,
    /// A newer producer has taken over the transactional id.
    ProducerFenced = 90,
    /// There is no such transactional id.
    TransactionalIdNotFound = 105,
}

impl ErrorCode {
    /// Whether it is no error.
    pub fn is_none(self) -> bool {
        self == Self::None
    }

    /// The code for versions of a request that know no `PRODUCER_FENCED`: AddPartitionsToTxn, AddOffsetsToTxn and EndTxn below
    /// version 2, InitProducerId below version 4, and TxnOffsetCommit.
    pub fn without_producer_fenced(self) -> Self {
        match self {
            Self::ProducerFenced => Self::InvalidProducerEpoch,
            other => other,
        }
    }
}
