//! A client that speaks the protocol and nothing else, so that a test says each request and sees each answer.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod records;
pub(crate) mod transactions;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, ProduceRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// How long any answer may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    stream: TcpStream,
    client_id: String,
    correlation_id: i32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Client::named(address, "test")
    }

    pub(crate) fn named(address: SocketAddr, client_id: &str) -> Client {
        Client::try_named(address, client_id).unwrap()
    }

    pub(crate) fn try_named(address: SocketAddr, client_id: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, client_id: client_id.to_owned(), correlation_id: 0 })
    }

    /// Asks and waits for the answer.
    pub(crate) fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.try_call(version, request).unwrap()
    }

    /// Asks; an error where the connection was closed instead of an answer.
    pub(crate) fn try_call<R: Request>(&mut self, version: i16, request: &R) -> io::Result<R::Response> {
        self.send(version, request)?;
        self.answer::<R>(version)
    }

    pub(crate) fn send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<()> {
        self.correlation_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(StrBytes::from_string(self.client_id.clone())));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, R::header_version(version)).unwrap();
        request.encode(&mut frame, version).unwrap();
        self.raw(&frame)
    }

    /// That of the last request.
    pub(crate) fn correlation_id(&self) -> i32 {
        self.correlation_id
    }

    /// The next answer, which is that of the last request.
    pub(crate) fn answer<R: Request>(&mut self, version: i16) -> io::Result<R::Response> {
        self.answer_to::<R>(self.correlation_id, version)
    }

    /// The next answer, which is that of this request.
    pub(crate) fn answer_to<R: Request>(
        &mut self,
        correlation_id: i32,
        version: i16,
    ) -> io::Result<R::Response> {
        let mut frame = self.frame()?;
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(version)).unwrap();
        assert_eq!(header.correlation_id, correlation_id);
        let response = R::Response::decode(&mut frame, version).unwrap();
        assert!(!frame.has_remaining(), "the answer is longer than its fields");
        Ok(response)
    }

    /// Sends bytes as a frame.
    pub(crate) fn raw(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut all = BytesMut::with_capacity(frame.len() + 4);
        all.put_i32(frame.len() as i32);
        all.put_slice(frame);
        self.stream.write_all(&all)
    }

    /// Sends bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn frame(&mut self) -> io::Result<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(Bytes::from(frame))
    }

    /// Whether the broker closes the connection, and sends nothing before.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// No more comes from here.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

pub(crate) fn text(of: &str) -> StrBytes {
    StrBytes::from_string(of.to_owned())
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

/// A batch with one record, without a key and a producer id.
pub(crate) fn batch(value: &[u8]) -> Bytes {
    batch_with_key(None, value)
}

/// A batch with one record, without a producer id.
pub(crate) fn batch_with_key(key: Option<&[u8]>, value: &[u8]) -> Bytes {
    records::batch_of(None, &[(key, value)])
}

pub(crate) fn produce(name: &str, partition: i32, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records));
    let data = TopicProduceData::default().with_name(topic(name)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(1000).with_topic_data(vec![data])
}

pub(crate) fn fetch(name: &str, partition: i32, offset: i64, max_wait_ms: i32) -> FetchRequest {
    let wanted = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1_000_000);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1_000_000)
        .with_topics(vec![FetchTopic::default().with_topic(topic(name)).with_partitions(vec![wanted])])
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
