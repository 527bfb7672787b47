//! Which APIs and versions are advertised, and that each of them is served.

use std::collections::BTreeMap;

use flechtwerk_conformance::calls::records::{fetch_request, produce_request};
use flechtwerk_conformance::calls::topics::new_topic;
use flechtwerk_conformance::client::raw_frame;
use flechtwerk_conformance::*;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Request};

/// Asks each version that is advertised and known to the checks, and reads the answer to its last byte.
fn each_version<R: Request>(client: &mut Client, request: impl Fn(&mut Client, i16) -> R) {
    let Some(&(low, high)) = client.versions().get(&R::KEY) else {
        panic!("API {} is not advertised", R::KEY);
    };
    let (low, high) = (low.max(R::VERSIONS.min), high.min(R::VERSIONS.max));
    assert!(low <= high, "API {}: no version in common", R::KEY);
    for version in low..=high {
        let request = request(client, version);
        client.call_at(version, &request);
    }
}

#[test]
fn api_versions_answers_each_of_its_versions() {
    each_version(&mut Broker::get().client(), |_, version| {
        let request = ApiVersionsRequest::default();
        if version < 3 {
            return request;
        }
        request.with_client_software_name(text("conformance")).with_client_software_version(text("1"))
    });
}

/// A client that is newer than the broker must learn what the broker can do, in a form that every client can read.
#[test]
fn api_versions_of_an_unknown_version_is_answered_in_version_0_with_unsupported_version() {
    let mut client = Broker::get().raw();
    client.send_bytes(&raw_frame(18, 99, 7, 2, &[]));
    let mut answer = client.receive_frame(client::ANSWER).expect("an answer");
    let header = ResponseHeader::decode(&mut answer, 0).expect("a header");
    assert_eq!(header.correlation_id, 7);
    let answer = ApiVersionsResponse::decode(&mut answer, 0).expect("version 0");
    assert_eq!(code(answer.error_code), Err(Code::UnsupportedVersion));
    let own = answer.api_keys.iter().find(|api| api.api_key == 18).expect("ApiVersions itself");
    assert!(own.max_version >= 3);
}

#[test]
fn the_same_connection_goes_on_after_an_unknown_version_of_api_versions() {
    let mut client = Broker::get().raw();
    client.send_bytes(&raw_frame(18, 99, 7, 2, &[]));
    client.receive_frame(client::ANSWER).expect("an answer");
    let answer = client.call_at(0, &ApiVersionsRequest::default());
    assert_eq!(code(answer.error_code), Ok(()));
}

#[test]
fn an_api_is_advertised_once_and_with_a_range_that_is_not_empty() {
    let answer = Broker::get().client().call_at(0, &ApiVersionsRequest::default());
    let mut seen = BTreeMap::new();
    for api in &answer.api_keys {
        assert!(api.min_version <= api.max_version, "API {}", api.api_key);
        assert!(seen.insert(api.api_key, api.max_version).is_none(), "API {} twice", api.api_key);
    }
}

/// What the project's own client library needs.
#[test]
fn all_that_librdkafka_needs_is_advertised() {
    let client = Broker::get().client();
    let needed = [
        (0, 3),  // Produce
        (1, 11), // Fetch
        (2, 5),  // ListOffsets
        (3, 10), // Metadata, with topic ids
        (8, 7),  // OffsetCommit
        (9, 7),  // OffsetFetch
        (10, 1), // FindCoordinator
        (11, 5), // JoinGroup
        (12, 3), // Heartbeat
        (13, 1), // LeaveGroup
        (14, 3), // SyncGroup
        (15, 0), // DescribeGroups
        (16, 0), // ListGroups
        (18, 3), // ApiVersions
        (19, 2), // CreateTopics
        (20, 1), // DeleteTopics
        (21, 0), // DeleteRecords
        (22, 4), // InitProducerId
        (23, 2), // OffsetForLeaderEpoch
        (24, 0), // AddPartitionsToTxn
        (25, 0), // AddOffsetsToTxn
        (26, 1), // EndTxn
        (28, 3), // TxnOffsetCommit
        (32, 1), // DescribeConfigs
        (33, 0), // AlterConfigs
        (37, 0), // CreatePartitions
        (42, 0), // DeleteGroups
        (44, 0), // IncrementalAlterConfigs
        (61, 0), // DescribeProducers
        (65, 0), // DescribeTransactions
        (66, 0), // ListTransactions
        (27, 1), // WriteTxnMarkers
    ];
    for (key, version) in needed {
        let &(low, high) = client.versions().get(&key).unwrap_or_else(|| panic!("API {key} is missing"));
        assert!((low..=high).contains(&version), "API {key}: {low} to {high} is without {version}");
    }
}

/// On the development broker alone: a real Kafka has newer versions than the checks can speak.
#[test]
fn nothing_is_advertised_that_no_check_covers() {
    let broker = Broker::get();
    if broker.is_real() {
        return;
    }
    for (key, (low, high)) in broker.client().versions() {
        let known =
            ApiKey::try_from(*key).unwrap_or_else(|()| panic!("API {key} is unknown")).valid_versions();
        assert!(known.min <= *low && *high <= known.max, "API {key}: {low} to {high}, but known are {known}");
        assert!(COVERED.contains(key), "API {key} is advertised, but no check sends its versions");
    }
}

/// The APIs that a check below sends in each version.
const COVERED: &[i16] = &[
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 32, 33, 37, 42,
    44, 47, 60, 61, 65, 66, 75,
];

#[test]
fn produce_answers_each_of_its_versions() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let id = client.describe_topic(&topic).topic_id;
    each_version(&mut client, |_, version| {
        let mut request = produce_request(&topic, 0, Batch::of(["a"]).encode(), None);
        if version >= 13 {
            request.topic_data[0] =
                request.topic_data[0].clone().with_topic_id(id).with_name(Default::default());
        }
        request
    });
    assert!(client.end(&topic, 0) >= 1);
}

#[test]
fn fetch_answers_each_of_its_versions() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let id = client.describe_topic(&topic).topic_id;
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
    let (low, high) = client.versions()[&1];
    for version in low.max(4)..=high.min(18) {
        let mut request = fetch_request(&topic, &[(0, 0)], UNCOMMITTED);
        if version >= 13 {
            request.topics[0] = request.topics[0].clone().with_topic_id(id).with_topic(Default::default());
        }
        let answer = client.call_at(version, &request);
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0, "version {version}");
        let records = partition.records.clone().unwrap_or_default();
        assert_eq!(read::batches(records).len(), 1, "version {version}");
    }
}

#[test]
fn list_offsets_answers_each_of_its_versions() {
    use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    each_version(&mut client, |_, _| {
        let one = ListOffsetsPartition::default().with_current_leader_epoch(-1).with_timestamp(LATEST);
        let topic = ListOffsetsTopic::default().with_name(text(&topic).into()).with_partitions(vec![one]);
        ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
    });
}

#[test]
fn metadata_answers_each_of_its_versions() {
    each_version(&mut Broker::get().client(), |_, version| {
        // No list means all topics; the first version has no way to say so but an empty one.
        MetadataRequest::default().with_topics((version == 0).then(Vec::new))
    });
}

#[test]
fn offset_commit_and_offset_fetch_answer_each_of_their_versions() {
    use kafka_protocol::messages::offset_fetch_request::*;
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    each_version(&mut client, |_, version| {
        let mut request = calls::groups::offset_commit(&group, &topic, &[(0, i64::from(version), "m")]);
        if version >= 5 {
            request.retention_time_ms = -1;
        }
        request
    });
    each_version(&mut client, |_, version| {
        if version < 8 {
            let topic = OffsetFetchRequestTopic::default()
                .with_name(text(&topic).into())
                .with_partition_indexes(vec![0]);
            return OffsetFetchRequest::default()
                .with_group_id(text(&group).into())
                .with_topics(Some(vec![topic]));
        }
        let topic = OffsetFetchRequestTopics::default()
            .with_name(text(&topic).into())
            .with_partition_indexes(vec![0]);
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(text(&group).into())
            .with_member_epoch(-1)
            .with_topics(Some(vec![topic]));
        OffsetFetchRequest::default().with_groups(vec![group])
    });
}

#[test]
fn find_coordinator_answers_each_of_its_versions() {
    each_version(&mut Broker::get().client(), |_, version| {
        let (request, key) = (FindCoordinatorRequest::default(), text("some-group"));
        if version < 4 { request.with_key(key) } else { request.with_coordinator_keys(vec![key]) }
    });
}

#[test]
fn group_requests_answer_each_of_their_versions() {
    use kafka_protocol::messages::leave_group_request::MemberIdentity;
    let broker = Broker::get();
    let mut client = broker.client();
    let (low, high) = client.versions()[&11];
    for version in low..=high.min(9) {
        let mut member = Member::new(broker.client(), &unique("group"));
        let mut answer = member.client.call_at(version, &member.join_request());
        if version >= 4 {
            assert_eq!(code(answer.error_code), Err(Code::MemberIdRequired), "version {version}");
            member.id = answer.member_id.as_str().to_owned();
            answer = member.client.call_at(version, &member.join_request());
        }
        assert_eq!(code(answer.error_code), Ok(()), "version {version}");
        assert_eq!(answer.members.len(), 1, "version {version}");
    }

    let mut member = Member::new(broker.client(), &unique("group"));
    member.join_alone();
    let (group, id) = (text(&member.group), text(&member.id));
    each_version(&mut client, |_, version| {
        let request = member.sync_request(&[]);
        if version < 5 {
            return request;
        }
        request.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")))
    });
    each_version(&mut client, |_, _| {
        HeartbeatRequest::default()
            .with_group_id(group.clone().into())
            .with_generation_id(member.generation)
            .with_member_id(id.clone())
    });
    each_version(&mut client, |_, _| {
        DescribeGroupsRequest::default().with_groups(vec![group.clone().into()])
    });
    each_version(&mut client, |_, _| ListGroupsRequest::default());
    each_version(&mut client, |_, version| {
        let request = LeaveGroupRequest::default().with_group_id(group.clone().into());
        if version < 3 {
            return request.with_member_id(id.clone());
        }
        request.with_members(vec![MemberIdentity::default().with_member_id(id.clone())])
    });
    each_version(&mut client, |_, _| {
        DeleteGroupsRequest::default().with_groups_names(vec![group.clone().into()])
    });
}

#[test]
fn topic_requests_answer_each_of_their_versions() {
    use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
    use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
    let mut client = Broker::get().client();
    each_version(&mut client, |_, _| {
        CreateTopicsRequest::default()
            .with_topics(vec![new_topic(&unique("each-version"), 1)])
            .with_timeout_ms(10_000)
    });
    each_version(&mut client, |client, _| {
        let topic = CreatePartitionsTopic::default()
            .with_name(text(&client.topic(1)).into())
            .with_count(2)
            .with_assignments(None);
        CreatePartitionsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000)
    });
    each_version(&mut client, |client, version| {
        let name: TopicName = text(&client.topic(1)).into();
        let request = DeleteTopicsRequest::default().with_timeout_ms(10_000);
        if version < 6 {
            return request.with_topic_names(vec![name]);
        }
        request.with_topics(vec![DeleteTopicState::default().with_name(Some(name))])
    });
}

#[test]
fn config_requests_answer_each_of_their_versions() {
    use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
    use kafka_protocol::messages::{
        alter_configs_request as alter, incremental_alter_configs_request as incremental,
    };
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let (kind, name) = (calls::topics::TOPIC, text(&topic));
    each_version(&mut client, |_, _| {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(name.clone())
            .with_configuration_keys(None);
        DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true)
    });
    each_version(&mut client, |_, _| {
        let config =
            alter::AlterableConfig::default().with_name(text("segment.ms")).with_value(Some(text("100000")));
        let resource = alter::AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(name.clone())
            .with_configs(vec![config]);
        AlterConfigsRequest::default().with_resources(vec![resource])
    });
    each_version(&mut client, |_, _| {
        let config = incremental::AlterableConfig::default()
            .with_name(text("segment.ms"))
            .with_value(Some(text("1000001")));
        let resource = incremental::AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(name.clone())
            .with_configs(vec![config]);
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
    });
}

#[test]
fn delete_records_and_offset_for_leader_epoch_answer_each_of_their_versions() {
    use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    use kafka_protocol::messages::offset_for_leader_epoch_request::{
        OffsetForLeaderPartition, OffsetForLeaderTopic,
    };
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    each_version(&mut client, |_, _| {
        let topic = DeleteRecordsTopic::default()
            .with_name(text(&topic).into())
            .with_partitions(vec![DeleteRecordsPartition::default().with_offset(0)]);
        DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000)
    });
    each_version(&mut client, |_, _| {
        let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1);
        let topic =
            OffsetForLeaderTopic::default().with_topic(text(&topic).into()).with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
    });
}

#[test]
fn transaction_requests_answer_each_of_their_versions() {
    use kafka_protocol::messages::add_partitions_to_txn_request::*;
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    let producer = client.transactional_producer();
    let name: TransactionalId = text(&producer.transactional_id).into();
    let (id, epoch) = (ProducerId(producer.id), producer.epoch);
    each_version(&mut client, |_, version| {
        let partitions =
            AddPartitionsToTxnTopic::default().with_name(text(&topic).into()).with_partitions(vec![0]);
        if version >= 4 {
            let transaction = AddPartitionsToTxnTransaction::default()
                .with_transactional_id(name.clone())
                .with_producer_id(id)
                .with_producer_epoch(epoch)
                .with_topics(vec![partitions]);
            return AddPartitionsToTxnRequest::default().with_transactions(vec![transaction]);
        }
        AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(name.clone())
            .with_v3_and_below_producer_id(id)
            .with_v3_and_below_producer_epoch(epoch)
            .with_v3_and_below_topics(vec![partitions])
    });
    each_version(&mut client, |_, _| {
        AddOffsetsToTxnRequest::default()
            .with_transactional_id(name.clone())
            .with_producer_id(id)
            .with_producer_epoch(epoch)
            .with_group_id(text(&group).into())
    });
    each_version(&mut client, |_, _| producer.offset_commit(&group, &topic, 0, 1));
    each_version(&mut client, |_, _| {
        EndTxnRequest::default()
            .with_transactional_id(name.clone())
            .with_producer_id(id)
            .with_producer_epoch(epoch)
            .with_committed(true)
    });
    each_version(&mut client, |_, _| {
        DescribeTransactionsRequest::default().with_transactional_ids(vec![name.clone()])
    });
    each_version(&mut client, |_, _| ListTransactionsRequest::default().with_duration_filter(-1));
    each_version(&mut client, |_, _| {
        InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(1000)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1)
    });
    client.describe_producers(&topic, 0).expect("producers");
    let other = client.idempotent_producer();
    let marker = ToolMarker { producer: (other.id, 0), coordinator_epoch: 0, commit: false };
    each_version(&mut client, |_, _| marker.request(&topic, 0));
}

#[test]
fn cluster_and_topic_descriptions_and_deleted_offsets_answer_each_of_their_versions() {
    use kafka_protocol::messages::describe_topic_partitions_request::TopicRequest;
    use kafka_protocol::messages::offset_delete_request::{
        OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    };
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Ok(()));
    each_version(&mut client, |_, _| DescribeClusterRequest::default().with_endpoint_type(1));
    each_version(&mut client, |_, _| {
        let topic = TopicRequest::default().with_name(text(&topic).into());
        DescribeTopicPartitionsRequest::default().with_topics(vec![topic]).with_response_partition_limit(100)
    });
    each_version(&mut client, |_, _| {
        let topic = OffsetDeleteRequestTopic::default()
            .with_name(text(&topic).into())
            .with_partitions(vec![OffsetDeleteRequestPartition::default()]);
        OffsetDeleteRequest::default().with_group_id(text(&group).into()).with_topics(vec![topic])
    });
    assert_eq!(client.committed(&group, &topic, 0), -1);
}
