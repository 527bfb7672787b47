//! Producers and their transactions.

use flechtwerk_conformance::text;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::*;

use super::ranges::{group, one, partition, some, topic, transactional_id};
use super::{Given, Question, World, question};
use crate::dice::Dice;

pub(super) fn any(dice: &mut Dice, world: &World) -> Question {
    match dice.roll(12) {
        0..=2 => init(dice, world),
        3..=5 => add_partitions(dice, world),
        6 => add_offsets(dice, world),
        7..=8 => commit_offsets(dice, world),
        9 => end(dice, world),
        10 => describe(dice, world),
        _ => list(dice),
    }
}

/// Who asks: a producer that there is, with its epoch or another, or nobody.
fn producer(dice: &mut Dice) -> impl Fn(&Given) -> (ProducerId, i16) + Clone + 'static {
    let (kind, which) = (dice.roll(9), dice.roll(2));
    move |given| {
        let (id, epoch) = given.producers[which];
        match kind {
            0 => (ProducerId(-1), -1),
            1 => (ProducerId(id), epoch + 1),
            2 => (ProducerId(id), -1),
            3 => (ProducerId(7_000_000), 0),
            4 => (ProducerId(id), i16::MAX),
            5 => (ProducerId(i64::MIN), i16::MIN),
            _ => (ProducerId(id), epoch),
        }
    }
}

fn init(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(5) as i16;
    let timeout = one(dice, &[0, -1, i32::MIN, i32::MAX, 900_001, 60_000, 900_000]);
    // One that is right would begin something new, with ids that only this side knows.
    let name = match timeout {
        60_000 | 900_000 => String::new(),
        _ => transactional_id(dice, world),
    };
    let who = producer(dice);
    question((version, false), move |given| {
        let (id, epoch) = if version >= 3 { who(given) } else { (ProducerId(-1), -1) };
        InitProducerIdRequest::default()
            .with_transactional_id(Some(text(&name).into()))
            .with_transaction_timeout_ms(timeout)
            .with_producer_id(id)
            .with_producer_epoch(epoch)
    })
}

fn add_partitions(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(4) as i16;
    let (name, who) = (transactional_id(dice, world), producer(dice));
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        AddPartitionsToTxnTopic::default()
            .with_name(text(&name).into())
            .with_partitions(some(dice, partition))
    });
    question((version, false), move |given| {
        let (id, epoch) = who(given);
        AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text(&name).into())
            .with_v3_and_below_producer_id(id)
            .with_v3_and_below_producer_epoch(epoch)
            .with_v3_and_below_topics(topics.clone())
    })
}

fn add_offsets(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(4) as i16;
    let (name, group, who) = (transactional_id(dice, world), group(dice, world), producer(dice));
    question((version, false), move |given| {
        let (id, epoch) = who(given);
        AddOffsetsToTxnRequest::default()
            .with_transactional_id(text(&name).into())
            .with_producer_id(id)
            .with_producer_epoch(epoch)
            .with_group_id(text(&group).into())
    })
}

fn commit_offsets(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(4) as i16;
    let (name, group, who) = (transactional_id(dice, world), group(dice, world), producer(dice));
    let generation = if version >= 3 { one(dice, &[-1, -1, -1, 0, 1, i32::MAX, -2]) } else { -1 };
    let member = if version >= 3 { one(dice, &["", "", "nobody"]) } else { "" };
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, |dice| {
            let metadata = one(dice, &[Some(0), Some(4096), Some(4097), None]);
            TxnOffsetCommitRequestPartition::default()
                .with_partition_index(partition(dice))
                .with_committed_offset(one(dice, &[0, 1, 7, -1, -2, i64::MAX]))
                .with_committed_metadata(metadata.map(|length| text(&"m".repeat(length))))
        });
        TxnOffsetCommitRequestTopic::default().with_name(text(&name).into()).with_partitions(partitions)
    });
    question((version, false), move |given| {
        let (id, epoch) = who(given);
        TxnOffsetCommitRequest::default()
            .with_transactional_id(text(&name).into())
            .with_group_id(text(&group).into())
            .with_producer_id(id)
            .with_producer_epoch(epoch)
            .with_generation_id(generation)
            .with_member_id(text(member))
            .with_topics(topics.clone())
    })
}

fn end(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(4) as i16;
    let (name, who, commit) = (transactional_id(dice, world), producer(dice), dice.roll(2) == 0);
    question((version, false), move |given| {
        let (id, epoch) = who(given);
        EndTxnRequest::default()
            .with_transactional_id(text(&name).into())
            .with_producer_id(id)
            .with_producer_epoch(epoch)
            .with_committed(commit)
    })
}

fn describe(dice: &mut Dice, world: &World) -> Question {
    let names = some(dice, |dice| transactional_id(dice, world));
    question((0, true), move |_| {
        DescribeTransactionsRequest::default()
            .with_transactional_ids(names.iter().map(|name| text(name).into()).collect())
    })
}

/// With a filter that lets nothing pass: other checks have transactions of their own.
fn list(dice: &mut Dice) -> Question {
    let version = dice.roll(2) as i16;
    let states = some(dice, |dice| one(dice, &["Ongoing", "ongoing", "", "Nothing"]));
    question((version, true), move |_| {
        ListTransactionsRequest::default()
            .with_state_filters(states.iter().map(|name| text(name)).collect())
            .with_producer_id_filters(vec![ProducerId(-5)])
            .with_duration_filter(if version >= 1 { 5 } else { -1 })
    })
}
