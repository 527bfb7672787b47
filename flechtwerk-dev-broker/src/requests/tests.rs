//! What holds for every API in every version that is served.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{BufMut, BytesMut};

use super::refusal;
use crate::wire::tests::{all_versions, body};
use crate::wire::{Api, RequestHeader};
use crate::{DevBroker, ErrorCode};

fn header(api: Api, version: i16) -> RequestHeader {
    RequestHeader { api, version, correlation_id: 7, client_id: None }
}

#[test]
fn an_error_of_a_fault_is_somewhere_in_the_answer_of_every_version() {
    // A code that no field has by chance.
    let error = ErrorCode::new(0x7a5b);
    for (api, version) in all_versions() {
        // ListGroups and the like have no items in the request; the others have the code once for each.
        let answer = refusal(&header(api, version), body(api, version, 2).freeze(), error)
            .unwrap_or_else(|failed| panic!("{api} {version}: {failed}"));
        let found = answer.windows(2).filter(|bytes| *bytes == [0x7a, 0x5b]).count();
        assert!(found >= 1, "{api} {version} answers no error");
    }
}

#[test]
fn every_version_is_answered() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    // Without acknowledgements, as these samples say, a Produce has no answer.
    for (api, version) in all_versions().filter(|(api, _)| *api != Api::Produce) {
        for items in [0, 1, 2] {
            let mut stream = TcpStream::connect(broker.address()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut frame = BytesMut::new();
            frame.put_i32(0);
            frame.put_i16(api.key());
            frame.put_i16(version);
            frame.put_i32(7);
            frame.put_i16(-1);
            if api.flexible(version) {
                frame.put_u8(0);
            }
            frame.put_slice(&body(api, version, items));
            let length = i32::try_from(frame.len() - 4).unwrap();
            frame[..4].copy_from_slice(&length.to_be_bytes());
            stream.write_all(&frame).unwrap();
            let mut start = [0; 8];
            stream.read_exact(&mut start).unwrap_or_else(|error| panic!("{api} {version}: {error}"));
            assert_eq!(start[4..], [0, 0, 0, 7], "{api} {version}");
        }
    }
}

#[test]
fn the_readme_lists_what_is_served() {
    let cells: Vec<&str> = include_str!("../../README.md").split('|').map(str::trim).collect();
    for api in Api::ALL {
        let (min, max) = api.versions();
        let versions = if min == max { min.to_string() } else { format!("{min}-{max}") };
        let listed = cells.windows(2).any(|pair| *pair == [api.name(), versions.as_str()]);
        assert!(listed, "the README doesn't say that {api} is served in {versions}");
    }
}
