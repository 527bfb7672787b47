//! Protocol Buffers: what is written is read, and nothing harmful happens with other bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::codec::hostile;

#[derive(Clone, PartialEq, prost::Message)]
struct Alert {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(sint64, tag = "2")]
    cents: i64,
    #[prost(double, optional, tag = "3")]
    score: Option<f64>,
    #[prost(btree_map = "string, uint32", tag = "4")]
    counts: BTreeMap<String, u32>,
    #[prost(message, repeated, tag = "5")]
    because: Vec<Alert>,
    #[prost(uint64, repeated, tag = "6")]
    times: Vec<u64>,
}

fn alert() -> Alert {
    Alert {
        account: "DE-4711".into(),
        cents: -5,
        score: Some(0.5),
        counts: [("a".to_owned(), 1), ("b".to_owned(), 0)].into(),
        because: vec![Alert { account: "DE-4712".into(), ..Alert::default() }],
        times: vec![1, 1 << 40],
    }
}

fn encode(item: &Alert) -> Vec<u8> {
    let mut bytes = Vec::new();
    Protobuf::encode(item, &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Alert, String> {
    Protobuf::decode(&Bytes::copy_from_slice(bytes)).map_err(|error| error.to_string())
}

fn any_alert() -> impl Strategy<Value = Alert> {
    let leaf = (any::<String>(), any::<i64>(), any::<Option<i32>>());
    let leaf = (leaf, any::<BTreeMap<String, u32>>(), any::<Vec<u64>>()).prop_map(
        |((account, cents, score), counts, times)| Alert {
            account,
            cents,
            score: score.map(f64::from),
            counts,
            because: vec![],
            times,
        },
    );
    leaf.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..3))
            .prop_map(|(alert, because)| Alert { because, ..alert })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(alert in any_alert()) {
        let bytes = encode(&alert);
        prop_assert_eq!(read(&bytes), Ok(alert.clone()));
        let mut key = Vec::new();
        Protobuf::encode_key(&alert, &mut key).unwrap();
        prop_assert_eq!(key, bytes);
    }
}

#[test]
fn it_is_what_others_write() {
    let bytes = encode(&Alert { account: "a".into(), cents: -1, ..Alert::default() });
    assert_eq!(bytes, [0x0a, 1, b'a', 0x10, 1]);
    assert_eq!(read(&[]), Ok(Alert::default()));
    // A field that the type does not know is skipped.
    assert_eq!(read(&[0x78, 5]), Ok(Alert::default()));
}

#[test]
fn errors_say_what_is_wrong_and_quote_nothing() {
    let error = read(&[0x0a, 5, b'a']).unwrap_err();
    let of = std::any::type_name::<Alert>();
    assert_eq!(error, format!("buffer underflow, expected Protobuf of a `{of}`"));
    hostile::keeps_secret::<Protobuf<Alert>>(&encode(&alert()), "DE-47");
}

#[test]
fn lengths_are_not_believed_and_depth_ends() {
    let claim = [0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 1];
    assert!(!hostile::survives::<Protobuf<Alert>>(&claim));
    let mut deep = encode(&Alert::default());
    for _ in 0..500 {
        let mut around = vec![0x2a];
        prost::encoding::encode_varint(deep.len() as u64, &mut around);
        around.append(&mut deep);
        deep = around;
    }
    assert!(!hostile::survives::<Protobuf<Alert>>(&deep));
}

#[test]
fn spoilt_bytes_do_no_harm() {
    hostile::survives_spoilt::<Protobuf<Alert>>(&encode(&alert()));
}
