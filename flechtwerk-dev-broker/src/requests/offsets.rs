//! OffsetCommit, OffsetFetch and OffsetDelete: how far groups have come.

use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, TopicName,
};

use super::text::{maybe, text, topic_name};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::state::State;
use crate::coordinator::group::{CommitRequest, FetchedOffset, OffsetCommit};
use crate::coordinator::{Effects, TopicPartition};
use crate::fault::Subject;

/// Which of some partitions exist. The coordinator is asked about those; the others have a code already.
pub(super) struct Known {
    unknown: Vec<bool>,
}

impl Known {
    /// Splits off what there is not.
    pub(super) fn split<T>(
        state: &State,
        all: Vec<T>,
        at: impl Fn(&T) -> &TopicPartition,
    ) -> (Vec<T>, Known) {
        let missing = |at: &TopicPartition| state.topics.partition(&at.topic, at.partition).is_none();
        let unknown: Vec<bool> = all.iter().map(|one| missing(at(one))).collect();
        let known =
            all.into_iter().zip(&unknown).filter(|(_, unknown)| !**unknown).map(|(one, _)| one).collect();
        (known, Known { unknown })
    }

    /// The codes of all, from those of the known ones.
    pub(super) fn join(self, codes: impl IntoIterator<Item = i16>) -> Vec<i16> {
        let mut codes = codes.into_iter();
        let unknown_topic = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.code();
        let unknown_error = ErrorCode::UNKNOWN_SERVER_ERROR.code();
        self.unknown
            .into_iter()
            .map(|unknown| if unknown { unknown_topic } else { codes.next().unwrap_or(unknown_error) })
            .collect()
    }
}

impl Serve for OffsetCommitRequest {
    type Answer = OffsetCommitResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> OffsetCommitResponse {
        self.answer(std::iter::repeat(error.code()))
    }

    async fn serve(self, context: &Context) -> Outcome<OffsetCommitResponse> {
        let offsets: Vec<OffsetCommit> = self
            .topics
            .iter()
            .flat_map(|topic| {
                topic.partitions.iter().map(|partition| OffsetCommit {
                    partition: TopicPartition::new(topic.name.to_string(), partition.partition_index),
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: maybe(partition.committed_metadata.as_ref()),
                })
            })
            .collect();
        let codes = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let (offsets, known) = Known::split(state, offsets, |offset| &offset.partition);
            let request = CommitRequest {
                group: self.group_id.to_string(),
                generation: self.generation_id_or_member_epoch,
                member_id: self.member_id.to_string(),
                instance_id: maybe(self.group_instance_id.as_ref()),
                offsets,
            };
            let now = state.now();
            let mut effects = Effects::new();
            let codes = state.coordinators.groups.commit_offsets(now, request, &mut effects);
            state.settle(effects);
            Ok(known.join(codes.into_iter().map(|code| code.code())))
        });
        Outcome::Answer(match codes {
            Ok(codes) => self.answer(codes),
            Err(error) => self.refuse(context.version(), error),
        })
    }
}

/// The answer from one code for each partition.
trait AnswerCodes<A> {
    fn answer(&self, codes: impl IntoIterator<Item = i16>) -> A;
}

impl AnswerCodes<OffsetCommitResponse> for OffsetCommitRequest {
    fn answer(&self, codes: impl IntoIterator<Item = i16>) -> OffsetCommitResponse {
        let mut codes = codes.into_iter();
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().zip(codes.by_ref()).map(|(partition, code)| {
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(code)
            });
            OffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        OffsetCommitResponse::default().with_topics(topics.collect())
    }
}

impl Serve for OffsetFetchRequest {
    type Answer = OffsetFetchResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> OffsetFetchResponse {
        let topics = self.topics.iter().flatten().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| {
                OffsetFetchResponsePartition::default()
                    .with_partition_index(*index)
                    .with_committed_offset(-1)
                    .with_metadata(Some(text("")))
                    .with_error_code(error.code())
            });
            OffsetFetchResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        OffsetFetchResponse::default().with_topics(topics.collect()).with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<OffsetFetchResponse> {
        let wanted: Option<Vec<TopicPartition>> = self.topics.as_ref().map(|topics| {
            topics
                .iter()
                .flat_map(|topic| {
                    let name = topic.name.to_string();
                    topic.partition_indexes.iter().map(move |index| TopicPartition::new(name.clone(), *index))
                })
                .collect()
        });
        let fetched = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let groups = &state.coordinators.groups;
            Ok(groups.fetch_offsets(&self.group_id, wanted.as_deref(), self.require_stable))
        });
        Outcome::Answer(match fetched {
            Ok(fetched) => OffsetFetchResponse::default().with_topics(by_topic(fetched)),
            Err(error) => self.refuse(context.version(), error),
        })
    }
}

/// Neighbours of one topic become one entry, in the order in which they come.
fn by_topic(fetched: Vec<FetchedOffset>) -> Vec<OffsetFetchResponseTopic> {
    let mut topics: Vec<OffsetFetchResponseTopic> = Vec::new();
    for offset in fetched {
        let partition = OffsetFetchResponsePartition::default()
            .with_partition_index(offset.partition.partition)
            .with_committed_offset(offset.offset)
            .with_committed_leader_epoch(offset.leader_epoch)
            .with_metadata(Some(text(offset.metadata)))
            .with_error_code(offset.error.code());
        let name: TopicName = topic_name(&offset.partition.topic);
        match topics.last_mut() {
            Some(topic) if topic.name == name => topic.partitions.push(partition),
            _ => topics
                .push(OffsetFetchResponseTopic::default().with_name(name).with_partitions(vec![partition])),
        }
    }
    topics
}

impl Serve for OffsetDeleteRequest {
    type Answer = OffsetDeleteResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> OffsetDeleteResponse {
        OffsetDeleteResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<OffsetDeleteResponse> {
        let wanted: Vec<TopicPartition> = self
            .topics
            .iter()
            .flat_map(|topic| {
                let partitions = topic.partitions.iter();
                partitions.map(|one| TopicPartition::new(topic.name.to_string(), one.partition_index))
            })
            .collect();
        let codes = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let (wanted, known) = Known::split(state, wanted, |partition| partition);
            let now = state.now();
            let mut effects = Effects::new();
            let deleted =
                state.coordinators.groups.delete_offsets(now, &self.group_id, &wanted, &mut effects);
            state.settle(effects);
            let codes = deleted.map_err(|error| ErrorCode::new(error.code()))?;
            Ok(known.join(codes.into_iter().map(|code| code.code())))
        });
        let mut codes = match codes {
            Ok(codes) => codes.into_iter(),
            Err(error) => return Outcome::Answer(self.refuse(context.version(), error)),
        };
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().zip(codes.by_ref()).map(|(partition, code)| {
                OffsetDeleteResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(code)
            });
            OffsetDeleteResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        Outcome::Answer(OffsetDeleteResponse::default().with_topics(topics.collect()))
    }
}
