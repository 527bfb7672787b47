//! Producers whose retries write nothing twice.

use flechtwerk_conformance::calls::transactions::Init;
use flechtwerk_conformance::*;

/// One record with this sequence number.
fn one(producer: &Producer, epoch: i16, sequence: i32) -> Batch {
    Batch::of([format!("{epoch}/{sequence}")]).by(producer.id, epoch, sequence)
}

fn begun() -> (Client, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let producer = client.idempotent_producer();
    (client, topic, producer)
}

#[test]
fn each_producer_has_an_id_of_its_own_and_epoch_0() {
    let mut client = Broker::get().client();
    let (one, other) = (client.idempotent_producer(), client.idempotent_producer());
    assert_ne!(one.id, other.id);
    assert!(one.id >= 0);
    assert_eq!((one.epoch, other.epoch), (0, 0));
}

#[test]
fn without_transactions_any_identity_is_exchanged_for_a_new_one() {
    let mut client = Broker::get().client();
    let old = client.idempotent_producer();
    let init = Init { had: Some((old.id, old.epoch)), ..Init::default() };
    let (id, epoch) = client.init_producer("", init).expect("a producer id");
    assert_ne!(id, old.id);
    assert_eq!(epoch, 0);
}

#[test]
fn a_duplicate_is_answered_with_its_first_offset_and_not_written() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Ok(1));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Ok(1));
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["0/0", "0/1"]);
}

#[test]
fn five_batches_are_remembered() {
    let (mut client, topic, producer) = begun();
    for sequence in 0..5 {
        client.produce(&topic, 0, &one(&producer, 0, sequence)).expect("a batch");
    }
    for sequence in 0..5 {
        assert_eq!(client.produce(&topic, 0, &one(&producer, 0, sequence)), Ok(i64::from(sequence)));
    }
    assert_eq!(client.end(&topic, 0), 5);
}

#[test]
fn the_sixth_batch_back_is_out_of_order() {
    let (mut client, topic, producer) = begun();
    for sequence in 0..6 {
        client.produce(&topic, 0, &one(&producer, 0, sequence)).expect("a batch");
    }
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Ok(1));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.end(&topic, 0), 6);
}

#[test]
fn a_batch_that_overlaps_another_is_out_of_order() {
    let (mut client, topic, producer) = begun();
    let three = Batch::of(["a", "b", "c"]).by(producer.id, 0, 0);
    assert_eq!(client.produce(&topic, 0, &three), Ok(0));
    for (sequence, count) in [(0, 2), (1, 2), (2, 3), (0, 4)] {
        let batch = Batch::of(vec!["x"; count]).by(producer.id, 0, sequence);
        assert_eq!(
            client.produce(&topic, 0, &batch),
            Err(Code::OutOfOrderSequenceNumber),
            "{sequence} {count}"
        );
    }
    assert_eq!(client.produce(&topic, 0, &three), Ok(0));
    assert_eq!(client.end(&topic, 0), 3);
}

#[test]
fn a_gap_is_out_of_order_and_the_producer_goes_on_where_it_was() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 2)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Ok(1));
}

#[test]
fn a_producer_that_the_partition_does_not_know_may_begin_anywhere() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 7)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 8)), Ok(1));
}

#[test]
fn after_the_highest_sequence_number_comes_0() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, i32::MAX)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(1));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, i32::MAX)), Ok(0), "a duplicate");
}

#[test]
fn a_batch_can_go_over_the_highest_sequence_number() {
    let (mut client, topic, producer) = begun();
    let batch = Batch::of(["a", "b", "c"]).by(producer.id, 0, i32::MAX - 1);
    assert_eq!(client.produce(&topic, 0, &batch), Ok(0));
    assert_eq!(client.produce(&topic, 0, &batch), Ok(0), "a duplicate");
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 2)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 1)), Ok(3));
}

#[test]
fn a_new_epoch_begins_at_0() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 1, 1)), Err(Code::OutOfOrderSequenceNumber));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 1, 0)), Ok(1));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 1, 1)), Ok(2));
}

#[test]
fn an_old_epoch_is_refused() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 3, 0)), Ok(0));
    for sequence in [0, 1] {
        assert_eq!(client.produce(&topic, 0, &one(&producer, 2, sequence)), Err(Code::InvalidProducerEpoch));
    }
    assert_eq!(client.end(&topic, 0), 1);
}

#[test]
fn what_a_former_epoch_has_written_is_no_duplicate() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 1, 0)), Ok(1));
    assert_eq!(client.end(&topic, 0), 2);
}

#[test]
fn sequence_numbers_are_counted_for_each_partition_and_producer() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let (a, b) = (client.idempotent_producer(), client.idempotent_producer());
    for producer in [&a, &b] {
        for partition in [0, 1] {
            client.produce(&topic, partition, &one(producer, 0, 0)).expect("a batch");
        }
    }
    assert_eq!((client.end(&topic, 0), client.end(&topic, 1)), (2, 2));
}

#[test]
fn a_producer_id_without_a_sequence_number_is_refused() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, -1)), Err(Code::InvalidRecord));
    assert_eq!(client.end(&topic, 0), 0);
}

#[test]
fn an_epoch_below_that_of_nobody_is_refused() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, -2, 0)), Err(Code::InvalidProducerEpoch));
    assert_eq!(client.end(&topic, 0), 0);
}

#[test]
fn duplicates_are_known_after_their_records_were_deleted() {
    let (mut client, topic, producer) = begun();
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.delete_records(&topic, 0, 1), Ok(1));
    assert_eq!(client.produce(&topic, 0, &one(&producer, 0, 0)), Ok(0));
    assert_eq!(client.end(&topic, 0), 1);
}
