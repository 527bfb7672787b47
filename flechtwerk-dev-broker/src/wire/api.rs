//! The APIs served and the versions of each: the single table behind ApiVersions, the reader of headers and the faults.

use std::fmt;

macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $min:literal..=$max:literal, flexible $flexible:literal;)*) => {
        /// A request of the Kafka protocol that the broker serves.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the names are those of the Kafka protocol")]
        pub enum Api {
            $($(#[$doc])* $name,)*
        }

        impl Api {
            /// All that are served, by key.
            pub const ALL: &'static [Api] = &[$(Api::$name,)*];

            /// The key on the wire.
            pub const fn key(self) -> i16 {
                match self { $(Api::$name => $key,)* }
            }

            /// Its name in the Kafka protocol.
            pub const fn name(self) -> &'static str {
                match self { $(Api::$name => stringify!($name),)* }
            }

            /// The oldest and the newest version served.
            pub const fn versions(self) -> (i16, i16) {
                match self { $(Api::$name => ($min, $max),)* }
            }

            /// The first version with compact lengths and tagged fields.
            const fn first_flexible(self) -> i16 {
                match self { $(Api::$name => $flexible,)* }
            }
        }
    };
}

/// "No version of it is flexible".
const NEVER: i16 = i16::MAX;

apis! {
    Produce = 0, 3..=10, flexible 9;
    Fetch = 1, 4..=12, flexible 12;
    ListOffsets = 2, 1..=7, flexible 6;
    Metadata = 3, 0..=12, flexible 9;
    OffsetCommit = 8, 2..=8, flexible 8;
    OffsetFetch = 9, 1..=7, flexible 6;
    FindCoordinator = 10, 0..=4, flexible 3;
    JoinGroup = 11, 0..=5, flexible 6;
    Heartbeat = 12, 0..=4, flexible 4;
    LeaveGroup = 13, 0..=5, flexible 4;
    SyncGroup = 14, 0..=3, flexible 4;
    DescribeGroups = 15, 0..=5, flexible 5;
    ListGroups = 16, 0..=5, flexible 3;
    ApiVersions = 18, 0..=4, flexible 3;
    CreateTopics = 19, 2..=7, flexible 5;
    DeleteTopics = 20, 1..=6, flexible 4;
    DeleteRecords = 21, 0..=2, flexible 2;
    InitProducerId = 22, 0..=4, flexible 2;
    OffsetForLeaderEpoch = 23, 2..=4, flexible 4;
    AddPartitionsToTxn = 24, 0..=3, flexible 3;
    AddOffsetsToTxn = 25, 0..=3, flexible 3;
    EndTxn = 26, 0..=3, flexible 3;
    WriteTxnMarkers = 27, 1..=1, flexible 1;
    TxnOffsetCommit = 28, 0..=3, flexible 3;
    DescribeConfigs = 32, 1..=4, flexible 4;
    AlterConfigs = 33, 0..=2, flexible 2;
    CreatePartitions = 37, 0..=3, flexible 2;
    DeleteGroups = 42, 0..=2, flexible 2;
    IncrementalAlterConfigs = 44, 0..=1, flexible 1;
    OffsetDelete = 47, 0..=0, flexible 32767;
    DescribeCluster = 60, 0..=1, flexible 0;
    DescribeProducers = 61, 0..=0, flexible 0;
    DescribeTransactions = 65, 0..=0, flexible 0;
    ListTransactions = 66, 0..=1, flexible 0;
    DescribeTopicPartitions = 75, 0..=0, flexible 0;
}

impl Api {
    /// The API of a key on the wire, if it is served.
    pub fn from_key(key: i16) -> Option<Api> {
        Api::ALL.iter().copied().find(|api| api.key() == key)
    }

    /// Whether a version is served.
    pub fn serves(self, version: i16) -> bool {
        let (min, max) = self.versions();
        (min..=max).contains(&version)
    }

    /// Whether a version has compact lengths and tagged fields, and with them a request header of version 2.
    pub(crate) fn flexible(self, version: i16) -> bool {
        self.first_flexible() != NEVER && version >= self.first_flexible()
    }

    /// Whether the header of the answer has tagged fields. Never for ApiVersions: who asks it doesn't know yet what the
    /// broker speaks.
    pub(crate) fn flexible_answer(self, version: i16) -> bool {
        self != Api::ApiVersions && self.flexible(version)
    }

    /// How long a request may be. Only Produce carries data; a hundred partitions in a commit are a few kilobytes.
    pub(crate) fn max_frame(self, limit: usize) -> usize {
        match self {
            Api::Produce => limit,
            _ => limit.min(16 * 1024 * 1024),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
