//! Reading partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::support::*;
use crate::glue::RawRecord;
use crate::kafka::reader::KafkaReader;
use crate::kafka::{ClientSettings, ReaderKind};
use crate::port::{ErrorKind, Queue, Reader, Wake};

/// Takes until there are at least `count` records.
fn take(queue: &mut dyn Queue, count: usize) -> Vec<RawRecord> {
    let mut records = Vec::new();
    eventually("records", || {
        queue.take(50, usize::MAX, &mut records).unwrap();
        (records.len() >= count).then_some(())
    });
    records
}

/// A wake-up that counts.
fn counter() -> (Arc<AtomicUsize>, Wake) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let wake = Arc::new(move || {
        counted.fetch_add(1, SeqCst);
    });
    (count, wake)
}

#[test]
fn partitions_come_and_go_without_disturbing_others() {
    const RECORDS: i64 = 20_000;
    let kafka = kafka();
    let topic = topic(&kafka, "forty-rounds", 3);
    let mut producer = producer(&kafka, &unique("forty-rounds"), &topic);
    for partition in 0..3 {
        write(&mut *producer, &topic, partition, (0..RECORDS).map(|n| n.to_string()));
    }
    let reader = reader(&kafka);
    let mut others: Vec<(Box<dyn Queue>, i64)> =
        (1..3).map(|n| (reader.open(&at(&topic, n), 0, 0, no_wake()).unwrap(), 0)).collect();
    let mut from = 0;
    for round in 0..40 {
        let mut queue = reader.open(&at(&topic, 0), 0, from, no_wake()).unwrap();
        let records = take(&mut *queue, 200);
        for (record, expected) in records.iter().zip(from..) {
            assert_eq!(record.offset, expected, "round {round}");
            assert_eq!(record.value.as_deref(), Some(expected.to_string().as_bytes()));
        }
        drop(queue);
        // Sometimes back, sometimes on, sometimes ahead of what had been fetched.
        let next = from + records.len() as i64;
        from = [next - 100, next, next + 37][round % 3].max(0);
        for (other, next) in &mut others {
            let mut records = Vec::new();
            other.take(20, usize::MAX, &mut records).unwrap();
            for record in records {
                assert_eq!(record.offset, *next);
                *next += 1;
            }
        }
    }
    for (other, next) in &mut others {
        let left = usize::try_from(RECORDS - *next).unwrap();
        for record in take(&mut **other, left) {
            assert_eq!(record.offset, *next);
            *next += 1;
        }
        assert_eq!(*next, RECORDS);
    }
}

#[test]
fn many_threads_may_open_and_close_partitions_at_once() {
    const RECORDS: i64 = 2_000;
    let kafka = kafka();
    let topic = topic(&kafka, "threads", 8);
    let mut producer = producer(&kafka, &unique("threads"), &topic);
    for partition in 0..8 {
        write(&mut *producer, &topic, partition, (0..RECORDS).map(|n| n.to_string()));
    }
    let reader = reader(&kafka);
    std::thread::scope(|scope| {
        for partition in 0..8 {
            let (reader, place) = (&reader, at(&topic, partition));
            scope.spawn(move || {
                let mut next = 0;
                for round in 0..10 {
                    let mut queue = reader.open(&place, 0, next, no_wake()).unwrap();
                    for record in take(&mut *queue, 100) {
                        assert_eq!((record.partition, record.offset), (partition, next), "round {round}");
                        next += 1;
                    }
                }
            });
        }
    });
}

#[test]
fn a_second_opening_is_refused_and_does_not_disturb_the_first() {
    let kafka = kafka();
    let topic = topic(&kafka, "twice", 1);
    let mut producer = producer(&kafka, &unique("twice"), &topic);
    let reader = reader(&kafka);
    let (wakes, wake) = counter();
    let mut first = reader.open(&at(&topic, 0), 0, 0, wake).unwrap();
    write(&mut *producer, &topic, 0, ["a", "b"]);
    eventually("the records", || (first.waiting() >= 2).then_some(()));
    let Err(error) = reader.open(&at(&topic, 0), 0, 0, no_wake()) else { panic!("opened twice") };
    assert_eq!(error.kind, ErrorKind::Retriable, "{error}");
    assert_eq!(values(&read_to(&mut *first, 3)), ["a", "b"]);
    let before = wakes.load(SeqCst);
    write(&mut *producer, &topic, 0, ["c"]);
    eventually("a wake-up", || (wakes.load(SeqCst) > before).then_some(()));
    drop(first);
    reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
}

#[test]
fn the_end_lies_behind_aborted_records_and_markers() {
    let kafka = kafka();
    let topic = topic(&kafka, "aborted-end", 1);
    let mut producer = producer(&kafka, &unique("aborted-end"), &topic);
    write(&mut *producer, &topic, 0, ["kept"]);
    producer.begin().unwrap();
    producer.produce(&outputs(0, (0..10).map(|n| n.to_string())), std::slice::from_ref(&topic)).unwrap();
    let reader = reader(&kafka);
    eventually("the records", || {
        let marks = reader.watermarks(&at(&topic, 0), LONG).unwrap();
        (marks.high == 12).then_some(())
    });
    // Held back by the open transaction.
    let marks = reader.watermarks(&at(&topic, 0), LONG).unwrap();
    assert_eq!((marks.low, marks.stable, marks.high), (0, 2, 12));
    let mut queue = reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
    assert_eq!(values(&read_to(&mut *queue, 2)), ["kept"]);
    producer.abort(LONG).unwrap();
    let marks = eventually("the marker", || {
        let marks = reader.watermarks(&at(&topic, 0), LONG).unwrap();
        (marks.stable == marks.high).then_some(marks)
    });
    assert_eq!(marks.high, 13);
    assert!(read_to(&mut *queue, 13).is_empty());
    drop(queue);
    // From the middle of what was aborted: the end, and no record.
    let mut queue = reader.open(&at(&topic, 0), 0, 7, no_wake()).unwrap();
    assert!(read_to(&mut *queue, 13).is_empty());
}

#[test]
fn limits_of_count_and_bytes_are_kept_and_nothing_is_lost() {
    let kafka = kafka();
    let topic = topic(&kafka, "limits", 1);
    let mut producer = producer(&kafka, &unique("limits"), &topic);
    let (wakes, wake) = counter();
    let reader = reader(&kafka);
    let mut queue = reader.open(&at(&topic, 0), 0, 0, wake).unwrap();
    read_to(&mut *queue, 0);
    let before = wakes.load(SeqCst);
    write(&mut *producer, &topic, 0, (0..500).map(|_| [b'x'; 1000]));
    eventually("a wake-up", || (wakes.load(SeqCst) > before).then_some(()));
    let mut next = 0;
    let mut check = |records: &[RawRecord]| {
        for record in records {
            assert_eq!(record.offset, next);
            next += 1;
        }
        next
    };
    eventually("everything", || {
        let mut records = Vec::new();
        let taken = queue.take(7, usize::MAX, &mut records).unwrap();
        assert!(taken.records <= 7);
        check(&records);
        records.clear();
        let taken = queue.take(usize::MAX, 3_500, &mut records).unwrap();
        assert!(taken.bytes <= 3_500, "{taken:?}");
        assert_eq!(taken.bytes, records.len() * 1000);
        check(&records);
        records.clear();
        // One that is larger than the limit is let through alone.
        let taken = queue.take(usize::MAX, 10, &mut records).unwrap();
        assert!(taken.records <= 1);
        (check(&records) == 500).then_some(())
    });
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn an_offset_that_is_not_there_is_an_error() {
    let kafka = kafka();
    let topic = topic(&kafka, "out-of-range", 1);
    let mut producer = producer(&kafka, &unique("out-of-range"), &topic);
    write(&mut *producer, &topic, 0, ["a"]);
    let reader = reader(&kafka);
    let mut queue = reader.open(&at(&topic, 0), 0, 99, no_wake()).unwrap();
    let mut records = Vec::new();
    let error = eventually("the error", || queue.take(10, 1000, &mut records).err());
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Hopeless, "OFFSET_OUT_OF_RANGE"), "{error}");
    assert!(error.text.contains(&*topic), "{error}");
    assert!(records.is_empty());
    // And the partition can be opened where there is something.
    drop(queue);
    let mut queue = reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
    assert_eq!(values(&read_to(&mut *queue, 1)), ["a"]);
}

#[test]
fn a_record_in_the_wrong_queue_is_not_passed_over() {
    let kafka = kafka();
    let topic = topic(&kafka, "astray", 2);
    let mut producer = producer(&kafka, &unique("astray"), &topic);
    let reader =
        KafkaReader::new(&settings(), &unique("astray"), ReaderKind::Inputs { headers: true }).unwrap();
    let mut queue = reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
    // Assigned without a queue of its own.
    reader.shared.handle.assign_partition(&at(&topic, 1), 0).unwrap();
    write(&mut *producer, &topic, 1, ["astray"]);
    let error = eventually("the error", || queue.take(10, 1000, &mut Vec::new()).err());
    assert_eq!(error.kind, ErrorKind::Fatal, "{error}");
}

#[test]
fn a_queue_may_outlive_its_reader() {
    let kafka = kafka();
    let topic = topic(&kafka, "outlive", 1);
    let mut producer = producer(&kafka, &unique("outlive"), &topic);
    let reader = reader(&kafka);
    reader.warm_up(std::slice::from_ref(&topic), LONG);
    let mut queue = reader.open(&at(&topic, 0), 0, 0, no_wake()).unwrap();
    drop(reader);
    write(&mut *producer, &topic, 0, ["a"]);
    assert_eq!(values(&read_to(&mut *queue, 1)), ["a"]);
}

/// A reader that reads nothing of a topic hears of no new leader epoch (a broker was restarted) but by asking.
#[test]
fn offsets_are_found_under_a_new_leader_epoch() {
    let mock = rdkafka::mocking::MockCluster::new(1).unwrap();
    let topic: Arc<str> = Arc::from("epochs");
    mock.create_topic(&topic, 1, 1).unwrap();
    let settings = ClientSettings::new(mock.bootstrap_servers());
    let reader = KafkaReader::new(&settings, "epochs", ReaderKind::Changelogs).unwrap();
    let ask = || persist(|| reader.watermarks(&at(&topic, 0), LONG));
    ask().unwrap();
    for _ in 0..3 {
        // The same leader, and the next epoch.
        mock.partition_leader(&topic, 0, Some(1)).unwrap();
        ask().unwrap();
    }
}
