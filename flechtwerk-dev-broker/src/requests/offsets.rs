//! OffsetCommit, OffsetFetch and OffsetDelete: how far groups have come.

use std::collections::HashSet;

use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, TopicName,
};

use super::repeated::joined;
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

    /// Whether there is one that does not exist.
    pub(super) fn any_unknown(&self) -> bool {
        self.unknown.contains(&true)
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

/// Which of these topics don't exist. They are answered even where none of their partitions is named; others are not.
pub(super) fn missing_topics<'a>(
    state: &State,
    names: impl Iterator<Item = &'a TopicName>,
) -> HashSet<TopicName> {
    names.filter(|name| state.topics.get(name).is_none()).cloned().collect()
}

impl Serve for OffsetCommitRequest {
    type Answer = OffsetCommitResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> OffsetCommitResponse {
        let all = self.topics.iter().map(|topic| topic.name.clone()).collect();
        self.answer(std::iter::repeat(error.code()), &all)
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
        let mut any_unknown = false;
        let mut missing = HashSet::new();
        let codes = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let (offsets, known) = Known::split(state, offsets, |offset| &offset.partition);
            missing = missing_topics(state, self.topics.iter().map(|topic| &topic.name));
            any_unknown = known.any_unknown() || !missing.is_empty();
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
            // As in Kafka, where the answer is put together from two.
            Ok(codes) if any_unknown => {
                OffsetCommitResponse::default().with_topics(joined(self.answer(codes, &missing).topics))
            }
            Ok(codes) => self.answer(codes, &missing),
            Err(error) => self.refuse(context.version(), error),
        })
    }
}

/// The answer from one code for each partition.
trait AnswerCodes<A> {
    fn answer(&self, codes: impl IntoIterator<Item = i16>, missing: &HashSet<TopicName>) -> A;
}

impl AnswerCodes<OffsetCommitResponse> for OffsetCommitRequest {
    fn answer(
        &self,
        codes: impl IntoIterator<Item = i16>,
        missing: &HashSet<TopicName>,
    ) -> OffsetCommitResponse {
        let mut codes = codes.into_iter();
        let topics = self
            .topics
            .iter()
            .filter(|topic| !topic.partitions.is_empty() || missing.contains(&topic.name))
            .map(|topic| {
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
    const ASKS_FOR_MUCH: bool = true;

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
            Ok(fetched) => OffsetFetchResponse::default().with_topics(match &self.topics {
                Some(topics) => as_asked(topics, fetched),
                None => by_topic(fetched),
            }),
            Err(error) => self.refuse(context.version(), error),
        })
    }
}

/// In the entries of the request, one by one.
fn as_asked(
    topics: &[OffsetFetchRequestTopic],
    fetched: Vec<FetchedOffset>,
) -> Vec<OffsetFetchResponseTopic> {
    let mut fetched = fetched.into_iter().map(fetched_partition);
    let topics = topics.iter().map(|topic| {
        let partitions = fetched.by_ref().take(topic.partition_indexes.len());
        OffsetFetchResponseTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    topics.collect()
}

fn fetched_partition(offset: FetchedOffset) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition::default()
        .with_partition_index(offset.partition.partition)
        .with_committed_offset(offset.offset)
        .with_committed_leader_epoch(offset.leader_epoch)
        .with_metadata(Some(text(offset.metadata)))
        .with_error_code(offset.error.code())
}

/// Neighbours of one topic become one entry, in the order in which they come.
fn by_topic(fetched: Vec<FetchedOffset>) -> Vec<OffsetFetchResponseTopic> {
    let mut topics: Vec<OffsetFetchResponseTopic> = Vec::new();
    for offset in fetched {
        let name = topic_name(&offset.partition.topic);
        let partition = fetched_partition(offset);
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
        let mut any_unknown = false;
        let mut missing = HashSet::new();
        let codes = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let (wanted, known) = Known::split(state, wanted, |partition| partition);
            missing = missing_topics(state, self.topics.iter().map(|topic| &topic.name));
            any_unknown = known.any_unknown() || !missing.is_empty();
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
        let topics = self
            .topics
            .iter()
            .filter(|topic| !topic.partitions.is_empty() || missing.contains(&topic.name))
            .map(|topic| {
                let partitions = topic.partitions.iter().zip(codes.by_ref()).map(|(partition, code)| {
                    OffsetDeleteResponsePartition::default()
                        .with_partition_index(partition.partition_index)
                        .with_error_code(code)
                });
                OffsetDeleteResponseTopic::default()
                    .with_name(topic.name.clone())
                    .with_partitions(partitions.collect())
            });
        let topics = if any_unknown { joined(topics) } else { topics.collect() };
        Outcome::Answer(OffsetDeleteResponse::default().with_topics(topics))
    }
}
