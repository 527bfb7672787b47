//! Transactions.

use std::sync::Arc;

use bytes::Bytes;

use super::support::*;
use crate::format::ChangelogRecord;
use crate::kafka::Kafka;
use crate::port::ErrorKind;

fn committed_values(kafka: &Kafka, topic: &Arc<str>, end: i64) -> Vec<Bytes> {
    let reader = reader(kafka);
    let mut queue = reader.open(&at(topic, 0), 0, 0, no_wake()).unwrap();
    values(&read_to(&mut *queue, end))
}

#[test]
fn what_is_aborted_is_not_read_and_what_is_committed_is() {
    let kafka = kafka();
    let topic = topic(&kafka, "abort", 1);
    let mut producer = producer(&kafka, &unique("abort"), &topic);
    for round in 0..3 {
        producer.begin().unwrap();
        let lost = outputs(0, (0..100).map(|n| format!("lost-{round}-{n}")));
        producer.produce(&lost, std::slice::from_ref(&topic)).unwrap();
        producer.abort(LONG).unwrap();
        assert!(producer.delivery_error().is_none());
        write(&mut *producer, &topic, 0, [format!("kept-{round}")]);
    }
    assert_eq!(producer.unanswered().lost_txn, 0);
    assert_eq!(producer.unanswered().open_txn, 0);
    let end = eventually("the last marker", || {
        let marks = reader(&kafka).watermarks(&at(&topic, 0), LONG).unwrap();
        (marks.stable == marks.high && marks.high > 3).then_some(marks.high)
    });
    assert_eq!(committed_values(&kafka, &topic, end), ["kept-0", "kept-1", "kept-2"]);
}

#[test]
fn keys_values_headers_and_timestamps_arrive_as_they_were_sent() {
    let kafka = kafka();
    let topic = topic(&kafka, "parts", 1);
    let mut producer = producer(&kafka, &unique("parts"), &topic);
    let mut sent = outputs(0, ["", "value", "x"]);
    sent.records[0].key = Some(0..0);
    sent.records[1].value = None;
    sent.records[2].key = Some(0..5);
    sent.records[2].headers.push("twice", Some(Bytes::from_static(b"1")));
    sent.records[2].headers.push("twice", Some(Bytes::new()));
    sent.records[2].headers.push("null", None);
    producer.begin().unwrap();
    producer.produce(&sent, std::slice::from_ref(&topic)).unwrap();
    commit(&mut *producer).unwrap();

    let reader = reader(&kafka);
    let mut queue = reader.open(&at(&topic, 0), 7, 0, no_wake()).unwrap();
    let read = read_to(&mut *queue, 3);
    let parts = |n: usize| (read[n].key.as_deref(), read[n].value.as_deref());
    assert_eq!(parts(0), (Some(&b""[..]), Some(&b""[..])));
    assert_eq!(parts(1), (None, None));
    assert_eq!(parts(2), (Some(&b"value"[..]), Some(&b"x"[..])));
    assert!(read[2].headers == sent.records[2].headers);
    for (index, record) in read.iter().enumerate() {
        assert_eq!((record.input, record.partition, record.offset), (7, 0, index as i64));
        assert_eq!(record.timestamp, sent.records[index].timestamp);
    }
}

#[test]
fn keys_choose_the_partition_as_the_java_client_does() {
    let kafka = kafka();
    let topic = topic(&kafka, "partitioner", 4);
    let mut producer = producer(&kafka, &unique("partitioner"), &topic);
    let mut sent = outputs(0, ["a", "foobar", "21"]);
    for record in &mut sent.records {
        record.key = record.value.clone();
        record.partition = None;
    }
    producer.begin().unwrap();
    producer.produce(&sent, std::slice::from_ref(&topic)).unwrap();
    commit(&mut *producer).unwrap();
    let reader = reader(&kafka);
    // murmur2 of the Java client: `21` -973932308, `foobar` -790332482, `a` -1563381124, made positive, modulo 4.
    let positive = |hash: i32| (hash & 0x7fff_ffff) % 4;
    for (key, hash) in [("21", -973_932_308), ("foobar", -790_332_482)] {
        let mut queue = reader.open(&at(&topic, positive(hash)), 0, 0, no_wake()).unwrap();
        let read = read_to(&mut *queue, 1);
        assert!(read.iter().any(|record| record.key.as_deref() == Some(key.as_bytes())), "{key}");
    }
}

#[test]
fn a_fence_ends_the_transaction_of_the_one_before() {
    let kafka = kafka();
    let topic = topic(&kafka, "fence", 1);
    let id = unique("fence");
    let mut old = producer(&kafka, &id, &topic);
    old.begin().unwrap();
    old.produce(&outputs(0, ["late"]), std::slice::from_ref(&topic)).unwrap();
    // Sent, so that the transaction is open at the broker.
    eventually("the late record", || {
        old.serve();
        (reader(&kafka).watermarks(&at(&topic, 0), LONG).unwrap().high > 0).then_some(())
    });
    let mut new = producer(&kafka, &id, &topic);
    let error = commit(&mut *old).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Fenced, "{error}");
    write(&mut *new, &topic, 0, ["new"]);
    let error = old.begin().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Fenced, "{error}");
    assert_eq!(committed_values(&kafka, &topic, 4), ["new"]);
}

#[test]
fn a_record_that_is_too_large_is_named_by_the_client_and_by_the_broker() {
    let kafka = kafka();
    let (plain, small) = (topic(&kafka, "plain", 1), unique("small"));
    create(&*kafka.cluster().unwrap(), &new_topic(&small, 1, &[("max.message.bytes", "1000")]));
    let mut producer = producer(&kafka, &unique("large"), &plain);
    for (topic, size) in [(&plain, 3_000_000), (&small, 5_000)] {
        let mut sent = outputs(0, ["fits", "fits too"]);
        let large = outputs(0, [vec![b'x'; size]]);
        let start = sent.bytes.len();
        sent.bytes.extend(&large.bytes);
        sent.records.extend(large.records);
        sent.records[2].value = Some(start..start + size);
        producer.begin().unwrap();
        let refused = producer.produce(&sent, std::slice::from_ref(topic));
        let error = match refused {
            Err(error) => error,
            Ok(()) => {
                let error = commit(&mut *producer).unwrap_err();
                let delivery = producer.delivery_error().expect("a delivery error");
                assert_eq!((error.output, &error.text), (delivery.output, &delivery.text));
                // More of the transaction is refused for the same reason.
                let more = producer.produce(&outputs(0, ["more"]), std::slice::from_ref(topic)).unwrap_err();
                assert_eq!((more.kind, more.output), (delivery.kind, delivery.output), "{more}");
                delivery
            }
        };
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Hopeless, "MSG_SIZE_TOO_LARGE"), "{error}");
        assert_eq!((error.output, error.size), (Some(2), Some(size)));
        assert!(error.text.contains(&**topic), "{error}");
        producer.abort(LONG).unwrap();
    }
    // And the producer goes on.
    write(&mut *producer, &plain, 0, ["after"]);
}

#[test]
fn an_output_topic_that_does_not_exist_is_hopeless_and_named() {
    let kafka = kafka();
    let real = topic(&kafka, "real", 1);
    let absent = unique("absent");
    let mut settings = settings();
    settings.extra.insert("topic.metadata.propagation.max.ms".to_owned(), "100".to_owned());
    let kafka = Kafka::new(settings);
    let mut producer = producer(&kafka, &unique("unknown"), &real);
    producer.begin().unwrap();
    let error = eventually("the refusal", || {
        let refused = producer.produce(&outputs(0, ["x"]), std::slice::from_ref(&absent));
        refused.err().filter(|error| error.kind == ErrorKind::Hopeless).or_else(|| producer.delivery_error())
    });
    assert_eq!(error.kind, ErrorKind::Hopeless, "{error}");
    assert!(error.text.contains(&*absent) && error.text.contains("does not exist"), "{error}");
    producer.abort(LONG).unwrap();
}

#[test]
fn a_full_queue_is_waited_out() {
    let mut settings = settings();
    settings.extra.insert("queue.buffering.max.messages".to_owned(), "100".to_owned());
    let kafka = Kafka::new(settings);
    let topic = topic(&kafka, "full", 1);
    let mut producer = producer(&kafka, &unique("full"), &topic);
    producer.begin().unwrap();
    let sent: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    producer.produce(&outputs(0, &sent[..2_500]), std::slice::from_ref(&topic)).unwrap();
    let changes: Vec<ChangelogRecord> = sent[2_500..]
        .iter()
        .map(|n| ChangelogRecord { key: b"k"[..].into(), value: Some(n.as_bytes().into()) })
        .collect();
    producer.produce_changelog(&topic, 0, &changes).unwrap();
    commit(&mut *producer).unwrap();
    assert!(committed_values(&kafka, &topic, 5_000).iter().eq(sent.iter()));
}
