//! The fields of every request served, in the order of the wire, for the walk before the decoding.

use super::api::Api;
use super::shape::{Field, Kind};

const MAX: i16 = i16::MAX;
const I8: Kind = Kind::Fixed(1);
const I16: Kind = Kind::Fixed(2);
const I32: Kind = Kind::Fixed(4);
const I64: Kind = Kind::Fixed(8);
const UUID: Kind = Kind::Fixed(16);
const TEXT: Kind = Kind::Text;
const TEXTS: Kind = Kind::Values(&Kind::Text);
const NUMBERS: Kind = Kind::Values(&I32);

/// `name: kind, since version;` or `name: kind, since version to version;`
macro_rules! fields {
    ($($name:ident: $kind:expr, $from:literal $(to $to:literal)?;)*) => {
        &[$(Field { name: stringify!($name), kind: $kind, from: $from, to: fields!(@to $($to)?) },)*]
    };
    (@to) => { MAX };
    (@to $to:literal) => { $to };
}

type Fields = &'static [Field];

/// The fields of an API's request.
pub(crate) fn shape(api: Api) -> Fields {
    match api {
        Api::Produce => PRODUCE,
        Api::Fetch => FETCH,
        Api::ListOffsets => LIST_OFFSETS,
        Api::Metadata => METADATA,
        Api::OffsetCommit => OFFSET_COMMIT,
        Api::OffsetFetch => OFFSET_FETCH,
        Api::FindCoordinator => FIND_COORDINATOR,
        Api::JoinGroup => JOIN_GROUP,
        Api::Heartbeat => HEARTBEAT,
        Api::LeaveGroup => LEAVE_GROUP,
        Api::SyncGroup => SYNC_GROUP,
        Api::DescribeGroups => DESCRIBE_GROUPS,
        Api::ListGroups => LIST_GROUPS,
        Api::ApiVersions => API_VERSIONS,
        Api::CreateTopics => CREATE_TOPICS,
        Api::DeleteTopics => DELETE_TOPICS,
        Api::DeleteRecords => DELETE_RECORDS,
        Api::InitProducerId => INIT_PRODUCER_ID,
        Api::OffsetForLeaderEpoch => OFFSET_FOR_LEADER_EPOCH,
        Api::AddPartitionsToTxn => ADD_PARTITIONS_TO_TXN,
        Api::AddOffsetsToTxn => ADD_OFFSETS_TO_TXN,
        Api::EndTxn => END_TXN,
        Api::WriteTxnMarkers => WRITE_TXN_MARKERS,
        Api::TxnOffsetCommit => TXN_OFFSET_COMMIT,
        Api::DescribeConfigs => DESCRIBE_CONFIGS,
        Api::AlterConfigs => ALTER_CONFIGS,
        Api::CreatePartitions => CREATE_PARTITIONS,
        Api::DeleteGroups => DELETE_GROUPS,
        Api::IncrementalAlterConfigs => INCREMENTAL_ALTER_CONFIGS,
        Api::OffsetDelete => OFFSET_DELETE,
        Api::DescribeCluster => DESCRIBE_CLUSTER,
        Api::DescribeProducers => DESCRIBE_PRODUCERS,
        Api::DescribeTransactions => DESCRIBE_TRANSACTIONS,
        Api::ListTransactions => LIST_TRANSACTIONS,
        Api::DescribeTopicPartitions => DESCRIBE_TOPIC_PARTITIONS,
    }
}

const PRODUCE: Fields = fields! {
    transactional_id: TEXT, 3;
    acks: I16, 3;
    timeout_ms: I32, 3;
    topics: Kind::Structs(fields! {
        name: TEXT, 3;
        partitions: Kind::Structs(fields! { index: I32, 3; records: Kind::Bytes, 3; }), 3;
    }), 3;
};

const FETCH: Fields = fields! {
    replica_id: I32, 4;
    max_wait_ms: I32, 4;
    min_bytes: I32, 4;
    max_bytes: I32, 4;
    isolation_level: I8, 4;
    session_id: I32, 7;
    session_epoch: I32, 7;
    topics: Kind::Structs(fields! {
        name: TEXT, 4;
        partitions: Kind::Structs(fields! {
            partition: I32, 4;
            current_leader_epoch: I32, 9;
            fetch_offset: I64, 4;
            last_fetched_epoch: I32, 12;
            log_start_offset: I64, 5;
            partition_max_bytes: I32, 4;
        }), 4;
    }), 4;
    forgotten_topics: Kind::Structs(fields! { name: TEXT, 7; partitions: NUMBERS, 7; }), 7;
    rack_id: TEXT, 11;
};

const LIST_OFFSETS: Fields = fields! {
    replica_id: I32, 1;
    isolation_level: I8, 2;
    topics: Kind::Structs(fields! {
        name: TEXT, 1;
        partitions: Kind::Structs(fields! {
            partition: I32, 1;
            current_leader_epoch: I32, 4;
            timestamp: I64, 1;
        }), 1;
    }), 1;
};

const METADATA: Fields = fields! {
    topics: Kind::Structs(fields! { topic_id: UUID, 10; name: TEXT, 0; }), 0;
    allow_auto_topic_creation: I8, 4;
    include_cluster_authorized_operations: I8, 8 to 10;
    include_topic_authorized_operations: I8, 8;
};

const OFFSET_COMMIT: Fields = fields! {
    group_id: TEXT, 2;
    generation_id: I32, 2;
    member_id: TEXT, 2;
    group_instance_id: TEXT, 7;
    retention_time_ms: I64, 2 to 4;
    topics: Kind::Structs(fields! {
        name: TEXT, 2;
        partitions: Kind::Structs(fields! {
            partition: I32, 2;
            committed_offset: I64, 2;
            committed_leader_epoch: I32, 6;
            committed_metadata: TEXT, 2;
        }), 2;
    }), 2;
};

const OFFSET_FETCH: Fields = fields! {
    group_id: TEXT, 1;
    topics: Kind::Structs(fields! { name: TEXT, 1; partitions: NUMBERS, 1; }), 1;
    require_stable: I8, 7;
};

const FIND_COORDINATOR: Fields = fields! {
    key: TEXT, 0 to 3;
    key_type: I8, 1;
    coordinator_keys: TEXTS, 4;
};

const JOIN_GROUP: Fields = fields! {
    group_id: TEXT, 0;
    session_timeout_ms: I32, 0;
    rebalance_timeout_ms: I32, 1;
    member_id: TEXT, 0;
    group_instance_id: TEXT, 5;
    protocol_type: TEXT, 0;
    protocols: Kind::Structs(fields! { name: TEXT, 0; metadata: Kind::Bytes, 0; }), 0;
};

const HEARTBEAT: Fields = fields! {
    group_id: TEXT, 0;
    generation_id: I32, 0;
    member_id: TEXT, 0;
    group_instance_id: TEXT, 3;
};

const LEAVE_GROUP: Fields = fields! {
    group_id: TEXT, 0;
    member_id: TEXT, 0 to 2;
    members: Kind::Structs(fields! { member_id: TEXT, 3; group_instance_id: TEXT, 3; reason: TEXT, 5; }), 3;
};

const SYNC_GROUP: Fields = fields! {
    group_id: TEXT, 0;
    generation_id: I32, 0;
    member_id: TEXT, 0;
    group_instance_id: TEXT, 3;
    assignments: Kind::Structs(fields! { member_id: TEXT, 0; assignment: Kind::Bytes, 0; }), 0;
};

const DESCRIBE_GROUPS: Fields = fields! {
    groups: TEXTS, 0;
    include_authorized_operations: I8, 3;
};

const LIST_GROUPS: Fields = fields! {
    states_filter: TEXTS, 4;
    types_filter: TEXTS, 5;
};

const API_VERSIONS: Fields = fields! {
    client_software_name: TEXT, 3;
    client_software_version: TEXT, 3;
};

const CREATE_TOPICS: Fields = fields! {
    topics: Kind::Structs(fields! {
        name: TEXT, 2;
        num_partitions: I32, 2;
        replication_factor: I16, 2;
        assignments: Kind::Structs(fields! { partition: I32, 2; broker_ids: NUMBERS, 2; }), 2;
        configs: Kind::Structs(fields! { name: TEXT, 2; value: TEXT, 2; }), 2;
    }), 2;
    timeout_ms: I32, 2;
    validate_only: I8, 2;
};

const DELETE_TOPICS: Fields = fields! {
    topics: Kind::Structs(fields! { name: TEXT, 6; topic_id: UUID, 6; }), 6;
    topic_names: TEXTS, 1 to 5;
    timeout_ms: I32, 1;
};

const DELETE_RECORDS: Fields = fields! {
    topics: Kind::Structs(fields! {
        name: TEXT, 0;
        partitions: Kind::Structs(fields! { partition: I32, 0; offset: I64, 0; }), 0;
    }), 0;
    timeout_ms: I32, 0;
};

const INIT_PRODUCER_ID: Fields = fields! {
    transactional_id: TEXT, 0;
    transaction_timeout_ms: I32, 0;
    producer_id: I64, 3;
    producer_epoch: I16, 3;
};

const OFFSET_FOR_LEADER_EPOCH: Fields = fields! {
    replica_id: I32, 3;
    topics: Kind::Structs(fields! {
        name: TEXT, 2;
        partitions: Kind::Structs(fields! {
            partition: I32, 2;
            current_leader_epoch: I32, 2;
            leader_epoch: I32, 2;
        }), 2;
    }), 2;
};

const ADD_PARTITIONS_TO_TXN: Fields = fields! {
    transactional_id: TEXT, 0;
    producer_id: I64, 0;
    producer_epoch: I16, 0;
    topics: Kind::Structs(fields! { name: TEXT, 0; partitions: NUMBERS, 0; }), 0;
};

const ADD_OFFSETS_TO_TXN: Fields = fields! {
    transactional_id: TEXT, 0;
    producer_id: I64, 0;
    producer_epoch: I16, 0;
    group_id: TEXT, 0;
};

const END_TXN: Fields = fields! {
    transactional_id: TEXT, 0;
    producer_id: I64, 0;
    producer_epoch: I16, 0;
    committed: I8, 0;
};

const TXN_OFFSET_COMMIT: Fields = fields! {
    transactional_id: TEXT, 0;
    group_id: TEXT, 0;
    producer_id: I64, 0;
    producer_epoch: I16, 0;
    generation_id: I32, 3;
    member_id: TEXT, 3;
    group_instance_id: TEXT, 3;
    topics: Kind::Structs(fields! {
        name: TEXT, 0;
        partitions: Kind::Structs(fields! {
            partition: I32, 0;
            committed_offset: I64, 0;
            committed_leader_epoch: I32, 2;
            committed_metadata: TEXT, 0;
        }), 0;
    }), 0;
};

const DESCRIBE_CONFIGS: Fields = fields! {
    resources: Kind::Structs(fields! { resource_type: I8, 1; resource_name: TEXT, 1; keys: TEXTS, 1; }), 1;
    include_synonyms: I8, 1;
    include_documentation: I8, 3;
};

const ALTER_CONFIGS: Fields = fields! {
    resources: Kind::Structs(fields! {
        resource_type: I8, 0;
        resource_name: TEXT, 0;
        configs: Kind::Structs(fields! { name: TEXT, 0; value: TEXT, 0; }), 0;
    }), 0;
    validate_only: I8, 0;
};

const INCREMENTAL_ALTER_CONFIGS: Fields = fields! {
    resources: Kind::Structs(fields! {
        resource_type: I8, 0;
        resource_name: TEXT, 0;
        configs: Kind::Structs(fields! { name: TEXT, 0; operation: I8, 0; value: TEXT, 0; }), 0;
    }), 0;
    validate_only: I8, 0;
};

const CREATE_PARTITIONS: Fields = fields! {
    topics: Kind::Structs(fields! {
        name: TEXT, 0;
        count: I32, 0;
        assignments: Kind::Structs(fields! { broker_ids: NUMBERS, 0; }), 0;
    }), 0;
    timeout_ms: I32, 0;
    validate_only: I8, 0;
};

const DELETE_GROUPS: Fields = fields! { groups: TEXTS, 0; };

const OFFSET_DELETE: Fields = fields! {
    group_id: TEXT, 0;
    topics: Kind::Structs(fields! {
        name: TEXT, 0;
        partitions: Kind::Structs(fields! { partition: I32, 0; }), 0;
    }), 0;
};

const DESCRIBE_CLUSTER: Fields = fields! {
    include_cluster_authorized_operations: I8, 0;
    endpoint_type: I8, 1;
};

const WRITE_TXN_MARKERS: Fields = fields! {
    markers: Kind::Structs(fields! {
        producer_id: I64, 1;
        producer_epoch: I16, 1;
        transaction_result: I8, 1;
        topics: Kind::Structs(fields! { name: TEXT, 1; partition_indexes: NUMBERS, 1; }), 1;
        coordinator_epoch: I32, 1;
    }), 1;
};

const DESCRIBE_PRODUCERS: Fields = fields! {
    topics: Kind::Structs(fields! { name: TEXT, 0; partitions: NUMBERS, 0; }), 0;
};

const DESCRIBE_TRANSACTIONS: Fields = fields! { transactional_ids: TEXTS, 0; };

const LIST_TRANSACTIONS: Fields = fields! {
    state_filters: TEXTS, 0;
    producer_id_filters: Kind::Values(&I64), 0;
    duration_filter: I64, 1;
};

const DESCRIBE_TOPIC_PARTITIONS: Fields = fields! {
    topics: Kind::Structs(fields! { name: TEXT, 0; }), 0;
    response_partition_limit: I32, 0;
    cursor: Kind::Optional(fields! { topic_name: TEXT, 0; partition: I32, 0; }), 0;
};
