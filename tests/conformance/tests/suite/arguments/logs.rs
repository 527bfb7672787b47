//! Records, and the offsets that bound them.

use flechtwerk_conformance::calls::records::produce_request;
use flechtwerk_conformance::{Batch, text};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::*;

use super::ranges::{SOME_TIME, epoch, one, partition, some, topic};
use super::{Question, World, question};
use crate::dice::Dice;

pub(super) fn any(dice: &mut Dice, world: &World) -> Question {
    match dice.roll(12) {
        0..=2 => produce(dice, world),
        3..=5 => fetch(dice, world),
        6..=7 => list_offsets(dice, world),
        8 => leader_epoch(dice, world),
        9 => delete_records(dice, world),
        _ => producers(dice, world),
    }
}

fn produce(dice: &mut Dice, world: &World) -> Question {
    let version = 3 + dice.roll(8) as i16;
    let (name, at) = (topic(dice, world), partition(dice));
    let acks = one(dice, &[-1, -1, -1, 1, 2, -2, i16::MAX]);
    let mut batch = Batch::keyed(&[("k", "v")]).at(SOME_TIME);
    let kind = dice.roll(12);
    match kind {
        0 => batch.attributes |= flechtwerk_conformance::batch::CONTROL,
        1 => batch.base_timestamp = one(dice, &[-1, -2, 0, i64::MIN + 1]),
        2 => {
            batch = batch.by(
                one(dice, &[4_000_000, -2]),
                one(dice, &[0, -1, i16::MAX]),
                one(dice, &[0, 5, i32::MAX]),
            )
        }
        3 => batch.records.clear(),
        4 => batch = batch.transactional(),
        5 => batch.magic = one(dice, &[0, 1]),
        6 => batch.last_offset_delta = Some(one(dice, &[i32::MAX, -1])),
        _ => {}
    }
    let records = match dice.roll(14) {
        // Null is never answered by a real Kafka.
        0..=1 => Some(Vec::new()),
        2 => Some([batch.encode(), batch.encode()].concat()),
        3 => Some(batch.encode()[..30].to_vec()),
        _ => Some(batch.encode().to_vec()),
    };
    question((version, false), move |_| {
        let mut request = produce_request(&name, at, Default::default(), None).with_acks(acks);
        request.topic_data[0].partition_data[0].records = records.clone().map(Into::into);
        request
    })
}

fn fetch(dice: &mut Dice, world: &World) -> Question {
    let version = 4 + dice.roll(9) as i16;
    // Each topic and partition once: the order of the others in the answer is a matter of tables.
    let mut names: Vec<String> = some(dice, |dice| topic(dice, world));
    names.sort();
    names.dedup();
    let topics = names.iter().map(|name| {
        let mut partitions = some(dice, |dice| {
            FetchPartition::default()
                .with_partition(partition(dice))
                .with_current_leader_epoch(epoch(dice))
                .with_fetch_offset(one(dice, &[0, 0, 0, 1, 2, 3, 4, -1, -2, i64::MAX, i64::MIN]))
                .with_last_fetched_epoch(-1)
                .with_log_start_offset(-1)
                .with_partition_max_bytes(one(dice, &[1 << 20, 1 << 20, 0, 1, i32::MAX]))
        });
        partitions.sort_by_key(|one| one.partition);
        partitions.dedup_by_key(|one| one.partition);
        // A real Kafka answers a topic in two parts where one of its partitions is unknown and another topic lies between.
        partitions.truncate(if names.len() > 1 { 1 } else { 3 });
        FetchTopic::default().with_topic(text(name).into()).with_partitions(partitions)
    });
    let topics: Vec<FetchTopic> = topics.collect();
    let max_bytes = one(dice, &[1 << 20, 1 << 20, 0, 1, i32::MAX]);
    let isolation = one(dice, &[0, 0, 1, 1, 2, -1, 7]);
    let session = if dice.roll(10) == 0 { one(dice, &[(5, 0), (5, 1), (0, 1), (-1, -1)]) } else { (0, -1) };
    question((version, true), move |_| {
        FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_bytes(max_bytes)
            .with_isolation_level(isolation)
            .with_session_id(if version >= 7 { session.0 } else { 0 })
            .with_session_epoch(if version >= 7 { session.1 } else { -1 })
            .with_topics(topics.clone())
    })
}

fn list_offsets(dice: &mut Dice, world: &World) -> Question {
    let version = 1 + dice.roll(7) as i16;
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, |dice| {
            let times = [-1, -1, -2, -2, -3, -4, -5, -6, 0, SOME_TIME, SOME_TIME + 1, i64::MAX, i64::MIN];
            ListOffsetsPartition::default()
                .with_partition_index(partition(dice))
                .with_current_leader_epoch(epoch(dice))
                .with_timestamp(one(dice, &times))
        });
        ListOffsetsTopic::default().with_name(text(&name).into()).with_partitions(partitions)
    });
    let isolation = if version >= 2 { one(dice, &[0, 1, 2, -1]) } else { 0 };
    question((version, true), move |_| {
        let mut topics = topics.clone();
        if version < 4 {
            let all = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
            all.for_each(|partition| partition.current_leader_epoch = -1);
        }
        ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(isolation)
            .with_topics(topics)
    })
}

fn leader_epoch(dice: &mut Dice, world: &World) -> Question {
    let version = 2 + dice.roll(3) as i16;
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, |dice| {
            OffsetForLeaderPartition::default()
                .with_partition(partition(dice))
                .with_current_leader_epoch(epoch(dice))
                .with_leader_epoch(epoch(dice))
        });
        OffsetForLeaderTopic::default().with_topic(text(&name).into()).with_partitions(partitions)
    });
    question((version, true), move |_| {
        let replica = BrokerId(if version >= 3 { -1 } else { -2 });
        OffsetForLeaderEpochRequest::default().with_replica_id(replica).with_topics(topics.clone())
    })
}

fn delete_records(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(3) as i16;
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, |dice| {
            DeleteRecordsPartition::default()
                .with_partition_index(partition(dice))
                .with_offset(one(dice, &[0, 1, 2, -1, -2, 1000, i64::MAX, i64::MIN]))
        });
        DeleteRecordsTopic::default().with_name(text(&name).into()).with_partitions(partitions)
    });
    question((version, false), move |_| {
        DeleteRecordsRequest::default().with_topics(topics.clone()).with_timeout_ms(20_000)
    })
}

fn producers(dice: &mut Dice, world: &World) -> Question {
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        TopicRequest::default().with_name(text(&name).into()).with_partition_indexes(some(dice, partition))
    });
    question((0, true), move |_| DescribeProducersRequest::default().with_topics(topics.clone()))
}
