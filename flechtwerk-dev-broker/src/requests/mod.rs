//! One file per family of APIs: a request is parsed, carried out on the state, and answered.
//!
//! Each request type says by [`Serve`] what it is about, how it is carried out, and where an error goes in its answer. This
//! file does the rest for all of them: decoding, the log of requests, faults, encoding.

mod admin;
mod api_versions;
mod cluster;
mod configs;
mod fetch;
mod group_admin;
mod groups;
mod offsets;
mod positions;
mod produce;
mod text;
mod transaction_admin;
mod transactions;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages as kafka;
use kafka_protocol::protocol::{Decodable, Encodable};

use crate::ErrorCode;
use crate::broker::Shared;
use crate::broker::state::State;
use crate::fault::{Action, Request, Subject, When};
use crate::wire::{Api, Malformed, Parsed, RequestHeader, decode, encode};

/// What goes back on a connection.
pub(crate) enum Reply {
    Frame(Bytes),
    /// The request asked for no answer.
    Nothing,
    Close(&'static str),
}

/// What came of a request.
pub(crate) enum Outcome<A> {
    Answer(A),
    /// The request asked for no answer.
    Silent,
    Close(&'static str),
}

/// A request that is served.
pub(crate) trait Serve: Decodable + Sized + Send {
    type Answer: Encodable + Send;

    /// What faults and the log of requests may go by.
    fn subject(&self) -> Subject {
        Subject::default()
    }

    /// The answer that has this error in every place that a client looks at.
    fn refuse(&self, version: i16, error: ErrorCode) -> Self::Answer;

    /// Carries it out.
    fn serve(self, context: &Context) -> impl Future<Output = Outcome<Self::Answer>> + Send;
}

/// Where a request came from.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) header: RequestHeader,
    /// The node it was sent to.
    pub(crate) node: i32,
    pub(crate) peer: SocketAddr,
}

impl Context {
    pub(crate) fn version(&self) -> i16 {
        self.header.version
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(work)
    }

    /// Whether this node coordinates the group or transactional id; if not, the error to answer.
    pub(crate) fn coordinates(&self, state: &State, key: &str) -> Result<(), ErrorCode> {
        match state.nodes.coordinator(key) {
            Some(node) if node.id == self.node => Ok(()),
            _ => Err(ErrorCode::NOT_COORDINATOR),
        }
    }
}

/// Answers a frame.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    node: i32,
    peer: SocketAddr,
    frame: Bytes,
) -> Result<Reply, Malformed> {
    let (header, body) = match RequestHeader::parse(frame)? {
        Parsed::Request(header, body) => (header, body),
        Parsed::UnknownApiVersions { correlation_id } => return api_versions::unknown_version(correlation_id),
    };
    let context = &Context { shared: Arc::clone(shared), header, node, peer };
    match context.header.api {
        Api::Produce => run::<kafka::ProduceRequest>(context, body).await,
        Api::Fetch => run::<kafka::FetchRequest>(context, body).await,
        Api::ListOffsets => run::<kafka::ListOffsetsRequest>(context, body).await,
        Api::Metadata => run::<kafka::MetadataRequest>(context, body).await,
        Api::OffsetCommit => run::<kafka::OffsetCommitRequest>(context, body).await,
        Api::OffsetFetch => run::<kafka::OffsetFetchRequest>(context, body).await,
        Api::FindCoordinator => run::<kafka::FindCoordinatorRequest>(context, body).await,
        Api::JoinGroup => run::<kafka::JoinGroupRequest>(context, body).await,
        Api::Heartbeat => run::<kafka::HeartbeatRequest>(context, body).await,
        Api::LeaveGroup => run::<kafka::LeaveGroupRequest>(context, body).await,
        Api::SyncGroup => run::<kafka::SyncGroupRequest>(context, body).await,
        Api::DescribeGroups => run::<kafka::DescribeGroupsRequest>(context, body).await,
        Api::ListGroups => run::<kafka::ListGroupsRequest>(context, body).await,
        Api::ApiVersions => run::<kafka::ApiVersionsRequest>(context, body).await,
        Api::CreateTopics => run::<kafka::CreateTopicsRequest>(context, body).await,
        Api::DeleteTopics => run::<kafka::DeleteTopicsRequest>(context, body).await,
        Api::DeleteRecords => run::<kafka::DeleteRecordsRequest>(context, body).await,
        Api::InitProducerId => run::<kafka::InitProducerIdRequest>(context, body).await,
        Api::OffsetForLeaderEpoch => run::<kafka::OffsetForLeaderEpochRequest>(context, body).await,
        Api::AddPartitionsToTxn => run::<kafka::AddPartitionsToTxnRequest>(context, body).await,
        Api::AddOffsetsToTxn => run::<kafka::AddOffsetsToTxnRequest>(context, body).await,
        Api::EndTxn => run::<kafka::EndTxnRequest>(context, body).await,
        Api::TxnOffsetCommit => run::<kafka::TxnOffsetCommitRequest>(context, body).await,
        Api::DescribeConfigs => run::<kafka::DescribeConfigsRequest>(context, body).await,
        Api::AlterConfigs => run::<kafka::AlterConfigsRequest>(context, body).await,
        Api::CreatePartitions => run::<kafka::CreatePartitionsRequest>(context, body).await,
        Api::DeleteGroups => run::<kafka::DeleteGroupsRequest>(context, body).await,
        Api::IncrementalAlterConfigs => run::<kafka::IncrementalAlterConfigsRequest>(context, body).await,
        Api::OffsetDelete => run::<kafka::OffsetDeleteRequest>(context, body).await,
        Api::DescribeCluster => run::<kafka::DescribeClusterRequest>(context, body).await,
        Api::DescribeProducers => run::<kafka::DescribeProducersRequest>(context, body).await,
        Api::DescribeTransactions => run::<kafka::DescribeTransactionsRequest>(context, body).await,
        Api::ListTransactions => run::<kafka::ListTransactionsRequest>(context, body).await,
        Api::DescribeTopicPartitions => run::<kafka::DescribeTopicPartitionsRequest>(context, body).await,
    }
}

async fn run<R: Serve>(context: &Context, body: Bytes) -> Result<Reply, Malformed> {
    let Context { shared, header, node, .. } = context;
    let request: R = decode(header.api, header.version, body)?;
    let subject = request.subject();
    tracing::debug!(
        api = %header.api,
        version = header.version,
        client = header.client_id.as_deref(),
        transactional_id = subject.transactional_id.as_deref(),
        group_id = subject.group_id.as_deref(),
        node,
        "request"
    );
    let fault = shared.faults.next(header.api, header.client_id.as_deref(), *node, &subject);
    shared.requests.record(|| Request {
        api: header.api,
        version: header.version,
        client_id: header.client_id.clone(),
        transactional_id: subject.transactional_id,
        group_id: subject.group_id,
        node: *node,
        at: shared.age(),
    });

    match &fault {
        Some(Action::Answer(error, When::Before)) => {
            return encode(header, &request.refuse(header.version, *error)).map(Reply::Frame);
        }
        Some(Action::Drop(When::Before)) => return Ok(Reply::Close("a fault")),
        Some(Action::Delay(delay, When::Before)) => tokio::time::sleep(*delay).await,
        Some(Action::Hold(released, When::Before)) => hold(released).await,
        _ => {}
    }
    let refused = match &fault {
        Some(Action::Answer(error, When::After)) => Some(request.refuse(header.version, *error)),
        _ => None,
    };
    let outcome = request.serve(context).await;
    match &fault {
        Some(Action::Drop(When::After)) => return Ok(Reply::Close("a fault")),
        Some(Action::Delay(delay, When::After)) => tokio::time::sleep(*delay).await,
        Some(Action::Hold(released, When::After)) => hold(released).await,
        _ => {}
    }
    match (outcome, refused) {
        (Outcome::Answer(_), Some(refused)) => encode(header, &refused).map(Reply::Frame),
        (Outcome::Answer(answer), None) => encode(header, &answer).map(Reply::Frame),
        (Outcome::Silent, _) => Ok(Reply::Nothing),
        (Outcome::Close(why), _) => Ok(Reply::Close(why)),
    }
}

async fn hold(released: &tokio::sync::watch::Receiver<bool>) {
    // The sender is gone only when the hold is over.
    let _ = released.clone().wait_for(|released| *released).await;
}
