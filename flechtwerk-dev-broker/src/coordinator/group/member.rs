//! A member of a group, and the ids that members are given.

use std::collections::BTreeSet;
use std::fmt::Write;

use bytes::Bytes;

use super::types::JoinProtocol;
use crate::coordinator::{Millis, Ticket};

/// A member.
pub(super) struct Member {
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout: Millis,
    pub(super) rebalance_timeout: Millis,
    /// What it supports, the one it likes best first. No name is there twice.
    pub(super) protocols: Vec<JoinProtocol>,
    pub(super) assignment: Bytes,
    /// The JoinGroup request that waits.
    pub(super) join: Option<Ticket>,
    /// The SyncGroup request that waits.
    pub(super) sync: Option<Ticket>,
    /// It has not been told that it is a member yet.
    pub(super) is_new: bool,
    /// When its session ends, unless it is heard of before. None while its request waits for the others.
    pub(super) session: Option<Millis>,
}

impl Member {
    /// Its metadata for a protocol.
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let of = |name: &str| self.protocols.iter().find(|protocol| protocol.name == name);
        protocol.and_then(of).map(|protocol| protocol.metadata.clone()).unwrap_or_default()
    }

    /// Whether it supports one of these protocols, and which of them.
    pub(super) fn supported<'a>(&self, among: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let names = self.protocols.iter().map(|protocol| protocol.name.as_str());
        names.filter_map(|name| among.get(name).copied()).collect()
    }

    /// The protocol it likes best among those that all support.
    pub(super) fn vote<'a>(&'a self, candidates: &BTreeSet<&str>) -> Option<&'a str> {
        self.protocols.iter().map(|protocol| protocol.name.as_str()).find(|name| candidates.contains(name))
    }

    pub(super) fn reset_session(&mut self, now: Millis) {
        self.session = Some(now.after(self.session_timeout));
    }

    /// Whether its request waits for others, who may take longer than its session.
    pub(super) fn is_waiting(&self) -> bool {
        self.join.is_some() || self.sync.is_some()
    }
}

/// Each protocol once, as the first of its name says.
pub(super) fn distinct(protocols: Vec<JoinProtocol>) -> Vec<JoinProtocol> {
    let mut kept: Vec<JoinProtocol> = Vec::with_capacity(protocols.len());
    let mut names = BTreeSet::new();
    for protocol in protocols {
        if names.insert(protocol.name.clone()) {
            kept.push(protocol);
        }
    }
    kept
}

/// Gives out member ids of the form that Kafka's have: who asks for it, and a UUID.
pub(super) struct MemberIds {
    state: u128,
}

impl MemberIds {
    pub(super) fn new(seed: u128) -> Self {
        Self { state: seed }
    }

    /// An id that was not given out before.
    pub(super) fn next(&mut self, owner: &str) -> String {
        // Each half is a SplitMix64 sequence of its own, so no id comes twice before 2^64 of them.
        let (high, low) = ((self.state >> 64) as u64, self.state as u64);
        let (high, low) = (high.wrapping_add(0x9e37_79b9_7f4a_7c15), low.wrapping_add(0xbf58_476d_1ce4_e5b9));
        self.state = (u128::from(high) << 64) | u128::from(low);
        let (a, b) = (mix(high), mix(low));
        let mut id = String::with_capacity(owner.len().saturating_add(37));
        id.push_str(owner);
        // The bits that make it a random UUID.
        let (third, fourth) = ((a & 0x0fff) | 0x4000, ((b >> 48) & 0x3fff) | 0x8000);
        let written = write!(
            id,
            "-{:08x}-{:04x}-{third:04x}-{fourth:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            b & 0xffff_ffff_ffff
        );
        debug_assert!(written.is_ok(), "writing into a string cannot fail");
        id
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
