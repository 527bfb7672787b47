//! What readers see of transactions, open, committed and aborted.

use flechtwerk_conformance::calls::records::{fetch_request, fetched};
use flechtwerk_conformance::*;
use kafka_protocol::messages::FetchRequest;
use std::time::Duration;

fn begun() -> (Client, String, Producer, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let (one, other) = (client.transactional_producer(), client.transactional_producer());
    (client, topic, one, other)
}

#[test]
fn an_open_transaction_holds_the_last_stable_offset_at_its_first_record() {
    let (mut client, topic, mut one, _) = begun();
    client.produce(&topic, 0, &Batch::of(["a", "b"])).expect("a batch");
    assert_eq!(client.stable_end(&topic, 0), 2);
    one.write(&mut client, &topic, 0, &["c"]);
    one.write(&mut client, &topic, 0, &["d"]);
    client.produce(&topic, 0, &Batch::of(["e"])).expect("a batch");
    assert_eq!((client.stable_end(&topic, 0), client.end(&topic, 0)), (2, 5));
    for isolation in [COMMITTED, UNCOMMITTED] {
        let data = client.fetch(&topic, 0, 0, isolation).expect("a fetch").data;
        assert_eq!((data.last_stable_offset, data.high_watermark), (2, 5), "isolation {isolation}");
    }
    one.commit(&mut client);
    assert_eq!((client.stable_end(&topic, 0), client.end(&topic, 0)), (6, 6));
}

/// It is part of the transaction, but has nothing that a reader could see too early.
#[test]
fn a_partition_that_was_added_and_not_written_holds_nothing_up() {
    let (mut client, topic, one, _) = begun();
    one.add(&mut client, &topic, &[0]).expect("added");
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a batch");
    assert_eq!(client.stable_end(&topic, 0), 1);
}

#[test]
fn readers_of_what_is_committed_stop_at_an_open_transaction() {
    let (mut client, topic, mut one, _) = begun();
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a batch");
    one.write(&mut client, &topic, 0, &["b"]);
    client.produce(&topic, 0, &Batch::of(["c"])).expect("a batch");
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a"]);
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["a", "b", "c"]);
    one.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a", "b", "c"]);
}

#[test]
fn a_later_commit_stays_behind_an_earlier_open_transaction() {
    let (mut client, topic, mut one, mut other) = begun();
    one.write(&mut client, &topic, 0, &["first"]);
    other.write(&mut client, &topic, 0, &["second"]);
    other.commit(&mut client);
    assert_eq!(client.stable_end(&topic, 0), 0);
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
    one.abort(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["second"]);
    assert_eq!(client.stable_end(&topic, 0), 4);
}

#[test]
fn the_stable_end_moves_to_the_next_open_transaction() {
    let (mut client, topic, mut one, mut other) = begun();
    one.write(&mut client, &topic, 0, &["a"]);
    other.write(&mut client, &topic, 0, &["b", "c"]);
    one.write(&mut client, &topic, 0, &["d"]);
    one.commit(&mut client);
    assert_eq!(client.stable_end(&topic, 0), 1);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a"]);
    other.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a", "b", "c", "d"]);
}

#[test]
fn a_start_between_the_stable_end_and_the_end_answers_nothing() {
    let (mut client, topic, mut one, _) = begun();
    one.write(&mut client, &topic, 0, &["a", "b", "c"]);
    for from in [0, 1, 3] {
        let answer = client.fetch(&topic, 0, from, COMMITTED).expect("a fetch");
        assert!(answer.batches.is_empty(), "from {from}");
    }
    assert_eq!(client.fetch(&topic, 0, 4, COMMITTED).expect_err("an error"), Code::OffsetOutOfRange);
}

#[test]
fn an_aborted_transaction_is_listed_with_its_producer_and_first_offset() {
    let (mut client, topic, mut one, mut other) = begun();
    client.produce(&topic, 0, &Batch::of(["plain"])).expect("a batch");
    one.write(&mut client, &topic, 0, &["a"]);
    other.write(&mut client, &topic, 0, &["b"]);
    other.abort(&mut client);
    one.commit(&mut client);
    let answer = client.fetch(&topic, 0, 0, COMMITTED).expect("a fetch");
    assert_eq!(answer.aborted, [(other.id, 2)]);
    assert_eq!(answer.batches.len(), 5, "aborted records are sent, and left out by the reader");
}

#[test]
fn a_reader_of_everything_gets_no_list_of_aborted_transactions() {
    let (mut client, topic, mut one, _) = begun();
    one.write(&mut client, &topic, 0, &["a"]);
    one.abort(&mut client);
    let answer = client.call(&fetch_request(&topic, &[(0, 0)], UNCOMMITTED));
    assert!(answer.responses[0].partitions[0].aborted_transactions.as_ref().is_none_or(Vec::is_empty));
}

#[test]
fn only_those_aborted_transactions_are_listed_that_the_answer_touches() {
    let (mut client, topic, mut one, mut other) = begun();
    one.write(&mut client, &topic, 0, &["a"]); // 0
    one.abort(&mut client); // 1
    client.produce(&topic, 0, &Batch::of(["b"])).expect("a batch"); // 2
    other.write(&mut client, &topic, 0, &["c"]); // 3
    other.abort(&mut client); // 4
    let aborted =
        |client: &mut Client, from| client.fetch(&topic, 0, from, COMMITTED).expect("a fetch").aborted;
    assert_eq!(aborted(&mut client, 0), [(one.id, 0), (other.id, 3)]);
    assert_eq!(aborted(&mut client, 1), [(one.id, 0), (other.id, 3)], "its marker is still ahead");
    assert_eq!(aborted(&mut client, 2), [(other.id, 3)]);
    assert_eq!(aborted(&mut client, 5), []);
}

#[test]
fn one_producer_is_listed_once_for_each_of_its_aborted_transactions() {
    let (mut client, topic, mut one, _) = begun();
    for commit in [false, true, false] {
        one.write(&mut client, &topic, 0, &[if commit { "seen" } else { "gone" }]);
        one.end(&mut client, commit).expect("the end");
    }
    let answer = client.fetch(&topic, 0, 0, COMMITTED).expect("a fetch");
    assert_eq!(answer.aborted, [(one.id, 0), (one.id, 4)]);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["seen"]);
}

#[test]
fn a_start_inside_an_aborted_batch_sees_nothing_of_it() {
    let (mut client, topic, mut one, _) = begun();
    one.write(&mut client, &topic, 0, &["a", "b", "c"]);
    one.abort(&mut client);
    client.produce(&topic, 0, &Batch::of(["d"])).expect("a batch");
    let answer = client.fetch(&topic, 0, 1, COMMITTED).expect("a fetch");
    assert_eq!(answer.batches[0].base_offset, 0, "the whole batch");
    assert_eq!(answer.aborted, [(one.id, 0)]);
    for from in 0..=4 {
        assert_eq!(client.read(&topic, 0, from, COMMITTED), [(4, "d".to_owned())], "from {from}");
    }
}

#[test]
fn a_start_in_the_middle_of_an_aborted_transaction_of_several_batches_sees_nothing_of_it() {
    let (mut client, topic, mut one, _) = begun();
    for value in ["a", "b", "c"] {
        one.write(&mut client, &topic, 0, &[value]);
        client.produce(&topic, 0, &Batch::of([value.to_uppercase()])).expect("a batch");
    }
    one.abort(&mut client);
    let answer = client.fetch(&topic, 0, 2, COMMITTED).expect("a fetch");
    assert_eq!(answer.aborted, [(one.id, 0)]);
    assert_eq!(client.read(&topic, 0, 2, COMMITTED), [(3, "B".to_owned()), (5, "C".to_owned())]);
}

#[test]
fn a_start_at_a_marker_sees_what_follows() {
    let (mut client, topic, mut one, _) = begun();
    one.write(&mut client, &topic, 0, &["a"]);
    one.abort(&mut client);
    one.write(&mut client, &topic, 0, &["b"]);
    one.commit(&mut client);
    assert_eq!(client.read(&topic, 0, 1, COMMITTED), [(2, "b".to_owned())]);
    assert!(client.read(&topic, 0, 3, COMMITTED).is_empty());
}

#[test]
fn a_waiting_reader_of_what_is_committed_is_woken_by_the_commit_and_not_by_the_records() {
    let (mut client, topic, mut one, _) = begun();
    let mut reader = client.another();
    reader.send(&fetch_request(&topic, &[(0, 0)], COMMITTED).with_max_wait_ms(15_000).with_min_bytes(1));
    one.write(&mut client, &topic, 0, &["a"]);
    assert!(reader.is_silent_for(Duration::from_millis(150)), "an answer before the commit");
    one.commit(&mut client);
    let mut answer = reader.receive::<FetchRequest>();
    let answer = fetched(answer.responses.remove(0).partitions.remove(0));
    assert_eq!(answer.batches[0].base_offset, 0);
    assert_eq!(answer.data.last_stable_offset, 2);
}

#[test]
fn a_time_behind_the_stable_end_finds_nothing_committed() {
    let (mut client, topic, one, _) = begun();
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a batch");
    one.add(&mut client, &topic, &[0]).expect("added");
    let later = batch::now() + 60_000;
    let batch = Batch::of(["b"]).by(one.id, one.epoch, 0).transactional().at(later);
    let answer = client.produce_as(&topic, 0, batch.encode(), Some(&one.transactional_id));
    assert_eq!(code(answer.error_code), Ok(()));
    assert_eq!(client.list_offset(&topic, 0, later, UNCOMMITTED), Ok(1));
    assert_eq!(client.list_offset(&topic, 0, later, COMMITTED), Ok(-1));
    one.commit(&mut client);
    assert_eq!(client.list_offset(&topic, 0, later, COMMITTED), Ok(1));
}

#[test]
fn compressed_batches_of_a_transaction_are_kept_like_others() {
    let (mut client, topic, one, _) = begun();
    for commit in [false, true] {
        one.add(&mut client, &topic, &[0]).expect("added");
        let sequence = if commit { 2 } else { 0 };
        let batch =
            Batch::of(["a", "b"]).by(one.id, one.epoch, sequence).transactional().compressed(codec::GZIP);
        let answer = client.produce_as(&topic, 0, batch.encode(), Some(&one.transactional_id));
        assert_eq!(code(answer.error_code), Ok(()));
        one.end(&mut client, commit).expect("the end");
    }
    assert_eq!(client.read(&topic, 0, 0, COMMITTED), [(3, "a".to_owned()), (4, "b".to_owned())]);
}

#[test]
fn deleted_records_take_aborted_transactions_off_the_list() {
    let (mut client, topic, mut one, _) = begun();
    one.write(&mut client, &topic, 0, &["a", "b"]);
    one.abort(&mut client);
    client.produce(&topic, 0, &Batch::of(["c"])).expect("a batch");
    assert_eq!(client.delete_records(&topic, 0, 3), Ok(3));
    let answer = client.fetch(&topic, 0, 3, COMMITTED).expect("a fetch");
    assert!(answer.aborted.is_empty());
    assert_eq!(client.read(&topic, 0, 3, COMMITTED), [(3, "c".to_owned())]);
}
