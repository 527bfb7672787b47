//! What each codec writes and refuses.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::*;

fn encode<C: Codec>(item: C::Item) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    C::encode(&item, &mut bytes).map(|()| bytes).map_err(|error| error.to_string())
}

fn key<C: Codec>(item: C::Item) -> Result<String, String> {
    let mut bytes = Vec::new();
    C::encode_key(&item, &mut bytes).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

fn read<C: Codec>(bytes: &[u8]) -> Result<C::Item, String> {
    C::decode(&Bytes::copy_from_slice(bytes)).map_err(|error| error.to_string())
}

fn nothing<C: Codec>() -> Result<C::Item, BoxError> {
    C::null().ok_or_else(|| CodecError::Null.into())
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(deny_unknown_fields)]
struct Place {
    town: String,
    at: (f64, f64),
    tags: HashMap<String, u8>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
enum Shape {
    Dot,
    Circle(f64),
    Line(f64, f64),
    Rect { w: u8, h: u8 },
}

fn place() -> Place {
    let tags = [("z", 1), ("a", 2), ("m\"", 3), ("m", 4)];
    Place {
        town: "Köln \"am\" Rhein\n".into(),
        at: (50.9, -0.0),
        tags: tags.map(|(k, v)| (k.to_owned(), v)).into(),
    }
}

#[test]
fn utf8_is_strict() {
    assert_eq!(encode::<Utf8>("ä".into()), Ok(vec![0xc3, 0xa4]));
    assert_eq!(read::<Utf8>(b""), Ok(String::new()));
    assert_eq!(read::<Utf8>(b"ab\xff"), Err("not valid UTF-8 (2 bytes of it are)".into()));
}

#[test]
fn numbers_have_their_size() {
    assert_eq!(encode::<BigEndian<u64>>(258), Ok(vec![0, 0, 0, 0, 0, 0, 1, 2]));
    assert_eq!(read::<BigEndian<i16>>(&[0xff, 0xfe]), Ok(-2));
    assert_eq!(read::<BigEndian<u32>>(&[1, 2, 3]), Err("a `u32` has 4 bytes, this has 3".into()));
}

#[test]
fn an_empty_payload_is_not_null() {
    type C = Nullable<Utf8>;
    assert_eq!(nothing::<C>().unwrap(), None);
    assert_eq!(read::<C>(b""), Ok(Some(String::new())));
    assert!(C::is_null(&None) && !C::is_null(&Some(String::new())));
    assert_eq!(nothing::<Utf8>().unwrap_err().to_string(), CodecError::Null.to_string());
}

#[test]
fn json_reads_what_it_writes() {
    let shapes = vec![Shape::Dot, Shape::Circle(1.5), Shape::Line(1.0, -2.0), Shape::Rect { w: 1, h: 2 }];
    let text = encode::<Json<Vec<Shape>>>(shapes.clone()).unwrap();
    assert_eq!(text, serde_json::to_vec(&shapes).unwrap());
    assert_eq!(read::<Json<Vec<Shape>>>(&text), Ok(shapes));
    let text = encode::<Json<Place>>(place()).unwrap();
    assert_eq!(read::<Json<Place>>(&text), Ok(place()));
}

/// A number that is read and passed on stays what it is: in a key it chooses the partition.
#[test]
fn json_numbers_come_back_to_the_last_digit() {
    for text in ["123.10888693805211", "47.901182844241276", "997.7478925366421"] {
        let number: f64 = text.parse().unwrap();
        assert_eq!(read::<Json<f64>>(text.as_bytes()), Ok(number));
        assert_eq!(key::<Json<f64>>(number).as_deref(), Ok(text));
        // Some other program has written more digits than there are.
        assert_eq!(read::<Json<f64>>(format!("{text}000000000000000001").as_bytes()), Ok(number));
    }
    let mut runner = proptest::test_runner::TestRunner::default();
    let finite = (proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL, proptest::num::f32::NORMAL);
    let done = runner.run(&finite, |numbers| {
        let text = encode::<Json<(f64, f32)>>(numbers).unwrap();
        proptest::prop_assert_eq!(read::<Json<(f64, f32)>>(&text), Ok(numbers));
        Ok(())
    });
    done.unwrap();
}

#[test]
fn json_refuses_trailing_data_and_never_quotes_it() {
    assert_eq!(
        read::<Json<u64>>(b"1 2"),
        Err("a syntax error (line 1, column 3), expected JSON of a `u64`".into())
    );
    let error = read::<Json<u64>>(br#""secret""#).unwrap_err();
    assert!(!error.contains("secret"), "{error}");
    let error = read::<Json<Place>>(br#"{"secret": 1}"#).unwrap_err();
    assert!(!error.contains("secret"), "{error}");
    assert!(read::<Json<u64>>(b"").unwrap_err().starts_with("the text ends too early"));
}

#[test]
fn json_has_no_nan() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = "can't be written as JSON: NaN and infinity have no form in JSON";
        assert_eq!(encode::<Json<f64>>(number), Err(error.into()));
        assert_eq!(key::<Json<Vec<f64>>>(vec![number]), Err(error.into()));
    }
}

#[test]
fn a_json_key_is_canonical() {
    assert_eq!(
        key::<Json<Place>>(place()).unwrap(),
        r#"{"at":[50.9,0.0],"tags":{"a":2,"m":4,"m\"":3,"z":1},"town":"Köln \"am\" Rhein\n"}"#
    );
    assert_eq!(key::<Json<Shape>>(Shape::Rect { w: 1, h: 2 }).unwrap(), r#"{"Rect":{"h":2,"w":1}}"#);
    assert_eq!(key::<Json<Shape>>(Shape::Line(-0.0, 0.0)).unwrap(), r#"{"Line":[0.0,0.0]}"#);
    assert_eq!(
        key::<Json<BTreeMap<i32, ()>>>([(10, ()), (9, ())].into()).unwrap(),
        r#"{"10":null,"9":null}"#
    );
    assert_eq!(
        key::<Json<serde_json::Value>>(serde_json::json!({"b": {}, "a": []})).unwrap(),
        r#"{"a":[],"b":{}}"#
    );
}

#[test]
fn json_keys_of_objects_are_strings() {
    let error = key::<Json<BTreeMap<Option<u8>, u8>>>([(None, 1)].into()).unwrap_err();
    assert!(error.contains("must be a string or a number"), "{error}");
    let mut bytes = Vec::new();
    let twice = Twice;
    let error = write_json(&twice, Keys::MapsSorted, &mut bytes).unwrap_err().to_string();
    assert!(error.contains("twice"), "{error}");
}

struct Twice;

impl Serialize for Twice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("a", 1), ("a", 2)])
    }
}

#[test]
fn state_order_sorts_maps_only() {
    let mut bytes = Vec::new();
    write_json(&place(), Keys::MapsSorted, &mut bytes).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        r#"{"town":"Köln \"am\" Rhein\n","at":[50.9,-0.0],"tags":{"a":2,"m":4,"m\"":3,"z":1}}"#
    );
}
