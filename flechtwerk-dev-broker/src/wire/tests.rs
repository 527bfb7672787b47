//! The walk before the decoding agrees with the decoders, and neither trips over bytes that lie.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use super::frame::{FrameBudget, FrameError, FrameReader};
use super::header::{Parsed, RequestHeader};
use super::shape::{Field, Kind};
use super::shapes::shape;
use super::{Api, Malformed};
use crate::requests::check;

/// A request as its shape says it is, with so many items in each array.
fn generate(fields: &'static [Field], version: i16, flexible: bool, items: usize, into: &mut BytesMut) {
    for field in fields.iter().filter(|field| (field.from..=field.to).contains(&version)) {
        one(&field.kind, version, flexible, items, into);
    }
    if flexible {
        into.put_u8(0);
    }
}

fn one(kind: &'static Kind, version: i16, flexible: bool, items: usize, into: &mut BytesMut) {
    match kind {
        Kind::Fixed(size) => into.put_bytes(0, *size),
        Kind::Text => {
            if flexible {
                into.put_u8(4);
            } else {
                into.put_i16(3);
            }
            into.put_slice(b"abc");
        }
        Kind::Bytes => {
            length(5, flexible, into);
            into.put_bytes(7, 5);
        }
        Kind::Structs(fields) => {
            length(items, flexible, into);
            (0..items).for_each(|_| generate(fields, version, flexible, items, into));
        }
        Kind::Values(kind) => {
            length(items, flexible, into);
            (0..items).for_each(|_| one(kind, version, flexible, items, into));
        }
        Kind::Optional(fields) => {
            into.put_i8(1);
            generate(fields, version, flexible, items, into);
        }
    }
}

fn length(of: usize, flexible: bool, into: &mut BytesMut) {
    if flexible {
        into.put_u8(u8::try_from(of + 1).unwrap());
    } else {
        into.put_i32(i32::try_from(of).unwrap());
    }
}

/// The body of a request with so many items in each array.
pub(crate) fn body(api: Api, version: i16, items: usize) -> BytesMut {
    let mut body = BytesMut::new();
    generate(shape(api), version, api.flexible(version), items, &mut body);
    body
}

/// Every version served of every API.
pub(crate) fn all_versions() -> impl Iterator<Item = (Api, i16)> {
    Api::ALL.iter().flat_map(|api| {
        let (min, max) = api.versions();
        (min..=max).map(move |version| (*api, version))
    })
}

#[test]
fn the_decoders_read_what_the_shapes_say_and_no_byte_less() {
    for (api, version) in all_versions() {
        for items in [0, 1, 3] {
            check(api, version, body(api, version, items).freeze())
                .unwrap_or_else(|error| panic!("{api} {version} with {items} items: {error}"));
        }
    }
}

#[test]
fn a_request_that_is_cut_off_is_malformed_and_bytes_behind_it_are_let_pass() {
    for (api, version) in all_versions() {
        let whole = body(api, version, 2).freeze();
        for end in 0..whole.len() {
            assert!(check(api, version, whole.slice(..end)).is_err(), "{api} {version} cut at {end}");
        }
        let mut longer = BytesMut::from(&whole[..]);
        longer.put_bytes(0, 3);
        assert!(check(api, version, longer.freeze()).is_ok(), "{api} {version} with bytes behind it");
    }
}

#[test]
fn an_array_that_claims_more_items_than_there_are_bytes_is_refused_before_the_decoder_believes_it() {
    let mut body = BytesMut::new();
    body.put_i32(i32::MAX);
    body.put_bytes(0, 1000);
    let error = check(Api::Metadata, 0, body.freeze()).unwrap_err();
    assert_eq!(error.to_string(), "topics: claims 2147483647 items in 1000 bytes");
}

#[test]
fn all_arrays_together_have_a_limit() {
    let mut body = BytesMut::new();
    body.put_i32(300_000);
    (0..300_000).for_each(|_| body.put_i16(0));
    let error = check(Api::Metadata, 0, body.freeze()).unwrap_err();
    assert_eq!(error.to_string(), "topics: brings the request to more than 200000 items");
}

#[test]
fn headers_of_all_versions_are_read() {
    for (api, version) in all_versions() {
        let mut frame = BytesMut::new();
        frame.put_i16(api.key());
        frame.put_i16(version);
        frame.put_i32(17);
        frame.put_i16(2);
        frame.put_slice(b"me");
        if api.flexible(version) {
            frame.put_u8(0);
        }
        frame.put_slice(b"body");
        match RequestHeader::parse(frame.freeze()) {
            Ok(Parsed::Request(header, rest)) => {
                assert_eq!((header.api, header.version, header.correlation_id), (api, version, 17));
                assert_eq!(header.client_id.as_deref(), Some("me"));
                assert_eq!(rest, Bytes::from_static(b"body"));
            }
            Ok(Parsed::UnknownApiVersions { .. }) => panic!("{api} {version} is known"),
            Err(error) => panic!("{api} {version}: {error}"),
        }
    }
}

#[test]
fn the_header_version_is_that_of_the_protocol() {
    use kafka_protocol::messages::ApiKey;
    for (api, version) in all_versions() {
        let key = ApiKey::try_from(api.key()).unwrap();
        assert_eq!(key.request_header_version(version) == 2, api.flexible(version), "{api} {version}");
        assert_eq!(
            key.response_header_version(version) == 1,
            api.flexible_answer(version),
            "{api} {version}"
        );
    }
}

fn read(bytes: &[u8]) -> Result<Option<Bytes>, FrameError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(FrameReader::new(bytes, 64 * 1024 * 1024, FrameBudget::new(8 * 1024 * 1024)).next())
}

fn frame(length: i32, key: i16, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.put_i32(length);
    frame.put_i16(key);
    frame.put_bytes(0, bytes.saturating_sub(2));
    frame
}

#[test]
fn a_frame_is_as_long_as_it_says() {
    assert_eq!(read(&[]).unwrap(), None);
    assert_eq!(read(&frame(20, 3, 20)).unwrap().unwrap().len(), 20);
    assert_eq!(read(&frame(3_000_000, 0, 3_000_000)).unwrap().unwrap().len(), 3_000_000);
}

#[test]
fn frames_with_lengths_that_lie_are_refused() {
    assert!(matches!(read(&frame(-1, 3, 20)), Err(FrameError::Length { length: -1, .. })));
    assert!(matches!(read(&frame(7, 3, 7)), Err(FrameError::Length { length: 7, .. })));
    assert!(matches!(read(&frame(i32::MAX, 0, 20)), Err(FrameError::Length { .. })));
    assert!(matches!(read(&frame(20, 3, 19)), Err(FrameError::CutOff)));
    assert!(matches!(read(&[0, 0]), Err(FrameError::CutOff)));
    assert!(matches!(read(&frame(20, 999, 20)), Err(FrameError::UnknownApi(999))));
    // Only Produce may be that long.
    assert!(matches!(read(&frame(20_000_000, 3, 20)), Err(FrameError::Length { .. })));
    // All frames together are limited, and one that is cut off has taken only what came.
    assert!(matches!(read(&frame(40_000_000, 0, 40_000_000)), Err(FrameError::Budget(_))));
    assert!(matches!(read(&frame(40_000_000, 0, 20)), Err(FrameError::CutOff)));
}

#[test]
fn what_is_wrong_is_said_without_content() {
    let error = Malformed::new("group_id", "claims 77 of 3 bytes");
    assert_eq!(error.to_string(), "group_id: claims 77 of 3 bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_the_decoders_panic(
        which in 0..200usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let versions: Vec<_> = all_versions().collect();
        let (api, version) = versions[which % versions.len()];
        let mut bytes = body(api, version, 2).to_vec();
        for (at, byte) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut {
            let end = cut.index(bytes.len() + 1);
            bytes.truncate(end);
        }
        if let Err(error) = check(api, version, Bytes::from(bytes)) {
            prop_assert!(!error.to_string().contains("panicked"), "{api} {version}: {error}");
        }
    }

    #[test]
    fn no_bytes_make_the_header_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = RequestHeader::parse(Bytes::from(bytes));
    }
}
