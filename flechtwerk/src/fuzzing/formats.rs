//! The bytes of changelogs, stores and stamps, which must have one encoding for each value.

use bytes::Bytes;

use super::{SECRET, Target, quiet};
use crate::format::{self, Kind};
use crate::glue::{Order, Part, Policy, RawRecord, StageInfo, Start, StateChange, StateInfo};
use crate::port::{StoreFactory, StoreId, TopicPartition};
use crate::record::Headers;
use crate::runtime::changelog_change;
use crate::state::State;
use crate::store::MemoryStores;
use crate::task::Stamp;
use crate::timers::{self, Clock, Pending, Timers};

/// A list's strings and entries, an error's text.
const SMALL: (u64, u64) = (64, 4 << 10);

pub(super) const TARGETS: &[Target] = &[
    Target { name: "changelog key", good: good_keys, read: key, memory: SMALL },
    Target { name: "state", good: good_states, read: state, memory: (64, 64 << 10) },
    Target { name: "timers", good: good_timers, read: timers, memory: SMALL },
    Target { name: "stream time", good: good_stream_times, read: stream_time, memory: SMALL },
    Target { name: "stamp", good: good_stamps, read: stamp, memory: SMALL },
    Target { name: "restored record", good: good_records, read: restored, memory: (64, 64 << 10) },
];

fn good_keys() -> Vec<Vec<u8>> {
    [0, 1, 2].map(|kind| [&[kind], SECRET.as_bytes()].concat()).into()
}

fn key(bytes: &[u8]) -> bool {
    match format::decode_key(bytes) {
        Ok((kind, key)) => {
            assert_eq!(&format::key(kind, key)[..], bytes);
            true
        }
        Err(error) => {
            quiet(&error);
            false
        }
    }
}

fn value(version: u32, contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    format::put_version(version, &mut bytes);
    bytes.extend_from_slice(contents);
    bytes
}

fn good_states() -> Vec<Vec<u8>> {
    let text = format!("\"{SECRET}\"");
    [1, 1, 127, 128, u32::MAX].map(|version| value(version, text.as_bytes())).into()
}

fn state(bytes: &[u8]) -> bool {
    match format::take_version(bytes) {
        Ok((version, contents)) => assert_eq!(value(version, contents), bytes),
        Err(error) => quiet(&error),
    }
    let mut state = match State::<String>::load(Some(bytes)) {
        Ok(state) => state,
        Err((_, error)) => {
            quiet(&error);
            return false;
        }
    };
    // JSON has many spellings: what is written for the value must read as the same and stay.
    let _ = state.as_mut();
    let change = |state: &State<String>, stored: &[u8]| {
        state.change(Some(stored), &mut Vec::new()).expect("text can be written")
    };
    if let StateChange::Set(ours) = change(&state, bytes) {
        let mut again = State::<String>::load(Some(&ours)).expect("what was written can be read");
        assert_eq!(*again, *state);
        let _ = again.as_mut();
        assert!(matches!(change(&again, &ours), StateChange::Unchanged));
    }
    true
}

fn good_timers() -> Vec<Vec<u8>> {
    let timer = |name: &str, clock, due| Pending { name: name.into(), clock, due };
    let one = timer(SECRET, Clock::EventTime, 0);
    let two = timer("q", Clock::WallClock, i64::MAX);
    let three = timer(&"x".repeat(timers::LONGEST_NAME), Clock::WallClock, 1_700_000_000_000);
    let lists = [vec![one.clone()], vec![two.clone()], vec![one, two, three]];
    lists.map(|list| written_timers(&list)).into()
}

fn written_timers(list: &[Pending]) -> Vec<u8> {
    let mut bytes = Vec::new();
    timers::encode(list, &mut bytes);
    bytes
}

fn timers(bytes: &[u8]) -> bool {
    let read = timers::decode(bytes);
    let summary = timers::summary(bytes);
    assert_eq!(read.is_ok(), Timers::load(Some(&Bytes::copy_from_slice(bytes)), None, 0).is_ok());
    match (read, summary) {
        (Ok(list), Ok(summary)) => {
            assert_eq!(written_timers(&list), bytes);
            assert!(list.is_sorted_by(|one, next| one.name < next.name));
            assert!(list.iter().all(|timer| timer.due >= 0 && !timer.name.is_empty()));
            assert_eq!(summary.count, list.len() as u64);
            for clock in Clock::ALL {
                let earliest = list.iter().filter(|timer| timer.clock == clock).map(|timer| timer.due).min();
                assert_eq!(summary.earliest_of(clock), earliest);
            }
            true
        }
        (Err(error), Err(other)) => {
            assert_eq!(error, other);
            quiet(&error);
            false
        }
        (read, summary) => panic!("{} but {summary:?}", read.is_ok()),
    }
}

fn good_stream_times() -> Vec<Vec<u8>> {
    [0, 1_700_000_000_000, i64::MAX].map(timers::encode_stream_time).into()
}

fn stream_time(bytes: &[u8]) -> bool {
    match timers::decode_stream_time(bytes) {
        Ok(time) => {
            assert_eq!(timers::encode_stream_time(time), bytes);
            assert!(time >= 0);
            true
        }
        Err(error) => {
            quiet(&error);
            false
        }
    }
}

fn good_stamps() -> Vec<Vec<u8>> {
    ["0af3:0:-", "0af3:17:dGhlIGlkIG9mIGEgdG9waWM", "a:18446744073709551615:-"].map(Vec::from).into()
}

fn stamp(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let stamp = Stamp::parse(text);
    if let Some(stamp) = &stamp {
        assert_eq!(stamp.to_string(), text);
        assert!(!stamp.owner.is_empty() && stamp.changelog.as_deref() != Some(""));
    }
    stamp.is_some()
}

/// With state of the versions 1 to 127, and timers.
static STAGE: StageInfo = StageInfo {
    name: "stage",
    id: "stage",
    application_id: None,
    inputs: &[],
    parts: &[Part::State(StateInfo { type_name: "String", version: 127, oldest: 1 }), Part::Timers],
    shared: &[],
    start: Start::Earliest,
    order: Order::Inputs,
    custom_key: false,
    headers: true,
    extractor: None,
    policy: Policy::CRASH,
    stub: false,
};

/// A record as input: a byte for the key's length, the key, and the value; a length of 255 is a null key, and nothing behind
/// the key a null value.
fn record(key: Option<&[u8]>, value: &[u8]) -> Vec<u8> {
    match key {
        Some(key) => [&[key.len() as u8], key, value].concat(),
        None => [&[255], value].concat(),
    }
}

fn good_records() -> Vec<Vec<u8>> {
    let states = good_states();
    let timers = good_timers();
    vec![
        record(Some(b"\0k"), &states[0]),
        record(Some(b"\0"), &[]),
        record(Some(b"\x01k"), &timers[0]),
        record(Some(b"\x01k"), &timers[2]),
        record(Some(b"\x01k"), &[]),
        record(Some(timers::STREAM_TIME), &timers::encode_stream_time(7)),
        record(Some(b"\x02other"), SECRET.as_bytes()),
    ]
}

/// A restore of one record on top of good ones, and a look for timers.
fn restored(bytes: &[u8]) -> bool {
    let (key, value) = match bytes.split_first() {
        Some((255, value)) => (None, value),
        Some((length, rest)) => {
            let (key, value) = rest.split_at(rest.len().min(usize::from(*length)));
            (Some(key), value)
        }
        None => return false,
    };
    let at = TopicPartition { topic: "changelog".into(), partition: 0 };
    let raw = RawRecord {
        input: 0,
        partition: 0,
        offset: 7,
        timestamp: 0,
        key: key.map(Bytes::copy_from_slice),
        value: (!value.is_empty()).then(|| Bytes::copy_from_slice(value)),
        headers: Headers::default(),
    };
    let change = match changelog_change(&STAGE, &at, raw) {
        Ok(change) => change,
        Err(failure) => {
            quiet(&failure.message);
            return false;
        }
    };
    assert_eq!((Some(&change.key[..]), change.value.as_deref().unwrap_or_default()), (key, value));
    let id = StoreId { application_id: "app".into(), partition: 0 };
    let store = MemoryStores::default().open(&id, false).expect("memory opens");
    let mut before = change.clone();
    before.value = before.is_of(Kind::Timer).then(|| written_timers(&[earliest()]).into());
    for one in [&before, &change, &change] {
        store.restore(std::slice::from_ref(one)).expect("memory takes all");
    }
    store.restored(Some("a:1:-")).expect("memory takes all");
    let mut found = Vec::new();
    store.get_many(&[&change.key], &mut found).expect("memory can be read");
    assert_eq!(found.as_slice(), std::slice::from_ref(&change.value));
    let is_timer = change.is_of(Kind::Timer) && change.value.is_some();
    let mut due = 0;
    for clock in Clock::ALL {
        let mut visit = |_, key: &[u8]| {
            assert_eq!(key, &change.key[1..]);
            due += 1;
            true
        };
        store.due(clock, i64::MIN, &mut visit).expect("memory can be read");
    }
    assert_eq!(due > 0, is_timer);
    true
}

fn earliest() -> Pending {
    Pending { name: "a".into(), clock: Clock::EventTime, due: 0 }
}
