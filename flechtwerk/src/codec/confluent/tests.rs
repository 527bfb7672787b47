//! Values behind the id of their schema, in a process without a registry, which numbers the schemas itself.

use apache_avro::AvroSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::codec::protobuf::ProtobufSchema;
use crate::codec::{Avro, Nullable, Protobuf, Utf8, hostile};
use crate::glue::TopicInfo;
use crate::prelude::topic;
use crate::{self as flechtwerk, Out};

#[derive(Serialize, Deserialize, AvroSchema, Debug, Clone, PartialEq)]
pub(crate) struct Payment {
    account: String,
    cents: i64,
}

pub(crate) mod old {
    use super::*;

    #[derive(Serialize, Deserialize, AvroSchema)]
    pub(crate) struct Payment {
        pub(crate) account: String,
        pub(crate) cents: i32,
        pub(crate) gone: bool,
    }

    #[derive(Serialize, Deserialize, AvroSchema)]
    #[serde(rename = "Payment")]
    pub(crate) struct Poor {
        pub(crate) account: String,
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Alert {
    #[prost(string, tag = "1")]
    account: String,
}

const PROTO: &str = "syntax = \"proto3\"; package bank;
    message Other { string account = 1; message Alert { string account = 1; } }";

impl ProtobufSchema for Alert {
    const PROTO: &'static str = PROTO;
    const MESSAGE: &'static str = "bank.Other.Alert";
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Other {
    #[prost(string, tag = "1")]
    account: String,
}

impl ProtobufSchema for Other {
    const PROTO: &'static str = PROTO;
    const MESSAGE: &'static str = "bank.Other";
}

#[topic("payments", key = Confluent<Avro<String>>, value = Nullable<Confluent<Avro<Payment>>>, crate = flechtwerk)]
pub(crate) struct Payments;
#[topic("alerts", key = Utf8, value = Confluent<Protobuf<Alert>>, crate = flechtwerk)]
pub(crate) struct Alerts;

fn value(topic: &'static TopicInfo) -> Of {
    Of { topic, part: RecordPart::Value }
}

fn info<T: crate::Topic>() -> &'static TopicInfo {
    T::INFO
}

fn written<C: Codec>(item: &C::Item, topic: &'static TopicInfo) -> Vec<u8> {
    let mut bytes = Vec::new();
    C::write(item, value(topic), &mut bytes).unwrap();
    bytes
}

fn read<C: Codec>(bytes: &[u8]) -> Result<C::Item, String> {
    C::read(&Bytes::copy_from_slice(bytes), value(info::<Payments>())).map_err(|error| error.to_string())
}

fn payment() -> Payment {
    Payment { account: "DE-4711".into(), cents: 5 }
}

#[test]
fn topics_hold_ids_and_values() {
    let mut out = Out::<Payments>::default();
    out.send("a".into(), Some(payment()));
    out.send("a".into(), None);
    assert_eq!(out.sent(), [("a".to_owned(), Some(payment())), ("a".to_owned(), None)]);
    let mut out = Out::<Alerts>::default();
    out.send("a".into(), Alert { account: "b".into() });
    assert_eq!(out.sent()[0].1.account, "b");
    let bytes = written::<Confluent<Protobuf<Alert>>>(&Alert { account: "b".into() }, info::<Alerts>());
    assert_eq!(
        (bytes[0], &bytes[5..]),
        (0, &[4, 0, 0, 0x0a, 1, b'b'][..]),
        "the second message of the first"
    );
    let bytes = written::<Confluent<Avro<Payment>>>(&payment(), info::<Payments>());
    assert_eq!((bytes[0], &bytes[5..]), (0, &b"\x0eDE-4711\x0a"[..]));
}

#[test]
fn the_schema_says_which_message_it_is() {
    let mut alert = written::<Confluent<Protobuf<Alert>>>(&Alert { account: "b".into() }, info::<Alerts>());
    let error = read::<Confluent<Protobuf<Other>>>(&alert).unwrap_err();
    assert!(error.starts_with("another message of the same schema"), "{error}");
    alert[5] = 1;
    let error = read::<Confluent<Protobuf<Alert>>>(&alert).unwrap_err();
    assert!(error.starts_with("the place of the message in its schema can't be read"), "{error}");
    let error = read::<Confluent<Avro<Payment>>>(&alert).unwrap_err();
    assert!(error.contains("it is PROTOBUF, not AVRO"), "{error}");
}

#[topic("old", key = Utf8, value = Confluent<Avro<old::Payment>>, crate = flechtwerk)]
pub(crate) struct Old;
#[topic("poor", key = Utf8, value = Confluent<Avro<old::Poor>>, crate = flechtwerk)]
pub(crate) struct Poor;

#[test]
fn what_another_version_wrote_is_brought_into_form() {
    let old = old::Payment { account: "DE-4711".into(), cents: -3, gone: true };
    let bytes = written::<Confluent<Avro<old::Payment>>>(&old, info::<Old>());
    let expected = Payment { account: "DE-4711".into(), cents: -3 };
    assert_eq!(read::<Confluent<Avro<Payment>>>(&bytes), Ok(expected));
    for end in 0..bytes.len() {
        assert!(read::<Confluent<Avro<Payment>>>(&bytes[..end]).is_err());
    }
}

#[test]
fn what_a_version_without_a_field_wrote_is_refused_and_not_quoted() {
    let bytes =
        written::<Confluent<Avro<old::Poor>>>(&old::Poor { account: "secret".into() }, info::<Poor>());
    let error = read::<Confluent<Avro<Payment>>>(&bytes).unwrap_err();
    assert!(error.contains("can't be read as this type") && error.contains("cents"), "{error}");
    assert!(!error.contains("secret"));
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [&b""[..], b"{\"a\":1}", &[0, 0, 0, 1]] {
        let error = read::<Confluent<Avro<Payment>>>(bytes).unwrap_err();
        assert!(error.starts_with("no zero byte and id of a schema at the beginning"), "{error}");
    }
    let error = read::<Confluent<Avro<Payment>>>(&[0, 0xff, 0, 0, 0, 1]).unwrap_err();
    assert!(error.starts_with("no schema has the id 4278190080"), "{error}");
}

#[test]
fn spoilt_bytes_do_no_harm() {
    let good = written::<Confluent<Avro<Payment>>>(&payment(), info::<Payments>());
    let (mut fine, mut refused) = (0, 0);
    for seed in 0..hostile::SPOILT {
        let bytes = hostile::Random::new(seed).spoil(&good);
        match read::<Confluent<Avro<Payment>>>(&bytes) {
            Ok(_) => fine += 1,
            Err(error) => {
                assert!(!error.contains("DE-47"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(fine > 0 && refused > 0);
    let good = written::<Confluent<Protobuf<Alert>>>(&Alert { account: "b".into() }, info::<Alerts>());
    for seed in 0..hostile::SPOILT {
        let _ = read::<Confluent<Protobuf<Alert>>>(&hostile::Random::new(seed).spoil(&good));
    }
}

#[test]
fn a_codec_around_it_is_told_what_is_wrong() {
    let error = Confluent::<Avro<Payment>>::encode(&payment(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("belongs to a topic"), "{error}");
}

#[test]
fn the_message_must_be_in_the_file() {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Lost {}
    impl ProtobufSchema for Lost {
        const PROTO: &'static str = PROTO;
        const MESSAGE: &'static str = "bank.Lost";
    }
    let error = Protobuf::<Lost>::own(RecordPart::Value).unwrap_err().to_string();
    assert_eq!(error, "the .proto file declares no message `bank.Lost`: the first message is `bank.Other`");
}

#[test]
fn schemas_are_the_same_whatever_their_spelling() {
    let of = |kind: &str, text: &str| RegisteredSchema {
        kind: Some(kind.into()),
        text: text.into(),
        references: vec![],
    };
    let same = Confluent::<Avro<Payment>>::INFO.same;
    let text = r#"{ "type":"record", "name":"Payment", "doc":"x", "fields":[
        {"type":"string","name":"account"}, {"name":"cents","type":"long"} ] }"#;
    assert!(same(&of("AVRO", text)));
    assert!(!same(&of("PROTOBUF", text)));
    assert!(!same(&of("AVRO", &text.replace("long", "int"))));
    let same = Confluent::<Protobuf<Alert>>::INFO.same;
    assert!(same(&of("PROTOBUF", &PROTO.replace("package bank;", "package bank; // x\n"))));
    assert!(!same(&of("PROTOBUF", &PROTO.replace("= 1", "= 2"))));
}
