//! What holds for every API in every version that is served.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use proptest::prelude::*;

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

/// A whole request, without the length in front.
fn request(api: Api, version: i16, items: usize) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_i16(api.key());
    frame.put_i16(version);
    frame.put_i32(7);
    frame.put_i16(-1);
    if api.flexible(version) {
        frame.put_u8(0);
    }
    frame.put_slice(&body(api, version, items));
    frame
}

#[test]
fn every_version_is_answered() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    // Without acknowledgements, as these samples say, a Produce has no answer.
    for (api, version) in all_versions().filter(|(api, _)| *api != Api::Produce) {
        for items in [0, 1, 2] {
            let mut stream = TcpStream::connect(broker.address()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let request = request(api, version, items);
            stream.write_all(&u32::try_from(request.len()).unwrap().to_be_bytes()).unwrap();
            stream.write_all(&request).unwrap();
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

/// How often a broker's thread has panicked in this process.
fn panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some("dev-broker") {
                COUNT.fetch_add(1, Ordering::SeqCst);
            }
            usual(info);
        }));
    });
    COUNT.load(Ordering::SeqCst)
}

#[test]
fn no_bytes_make_the_broker_panic_or_end() {
    let before = panics();
    let broker = DevBroker::builder().topic(("abc", 4)).auto_create_topics(true).start().unwrap();
    let versions: Vec<(Api, i16)> = all_versions().collect();
    let flips = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let strategy = (any::<prop::sample::Index>(), 0..3usize, flips);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1_500));
    let result = runner.run(&strategy, |(which, items, flips)| {
        let (api, version) = versions[which.index(versions.len())];
        let mut bytes = request(api, version, items);
        for (at, byte) in flips {
            // The key and the version stay, or nearly all of these would end there.
            let at = 4 + at.index(bytes.len() - 4);
            bytes[at] = byte;
        }
        let mut stream = TcpStream::connect(broker.address()).unwrap();
        // Some of these wait for a long time, as they say: a fetch, or a member of a group.
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        stream.write_all(&u32::try_from(bytes.len()).unwrap().to_be_bytes()).unwrap();
        stream.write_all(&bytes).unwrap();
        let _ = stream.read(&mut [0; 64]);
        prop_assert_eq!(panics(), before, "{} {}", api, version);
        Ok(())
    });
    result.unwrap();
    // What has waited is ended by this, and must not panic either.
    broker.stop();
    assert_eq!(panics(), before);
}
