//! The payloads of topics, and the schemas that a registry gives out.

use std::collections::BTreeMap;
use std::fmt;

use apache_avro::AvroSchema;
use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{SECRET, Target, quiet};
use crate as flechtwerk;
use crate::codec::schema::{Of, RegisteredSchema};
use crate::codec::{Avro, BigEndian, Cbor, Confluent, Json, Nullable, Protobuf, ProtobufSchema, Utf8};
use crate::glue::RecordPart;
use crate::prelude::topic;
use crate::{Codec, Topic};

/// The item, which is larger than its bytes, and what serde reserves for what a length claims: a mebibyte at most, for each
/// list within a list.
const ITEM: (u64, u64) = (512, 4 << 20);
/// No length is believed.
const PLAIN: (u64, u64) = (4, 4 << 10);

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "text", good: || vec![SECRET.into(), "Köln".into()], read: strict::<Utf8>, memory: PLAIN
    },
    Target { name: "bytes", good: || vec![SECRET.into()], read: strict::<Bytes>, memory: PLAIN },
    Target {
        name: "u64",
        good: || vec![vec![0; 8], vec![255; 8]],
        read: strict::<BigEndian<u64>>,
        memory: PLAIN,
    },
    Target {
        name: "i16",
        good: || vec![vec![0; 2], vec![128, 0]],
        read: strict::<BigEndian<i16>>,
        memory: PLAIN,
    },
    Target {
        name: "nullable text",
        good: || vec![SECRET.into()],
        read: strict::<Nullable<Utf8>>,
        memory: PLAIN,
    },
    Target { name: "JSON", good: good::<Json<Place>>, read: json::<Place>, memory: ITEM },
    Target { name: "any JSON", good: good_json, read: json::<serde_json::Value>, memory: ITEM },
    Target { name: "CBOR", good: good::<Cbor<Place>>, read: lenient::<Cbor<Place>>, memory: ITEM },
    Target { name: "any CBOR", good: good_cbor, read: any_cbor, memory: ITEM },
    Target { name: "Avro", good: good_avro, read: lenient::<Avro<Payment>>, memory: ITEM },
    Target { name: "Protobuf", good: good_protobuf, read: lenient::<Protobuf<Alert>>, memory: ITEM },
    Target { name: "Avro behind an id", good: good_payments, read: payment, memory: ITEM },
    Target { name: "Protobuf behind an id", good: good_alerts, read: alert, memory: ITEM },
    Target { name: "Avro schema", good: good_avro_schemas, read: avro_schema, memory: ITEM },
    Target { name: "Protobuf schema", good: good_protobuf_schemas, read: protobuf_schema, memory: ITEM },
];

#[derive(Serialize, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Place {
    town: String,
    at: (f64, f32),
    inhabitants: Option<u64>,
    tags: BTreeMap<String, i16>,
    raw: Vec<u8>,
    shape: Shape,
    parts: Vec<Place>,
}

#[derive(Serialize, Deserialize, Clone)]
enum Shape {
    Dot,
    Circle(f64),
    Rect { w: u8, h: u8 },
}

fn place() -> Place {
    let part = Place {
        town: SECRET.into(),
        at: (50.9, -0.0),
        inhabitants: Some(1_000_000),
        tags: BTreeMap::from([("a".into(), -1), ("b\"".into(), 300)]),
        raw: vec![0, 255],
        shape: Shape::Rect { w: 1, h: 2 },
        parts: vec![],
    };
    let dot = Place { shape: Shape::Dot, inhabitants: None, ..part.clone() };
    Place { shape: Shape::Circle(1e300), parts: vec![dot], ..part }
}

fn written<C: Codec>(item: &C::Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    C::encode(item, &mut bytes).expect("it can be written");
    bytes
}

fn good<C: Codec<Item = Place>>() -> Vec<Vec<u8>> {
    vec![written::<C>(&place())]
}

fn good_json() -> Vec<Vec<u8>> {
    let odd = format!(r#"{{"{SECRET}":[1e400,-0,0.1e-7,"\ud83d\ude00",null,true,18446744073709551616]}}"#);
    vec![written::<Json<Place>>(&place()), odd.replace("1e400", "1e40").into()]
}

fn good_cbor() -> Vec<Vec<u8>> {
    let tagged = ciborium::Value::Tag(1, Box::new(ciborium::Value::Bytes(SECRET.into())));
    let pair = |key: i32, value: f64| (key.into(), value.into());
    let map = ciborium::Value::Map(vec![pair(3, 0.0), pair(-1, 1.5)]);
    vec![written::<Cbor<Place>>(&place())]
        .into_iter()
        .chain([tagged, map].map(|value| written::<Cbor<ciborium::Value>>(&value)))
        .collect()
}

#[derive(Serialize, Deserialize, AvroSchema)]
struct Payment {
    account: String,
    cents: i64,
    rate: Option<f64>,
    parts: Vec<String>,
    tags: std::collections::HashMap<String, i32>,
}

/// What another version of the program wrote.
mod old {
    use super::*;

    #[derive(Serialize, Deserialize, AvroSchema)]
    pub(super) struct Payment {
        pub(super) account: String,
        pub(super) cents: i32,
        pub(super) rate: Option<f64>,
        pub(super) parts: Vec<String>,
        pub(super) tags: std::collections::HashMap<String, i32>,
        pub(super) gone: Vec<bool>,
    }
}

fn new_payment() -> Payment {
    let tags = [(SECRET.into(), 3)].into();
    Payment {
        account: SECRET.into(),
        cents: -5,
        rate: Some(0.5),
        parts: vec!["a".into(), SECRET.into()],
        tags,
    }
}

fn old_payment() -> old::Payment {
    let Payment { account, rate, parts, tags, .. } = new_payment();
    old::Payment { account, cents: 7, rate, parts, tags, gone: vec![true, false] }
}

fn good_avro() -> Vec<Vec<u8>> {
    vec![written::<Avro<Payment>>(&new_payment())]
}

#[derive(Clone, PartialEq, prost::Message)]
struct Alert {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(sint64, repeated, tag = "2")]
    cents: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    parts: Vec<Alert>,
    #[prost(double, optional, tag = "4")]
    rate: Option<f64>,
}

impl ProtobufSchema for Alert {
    const PROTO: &'static str = "syntax = \"proto3\"; package bank; message Other { string a = 1; }
        message Alert { string account = 1; repeated sint64 cents = 2; repeated Alert parts = 3; optional double rate = 4; }";
    const MESSAGE: &'static str = "bank.Alert";
}

fn some_alert() -> Alert {
    let part = Alert { account: SECRET.into(), cents: vec![1, -1, i64::MAX], parts: vec![], rate: Some(0.5) };
    Alert { parts: vec![part.clone(), Alert::default()], ..part }
}

fn good_protobuf() -> Vec<Vec<u8>> {
    vec![written::<Protobuf<Alert>>(&some_alert())]
}

/// A codec with one encoding for each value.
fn strict<C: Codec>(bytes: &[u8]) -> bool {
    match C::decode(&Bytes::copy_from_slice(bytes)) {
        Ok(item) => {
            assert_eq!(written::<C>(&item), bytes);
            true
        }
        Err(error) => {
            quiet(&error);
            false
        }
    }
}

/// A codec that reads several spellings of a value. What it writes for it, as a value and as a key, reads as the same; seen by
/// its bytes, since an item may hold NaN.
fn lenient<C: Codec>(bytes: &[u8]) -> bool {
    let good = again::<C>(bytes, |item, into| C::encode(item, into)) && {
        again::<C>(bytes, |item, into| C::encode_key(item, into));
        true
    };
    // A zero is the beginning of nothing, in no format: what ends with it was not read to its end.
    assert!(!good || C::decode(&[bytes, &[0]].concat().into()).is_err(), "bytes after the end are taken");
    good
}

/// JSON's keys are in one order in the key of a record.
fn json<T: Serialize + DeserializeOwned + Send + 'static>(bytes: &[u8]) -> bool {
    let good = lenient::<Json<T>>(bytes);
    let mut key = Vec::new();
    if let Ok(item) = Json::<T>::decode(&Bytes::copy_from_slice(bytes))
        && Json::<T>::encode_key(&item, &mut key).is_ok()
    {
        serde_json::from_slice::<Ordered>(&key).expect("its keys are in order");
    }
    good
}

/// JSON whose objects have their keys in order.
struct Ordered;

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Ordered, D::Error> {
        from.deserialize_any(Ordered)
    }
}

impl<'de> Visitor<'de> for Ordered {
    type Value = Ordered;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("keys in order")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
        // As they are written: escapes have an order of their own.
        let mut before: Option<Vec<u8>> = None;
        while let Some((key, Ordered)) = map.next_entry::<String, Ordered>()? {
            let key = written::<Json<String>>(&key);
            if before.is_some_and(|before| before >= key) {
                return Err(A::Error::custom("they are not"));
            }
            before = Some(key);
        }
        Ok(Ordered)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        while items.next_element::<Ordered>()?.is_some() {}
        Ok(Ordered)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Ordered, E> {
        Ok(Ordered)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Ordered, E> {
        Ok(Ordered)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Ordered, E> {
        Ok(Ordered)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Ordered, E> {
        Ok(Ordered)
    }

    fn visit_str<E>(self, _: &str) -> Result<Ordered, E> {
        Ok(Ordered)
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered)
    }
}

/// The same value in another form is the same key of a record.
fn any_cbor(bytes: &[u8]) -> bool {
    type Any = Cbor<ciborium::Value>;
    let good = lenient::<Any>(bytes);
    if let Ok(item) = Any::decode(&Bytes::copy_from_slice(bytes)) {
        let key = |item: &ciborium::Value| {
            let mut key = Vec::new();
            Any::encode_key(item, &mut key).map(|()| key).ok()
        };
        assert_eq!(key(&item), key(&otherwise(item.clone())), "two keys for one value");
    }
    good
}

/// Maps in another order, zeroes with another sign.
fn otherwise(value: ciborium::Value) -> ciborium::Value {
    use ciborium::Value;
    match value {
        Value::Float(0.0) => Value::Float(-0.0),
        Value::Array(items) => Value::Array(items.into_iter().map(otherwise).collect()),
        Value::Tag(tag, inner) => Value::Tag(tag, Box::new(otherwise(*inner))),
        Value::Map(entries) => {
            let entries = entries.into_iter().rev();
            Value::Map(entries.map(|(key, value)| (otherwise(key), otherwise(value))).collect())
        }
        other => other,
    }
}

fn again<C: Codec>(bytes: &[u8], write: fn(&C::Item, &mut Vec<u8>) -> Result<(), crate::BoxError>) -> bool {
    let item = match C::decode(&Bytes::copy_from_slice(bytes)) {
        Ok(item) => item,
        Err(error) => {
            quiet(&error);
            return false;
        }
    };
    let mut ours = Vec::new();
    if let Err(error) = write(&item, &mut ours) {
        // As NaN in a key.
        quiet(&error);
        return true;
    }
    let item = C::decode(&Bytes::copy_from_slice(&ours)).expect("what was written can be read");
    let mut same = Vec::new();
    write(&item, &mut same).expect("what was written can be written again");
    assert_eq!(same.len(), ours.len());
    true
}

#[topic("payments", key = Utf8, value = Confluent<Avro<Payment>>, crate = flechtwerk)]
struct Payments;
#[topic("old", key = Utf8, value = Confluent<Avro<old::Payment>>, crate = flechtwerk)]
struct Old;
#[topic("alerts", key = Utf8, value = Confluent<Protobuf<Alert>>, crate = flechtwerk)]
struct Alerts;

fn of<T: Topic>() -> Of {
    Of { topic: T::INFO, part: RecordPart::Value }
}

fn framed<T: Topic, C: Codec>(item: &C::Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    C::write(item, of::<T>(), &mut bytes).expect("it can be written");
    bytes
}

/// Of both versions; the process has numbered their schemas by then.
fn good_payments() -> Vec<Vec<u8>> {
    let new = framed::<Payments, Confluent<Avro<Payment>>>(&new_payment());
    vec![new, framed::<Old, Confluent<Avro<old::Payment>>>(&old_payment())]
}

fn payment(bytes: &[u8]) -> bool {
    static NUMBERED: std::sync::Once = std::sync::Once::new();
    NUMBERED.call_once(|| drop(good_payments()));
    behind_id::<Payments, Confluent<Avro<Payment>>>(bytes)
}

fn good_alerts() -> Vec<Vec<u8>> {
    vec![framed::<Alerts, Confluent<Protobuf<Alert>>>(&some_alert())]
}

fn alert(bytes: &[u8]) -> bool {
    static NUMBERED: std::sync::Once = std::sync::Once::new();
    NUMBERED.call_once(|| drop(good_alerts()));
    behind_id::<Alerts, Confluent<Protobuf<Alert>>>(bytes)
}

fn behind_id<T: Topic, C: Codec>(bytes: &[u8]) -> bool {
    let item = match C::read(&Bytes::copy_from_slice(bytes), of::<T>()) {
        Ok(item) => item,
        Err(error) => {
            quiet(&error);
            return false;
        }
    };
    assert_eq!(bytes.first(), Some(&0), "another format's bytes are taken");
    assert!(C::read(&[bytes, &[0]].concat().into(), of::<T>()).is_err(), "bytes after the end are taken");
    let ours = framed::<T, C>(&item);
    let item = C::read(&Bytes::copy_from_slice(&ours), of::<T>()).expect("what was written can be read");
    assert_eq!(framed::<T, C>(&item).len(), ours.len());
    true
}

fn schema_text<C: Codec>() -> Vec<u8> {
    let info = C::SCHEMA.expect("it has a schema");
    (info.own)(RecordPart::Value).expect("it has a schema").text.into()
}

/// A schema as text. True: what it wrote can be read.
fn schema<C: Codec>(bytes: &[u8]) -> bool {
    let info = C::SCHEMA.expect("it has a schema");
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let schema = RegisteredSchema { kind: Some(info.kind.into()), text: text.into(), references: vec![] };
    let readable = (info.readable)(&schema).is_ok();
    let same = (info.same)(&schema);
    assert!(readable || !same, "a schema that is ours can't be read");
    readable
}

fn good_avro_schemas() -> Vec<Vec<u8>> {
    vec![schema_text::<Confluent<Avro<Payment>>>(), schema_text::<Confluent<Avro<old::Payment>>>()]
}

fn avro_schema(bytes: &[u8]) -> bool {
    schema::<Confluent<Avro<Payment>>>(bytes)
}

fn good_protobuf_schemas() -> Vec<Vec<u8>> {
    vec![schema_text::<Confluent<Protobuf<Alert>>>()]
}

fn protobuf_schema(bytes: &[u8]) -> bool {
    schema::<Confluent<Protobuf<Alert>>>(bytes)
}
