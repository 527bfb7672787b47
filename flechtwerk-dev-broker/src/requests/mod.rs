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
mod parts;
mod positions;
mod produce;
mod repeated;
#[cfg(test)]
mod tests;
mod text;
mod transaction_admin;
mod transactions;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages as kafka;
use kafka_protocol::protocol::{Decodable, Encodable};
use tokio::sync::{oneshot, watch};

use crate::ErrorCode;
use crate::broker::Shared;
use crate::broker::state::State;
use crate::coordinator::Answer;
use crate::fault::{Action, Request, Subject, When};
use crate::wire::{Api, FrameError, Malformed, Parsed, RequestHeader, Share, answer_size, decode, encode};

/// What goes back on a connection.
pub(crate) enum Reply {
    /// A whole frame, with its share of the memory for answers.
    Frame(Bytes, Share),
    /// The request asked for no answer.
    Nothing,
    Close(&'static str),
}

/// Why nothing goes back, and the connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Memory(#[from] FrameError),
}

/// What came of a request.
pub(crate) enum Outcome<A> {
    Answer(A),
    /// The answer would be longer than any that is sent.
    TooLong,
    /// The request asked for no answer.
    Silent,
    Close(&'static str),
}

/// A request that is served.
pub(crate) trait Serve: Decodable + Sized + Send {
    type Answer: Encodable + Send;
    /// It asks for what the broker knows, of which there may be much: memory for the longest answer is taken before it is put together.
    const ASKS_FOR_MUCH: bool = false;

    /// What faults and the log of requests may go by.
    fn subject(&self) -> Subject {
        Subject::default()
    }

    /// The answer that has this error in every place that a client looks at.
    fn refuse(&self, version: i16, error: ErrorCode) -> Self::Answer;

    /// Whether its client waits for an answer. One that doesn't would take it for that of the next request.
    fn wants_answer(&self) -> bool {
        true
    }

    /// Carries it out.
    fn serve(self, context: &Context) -> impl Future<Output = Outcome<Self::Answer>> + Send;
}

/// Where a request came from.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) header: RequestHeader,
    /// The node it was sent to.
    pub(crate) node: i32,
    pub(crate) peer: Peer,
}

/// Who sent a request.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Whether the connection was closed meanwhile.
    pub(crate) gone: watch::Receiver<bool>,
}

impl Peer {
    /// Returns when nobody is there any more to be answered.
    pub(crate) async fn gone(&self) {
        // Without a sender there is no connection.
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }
}

/// Why a request that waited is given up.
const GONE: &str = "the client is gone";

impl Context {
    pub(crate) fn version(&self) -> i16 {
        self.header.version
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(work)
    }

    pub(crate) fn with_logs<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with_logs(work)
    }

    /// What a coordinator answers in the end; nothing if the client is gone before.
    async fn waited(&self, waiting: oneshot::Receiver<Answer>) -> Option<Answer> {
        tokio::select! {
            biased;
            answer = waiting => answer.ok(),
            () = self.peer.gone() => None,
        }
    }

    /// Whether this node coordinates the group or transactional id; if not, the error to answer.
    pub(crate) fn coordinates(&self, state: &State, key: &str) -> Result<(), ErrorCode> {
        match state.nodes.coordinator(key) {
            Some(node) if node.id == self.node => Ok(()),
            _ => Err(ErrorCode::NOT_COORDINATOR),
        }
    }
}

/// Does something with the request type of an API.
macro_rules! by_api {
    ($api:expr, $request:ident => $work:expr) => {
        match $api {
            Api::Produce => {
                type $request = kafka::ProduceRequest;
                $work
            }
            Api::Fetch => {
                type $request = kafka::FetchRequest;
                $work
            }
            Api::ListOffsets => {
                type $request = kafka::ListOffsetsRequest;
                $work
            }
            Api::Metadata => {
                type $request = kafka::MetadataRequest;
                $work
            }
            Api::OffsetCommit => {
                type $request = kafka::OffsetCommitRequest;
                $work
            }
            Api::OffsetFetch => {
                type $request = kafka::OffsetFetchRequest;
                $work
            }
            Api::FindCoordinator => {
                type $request = kafka::FindCoordinatorRequest;
                $work
            }
            Api::JoinGroup => {
                type $request = kafka::JoinGroupRequest;
                $work
            }
            Api::Heartbeat => {
                type $request = kafka::HeartbeatRequest;
                $work
            }
            Api::LeaveGroup => {
                type $request = kafka::LeaveGroupRequest;
                $work
            }
            Api::SyncGroup => {
                type $request = kafka::SyncGroupRequest;
                $work
            }
            Api::DescribeGroups => {
                type $request = kafka::DescribeGroupsRequest;
                $work
            }
            Api::ListGroups => {
                type $request = kafka::ListGroupsRequest;
                $work
            }
            Api::ApiVersions => {
                type $request = kafka::ApiVersionsRequest;
                $work
            }
            Api::CreateTopics => {
                type $request = kafka::CreateTopicsRequest;
                $work
            }
            Api::DeleteTopics => {
                type $request = kafka::DeleteTopicsRequest;
                $work
            }
            Api::DeleteRecords => {
                type $request = kafka::DeleteRecordsRequest;
                $work
            }
            Api::InitProducerId => {
                type $request = kafka::InitProducerIdRequest;
                $work
            }
            Api::OffsetForLeaderEpoch => {
                type $request = kafka::OffsetForLeaderEpochRequest;
                $work
            }
            Api::AddPartitionsToTxn => {
                type $request = kafka::AddPartitionsToTxnRequest;
                $work
            }
            Api::AddOffsetsToTxn => {
                type $request = kafka::AddOffsetsToTxnRequest;
                $work
            }
            Api::EndTxn => {
                type $request = kafka::EndTxnRequest;
                $work
            }
            Api::WriteTxnMarkers => {
                type $request = kafka::WriteTxnMarkersRequest;
                $work
            }
            Api::TxnOffsetCommit => {
                type $request = kafka::TxnOffsetCommitRequest;
                $work
            }
            Api::DescribeConfigs => {
                type $request = kafka::DescribeConfigsRequest;
                $work
            }
            Api::AlterConfigs => {
                type $request = kafka::AlterConfigsRequest;
                $work
            }
            Api::CreatePartitions => {
                type $request = kafka::CreatePartitionsRequest;
                $work
            }
            Api::DeleteGroups => {
                type $request = kafka::DeleteGroupsRequest;
                $work
            }
            Api::IncrementalAlterConfigs => {
                type $request = kafka::IncrementalAlterConfigsRequest;
                $work
            }
            Api::OffsetDelete => {
                type $request = kafka::OffsetDeleteRequest;
                $work
            }
            Api::DescribeCluster => {
                type $request = kafka::DescribeClusterRequest;
                $work
            }
            Api::DescribeProducers => {
                type $request = kafka::DescribeProducersRequest;
                $work
            }
            Api::DescribeTransactions => {
                type $request = kafka::DescribeTransactionsRequest;
                $work
            }
            Api::ListTransactions => {
                type $request = kafka::ListTransactionsRequest;
                $work
            }
            Api::DescribeTopicPartitions => {
                type $request = kafka::DescribeTopicPartitionsRequest;
                $work
            }
        }
    };
}

/// Answers a frame.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    node: i32,
    peer: Peer,
    frame: Bytes,
) -> Result<Reply, Failed> {
    let (header, body) = match RequestHeader::parse(frame)? {
        Parsed::Request(header, body) => (header, body),
        Parsed::UnknownApiVersions { correlation_id } => {
            let answer = api_versions::unknown_version(correlation_id);
            let share = shared.frames.take(answer.len()).await?;
            return Ok(Reply::Frame(answer, share));
        }
    };
    let context = &Context { shared: Arc::clone(shared), header, node, peer };
    by_api!(context.header.api, R => run::<R>(context, body).await)
}

/// Decodes the body of a request and does nothing with it: what a fuzz target wants.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(api: Api, version: i16, body: Bytes) -> Result<(), Malformed> {
    by_api!(api, R => decode::<R>(api, version, body).map(drop))
}

/// The answer of a fault to the body of a request.
#[cfg(test)]
pub(crate) fn refusal(header: &RequestHeader, body: Bytes, error: ErrorCode) -> Result<Bytes, Malformed> {
    by_api!(header.api, R => {
        let request = decode::<R>(header.api, header.version, body)?;
        encode(header, &request.refuse(header.version, error))
    })
}

async fn run<R: Serve>(context: &Context, body: Bytes) -> Result<Reply, Failed> {
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
        Some(Action::Answer(..)) if !request.wants_answer() => return Ok(Reply::Close("a fault")),
        Some(Action::Answer(error, When::Before)) => {
            return reply(context, request.refuse(header.version, *error), None).await;
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
    let reserved = match R::ASKS_FOR_MUCH {
        true => Some(shared.frames.take(shared.max_answer).await?),
        false => None,
    };
    let outcome = request.serve(context).await;
    if shared.has_failed() {
        return Ok(Reply::Close("what it did can't be kept"));
    }
    match &fault {
        Some(Action::Drop(When::After)) => return Ok(Reply::Close("a fault")),
        Some(Action::Delay(delay, When::After)) => tokio::time::sleep(*delay).await,
        Some(Action::Hold(released, When::After)) => hold(released).await,
        _ => {}
    }
    match (outcome, refused) {
        (Outcome::Answer(_), Some(refused)) => reply(context, refused, reserved).await,
        (Outcome::Answer(answer), None) => reply(context, answer, reserved).await,
        (Outcome::TooLong, _) => Err(too_long(shared).into()),
        (Outcome::Silent, _) => Ok(Reply::Nothing),
        (Outcome::Close(why), _) => Ok(Reply::Close(why)),
    }
}

/// Encodes an answer, with memory taken for it before.
async fn reply<A: Encodable>(context: &Context, answer: A, reserved: Option<Share>) -> Result<Reply, Failed> {
    let Context { shared, header, .. } = context;
    let size = answer_size(header, &answer)?;
    if size > shared.max_answer {
        return Err(too_long(shared).into());
    }
    let share = match reserved {
        Some(mut share) => {
            share.shrink_to(size);
            share
        }
        None => shared.frames.take(size).await?,
    };
    Ok(Reply::Frame(encode(header, &answer)?, share))
}

fn too_long(shared: &Shared) -> Malformed {
    Malformed::new("answer", format!("longer than {} bytes; ask for less at a time", shared.max_answer))
}

async fn hold(released: &tokio::sync::watch::Receiver<bool>) {
    // The sender is gone only when the hold is over.
    let _ = released.clone().wait_for(|released| *released).await;
}
