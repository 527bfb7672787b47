//! Answers that name addresses of brokers: those of the proxy are put in their place, or clients would go past it.
//!
//! These are Metadata, FindCoordinator and DescribeCluster, and the answers by which a broker tells where a partition's leader
//! has gone: Produce from version 10, Fetch from version 16, ShareFetch and ShareAcknowledge. (What controllers tell each other
//! is left alone: no client asks for it.)
//!
//! Only versions that `kafka-protocol` knows can be rewritten: it is what the walks here are tested against. So the answer to
//! ApiVersions is lowered for the APIs above, and a client never asks for more. A request of a newer version that comes all the
//! same is passed through with its answer, and said once. ApiVersions itself is asked for before a client knows what it may
//! ask: in a version that is too new it is answered as a broker does that doesn't know it, by version 0 and UNSUPPORTED_VERSION.

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use kafka_protocol::messages::ApiKey;

use crate::frame::{PREFIX, set_length};
use crate::walk::{Edits, Malformed, Walk, put_varint};

/// UNSUPPORTED_VERSION.
const UNSUPPORTED_VERSION: i16 = 35;

/// Whose answers name addresses.
const REWRITTEN: &[ApiKey] = &[
    ApiKey::Metadata,
    ApiKey::FindCoordinator,
    ApiKey::DescribeCluster,
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
];

/// Why an answer can't be passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RewriteError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("no listener for another node")]
    Listen(#[from] io::Error),
}

/// Where clients are to go for a node, by its id, host and port.
pub(crate) type Addresses<'a> = dyn FnMut(i32, &str, u16) -> io::Result<SocketAddr> + 'a;

/// What is to be done with the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing.
    Pass,
    /// Nothing can be done: the version is newer than this code.
    TooNew,
    /// Addresses, or versions, are replaced.
    Rewrite(ApiKey, i16),
    /// ApiVersions of a version that is too new: it is asked for as version 0.
    AskForOldest,
}

impl Plan {
    /// By the request.
    pub(crate) fn of(key: i16, version: i16) -> Plan {
        let Ok(api) = ApiKey::try_from(key) else { return Plan::Pass };
        let too_new = version > api.valid_versions().max;
        match api {
            ApiKey::ApiVersions if too_new => Plan::AskForOldest,
            ApiKey::ApiVersions => Plan::Rewrite(api, version),
            _ if !REWRITTEN.contains(&api) => Plan::Pass,
            _ if too_new => Plan::TooNew,
            ApiKey::Produce if version < 10 => Plan::Pass,
            ApiKey::Fetch if version < 16 => Plan::Pass,
            _ => Plan::Rewrite(api, version),
        }
    }
}

/// The request for ApiVersions of version 0, in the name of another version. `header_end`: of the header without tagged fields.
pub(crate) fn ask_for_oldest(frame: &mut Vec<u8>, header_end: usize) {
    frame.truncate(header_end);
    if let Some(version) = frame.get_mut(PREFIX + 2..PREFIX + 4) {
        version.fill(0);
    }
    set_length(frame);
}

/// Rewrites an answer, a frame with its length in front.
pub(crate) fn answer(
    plan: Plan,
    frame: &mut Vec<u8>,
    addresses: &mut Addresses<'_>,
) -> Result<(), RewriteError> {
    let (api, version) = match plan {
        Plan::Pass | Plan::TooNew => return Ok(()),
        Plan::AskForOldest => {
            if let Some(error) = frame.get_mut(PREFIX + 4..PREFIX + 6) {
                error.copy_from_slice(&UNSUPPORTED_VERSION.to_be_bytes());
            }
            return Ok(lower(frame, 0)?);
        }
        Plan::Rewrite(ApiKey::ApiVersions, version) => return Ok(lower(frame, version)?),
        Plan::Rewrite(api, version) => (api, version),
    };
    let mut edits = Edits::default();
    let mut rewrite = Rewrite { edits: &mut edits, addresses };
    // Behind length and correlation id.
    let mut walk = Walk::new(frame, PREFIX + 4);
    walk.flexible = api.response_header_version(version) >= 1;
    walk.tags()?;
    match api {
        ApiKey::Metadata => metadata(version, &mut walk, &mut rewrite)?,
        ApiKey::FindCoordinator => find_coordinator(version, &mut walk, &mut rewrite)?,
        ApiKey::DescribeCluster => describe_cluster(version, &mut walk, &mut rewrite)?,
        ApiKey::Produce => produce(version, &mut walk, &mut rewrite)?,
        ApiKey::Fetch => fetch(&mut walk, &mut rewrite)?,
        ApiKey::ShareFetch => share_fetch(&mut walk, &mut rewrite)?,
        ApiKey::ShareAcknowledge => share_acknowledge(&mut walk, &mut rewrite)?,
        _ => {}
    }
    if !edits.is_empty() {
        *frame = edits.apply(frame, 0..frame.len());
        set_length(frame);
    }
    Ok(())
}

struct Rewrite<'a, 'b> {
    edits: &'a mut Edits,
    addresses: &'a mut Addresses<'b>,
}

impl Rewrite<'_, '_> {
    /// A node's id, host and port.
    fn node(&mut self, walk: &mut Walk<'_>) -> Result<(), RewriteError> {
        let id = walk.int32()?;
        self.address(id, walk)
    }

    /// A node's host and port.
    fn address(&mut self, id: i32, walk: &mut Walk<'_>) -> Result<(), RewriteError> {
        let start = walk.at();
        let (host, port) = (walk.string()?.unwrap_or_default(), walk.int32()?);
        // A coordinator that is not to be found has no address, and no id.
        let port = u16::try_from(port).unwrap_or(0);
        if id < 0 || host.is_empty() || port == 0 {
            return Ok(());
        }
        let address = (self.addresses)(id, host, port)?;
        self.edits.replace(start..walk.at(), encoded(address, walk.flexible));
        Ok(())
    }

    /// `node_endpoints`: an array of id, host, port, rack.
    fn endpoints(&mut self, walk: &mut Walk<'_>) -> Result<(), RewriteError> {
        for _ in 0..walk.array()? {
            self.node(walk)?;
            walk.string()?;
            walk.tags()?;
        }
        Ok(())
    }

    /// The same as a tagged field, which tells its size in front.
    fn tagged_endpoints(
        &mut self,
        bytes: &[u8],
        found: Option<(Range<usize>, Walk<'_>)>,
    ) -> Result<(), RewriteError> {
        let Some((field, mut walk)) = found else { return Ok(()) };
        let mut edits = Edits::default();
        let start = walk.at();
        Rewrite { edits: &mut edits, addresses: self.addresses }.endpoints(&mut walk)?;
        let content = edits.apply(bytes, start..field.end);
        let mut by = Vec::with_capacity(content.len() + 5);
        put_varint(&mut by, u32::try_from(content.len()).map_err(|_| Malformed("a field too long"))?);
        by.extend(content);
        self.edits.replace(field, by);
        Ok(())
    }
}

/// Host and port.
fn encoded(address: SocketAddr, flexible: bool) -> Vec<u8> {
    let host = address.ip().to_string();
    let mut bytes = Vec::with_capacity(host.len() + 6);
    // No address of an interface has more than 45 characters.
    if flexible {
        put_varint(&mut bytes, host.len() as u32 + 1);
    } else {
        bytes.extend((host.len() as u16).to_be_bytes());
    }
    bytes.extend(host.as_bytes());
    bytes.extend(i32::from(address.port()).to_be_bytes());
    bytes
}

fn metadata(version: i16, walk: &mut Walk<'_>, rewrite: &mut Rewrite<'_, '_>) -> Result<(), RewriteError> {
    if version >= 3 {
        throttle(walk)?;
    }
    for _ in 0..walk.array()? {
        rewrite.node(walk)?;
        if version >= 1 {
            walk.string()?;
        }
        walk.tags()?;
    }
    Ok(())
}

fn find_coordinator(
    version: i16,
    walk: &mut Walk<'_>,
    rewrite: &mut Rewrite<'_, '_>,
) -> Result<(), RewriteError> {
    if version >= 1 {
        throttle(walk)?;
    }
    if version <= 3 {
        walk.int16()?;
        if version >= 1 {
            walk.string()?;
        }
        return rewrite.node(walk);
    }
    for _ in 0..walk.array()? {
        walk.string()?;
        rewrite.node(walk)?;
        walk.int16()?;
        walk.string()?;
        walk.tags()?;
    }
    Ok(())
}

fn describe_cluster(
    version: i16,
    walk: &mut Walk<'_>,
    rewrite: &mut Rewrite<'_, '_>,
) -> Result<(), RewriteError> {
    throttle(walk)?;
    walk.int16()?;
    walk.string()?;
    // 1: brokers. Controllers have addresses of their own, to which no client goes.
    if version >= 1 && walk.int8()? != 1 {
        return Ok(());
    }
    walk.string()?;
    walk.int32()?;
    for _ in 0..walk.array()? {
        rewrite.node(walk)?;
        walk.string()?;
        if version >= 2 {
            walk.int8()?;
        }
        walk.tags()?;
    }
    Ok(())
}

fn produce(version: i16, walk: &mut Walk<'_>, rewrite: &mut Rewrite<'_, '_>) -> Result<(), RewriteError> {
    let bytes = walk.bytes();
    for _ in 0..walk.array()? {
        if version >= 13 {
            walk.take(UUID)?;
        } else {
            walk.string()?;
        }
        for _ in 0..walk.array()? {
            // Index, error, base offset, time of the append, start of the log.
            walk.take(4 + 2 + 8 + 8 + 8)?;
            for _ in 0..walk.array()? {
                walk.int32()?;
                walk.string()?;
                walk.tags()?;
            }
            walk.string()?;
            walk.tags()?;
        }
        walk.tags()?;
    }
    throttle(walk)?;
    let endpoints = walk.find_tag(0)?;
    rewrite.tagged_endpoints(bytes, endpoints)
}

fn fetch(walk: &mut Walk<'_>, rewrite: &mut Rewrite<'_, '_>) -> Result<(), RewriteError> {
    let bytes = walk.bytes();
    throttle(walk)?;
    // Error, session.
    walk.take(2 + 4)?;
    for _ in 0..walk.array()? {
        walk.take(UUID)?;
        for _ in 0..walk.array()? {
            // Index, error, high watermark, last stable offset, start of the log.
            walk.take(4 + 2 + 8 + 8 + 8)?;
            for _ in 0..walk.array()? {
                // An aborted transaction: producer, offset.
                walk.take(8 + 8)?;
                walk.tags()?;
            }
            // The preferred replica.
            walk.int32()?;
            walk.skip_bytes()?;
            walk.tags()?;
        }
        walk.tags()?;
    }
    let endpoints = walk.find_tag(0)?;
    rewrite.tagged_endpoints(bytes, endpoints)
}

fn share_fetch(walk: &mut Walk<'_>, rewrite: &mut Rewrite<'_, '_>) -> Result<(), RewriteError> {
    throttle(walk)?;
    walk.int16()?;
    walk.string()?;
    // How long records are locked.
    walk.int32()?;
    for _ in 0..walk.array()? {
        walk.take(UUID)?;
        for _ in 0..walk.array()? {
            walk.take(4 + 2)?;
            walk.string()?;
            walk.int16()?;
            walk.string()?;
            leader(walk)?;
            walk.skip_bytes()?;
            for _ in 0..walk.array()? {
                // First and last offset, deliveries.
                walk.take(8 + 8 + 2)?;
                walk.tags()?;
            }
            walk.tags()?;
        }
        walk.tags()?;
    }
    rewrite.endpoints(walk)
}

fn share_acknowledge(walk: &mut Walk<'_>, rewrite: &mut Rewrite<'_, '_>) -> Result<(), RewriteError> {
    throttle(walk)?;
    walk.int16()?;
    walk.string()?;
    for _ in 0..walk.array()? {
        walk.take(UUID)?;
        for _ in 0..walk.array()? {
            walk.take(4 + 2)?;
            walk.string()?;
            leader(walk)?;
            walk.tags()?;
        }
        walk.tags()?;
    }
    rewrite.endpoints(walk)
}

const UUID: usize = 16;

fn throttle(walk: &mut Walk<'_>) -> Result<(), Malformed> {
    walk.int32().map(drop)
}

/// Id and epoch of a leader, without its address.
fn leader(walk: &mut Walk<'_>) -> Result<(), Malformed> {
    walk.take(4 + 4)?;
    walk.tags()
}

/// Lowers the newest versions in an answer to ApiVersions to those that can be rewritten.
fn lower(frame: &mut [u8], version: i16) -> Result<(), Malformed> {
    let mut lowered = Vec::new();
    // The header of this answer never has tagged fields.
    let mut walk = Walk::new(frame, PREFIX + 4);
    // An error of this kind is answered in version 0.
    let version = if walk.int16()? == UNSUPPORTED_VERSION { 0 } else { version };
    walk.flexible = version >= 3;
    for _ in 0..walk.array()? {
        let (key, min) = (walk.int16()?, walk.int16()?);
        let (at, max) = (walk.at(), walk.int16()?);
        walk.tags()?;
        let Ok(api) = ApiKey::try_from(key) else { continue };
        let known = api.valid_versions().max;
        let concerns_us = api == ApiKey::ApiVersions || REWRITTEN.contains(&api);
        // Where all versions are too new, lowering would leave none.
        if concerns_us && max > known && min <= known {
            lowered.push((at, known));
        }
    }
    for (at, known) in lowered {
        if let Some(max) = frame.get_mut(at..at + 2) {
            max.copy_from_slice(&known.to_be_bytes());
        }
    }
    Ok(())
}
