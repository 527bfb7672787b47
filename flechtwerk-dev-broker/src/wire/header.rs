//! The header of a request.

use bytes::{Buf, Bytes};

use super::api::Api;
use super::message::Malformed;
use super::shape::skip_tags;

/// Who asks for what, and the number to answer with.
#[derive(Debug, Clone)]
pub(crate) struct RequestHeader {
    pub(crate) api: Api,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client_id: Option<String>,
}

/// What a frame begins with.
pub(crate) enum Parsed {
    /// A request of a version that is served, with its body.
    Request(RequestHeader, Bytes),
    /// ApiVersions of a version that isn't: answered by version 0, so that the client can come down.
    UnknownApiVersions { correlation_id: i32 },
}

impl RequestHeader {
    /// Reads the header and leaves the body.
    pub(crate) fn parse(mut frame: Bytes) -> Result<Parsed, Malformed> {
        let (key, version, correlation_id) =
            match (frame.try_get_i16(), frame.try_get_i16(), frame.try_get_i32()) {
                (Ok(key), Ok(version), Ok(correlation_id)) => (key, version, correlation_id),
                _ => return Err(Malformed::new("header", "cut off")),
            };
        let Some(api) = Api::from_key(key) else {
            return Err(Malformed::new("header", format!("unknown api key {key}")));
        };
        if !api.serves(version) {
            if api == Api::ApiVersions {
                return Ok(Parsed::UnknownApiVersions { correlation_id });
            }
            return Err(Malformed::new("header", format!("{api} has no version {version} here")));
        }
        let length = frame.try_get_i16().map_err(|_| Malformed::new("client id", "cut off"))?;
        let client_id = match usize::try_from(length) {
            Ok(length) if length > frame.len() => return Err(Malformed::new("client id", "cut off")),
            Ok(length) => {
                let bytes = frame.split_to(length);
                let text =
                    std::str::from_utf8(&bytes).map_err(|_| Malformed::new("client id", "no utf-8"))?;
                Some(text.to_owned())
            }
            Err(_) if length == -1 => None,
            Err(_) => return Err(Malformed::new("client id", "negative length")),
        };
        if api.flexible(version) {
            let used = skip_tags(&frame)?;
            frame.advance(used);
        }
        Ok(Parsed::Request(RequestHeader { api, version, correlation_id, client_id }, frame))
    }
}
