//! A connection that sends one request at a time and waits for its answer, with a deadline.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// How long an answer may take.
pub const ANSWER: Duration = Duration::from_secs(20);

/// The newest versions that the checks speak, by API key: those of the client that the project is built on. A check that
/// is about another version names it.
const SPOKEN: &[(i16, i16)] = &[
    (0, 9),  // Produce
    (1, 11), // Fetch
    (2, 7),  // ListOffsets
    (8, 7),  // OffsetCommit
    (9, 7),  // OffsetFetch
    (10, 2), // FindCoordinator
    (11, 5), // JoinGroup
    (12, 3), // Heartbeat
    (13, 1), // LeaveGroup
    (14, 3), // SyncGroup
    (15, 4), // DescribeGroups
    (22, 4), // InitProducerId
    (24, 0), // AddPartitionsToTxn
    (25, 0), // AddOffsetsToTxn
    (26, 1), // EndTxn
    (28, 3), // TxnOffsetCommit
];

/// The client id, unless another is said.
const CLIENT_ID: StrBytes = StrBytes::from_static_str("conformance");

/// What a broker answers: a value, or the error code.
pub type Answer<T = ()> = Result<T, ResponseError>;

/// The lowest and the highest version of each API, by its key.
pub type Versions = BTreeMap<i16, (i16, i16)>;

/// An error code as an answer.
pub fn code(error_code: i16) -> Answer {
    match ResponseError::try_from_code(error_code) {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// A string of the protocol.
pub fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

/// A connection to the broker.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    versions: Arc<Versions>,
    client_id: StrBytes,
    correlation: i32,
}

impl Client {
    /// Connects, and asks for the versions.
    pub fn connect(address: SocketAddr) -> Client {
        let mut client = Client::raw(address);
        let answer = client.call_at(0, &ApiVersionsRequest::default());
        assert_eq!(answer.error_code, 0, "ApiVersions");
        let versions = answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        client.versions = Arc::new(versions.collect());
        client
    }

    /// Connects and asks nothing.
    pub fn raw(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("a connection to the broker");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, versions: Arc::default(), client_id: CLIENT_ID, correlation: 0 }
    }

    /// Uses this client id from now on.
    pub fn named(mut self, client_id: &str) -> Client {
        self.client_id = text(client_id);
        self
    }

    /// Another connection to the same broker.
    pub fn another(&self) -> Client {
        let client_id = self.client_id.clone();
        Client { client_id, ..Client::connect(self.stream.peer_addr().expect("the broker's address")) }
    }

    /// What the broker advertises.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The version of an API that the checks speak with this broker.
    #[track_caller]
    pub fn version<R: Request>(&self) -> i16 {
        let (low, high) = *self.versions.get(&R::KEY).unwrap_or_else(|| {
            panic!("the broker does not advertise API {}", R::KEY);
        });
        let spoken = SPOKEN.iter().find(|(key, _)| *key == R::KEY).map_or(i16::MAX, |(_, version)| *version);
        let version = spoken.min(high).min(R::VERSIONS.max);
        assert!(version >= low, "the broker's lowest version of API {} is {low}, not {version}", R::KEY);
        version
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn call<R: Request>(&mut self, request: &R) -> R::Response {
        self.call_at(self.version::<R>(), request)
    }

    /// Sends a request of a certain version and waits for its answer.
    #[track_caller]
    pub fn call_at<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.send_at(version, request);
        self.receive_at::<R>(version)
    }

    /// Sends a request and does not wait.
    #[track_caller]
    pub fn send<R: Request>(&mut self, request: &R) {
        self.send_at(self.version::<R>(), request);
    }

    /// Sends a request of a certain version and does not wait.
    #[track_caller]
    pub fn send_at<R: Request>(&mut self, version: i16, request: &R) {
        self.correlation += 1;
        let api = (R::KEY, version, R::header_version(version));
        let frame = frame_by(&self.client_id, api, self.correlation, &encoded(R::KEY, version, request));
        self.stream.write_all(&frame).expect("a request is sent");
    }

    /// Waits for the answer to the request sent last.
    #[track_caller]
    pub fn receive<R: Request>(&mut self) -> R::Response {
        self.receive_at::<R>(self.version::<R>())
    }

    /// Waits for the answer to the request sent last, of a certain version.
    #[track_caller]
    pub fn receive_at<R: Request>(&mut self, version: i16) -> R::Response {
        let answer = self.try_receive_at::<R>(version, ANSWER);
        answer.unwrap_or_else(|why| panic!("no answer to API {} version {version}: {why}", R::KEY))
    }

    /// The answer to the request sent last, if it comes in time and can be read to its end.
    pub fn try_receive_at<R: Request>(
        &mut self,
        version: i16,
        limit: Duration,
    ) -> Result<R::Response, String> {
        let mut body = self.receive_frame(limit)?;
        let header = ResponseHeader::decode(&mut body, R::Response::header_version(version))
            .map_err(|error| format!("the header can't be read: {error}"))?;
        if header.correlation_id != self.correlation {
            return Err(format!("correlation id {} instead of {}", header.correlation_id, self.correlation));
        }
        let answer =
            R::Response::decode(&mut body, version).map_err(|error| format!("it can't be read: {error}"))?;
        if body.is_empty() { Ok(answer) } else { Err(format!("{} bytes too many", body.len())) }
    }

    /// Sends bytes as they are. A broker that has hung up already is no failure.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame without its length.
    pub fn receive_frame(&mut self, limit: Duration) -> Result<Bytes, String> {
        let until = Instant::now() + limit;
        let mut length = [0; 4];
        self.fill(&mut length, until)?;
        let length = i32::from_be_bytes(length);
        let mut body = vec![0; usize::try_from(length).map_err(|_| format!("a frame of length {length}"))?];
        self.fill(&mut body, until)?;
        Ok(body.into())
    }

    fn fill(&mut self, mut into: &mut [u8], until: Instant) -> Result<(), String> {
        while !into.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("none in time".to_owned());
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
            match self.stream.read(into) {
                Ok(0) => return Err("the broker closed the connection".to_owned()),
                Ok(count) => into = &mut into[count..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Whether the broker closes this connection, without having sent anything.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).expect("a read timeout");
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// Whether nothing has come and the connection stands, for as long as `limit`.
    pub fn is_silent_for(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).expect("a read timeout");
        match self.stream.peek(&mut [0]) {
            Ok(_) => false,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// Ends the sending half, as a client that goes away within a frame.
    pub fn shut_down_write(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

/// A whole frame, its length in front.
pub fn frame(
    key: i16,
    version: i16,
    correlation: i32,
    header_version: i16,
    body: &impl Encodable,
) -> Vec<u8> {
    raw_frame(key, version, correlation, header_version, &encoded(key, version, body))
}

/// A whole frame, its length in front, with any bytes for its body.
pub fn raw_frame(key: i16, version: i16, correlation: i32, header_version: i16, body: &[u8]) -> Vec<u8> {
    frame_by(&CLIENT_ID, (key, version, header_version), correlation, body)
}

fn encoded(key: i16, version: i16, body: &impl Encodable) -> BytesMut {
    let mut bytes = BytesMut::new();
    body.encode(&mut bytes, version).unwrap_or_else(|error| panic!("API {key} version {version}: {error}"));
    bytes
}

/// `api`: its key, its version, and that of its header.
fn frame_by(client_id: &StrBytes, api: (i16, i16, i16), correlation: i32, body: &[u8]) -> Vec<u8> {
    let (key, version, header_version) = api;
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(client_id.clone()));
    let mut bytes = BytesMut::new();
    bytes.put_i32(0);
    header.encode(&mut bytes, header_version).expect("a header");
    bytes.put_slice(body);
    let length = i32::try_from(bytes.len() - 4).expect("a frame's length");
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes.to_vec()
}
