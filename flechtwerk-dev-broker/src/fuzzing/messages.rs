//! Requests of every API and version, with content that the broker of the targets knows.

use bytes::{BufMut, BytesMut};

use super::Entropy;
use super::logs::batch;
use crate::wire::{Api, Field, Kind, shape};

/// Names that requests use: of topics, groups, transactional ids, settings and their values, assignors.
const NAMES: &[&str] = &[
    "abc",
    "abc",
    "abc",
    "abc",
    "totals",
    "totals",
    "new",
    "",
    "a/b",
    "..",
    "cleanup.policy",
    "compact",
    "max.message.bytes",
    "segment.bytes",
    "-1",
    "range",
    "consumer",
];
/// What changes something, and has most to lose: asked for more often than the others.
const CHANGING: &[Api] = &[
    Api::Produce,
    Api::Produce,
    Api::Fetch,
    Api::OffsetCommit,
    Api::OffsetFetch,
    Api::JoinGroup,
    Api::SyncGroup,
    Api::SyncGroup,
    Api::Heartbeat,
    Api::LeaveGroup,
    Api::InitProducerId,
    Api::AddPartitionsToTxn,
    Api::AddPartitionsToTxn,
    Api::AddOffsetsToTxn,
    Api::TxnOffsetCommit,
    Api::EndTxn,
];
/// How often a value is one that makes sense, or nothing would ever happen.
const SENSIBLE: usize = 92;
/// The most names of its own that a session learns from answers, such as member ids.
const LEARNED: usize = 16;
const MOST_ITEMS: usize = 4;

/// What makes up requests, with what earlier answers said.
#[derive(Default)]
pub(super) struct Speaker {
    learned: Vec<String>,
}

impl Speaker {
    /// Remembers what looks like an id in an answer, so that later requests can speak of it.
    pub(super) fn learn(&mut self, answer: &[u8]) {
        for text in answer
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
            .filter(|text| text.len() >= 36)
        {
            let text = String::from_utf8_lossy(text).into_owned();
            if !self.learned.contains(&text) {
                if self.learned.len() >= LEARNED {
                    self.learned.remove(0);
                }
                self.learned.push(text);
            }
        }
    }

    /// A whole frame without its length.
    pub(super) fn request(&self, entropy: &mut Entropy<'_>) -> Vec<u8> {
        let changing = entropy.percent(75);
        let api = *entropy.pick(if changing { CHANGING } else { Api::ALL });
        let (min, max) = api.versions();
        let version = min + entropy.below((max - min + 1) as usize) as i16;
        let mut frame = BytesMut::new();
        frame.put_i16(api.key());
        frame.put_i16(version);
        frame.put_i32(7);
        frame.put_i16(2);
        frame.put_slice(b"me");
        let flexible = api.flexible(version);
        if flexible {
            frame.put_u8(0);
        }
        let mut writer = Writer { speaker: self, entropy, api, version, flexible, items: 40 };
        writer.fields(shape(api), &mut frame);
        frame.to_vec()
    }
}

struct Writer<'a, 'b, 'c> {
    speaker: &'a Speaker,
    entropy: &'b mut Entropy<'c>,
    api: Api,
    version: i16,
    flexible: bool,
    /// How many more items arrays may have together: nested ones multiply.
    items: usize,
}

impl Writer<'_, '_, '_> {
    fn fields(&mut self, fields: &'static [Field], into: &mut BytesMut) {
        let version = self.version;
        for field in fields.iter().filter(|field| (field.from..=field.to).contains(&version)) {
            self.one(field.name, &field.kind, into);
        }
        if self.flexible {
            into.put_u8(0);
        }
    }

    fn one(&mut self, name: &'static str, kind: &'static Kind, into: &mut BytesMut) {
        match kind {
            Kind::Fixed(size) => self.number(name, *size, into),
            Kind::Text => {
                let text = self.text(name);
                match text {
                    None if self.flexible => into.put_u8(0),
                    None => into.put_i16(-1),
                    Some(text) => {
                        if self.flexible {
                            into.put_u8(text.len() as u8 + 1);
                        } else {
                            into.put_i16(text.len() as i16);
                        }
                        into.put_slice(text.as_bytes());
                    }
                }
            }
            Kind::Bytes => {
                let bytes = match name {
                    "records" => batch(self.entropy),
                    _ => self.entropy.some_bytes(24),
                };
                self.length(bytes.len(), into);
                into.put_slice(&bytes);
            }
            Kind::Structs(fields) => {
                let items = self.items();
                self.length(items, into);
                (0..items).for_each(|_| self.fields(fields, into));
            }
            Kind::Values(kind) => {
                let items = self.items();
                self.length(items, into);
                (0..items).for_each(|_| self.one(name, kind, into));
            }
            Kind::Optional(fields) => {
                if self.entropy.percent(70) {
                    into.put_i8(1);
                    self.fields(fields, into);
                } else {
                    into.put_i8(-1);
                }
            }
        }
    }

    fn items(&mut self) -> usize {
        let items = if self.entropy.percent(60) { 1 } else { self.entropy.below(MOST_ITEMS) };
        let items = items.min(self.items);
        self.items -= items;
        items
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        let learned = &self.speaker.learned;
        if self.entropy.percent(SENSIBLE) {
            let usual = match (self.api, name) {
                (_, "group_instance_id") => None,
                (Api::Produce, "transactional_id") if self.entropy.percent(40) => None,
                (_, "member_id") if learned.is_empty() || self.entropy.percent(20) => Some(String::new()),
                (_, "member_id") => Some(self.entropy.pick(learned).clone()),
                (Api::JoinGroup, "protocol_type") => Some("consumer".to_owned()),
                (Api::JoinGroup, "name") => Some("range".to_owned()),
                _ => Some("abc".to_owned()),
            };
            return usual;
        }
        if !learned.is_empty() && self.entropy.percent(25) {
            return Some(self.entropy.pick(learned).clone());
        }
        // Null is right for few fields, and ends the request for all others.
        (!self.entropy.percent(20)).then(|| (*self.entropy.pick(NAMES)).to_owned())
    }

    fn number(&mut self, name: &'static str, size: usize, into: &mut BytesMut) {
        const COMMON: &[i64] = &[0, 0, 0, 0, 1, 1, 2, 3, -1, -1, -2, 5, 100, 1_000, 60_000];
        let sensible = self.entropy.percent(SENSIBLE);
        let mut value = *self.entropy.pick(if sensible { usual(self.api, name) } else { COMMON });
        if self.entropy.percent(2) {
            value = self.entropy.next() as i64;
        } else if self.entropy.percent(2) {
            value = *self.entropy.pick(&[i64::MAX, i64::MIN]) >> (64 - 8 * size.min(8));
        }
        let bytes = value.to_be_bytes();
        for position in 0..size {
            // Longer ones are uuids.
            into.put_u8(bytes.get((8 + position).wrapping_sub(size)).copied().unwrap_or(0));
        }
    }

    fn length(&self, of: usize, into: &mut BytesMut) {
        if !self.flexible {
            into.put_i32(of as i32);
            return;
        }
        let mut rest = of as u32 + 1;
        while rest >= 0x80 {
            into.put_u8(rest as u8 | 0x80);
            rest >>= 7;
        }
        into.put_u8(rest as u8);
    }
}

/// What a field of this name holds in requests that succeed.
fn usual(api: Api, name: &str) -> &'static [i64] {
    match (api, name) {
        (Api::InitProducerId, "producer_id" | "producer_epoch") => &[-1, -1, -1, -1, -1, 0],
        (_, "producer_id") => &[0, 0, 0, 0, 1],
        (_, "producer_epoch") => &[0, 0, 0, 1],
        (_, "acks") => &[-1, -1, 1, 0],
        (_, "generation_id") => &[1, 1, 1, 2, 3, -1],
        (_, "session_timeout_ms" | "rebalance_timeout_ms" | "transaction_timeout_ms") => &[6_000, 60_000],
        (_, "session_id" | "validate_only") => &[0],
        (_, "max_bytes" | "partition_max_bytes") => &[0, 1_000, 1_000_000],
        (_, "current_leader_epoch" | "last_fetched_epoch") => &[-1, -1, 0],
        (_, "resource_type") => &[2, 2, 4],
        (_, "num_partitions" | "replication_factor") => &[1, -1, 3],
        (_, "timestamp") => &[-1, -2, -3, 0],
        _ => &[0, 0, 0, 1, 1, 2],
    }
}
