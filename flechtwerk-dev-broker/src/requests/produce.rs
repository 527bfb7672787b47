//! Produce: record batches into partition logs.

use bytes::Bytes;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};

use super::text::text;
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::state::State;
use crate::broker::wall;
use crate::coordinator::{Producer, TopicPartition};
use crate::fault::Subject;
use crate::log::{AppendError, Appended, PartitionLog};

impl Serve for ProduceRequest {
    type Answer = ProduceResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: self.transactional_id.as_ref().map(|id| id.to_string()), group_id: None }
    }

    fn wants_answer(&self) -> bool {
        self.acks != 0
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> ProduceResponse {
        let responses = self.topic_data.iter().map(|topic| {
            let partitions = topic.partition_data.iter().map(|partition| failed(partition.index, error));
            TopicProduceResponse::default()
                .with_name(topic.name.clone())
                .with_partition_responses(partitions.collect())
        });
        ProduceResponse::default().with_responses(responses.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<ProduceResponse> {
        let mut batches = self.topic_data.iter().flat_map(|topic| &topic.partition_data);
        let in_transaction =
            |data: &PartitionProduceData| transactional_producer(data.records.as_deref().unwrap_or_default());
        if self.transactional_id.is_none() && batches.any(|data| in_transaction(data).is_some()) {
            let error = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
            return match self.wants_answer() {
                true => Outcome::Answer(self.refuse(context.version(), error)),
                false => Outcome::Close("a batch that wants no acknowledgement was refused"),
            };
        }
        let sound_acks = (-1..=1).contains(&self.acks);
        let transactional_id = self.transactional_id.as_ref().map(|id| id.to_string());
        let mut any_failed = false;
        let responses = context.with_logs(|state| {
            let mut responses = Vec::with_capacity(self.topic_data.len());
            for topic in self.topic_data {
                let mut partitions = Vec::with_capacity(topic.partition_data.len());
                for data in topic.partition_data {
                    let at = TopicPartition::new(topic.name.to_string(), data.index);
                    let appended = append(
                        state,
                        context.node,
                        &at,
                        transactional_id.as_deref(),
                        sound_acks,
                        data.records,
                    );
                    any_failed |= appended.is_err();
                    partitions.push(match appended {
                        Ok(appended) => PartitionProduceResponse::default()
                            .with_index(data.index)
                            .with_base_offset(appended.base_offset)
                            .with_log_append_time_ms(appended.log_append_time)
                            .with_log_start_offset(appended.log_start_offset),
                        Err(Refused { error, why, records, log_start }) => {
                            tracing::info!(
                                topic = at.topic,
                                partition = at.partition,
                                client = context.header.client_id.as_deref(),
                                code = %error,
                                "batch refused: {why}"
                            );
                            failed(data.index, error)
                                .with_log_start_offset(log_start)
                                .with_error_message(Some(text(why)))
                                .with_record_errors(records.into_iter().map(named).collect())
                        }
                    });
                }
                responses.push(
                    TopicProduceResponse::default()
                        .with_name(topic.name)
                        .with_partition_responses(partitions),
                );
            }
            responses
        });
        match (self.acks, any_failed) {
            // Nobody waits for an answer, so the only way to say that something is wrong is to hang up.
            (0, true) => Outcome::Close("a batch that wants no acknowledgement was refused"),
            (0, false) => Outcome::Silent,
            _ => Outcome::Answer(ProduceResponse::default().with_responses(responses)),
        }
    }
}

/// Why a batch was not appended.
struct Refused {
    error: ErrorCode,
    why: String,
    /// The records that are at fault, by their places in the batch, where that is known.
    records: Vec<i32>,
    /// The start of the log, where its batches were looked into.
    log_start: i64,
}

fn named(record: i32) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage::default().with_batch_index(record).with_batch_index_error_message(None)
}

fn failed(partition: i32, error: ErrorCode) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(partition)
        .with_error_code(error.code())
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
}

fn append(
    state: &mut State,
    node: i32,
    at: &TopicPartition,
    transactional_id: Option<&str>,
    sound_acks: bool,
    records: Option<Bytes>,
) -> Result<Appended, Refused> {
    let refused =
        |error: ErrorCode| Refused { error, why: error.to_string(), records: Vec::new(), log_start: -1 };
    let partition = state.topics.led_by(node, &at.topic, at.partition, -1).map_err(refused)?;
    let records = records.unwrap_or_default();
    if !sound_acks {
        // In this order, as Kafka does it.
        let whole = PartitionLog::check_shape(&records).map_err(|error| ErrorCode::new(error.code()));
        return Err(refused(whole.err().unwrap_or(ErrorCode::INVALID_REQUIRED_ACKS)));
    }
    if let Some(producer) = transactional_producer(&records) {
        // A transaction writes only where its coordinator was told that it would (KIP-890), or no marker would follow.
        let verified = match transactional_id {
            Some(id) => state.coordinators.transactions.verify_partition(id, producer, at).code(),
            None => ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code(),
        };
        if verified != 0 {
            return Err(refused(ErrorCode::new(verified)));
        }
    }
    let log_start = partition.log.log_start_offset();
    let whole = PartitionLog::check_shape(&records).is_ok();
    let appended = partition.log.append(records, wall()).map_err(|error| {
        let looked_into = matches!(
            error,
            AppendError::InvalidRecord(_)
                | AppendError::WithoutKey { .. }
                | AppendError::InvalidTimestamp { .. }
        );
        let log_start = if whole && looked_into { log_start } else { -1 };
        let why = error.to_string();
        let code = ErrorCode::new(error.code());
        let records = match error {
            AppendError::WithoutKey { records } => records,
            _ => Vec::new(),
        };
        Refused { error: code, why, records, log_start }
    })?;
    if !appended.duplicate {
        partition.wake();
    }
    Ok(appended)
}

/// Whose transaction a batch belongs to, if it belongs to one. Whether the batch is sound is for the log to find out.
fn transactional_producer(batch: &[u8]) -> Option<Producer> {
    const TRANSACTIONAL: i16 = 0x10;
    let attributes = i16::from_be_bytes(*batch.get(21..)?.first_chunk()?);
    let id = i64::from_be_bytes(*batch.get(43..)?.first_chunk()?);
    let epoch = i16::from_be_bytes(*batch.get(51..)?.first_chunk()?);
    (attributes & TRANSACTIONAL != 0).then_some(Producer { id, epoch })
}
