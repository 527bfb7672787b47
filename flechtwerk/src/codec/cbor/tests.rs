//! CBOR: what it writes, what it refuses, and that keys have one form.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::codec::hostile;

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(deny_unknown_fields)]
struct Place {
    town: String,
    at: (f64, f32),
    inhabitants: Option<u64>,
    tags: HashMap<String, i16>,
    raw: Vec<u8>,
    parts: Vec<Place>,
}

fn place(tags: &[(&str, i16)]) -> Place {
    let tags = tags.iter().map(|(tag, n)| ((*tag).to_owned(), *n)).collect();
    Place {
        town: "Kassel".into(),
        at: (51.3, -0.0),
        inhabitants: Some(200_000),
        tags,
        raw: vec![],
        parts: vec![],
    }
}

fn some_place() -> Place {
    Place { parts: vec![place(&[("a", 1)])], ..place(&[("b", 2), ("c", -3)]) }
}

fn encode<T: CborItem>(item: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    Cbor::encode(item, &mut bytes).unwrap();
    bytes
}

fn key<T: CborItem>(item: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    Cbor::encode_key(item, &mut bytes).map(|()| bytes).map_err(|error| error.to_string())
}

fn read<T: CborItem>(bytes: &[u8]) -> Result<T, String> {
    Cbor::decode(&Bytes::copy_from_slice(bytes)).map_err(|error| error.to_string())
}

fn any_place() -> impl Strategy<Value = Place> {
    let leaf = (any::<String>(), any::<(i32, i32)>(), any::<Option<u64>>());
    let leaf =
        (leaf, any::<HashMap<String, i16>>(), any::<Vec<u8>>()).prop_map(|((town, at, n), tags, raw)| {
            Place { town, at: (at.0.into(), at.1 as f32), inhabitants: n, tags, raw, parts: vec![] }
        });
    leaf.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..3))
            .prop_map(|(place, parts)| Place { parts, ..place })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(place in any_place()) {
        prop_assert_eq!(read::<Place>(&encode(&place)), Ok(place.clone()));
        let key = key(&place).unwrap();
        prop_assert_eq!(read::<Place>(&key), Ok(place));
    }
}

#[test]
fn it_is_what_others_write() {
    // RFC 8949, appendix A.
    assert_eq!(encode(&1000u64), [0x19, 0x03, 0xe8]);
    assert_eq!(encode(&-1i8), [0x20]);
    assert_eq!(encode(&1.5f64), [0xf9, 0x3e, 0x00]);
    assert_eq!(read::<BTreeMap<String, u8>>(&[0xa1, 0x61, 0x61, 0x01]), Ok([("a".to_owned(), 1)].into()));
    // Of indefinite length.
    assert_eq!(read::<Vec<u8>>(&[0x9f, 0x01, 0x02, 0xff]), Ok(vec![1, 2]));
}

#[test]
fn errors_name_kind_and_place() {
    let too_early = "the bytes end too early, expected CBOR of a `u64`";
    assert_eq!(read::<u64>(&[]), Err(too_early.into()));
    assert_eq!(read::<u64>(&[1, 2]), Err("1 bytes follow the value, expected CBOR of a `u64`".into()));
    let error = read::<Place>(&encode(&"Marburg".to_owned())).unwrap_err();
    assert!(error.starts_with("a value of the wrong kind") && !error.contains("Marburg"), "{error}");
    let deep = [vec![0x81; 200], vec![0]].concat();
    let error = read::<Value>(&deep).unwrap_err();
    assert!(error.starts_with("nested deeper than 128"), "{error}");
}

#[test]
fn lengths_are_not_believed() {
    for claim in [0x5b, 0x7b, 0x9b, 0xbb] {
        let bytes = [&[claim][..], &[0, 0, 0, 0xff, 0, 0, 0, 0], b"abc"].concat();
        assert!(!hostile::survives::<Cbor<Value>>(&bytes));
        assert!(!hostile::survives::<Cbor<Vec<u64>>>(&bytes));
        assert!(!hostile::survives::<Cbor<String>>(&bytes));
        assert!(!hostile::survives::<Cbor<HashMap<String, u64>>>(&bytes));
    }
}

#[test]
fn spoilt_bytes_do_no_harm() {
    let good = encode(&some_place());
    hostile::refuses_each_cut::<Cbor<Place>>(&good);
    hostile::survives_spoilt::<Cbor<Place>>(&good);
    hostile::survives_spoilt::<Cbor<Value>>(&good);
    hostile::keeps_secret::<Cbor<Place>>(&good, "Kassel");
}

#[test]
fn a_key_has_one_form() {
    #[derive(Serialize, Deserialize)]
    struct There {
        a: u8,
        bb: f64,
    }
    #[derive(Serialize, Deserialize)]
    struct Back {
        bb: f64,
        a: u8,
    }
    assert_eq!(key(&There { a: 1, bb: 0.0 }), key(&Back { bb: -0.0, a: 1 }));
    let tags: Vec<(String, i16)> = (0..20).map(|n| (format!("tag {n}"), n)).collect();
    let one: Vec<(&str, i16)> = tags.iter().map(|(tag, n)| (tag.as_str(), *n)).collect();
    let other: Vec<(&str, i16)> = one.iter().copied().rev().collect();
    assert_eq!(key(&place(&one)), key(&place(&other)));
    assert!(key(&f64::NAN).unwrap_err().contains("NaN"));
    // Of equal bytes, though unequal before.
    let twice = Value::Map(vec![(Value::Float(0.0), 1.into()), (Value::Float(-0.0), 2.into())]);
    assert!(key(&twice).unwrap_err().contains("a key twice"));
    // Shorter keys come first, whatever they hold.
    let map: BTreeMap<&str, u8> = [("aa", 1), ("b", 2)].into();
    let bytes = key(&Value::serialized(&map).unwrap()).unwrap();
    assert_eq!(bytes, [0xa2, 0x61, b'b', 2, 0x62, b'a', b'a', 1]);
}
