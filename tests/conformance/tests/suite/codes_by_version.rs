//! Errors that have another code for newer clients: each of the versions that both sides have.

use flechtwerk_conformance::*;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::*;

/// The versions of an API that are advertised, up to the last one with the rules of transactions that the checks are about.
fn versions(client: &Client, key: i16, last: i16) -> std::ops::RangeInclusive<i16> {
    let (low, high) = client.versions()[&key];
    let spoken = ApiKey::try_from(key).expect("an API").valid_versions();
    low.max(spoken.min)..=high.min(last)
}

/// A producer whose place another one has taken, without a transaction that would have to end first.
fn fenced() -> (Client, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let producer = client.transactional_producer();
    client.producer_named(&producer.transactional_id);
    (client, topic, producer)
}

/// Before it, clients did not know the other code.
fn fencing_code(version: i16, first_with_producer_fenced: i16) -> Code {
    if version < first_with_producer_fenced { Code::InvalidProducerEpoch } else { Code::ProducerFenced }
}

#[test]
fn a_fenced_end_has_its_own_code_from_version_2_on() {
    let (mut client, _, producer) = fenced();
    for version in versions(&client, 26, 3) {
        let request = EndTxnRequest::default()
            .with_transactional_id(text(&producer.transactional_id).into())
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_committed(true);
        let answer = client.call_at(version, &request);
        assert_eq!(code(answer.error_code), Err(fencing_code(version, 2)), "version {version}");
    }
}

#[test]
fn fenced_partitions_have_their_own_code_from_version_2_on() {
    let (mut client, topic, producer) = fenced();
    for version in versions(&client, 24, 3) {
        let partitions =
            AddPartitionsToTxnTopic::default().with_name(text(&topic).into()).with_partitions(vec![0]);
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text(&producer.transactional_id).into())
            .with_v3_and_below_producer_id(ProducerId(producer.id))
            .with_v3_and_below_producer_epoch(producer.epoch)
            .with_v3_and_below_topics(vec![partitions]);
        let answer = client.call_at(version, &request);
        let result = &answer.results_by_topic_v3_and_below[0].results_by_partition[0];
        assert_eq!(code(result.partition_error_code), Err(fencing_code(version, 2)), "version {version}");
    }
}

#[test]
fn fenced_offsets_have_their_own_code_from_version_2_on() {
    let (mut client, _, producer) = fenced();
    for version in versions(&client, 25, 3) {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(text(&producer.transactional_id).into())
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch)
            .with_group_id(text("group").into());
        let answer = client.call_at(version, &request);
        assert_eq!(code(answer.error_code), Err(fencing_code(version, 2)), "version {version}");
    }
}

#[test]
fn a_fenced_identity_has_its_own_code_from_version_4_on() {
    let (mut client, _, producer) = fenced();
    client.producer_named(&producer.transactional_id);
    for version in 3..=*versions(&client, 22, 4).end() {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(text(&producer.transactional_id).into()))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(ProducerId(producer.id))
            .with_producer_epoch(producer.epoch);
        let answer = client.call_at(version, &request);
        assert_eq!(code(answer.error_code), Err(fencing_code(version, 4)), "version {version}");
    }
}

#[test]
fn a_fenced_commit_of_offsets_has_the_same_code_in_all_versions() {
    let (mut client, topic, producer) = fenced();
    for version in versions(&client, 28, 3) {
        let request = producer.offset_commit("group", &topic, 0, 5);
        let answer = client.call_at(version, &request);
        let result = code(answer.topics[0].partitions[0].error_code);
        assert_eq!(result, Err(Code::InvalidProducerEpoch), "version {version}");
    }
}

#[test]
fn a_fenced_batch_has_the_same_code_in_all_versions() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    producer.commit(&mut client);
    let mut next = client.producer_named(&producer.transactional_id);
    next.write(&mut client, &topic, 0, &["b"]);
    for version in versions(&client, 0, 10) {
        let batch = producer.batch(&topic, 0, &["late"]).encode();
        let request =
            calls::records::produce_request(&topic, 0, batch, Some(producer.transactional_id.as_str()));
        let answer = client.call_at(version, &request);
        let result = code(answer.responses[0].partition_responses[0].error_code);
        assert_eq!(result, Err(Code::InvalidProducerEpoch), "version {version}");
    }
}

#[test]
fn an_unknown_group_is_described_as_dead_up_to_version_5() {
    let mut client = Broker::get().client();
    for version in versions(&client, 15, 5) {
        let request = DescribeGroupsRequest::default().with_groups(vec![text(&unique("no-group")).into()]);
        let answer = client.call_at(version, &request);
        let group = &answer.groups[0];
        assert_eq!((group.error_code, group.group_state.as_str()), (0, "Dead"), "version {version}");
    }
}

#[test]
fn a_plain_start_fences_a_former_identity_at_once() {
    let (mut client, _, producer) = fenced();
    let init = calls::transactions::Init { had: Some((producer.id, producer.epoch)), ..Default::default() };
    assert_eq!(client.init_producer(&producer.transactional_id, init), Err(Code::ProducerFenced));
}

#[test]
fn old_versions_of_fetch_and_list_offsets_answer_what_new_ones_do() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["gone"]);
    producer.abort(&mut client);
    client.produce(&topic, 0, &Batch::of(["seen"])).expect("a batch");
    for version in versions(&client, 1, 12) {
        let request = calls::records::fetch_request(&topic, &[(0, 0)], COMMITTED);
        let mut answer = client.call_at(version, &request);
        let fetched = calls::records::fetched(answer.responses.remove(0).partitions.remove(0));
        assert_eq!(fetched.aborted, [(producer.id, 0)], "version {version}");
        let seen = read::visible(&fetched.batches, &fetched.aborted, 0);
        assert_eq!(seen, [(2, "seen".to_owned())], "version {version}");
    }
}
