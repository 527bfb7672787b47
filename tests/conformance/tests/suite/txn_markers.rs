//! WriteTxnMarkers, by which a tool ends a transaction that hangs in one partition: `kafka-transactions abort`.

use flechtwerk_conformance::*;

const NOTHING: [&str; 0] = [];

fn abort(producer: &Producer) -> ToolMarker {
    ToolMarker { producer: (producer.id, producer.epoch), coordinator_epoch: 0, commit: false }
}

#[test]
fn a_marker_of_a_tool_ends_an_open_transaction_in_one_partition() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a", "b"]);
    producer.write(&mut client, &topic, 1, &["c"]);
    assert_eq!((client.stable_end(&topic, 0), client.stable_end(&topic, 1)), (0, 0));
    assert_eq!(abort(&producer).write(&mut client, &topic, 0), Ok(()));
    // Two records and the marker.
    assert_eq!(client.await_stable(&topic, 0), 3);
    let fetched = client.fetch(&topic, 0, 0, COMMITTED).expect("the log");
    assert!(fetched.batches.last().expect("a batch").is_abort());
    assert_eq!(client.values(&topic, 0, COMMITTED), NOTHING);
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["a", "b"]);
    // The other partition waits for the transaction's end, which the coordinator knows nothing of.
    assert_eq!(client.stable_end(&topic, 1), 0);
    assert_eq!(client.transaction_state(&producer.transactional_id), "Ongoing");
    producer.commit(&mut client);
    assert_eq!(client.await_stable(&topic, 1), 2);
    assert_eq!(client.values(&topic, 1, COMMITTED), ["c"]);
    // What was aborted stays so, whatever the transaction's end says.
    assert_eq!(client.values(&topic, 0, COMMITTED), NOTHING);
}

#[test]
fn a_marker_of_a_tool_is_told_of_in_the_state_of_its_producer() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    let state = client.describe_producers(&topic, 0).expect("producers").remove(0);
    assert_eq!(state.current_txn_start_offset, 0);
    assert_eq!(abort(&producer).write(&mut client, &topic, 0), Ok(()));
    let state = client.describe_producers(&topic, 0).expect("producers").remove(0);
    assert_eq!((state.current_txn_start_offset, state.coordinator_epoch), (-1, 0));
    producer.abort(&mut client);
}

#[test]
fn a_marker_of_an_older_epoch_is_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let older = client.transactional_producer();
    let mut newer = client.producer_named(&older.transactional_id);
    newer.write(&mut client, &topic, 0, &["a"]);
    assert_eq!(abort(&older).write(&mut client, &topic, 0), Err(Code::InvalidProducerEpoch));
    assert_eq!(client.end(&topic, 0), 1, "nothing was written");
    newer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a"]);
}

#[test]
fn a_marker_of_an_older_coordinator_is_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    // No coordinator has a say in what this one writes.
    let producer = client.idempotent_producer();
    let marker = |coordinator_epoch| ToolMarker { coordinator_epoch, ..abort(&producer) };
    assert_eq!(marker(5).write(&mut client, &topic, 0), Ok(()));
    assert_eq!(marker(4).write(&mut client, &topic, 0), Err(Code::TransactionCoordinatorFenced));
    assert_eq!(marker(5).write(&mut client, &topic, 0), Ok(()));
    assert_eq!(client.end(&topic, 0), 2, "a marker is written where no transaction is open as well");
}

#[test]
fn a_marker_needs_a_partition_that_exists() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let producer = client.transactional_producer();
    let unknown = Err(Code::UnknownTopicOrPartition);
    assert_eq!(abort(&producer).write(&mut client, &topic, 1), unknown);
    assert_eq!(abort(&producer).write(&mut client, &unique("nowhere"), 0), unknown);
}
