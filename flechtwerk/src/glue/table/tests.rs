//! Tables, record by record.

use std::sync::Mutex;

use bytes::Bytes;

use super::{AnyTable, RawRecord, table};
use crate::glue::{Env, FailureKind, RecordPart, Settled};
use crate::invalid::{Answer, Invalid};
use crate::prelude::*;
use crate::shared::SharedPart;
use crate::{Key, Row, Value};

#[topic("plain", key = Utf8, value = Utf8, crate = crate)]
struct Plain;
#[topic("nullable", key = Utf8, value = Nullable<Utf8>, crate = crate)]
struct MayBeNull;
#[topic("lengths", key = Utf8, value = Utf8, row = usize, enrich = length, empty_is_delete = true, crate = crate)]
struct Lengths;

/// The keys that [`length`] was called for.
static ENRICHED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn length(key: &Key<Lengths>, value: Value<Lengths>) -> Result<usize, std::fmt::Error> {
    ENRICHED.lock().unwrap().push(format!("{key}={value}"));
    match value.as_str() {
        "error" => Err(std::fmt::Error),
        "panic" => panic!("no length"),
        text => Ok(text.len()),
    }
}

fn record(offset: i64, key: &str, value: Option<&str>) -> RawRecord {
    RawRecord {
        input: 0,
        partition: 3,
        offset,
        timestamp: 0,
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
        headers: Default::default(),
    }
}

fn now<T: crate::TableTopic>(table: &dyn AnyTable) -> Table<T> {
    let mut env = Env::default();
    env.put(table.version());
    SharedPart::open(&env).unwrap()
}

#[test]
fn null_deletes_and_empty_is_a_value() {
    let mut table = table::<Plain>(4);
    for (offset, (key, value)) in
        [("a", Some("1")), ("b", Some("")), ("c", Some("3")), ("c", None), ("never", None)]
            .into_iter()
            .enumerate()
    {
        table.take(&record(offset as i64, key, value), "stage");
    }
    table.publish().unwrap();
    let now = now::<Plain>(&*table);
    assert_eq!((now.len(), now.get("a").unwrap().as_str(), now.get("b").unwrap().as_str()), (2, "1", ""));
    assert!(!now.contains_key("c"));
}

#[test]
fn null_deletes_where_the_value_is_nullable_too() {
    let mut table = table::<MayBeNull>(4);
    table.take(&record(0, "a", Some("1")), "stage");
    table.take(&record(1, "b", Some("")), "stage");
    table.publish().unwrap();
    table.take(&record(2, "a", None), "stage");
    table.publish().unwrap();
    let now = now::<MayBeNull>(&*table);
    assert_eq!(now.iter().collect::<Vec<_>>(), [(&"b".to_owned(), &Some(String::new()))]);
}

#[test]
fn a_version_stays_as_it_was() {
    let mut table = table::<Plain>(4);
    table.take(&record(0, "a", Some("1")), "stage");
    table.publish().unwrap();
    let before = now::<Plain>(&*table);
    table.take(&record(1, "a", Some("2")), "stage");
    assert_eq!(now::<Plain>(&*table).get("a").unwrap(), "1");
    table.publish().unwrap();
    assert_eq!(before.get("a").unwrap(), "1");
    assert_eq!(now::<Plain>(&*table).get("a").unwrap(), "2");
}

#[test]
fn keys_and_bytes_are_those_of_the_rows_there_are() {
    let mut table = table::<Plain>(4);
    for (offset, (key, value)) in
        [("aa", Some("1")), ("bb", Some("1234")), ("aa", Some("123")), ("cc", Some("1"))]
            .into_iter()
            .enumerate()
    {
        table.take(&record(offset as i64, key, value), "stage");
        table.publish().unwrap();
    }
    assert_eq!((table.keys(), table.bytes()), (3, 3 * 2 + 4 + 3 + 1));
    table.take(&record(9, "bb", None), "stage");
    table.publish().unwrap();
    assert_eq!((table.keys(), table.bytes()), (2, 2 * 2 + 3 + 1));
}

#[test]
fn enrich_runs_once_for_each_record_that_survives() {
    let mut table = table::<Lengths>(4);
    let records = [
        ("a", Some("one")),
        ("a", Some("four")),
        ("b", Some("gone")),
        ("b", Some("")),
        ("c", Some("error")),
        ("c", Some("x")),
        ("d", Some("gone")),
        ("d", None),
    ];
    for (offset, (key, value)) in records.into_iter().enumerate() {
        table.take(&record(offset as i64, key, value), "stage");
    }
    table.publish().unwrap();
    table.publish().unwrap();
    let mut enriched = std::mem::take(&mut *ENRICHED.lock().unwrap());
    enriched.retain(|call| !call.starts_with("bad"));
    enriched.sort();
    assert_eq!(enriched, ["a=four", "c=x"]);
    let now = now::<Lengths>(&*table);
    assert_eq!((now.len(), now.get("a"), now.get("c")), (2, Some(&4), Some(&1)));
}

#[test]
fn what_enrich_refuses_is_told_with_its_place() {
    for (value, expected) in
        [("error", "an error occurred when formatting an argument"), ("panic", "no length")]
    {
        let mut table = table::<Lengths>(4);
        table.take(&record(7, "bad", Some(value)), "stage");
        let refused = table.publish().unwrap_err();
        assert_eq!((refused.at.partition, refused.at.offset), (3, 7));
        assert_eq!(refused.trouble.1.to_string(), expected);
    }
}

/// A record of these bytes.
fn raw(offset: i64, key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> RawRecord {
    let bytes = |part: Option<&'static [u8]>| part.map(Bytes::from_static);
    RawRecord { key: bytes(key), value: bytes(value), ..record(offset, "", None) }
}

#[test]
fn only_the_last_record_of_a_key_has_to_decode() {
    let bad = Some(&b"\xff"[..]);
    let keys = [Some(&b"a"[..]), Some(b"\xff"), None];
    for key in keys {
        let mut table = table::<Plain>(4);
        table.take(&raw(0, Some(b"b"), Some(b"fine")), "stage");
        table.take(&raw(8, key, bad), "stage");
        table.take(&raw(5, Some(b"c"), bad), "stage");
        let refused = table.publish().unwrap_err();
        assert_eq!(refused.at.offset, 5);
        assert!(matches!(refused.trouble.0, FailureKind::Decode(RecordPart::Value)));
    }
    // A later one mends it: a value, where the key can have one, or a null.
    for key in keys {
        let mut table = table::<Plain>(4);
        table.take(&raw(0, key, bad), "stage");
        table.take(&raw(1, key, None), "stage");
        assert!(table.publish().is_ok(), "{key:?}");
        assert!(now::<Plain>(&*table).is_empty());
    }
    let mut table = table::<Plain>(4);
    table.take(&raw(0, keys[0], bad), "stage");
    table.take(&raw(1, keys[0], Some(b"right")), "stage");
    table.publish().unwrap();
    assert_eq!(now::<Plain>(&*table).get("a").unwrap(), "right");
}

#[test]
fn rows_of_bytes_do_not_keep_what_was_read_with_them() {
    #[topic("bytes", key = Bytes, value = Bytes, crate = crate)]
    struct Raw;

    let chunk = Bytes::from(vec![7; 1000]);
    let mut raw = record(0, "", None);
    (raw.key, raw.value) = (Some(chunk.slice(..1)), Some(chunk.slice(1..2)));
    let mut table = table::<Raw>(4);
    table.take(&raw, "stage");
    table.publish().unwrap();
    drop(raw);
    assert!(chunk.is_unique(), "a row still refers to the buffer of its record");
}

fn decide(record: &Invalid<'_>) -> Answer {
    assert_eq!((record.stage(), record.topic(), record.partition()), ("stage", "judged", 3));
    match record.value_of::<Judged>() {
        None => Answer::Skip,
        Some(value) => match value.bytes().map(|bytes| bytes.as_ref()) {
            Some(b"\xff0") => value.instead("mended".into()),
            Some(b"\xff1") => Answer::DeadLetter,
            Some(b"\xff2") => panic!("no answer"),
            Some(b"\xff3") => Answer::Crash,
            _ => Answer::Skip,
        },
    }
}

#[topic("judged", key = Utf8, value = Utf8, on_invalid = decide, crate = crate)]
struct Judged;

#[test]
fn the_topic_may_decide_about_records_that_do_not_decode() {
    let mut table = table::<Judged>(4);
    let mut invalid = |key: &'static [u8], value: &'static [u8]| {
        let settled = table.take(&raw(7, Some(key), Some(value)), "stage");
        let published = table.publish().map_err(|refused| refused.trouble.1.to_string());
        (settled, published, now::<Judged>(&*table).get("a").cloned())
    };
    let one = || Some("one".to_owned());
    assert_eq!(invalid(b"a", b"one"), (None, Ok(()), one()));
    assert_eq!(invalid(b"a", b"\xff"), (Some(Settled::Skip), Ok(()), one()), "the row stays");
    assert_eq!(invalid(b"\xff", b"x"), (Some(Settled::Skip), Ok(()), one()));
    assert_eq!(invalid(b"a", b"\xff0"), (Some(Settled::Instead), Ok(()), Some("mended".into())));
    for (value, expected) in [
        (
            &b"\xff1"[..],
            "it answered `DeadLetter`, and tables and configs are read outside of any transaction",
        ),
        (b"\xff2", "no answer"),
        (b"\xff3", "not valid UTF-8"),
    ] {
        let (settled, published, _) = invalid(b"a", value);
        let error = published.unwrap_err();
        assert!(settled.is_none() && error.contains(expected), "{error}");
    }
}

/// All orders in which the records of several partitions can be read.
fn orders(partitions: &[Vec<RawRecord>]) -> Vec<Vec<RawRecord>> {
    if partitions.iter().all(Vec::is_empty) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, _) in partitions.iter().enumerate().filter(|(_, records)| !records.is_empty()) {
        let mut rest = partitions.to_vec();
        let first = rest[index].remove(0);
        all.extend(orders(&rest).into_iter().map(|order| [vec![first.clone()], order].concat()));
    }
    all
}

/// Records of one key, by partition: time and value.
type Parts<'a> = &'a [&'a [(i64, Option<&'static [u8]>)]];

/// The row of `a` once they are read, in whatever order; `Err` if one of them is refused. Where all of them decode it does not matter
/// either whether a version is made behind each of them.
#[track_caller]
fn row<T: crate::TableTopic<TableKey = String>>(
    key: &'static [u8],
    parts: Parts<'_>,
    text: impl Fn(&Row<T>) -> String,
) -> Result<Option<String>, ()> {
    let record = |partition, offset, timestamp, value| RawRecord {
        partition,
        timestamp,
        ..raw(offset, Some(key), value)
    };
    let mut partitions = Vec::new();
    for (partition, records) in (0..).zip(parts) {
        let records = (0..)
            .zip(*records)
            .map(|(offset, (timestamp, value))| record(partition, offset, *timestamp, *value));
        partitions.push(records.collect::<Vec<_>>());
    }
    let mut rows = Vec::new();
    for (order, each) in
        orders(&partitions).into_iter().flat_map(|order| [(order.clone(), false), (order, true)])
    {
        let mut table = table::<T>(4);
        let mut refused = false;
        for record in order {
            table.take(&record, "stage");
            refused |= each && table.publish().is_err();
        }
        if !refused {
            rows.push(table.publish().map_err(drop).map(|()| now::<T>(&*table).get("a").map(&text)));
        }
    }
    rows.dedup();
    assert_eq!(rows.len(), 1, "it depends on the order of reading: {rows:?}");
    rows.remove(0)
}

/// S9.2f
#[test]
fn of_a_key_in_several_partitions_the_latest_record_counts_whatever_is_read_first() {
    let plain = |parts: Parts<'_>| {
        let text = row::<Plain>(b"a", parts, Clone::clone);
        let length = row::<Measured>(b"a", parts, usize::to_string);
        assert_eq!(
            length,
            text.clone().map(|text| text.map(|text| text.len().to_string())),
            "enriched or not"
        );
        text
    };
    let some = |text: &str| Ok(Some(text.to_owned()));
    let (one, four, bad) = (Some(&b"1"[..]), Some(&b"four"[..]), Some(&b"\xff"[..]));
    assert_eq!(plain(&[&[(5, one)], &[(9, four)]]), some("four"));
    assert_eq!(plain(&[&[(9, one)], &[(5, four)]]), some("1"));
    assert_eq!(plain(&[&[(7, one)], &[(7, four)]]), some("four"), "equal times: the higher number");
    // A null is a record like others.
    assert_eq!(plain(&[&[(5, one)], &[(9, None)]]), Ok(None));
    assert_eq!(plain(&[&[(9, one)], &[(5, None)], &[(2, four)]]), some("1"));
    assert_eq!(plain(&[&[(5, one), (6, None)], &[(9, four), (10, None)]]), Ok(None));
    // Within a partition the last one counts, whatever its time says.
    assert_eq!(plain(&[&[(9, one), (3, four)], &[(5, one)]]), some("four"));
    assert_eq!(plain(&[&[(9, one), (3, None)], &[(5, four)]]), Ok(None));
    // What does not decode matters only if it is the one that counts.
    assert_eq!(plain(&[&[(5, bad)], &[(9, four)]]), some("four"));
    assert_eq!(plain(&[&[(5, bad)], &[(9, None)]]), Ok(None));
    assert_eq!(plain(&[&[(9, bad)], &[(5, four)]]), Err(()));
    assert_eq!(row::<Plain>(b"\xff", &[&[(5, one)], &[(9, None)]], Clone::clone), Ok(None));
}

#[topic("measured", key = Utf8, value = Utf8, row = usize, enrich = measure, crate = crate)]
struct Measured;

fn measure(_: &Key<Measured>, value: Value<Measured>) -> Result<usize, std::fmt::Error> {
    Ok(value.len())
}

/// S9.2g
#[test]
fn a_null_under_a_key_that_does_not_decode_is_nothing() {
    for policy in [false, true] {
        let mut table = if policy { table::<Judged>(4) } else { table::<Plain>(4) };
        let settled = table.take(&raw(0, Some(b"\xff"), None), "stage");
        assert!(settled.is_none(), "nobody is asked, and nothing is counted");
        assert!(table.publish().is_ok());
        assert_eq!(table.keys(), 0);
    }
    let mut table = table::<Lengths>(4);
    assert!(table.take(&raw(0, Some(b"\xff"), Some(b"")), "stage").is_none());
    assert!(table.publish().is_ok(), "an empty value that deletes is the same");
}
