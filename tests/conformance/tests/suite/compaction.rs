//! What compaction leaves. The development broker compacts when asked; a real Kafka in its own time, once the records
//! are no longer in the newest segment.

use flechtwerk_conformance::*;
use std::time::Duration;

/// What makes a real Kafka compact soon.
const SOON: &[(&str, &str)] =
    &[("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.0001"), ("segment.ms", "50")];
const FILLER: &str = "filler";

/// Compacts until a value is gone.
#[track_caller]
fn compact_away(client: &mut Client, topic: &str, gone: &str) {
    if let Some(dev) = Broker::get().as_dev() {
        // Neither of them compacts what was written last.
        client.produce(topic, 0, &Batch::keyed(&[(FILLER, FILLER)])).expect("a record");
        dev.compact(topic).expect("compacted");
    } else {
        wait_for("the value is compacted away", || {
            // A record that comes later closes the segment before it.
            client.produce(topic, 0, &Batch::keyed(&[(FILLER, FILLER)])).expect("a record");
            std::thread::sleep(Duration::from_millis(100));
            !seen(client, topic, UNCOMMITTED).iter().any(|(_, value)| value == gone)
        });
    }
    let left = seen(client, topic, UNCOMMITTED);
    assert!(!left.iter().any(|(_, value)| value == gone), "{gone} is still there: {left:?}");
}

/// Offsets and values without fillers.
fn seen(client: &mut Client, topic: &str, isolation: i8) -> Vec<(i64, String)> {
    let mut seen = client.read(topic, 0, 0, isolation);
    seen.retain(|(_, value)| value != FILLER);
    seen
}

fn at(offset: i64, value: &str) -> (i64, String) {
    (offset, value.to_owned())
}

/// Writes keyed values as part of a transaction, one batch each.
fn write(client: &mut Client, topic: &str, producer: &Producer, sequence: i32, pairs: &[(&str, &str)]) {
    producer.add(client, topic, &[0]).expect("added");
    let batch = Batch::keyed(pairs).by(producer.id, producer.epoch, sequence).transactional();
    let answer = client.produce_as(topic, 0, batch.encode(), Some(&producer.transactional_id));
    assert_eq!(code(answer.error_code), Ok(()));
}

#[test]
fn the_last_value_of_each_key_stays_where_it_was() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    client.produce(&topic, 0, &Batch::keyed(&[("a", "a1"), ("b", "b1"), ("a", "a2")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("c", "c1")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("a", "a3"), ("d", "d1")])).expect("a batch");
    compact_away(&mut client, &topic, "a2");
    assert_eq!(seen(&mut client, &topic, UNCOMMITTED), [at(1, "b1"), at(3, "c1"), at(4, "a3"), at(5, "d1")]);
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(0));
}

#[test]
fn a_start_in_a_hole_reads_on_behind_it() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    for value in ["1", "2", "3", "4"] {
        client.produce(&topic, 0, &Batch::keyed(&[("a", value)])).expect("a batch");
    }
    client.produce(&topic, 0, &Batch::keyed(&[("b", "5")])).expect("a batch");
    compact_away(&mut client, &topic, "3");
    for from in 0..=3 {
        let mut left = client.read(&topic, 0, from, UNCOMMITTED);
        left.retain(|(_, value)| value != FILLER);
        assert_eq!(left, [at(3, "4"), at(4, "5")], "from {from}");
    }
}

#[test]
fn a_null_removes_the_values_before_it_and_stays_for_a_while() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    client.produce(&topic, 0, &Batch::keyed(&[("a", "old")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("a", "")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("b", "other")])).expect("a batch");
    compact_away(&mut client, &topic, "old");
    assert_eq!(seen(&mut client, &topic, UNCOMMITTED), [at(1, ""), at(2, "other")]);
}

#[test]
fn aborted_records_are_removed_and_replace_nothing() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    let producer = client.transactional_producer();
    write(&mut client, &topic, &producer, 0, &[("a", "kept")]);
    producer.commit(&mut client);
    write(&mut client, &topic, &producer, 1, &[("a", "gone"), ("b", "gone")]);
    producer.abort(&mut client);
    client.produce(&topic, 0, &Batch::keyed(&[("c", "last")])).expect("a batch");
    compact_away(&mut client, &topic, "gone");
    for isolation in [COMMITTED, UNCOMMITTED] {
        assert_eq!(
            seen(&mut client, &topic, isolation),
            [at(0, "kept"), at(5, "last")],
            "isolation {isolation}"
        );
    }
}

#[test]
fn committed_values_replace_those_before_them() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    let producer = client.transactional_producer();
    write(&mut client, &topic, &producer, 0, &[("a", "first")]);
    producer.commit(&mut client);
    write(&mut client, &topic, &producer, 1, &[("a", "second")]);
    producer.commit(&mut client);
    compact_away(&mut client, &topic, "first");
    assert_eq!(seen(&mut client, &topic, COMMITTED), [at(2, "second")]);
}

/// A changelog whose last transaction was aborted: all of its end is a hole and a marker.
#[test]
fn a_log_that_ends_with_an_aborted_transaction_keeps_its_end() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    let producer = client.transactional_producer();
    write(&mut client, &topic, &producer, 0, &[("a", "kept")]);
    producer.commit(&mut client);
    write(&mut client, &topic, &producer, 1, &[("a", "gone"), ("b", "gone")]);
    producer.abort(&mut client);
    let end = client.end(&topic, 0);
    assert_eq!(end, 5);
    compact_away(&mut client, &topic, "gone");
    assert!(client.end(&topic, 0) >= end);
    assert_eq!(client.stable_end(&topic, 0), client.end(&topic, 0));
    assert_eq!(seen(&mut client, &topic, COMMITTED), [at(0, "kept")]);
    for from in 1..=end {
        let mut left = client.read(&topic, 0, from, COMMITTED);
        left.retain(|(_, value)| value != FILLER);
        assert!(left.is_empty(), "from {from}: {left:?}");
    }
}

#[test]
fn an_open_transaction_and_what_follows_it_stay() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    let early = Batch::keyed(&[("a", "replaced"), ("a", "before")]).at(batch::now() - 10_000);
    client.produce(&topic, 0, &early).expect("a batch");
    // So much later that it begins a segment: a segment with an open transaction is not compacted.
    client.produce(&topic, 0, &Batch::keyed(&[(FILLER, FILLER)])).expect("a record");
    let (open, other) = (client.transactional_producer(), client.transactional_producer());
    write(&mut client, &topic, &open, 0, &[("b", "open")]);
    write(&mut client, &topic, &other, 0, &[("a", "behind")]);
    other.commit(&mut client);
    compact_away(&mut client, &topic, "replaced");
    // What is behind the open transaction is not stable, and removes nothing yet.
    assert_eq!(seen(&mut client, &topic, UNCOMMITTED), [at(1, "before"), at(3, "open"), at(4, "behind")]);
    assert_eq!(seen(&mut client, &topic, COMMITTED), [at(1, "before")]);
    open.commit(&mut client);
    let wanted = [at(1, "before"), at(3, "open"), at(4, "behind")];
    let now = seen(&mut client, &topic, COMMITTED);
    // A real Kafka may have compacted again already.
    assert!(now == wanted || now == wanted[1..], "{now:?}");
}

#[test]
fn duplicates_are_known_after_their_records_were_compacted() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, SOON);
    let producer = client.idempotent_producer();
    let batch = Batch::keyed(&[("a", "old")]).by(producer.id, 0, 0);
    assert_eq!(client.produce(&topic, 0, &batch), Ok(0));
    client.produce(&topic, 0, &Batch::keyed(&[("a", "new")])).expect("a batch");
    compact_away(&mut client, &topic, "old");
    let end = client.end(&topic, 0);
    assert_eq!(client.produce(&topic, 0, &batch), Ok(0));
    assert_eq!(client.end(&topic, 0), end);
}

/// On the development broker alone: a real Kafka compacts whenever it likes, so that there is no "afterwards" to look at.
#[test]
fn a_topic_that_is_not_compacted_loses_nothing() {
    let broker = Broker::get();
    let Some(dev) = broker.as_dev() else { return };
    let mut client = broker.client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::keyed(&[("a", "1"), ("a", "2")])).expect("a batch");
    // Refused or without effect.
    let _ = dev.compact(&topic);
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["1", "2"]);
}

/// On the development broker alone: it leaves batches as they are whose codec it has not, where a real Kafka has all.
#[test]
fn batches_of_other_codecs_than_gzip_and_snappy_are_left_as_they_are() {
    let broker = Broker::get();
    let Some(dev) = broker.as_dev() else { return };
    let mut client = broker.client();
    let topic = client.topic_with(1, SOON);
    for codec in [codec::LZ4, codec::ZSTD] {
        let batch = Batch::keyed(&[("a", "old"), ("a", "older")]).compressed(codec);
        client.produce(&topic, 0, &batch).expect("a batch");
    }
    client.produce(&topic, 0, &Batch::keyed(&[("a", "new")])).expect("a batch");
    dev.compact(&topic).expect("compacted");
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["old", "older", "old", "older", "new"]);
}
