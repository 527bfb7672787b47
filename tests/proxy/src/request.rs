//! What a request is about, as far as rules and reports care: its header, and the ids that stand at the front of its body.
//!
//! Only the front of a body is read, so that a version that is newer than this code is understood as well as it can be. What
//! can't be read matches no rule that names it, and is passed on all the same: it is the broker who judges it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use kafka_protocol::messages::ApiKey;

use crate::frame::PREFIX;
use crate::walk::{Malformed, Walk};

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The API's key on the wire.
    pub key: i16,
    /// Its version.
    pub version: i16,
    /// The client's number for it.
    pub correlation_id: i32,
    /// The client id.
    pub client_id: Option<Arc<str>>,
    /// The transactional id it is about; the first, where it names several.
    pub transactional_id: Option<String>,
    /// The group it is about; the first, where it names several.
    pub group_id: Option<String>,
}

impl Request {
    /// The API, if it is a known one.
    pub fn api(&self) -> Option<ApiKey> {
        ApiKey::try_from(self.key).ok()
    }

    /// The API's name in the Kafka protocol, or its number.
    pub fn name(&self) -> String {
        name(self.key)
    }
}

/// An API's name, or its number.
pub(crate) fn name(key: i16) -> String {
    ApiKey::try_from(key).map_or_else(|()| format!("API {key}"), |api| format!("{api:?}"))
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{} #{}", self.name(), self.version, self.correlation_id)?;
        let ids = [
            ("client", self.client_id.as_deref()),
            ("transactional id", self.transactional_id.as_deref()),
            ("group", self.group_id.as_deref()),
        ];
        for (what, id) in ids {
            if let Some(id) = id {
                write!(f, ", {what} {id}")?;
            }
        }
        Ok(())
    }
}

/// A request, and what it takes to pass it on.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) request: Request,
    /// Whether an answer will come: none does to a Produce that asks for no acknowledgement.
    pub(crate) answered: bool,
    /// Where the header ends, but for its tagged fields.
    pub(crate) header_end: usize,
}

/// Reads a frame, which begins with its length.
pub(crate) fn parse(frame: &[u8]) -> Result<Parsed, Malformed> {
    let mut walk = Walk::new(frame, PREFIX);
    let (key, version, correlation_id) = (walk.int16()?, walk.int16()?, walk.int32()?);
    let client_id = walk.header_string()?.map(Arc::from);
    let header_end = walk.at();
    let mut parsed = Parsed {
        request: Request { key, version, correlation_id, client_id, transactional_id: None, group_id: None },
        answered: true,
        header_end,
    };
    if let Ok(api) = ApiKey::try_from(key) {
        walk.flexible = api.request_header_version(version) >= 2;
        let read = walk.tags().and_then(|()| front(api, version, &mut walk, &mut parsed));
        if let Err(error) = read {
            tracing::debug!(request = %parsed.request, %error, "the front of a request can't be read");
        }
    }
    Ok(parsed)
}

/// Reads the fields at the front of a body.
fn front(api: ApiKey, version: i16, walk: &mut Walk<'_>, parsed: &mut Parsed) -> Result<(), Malformed> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let request = &mut parsed.request;
    match api {
        ApiKey::Produce => {
            if version >= 3 {
                request.transactional_id = owned(walk.string()?);
            }
            parsed.answered = walk.int16()? != 0;
        }
        ApiKey::InitProducerId | ApiKey::EndTxn => request.transactional_id = owned(walk.string()?),
        ApiKey::TxnOffsetCommit => {
            request.transactional_id = owned(walk.string()?);
            request.group_id = owned(walk.string()?);
        }
        ApiKey::AddOffsetsToTxn => {
            request.transactional_id = owned(walk.string()?);
            // Producer id and epoch.
            walk.take(8 + 2)?;
            request.group_id = owned(walk.string()?);
        }
        ApiKey::AddPartitionsToTxn if version <= 3 => request.transactional_id = owned(walk.string()?),
        ApiKey::AddPartitionsToTxn | ApiKey::DescribeTransactions => {
            request.transactional_id = owned(first(walk)?);
        }
        ApiKey::FindCoordinator => {
            let (key, key_type) = match version {
                0 => (walk.string()?, 0),
                1..=3 => (walk.string()?, walk.int8()?),
                _ => {
                    let key_type = walk.int8()?;
                    (first(walk)?, key_type)
                }
            };
            match key_type {
                0 => request.group_id = owned(key),
                1 => request.transactional_id = owned(key),
                _ => {}
            }
        }
        ApiKey::OffsetFetch if version >= 8 => request.group_id = owned(first(walk)?),
        ApiKey::DescribeGroups | ApiKey::DeleteGroups | ApiKey::ConsumerGroupDescribe => {
            request.group_id = owned(first(walk)?);
        }
        ApiKey::OffsetCommit
        | ApiKey::OffsetFetch
        | ApiKey::OffsetDelete
        | ApiKey::JoinGroup
        | ApiKey::SyncGroup
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::ConsumerGroupHeartbeat
        | ApiKey::ShareGroupHeartbeat
        | ApiKey::ShareFetch
        | ApiKey::ShareAcknowledge => request.group_id = owned(walk.string()?),
        _ => {}
    }
    Ok(())
}

/// The string at the front of the first element of an array, if there is one.
fn first<'a>(walk: &mut Walk<'a>) -> Result<Option<&'a str>, Malformed> {
    if walk.array()? == 0 { Ok(None) } else { walk.string() }
}
