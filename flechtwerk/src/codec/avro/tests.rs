//! Avro: what it writes, what it refuses, and that keys have one form.

use std::collections::HashMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::codec::hostile;

#[derive(Serialize, Deserialize, AvroSchema, Debug, PartialEq, Clone, Copy)]
enum Kind {
    Card,
    Transfer,
}

#[derive(Serialize, Deserialize, AvroSchema, Debug, PartialEq, Clone)]
struct Payment {
    account: String,
    cents: i64,
    score: f64,
    kind: Kind,
    note: Option<String>,
    tags: HashMap<String, i32>,
    parts: Vec<Part>,
    first: Part,
}

#[derive(Serialize, Deserialize, AvroSchema, Debug, PartialEq, Clone)]
struct Part {
    cents: i32,
    done: bool,
}

/// A chain of any length.
#[derive(Serialize, Deserialize, AvroSchema, Debug, PartialEq, Clone)]
struct Link {
    next: Option<Box<Link>>,
}

fn payment() -> Payment {
    Payment {
        account: "DE-4711".into(),
        cents: -5,
        score: 0.25,
        kind: Kind::Transfer,
        note: Some("rent".into()),
        tags: [("a".to_owned(), 1), ("b".to_owned(), -2)].into(),
        parts: vec![Part { cents: 1, done: true }, Part { cents: -200, done: false }],
        first: Part { cents: 0, done: false },
    }
}

fn encode<T: AvroItem>(item: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    Avro::encode(item, &mut bytes).unwrap();
    bytes
}

fn key<T: AvroItem>(item: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    Avro::encode_key(item, &mut bytes).map(|()| bytes).map_err(|error| error.to_string())
}

fn read<T: AvroItem>(bytes: &[u8]) -> Result<T, String> {
    Avro::decode(&Bytes::copy_from_slice(bytes)).map_err(|error| error.to_string())
}

prop_compose! {
    fn any_payment()(
        (account, cents, score) in any::<(String, i64, i32)>(),
        card in any::<bool>(),
        note in any::<Option<String>>(),
        tags in any::<HashMap<String, i32>>(),
        parts in any::<Vec<(i32, bool)>>(),
    ) -> Payment {
        let mut parts: Vec<Part> = parts.into_iter().map(|(cents, done)| Part { cents, done }).collect();
        let first = parts.pop().unwrap_or(Part { cents: 7, done: true });
        let kind = if card { Kind::Card } else { Kind::Transfer };
        Payment { account, cents, score: score.into(), kind, note, tags, parts, first }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(payment in any_payment()) {
        prop_assert_eq!(read::<Payment>(&encode(&payment)), Ok(payment));
    }

    #[test]
    fn what_the_library_refuses_is_refused_before(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let own = Own::of::<Payment>().unwrap();
        if own.skim.check(&bytes).is_ok() {
            let mut rest = &bytes[..];
            prop_assert!(own.reader.read_value(&mut rest).is_ok());
            prop_assert!(rest.is_empty());
        }
    }
}

#[test]
fn it_is_what_others_write() {
    assert_eq!(encode(&Part { cents: -200, done: true }), [0x8f, 3, 1]);
    assert_eq!(encode(&Link { next: Some(Box::new(Link { next: None })) }), [2, 0]);
    // Blocks with their size, as other writers make them.
    let blocks = [3, 8, 2, 1, 2, 0, 2, 2, 0, 0];
    assert_eq!(read::<Vec<Part>>(&blocks).unwrap().len(), 3, "two blocks");
}

#[test]
fn errors_name_kind_and_place() {
    let of = type_name::<Part>();
    assert_eq!(
        read::<Part>(&[2]),
        Err(format!("the bytes end too early (at byte 1), expected Avro of a `{of}`"))
    );
    assert_eq!(
        read::<Part>(&[2, 1, 0]),
        Err(format!("bytes after the end of the value (at byte 2), expected Avro of a `{of}`"))
    );
    assert_eq!(
        read::<Part>(&[2, 2]),
        Err(format!("a boolean that is neither 0 nor 1 (at byte 2), expected Avro of a `{of}`"))
    );
    hostile::keeps_secret::<Avro<Payment>>(&encode(&payment()), "DE-47");
}

#[test]
fn a_text_that_is_cut_off_is_no_null() {
    assert!(read::<String>(&[6, b'a']).unwrap_err().starts_with("the bytes end too early"));
    assert!(read::<Option<String>>(&[]).unwrap_err().starts_with("the bytes end too early"));
}

#[test]
fn lengths_are_not_believed_and_depth_ends() {
    // 250 MB, as a text and as a number of items.
    let claim = [0x80, 0x80, 0x80, 0xee, 1, b'a'];
    assert!(!hostile::survives::<Avro<String>>(&claim));
    assert!(!hostile::survives::<Avro<Vec<i64>>>(&claim));
    assert!(!hostile::survives::<Avro<HashMap<String, i64>>>(&claim));
    // Items without bytes.
    assert!(!hostile::survives::<Avro<Vec<()>>>(&claim[..5]));
    assert!(!hostile::survives::<Avro<Link>>(&[vec![2; 100_000], vec![0]].concat()));
    assert!(hostile::survives::<Avro<Link>>(&[vec![2; 50], vec![0]].concat()));
}

#[test]
fn spoilt_bytes_do_no_harm() {
    let good = encode(&payment());
    hostile::refuses_each_cut::<Avro<Payment>>(&good);
    hostile::survives_spoilt::<Avro<Payment>>(&good);
    hostile::survives_spoilt::<Avro<Link>>(&[2, 2, 2, 0]);
}

#[test]
fn a_key_has_one_form() {
    #[derive(Serialize, Deserialize, AvroSchema)]
    struct At {
        x: f64,
        y: Option<f32>,
    }
    assert_eq!(key(&At { x: 0.0, y: Some(-0.0) }), key(&At { x: -0.0, y: Some(0.0) }));
    assert_ne!(key(&At { x: 0.0, y: Some(-0.0) }), key(&At { x: 1.0, y: Some(0.0) }));
    assert!(key(&At { x: f64::NAN, y: None }).unwrap_err().contains("NaN"));
    assert_eq!(key(&Part { cents: 1, done: true }).unwrap(), encode(&Part { cents: 1, done: true }));
    assert!(key(&payment()).unwrap_err().contains("can't hold a map"));
}

#[test]
fn a_schema_that_is_not_the_types_is_said() {
    #[derive(Serialize, Deserialize)]
    struct Odd {
        name: String,
    }
    impl AvroSchema for Odd {
        fn get_schema() -> Schema {
            Part::get_schema()
        }
    }
    let error = Avro::encode(&Odd { name: "secret".into() }, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.starts_with("can't be written as Avro: it does not fit the schema of"), "{error}");
    assert!(!error.contains("secret"));
}
