//! Pending offsets of transactions, and who may commit them (KIP-447).

use proptest::prelude::*;

use super::*;

const P: Producer = Producer { id: 1, epoch: 0 };
const Q: Producer = Producer { id: 2, epoch: 0 };

#[test]
fn pending_offsets_are_not_seen_and_unstable() {
    let mut f = Fixture::new();
    f.commit("", -1, 1);
    assert_eq!(f.txn_commit(P, commit(0, 5)), ErrorCode::None);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
    assert_eq!(f.offset(0, true), (-1, ErrorCode::UnstableOffsetCommit));
    assert_eq!(f.offset(1, true), (-1, ErrorCode::None), "other partitions are stable");
    let all = f.groups.fetch_offsets("g", None, true);
    assert_eq!(all[0].error, ErrorCode::UnstableOffsetCommit);
}

#[test]
fn a_partition_with_a_pending_offset_alone_is_not_among_all() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    assert!(f.groups.fetch_offsets("g", None, true).is_empty());
}

#[test]
fn a_commit_makes_them_the_groups() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.complete(P, true);
    assert_eq!(f.offset(0, true), (5, ErrorCode::None));
    let fetched = f.groups.fetch_offsets("g", None, true);
    assert_eq!((fetched[0].leader_epoch, fetched[0].metadata.as_str()), (7, "at 5"));
}

#[test]
fn an_abort_drops_them() {
    let mut f = Fixture::new();
    f.commit("", -1, 1);
    f.txn_commit(P, commit(0, 5));
    f.complete(P, false);
    assert_eq!(f.offset(0, true), (1, ErrorCode::None));
}

#[test]
fn an_abort_by_fencing_has_a_higher_epoch_and_drops_them() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.complete(Producer::new(P.id, P.epoch + 1), false);
    assert_eq!(f.offset(0, true), (-1, ErrorCode::None));
}

#[test]
fn completing_again_changes_nothing() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.complete(P, true);
    let records = f.journal.len();
    f.complete(P, false);
    assert_eq!(f.offset(0, true), (5, ErrorCode::None));
    assert_eq!(f.journal.len(), records);
}

#[test]
fn an_older_epoch_neither_adds_nor_completes() {
    let mut f = Fixture::new();
    let newer = Producer::new(P.id, 3);
    f.txn_commit(newer, commit(0, 5));
    assert_eq!(f.txn_commit(P, commit(0, 9)), ErrorCode::InvalidProducerEpoch);
    f.complete(P, true);
    assert_eq!(f.offset(0, true), (-1, ErrorCode::UnstableOffsetCommit));
    f.complete(newer, true);
    assert_eq!(f.offset(0, true), (5, ErrorCode::None));
}

#[test]
fn a_newer_epoch_takes_over_what_is_pending() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    let newer = Producer::new(P.id, 1);
    assert_eq!(f.txn_commit(newer, commit(0, 6)), ErrorCode::None);
    assert_eq!(f.txn_commit(P, commit(0, 7)), ErrorCode::InvalidProducerEpoch);
    f.complete(newer, true);
    assert_eq!(f.offset(0, true), (6, ErrorCode::None));
}

#[test]
fn a_later_commit_of_its_own_is_not_overwritten() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.commit("", -1, 9);
    f.complete(P, true);
    assert_eq!(f.offset(0, true), (9, ErrorCode::None));
}

#[test]
fn a_pending_offset_that_was_written_again_later_counts_as_the_later() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.commit("", -1, 9);
    f.txn_commit(P, commit(0, 6));
    f.complete(P, true);
    assert_eq!(f.offset(0, true), (6, ErrorCode::None));
}

#[test]
fn producers_complete_for_themselves() {
    let mut f = Fixture::new();
    f.txn_commit(P, commit(0, 5));
    f.txn_commit(Q, commit(0, 7));
    f.complete(Q, true);
    assert_eq!(f.offset(0, false), (7, ErrorCode::None));
    assert_eq!(f.offset(0, true), (-1, ErrorCode::UnstableOffsetCommit));
    f.complete(P, true);
    assert_eq!(f.offset(0, true), (7, ErrorCode::None), "the one that was asked for later wins");
}

#[test]
fn who_names_a_member_must_be_one_of_the_generation() {
    let mut f = Fixture::new();
    assert_eq!(f.txn_commit_as(P, "m", None, 1, commit(0, 1)), ErrorCode::IllegalGeneration, "no group");
    let (leader, _, generation) = f.pair();
    let mut code = |member_id: &str, instance_id: Option<&str>, generation: i32| {
        f.txn_commit_as(P, member_id, instance_id, generation, commit(0, 1))
    };
    assert_eq!(code(&leader, None, generation), ErrorCode::None);
    assert_eq!(code(&leader, None, generation - 1), ErrorCode::IllegalGeneration);
    assert_eq!(code(&leader, None, -1), ErrorCode::IllegalGeneration);
    assert_eq!(code("m", None, generation), ErrorCode::UnknownMemberId);
    assert_eq!(code("", None, generation), ErrorCode::UnknownMemberId);
    assert_eq!(code(&leader, Some("i"), generation), ErrorCode::UnknownMemberId);
    assert_eq!(code("", None, -1), ErrorCode::None, "who says nothing is fenced by its epoch alone");
}

#[test]
fn a_member_that_left_is_unknown() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    f.leave(&follower, None);
    let code = f.txn_commit_as(P, &follower, None, generation, commit(0, 1));
    assert_eq!(code, ErrorCode::UnknownMemberId);
    // Its group prepares a rebalance: the generation still counts.
    assert_eq!(f.txn_commit_as(P, &leader, None, generation, commit(0, 1)), ErrorCode::None);
}

#[test]
fn a_rebalance_does_not_stop_transactions_of_its_generation() {
    let mut f = Fixture::new();
    let joined = f.join_now(dynamic(""));
    assert_eq!(f.state(), GroupState::CompletingRebalance);
    let code = f.txn_commit_as(P, &joined.member_id, None, joined.generation, commit(0, 1));
    assert_eq!(code, ErrorCode::None);
}

#[test]
fn an_empty_group_id_is_invalid() {
    let mut f = Fixture::new();
    let request = TxnCommitRequest {
        group: String::new(),
        producer: P,
        generation: -1,
        member_id: String::new(),
        instance_id: None,
        offsets: vec![commit(0, 1)],
    };
    let mut out = Effects::new();
    assert_eq!(f.groups.txn_commit_offsets(f.now, request, &mut out), [ErrorCode::InvalidGroupId]);
}

/// What may happen to the offset of a partition.
#[derive(Debug, Clone)]
enum Step {
    Commit { partition: i32, offset: i64 },
    TxnCommit { producer: i64, partition: i32, offset: i64 },
    Complete { producer: i64, commit: bool },
    Delete { partition: i32 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let (producer, partition, offset) = (0..3i64, 0..2i32, 0..100i64);
    prop_oneof![
        2 => (partition.clone(), offset.clone())
            .prop_map(|(partition, offset)| Step::Commit { partition, offset }),
        4 => (producer.clone(), partition.clone(), offset)
            .prop_map(|(producer, partition, offset)| Step::TxnCommit { producer, partition, offset }),
        3 => (producer, any::<bool>()).prop_map(|(producer, commit)| Step::Complete { producer, commit }),
        1 => partition.prop_map(|partition| Step::Delete { partition }),
        1 => Just(Step::Restart),
    ]
}

/// The log that Kafka keeps of a group: its offsets are what the log says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Written {
    Offset { producer: Option<i64>, partition: i32, offset: i64 },
    Marker { producer: i64, commit: bool },
    Tombstone { partition: i32 },
}

/// A partition's offset and whether one is pending, found by reading the log from its start.
fn model(log: &[Written], wanted: i32) -> (i64, bool) {
    let mut committed: Option<(usize, i64)> = None;
    let mut pending: BTreeMap<i64, (usize, i64)> = BTreeMap::new();
    for (position, written) in log.iter().enumerate() {
        match *written {
            Written::Offset { producer: None, partition, offset } if partition == wanted => {
                committed = Some((position, offset));
            }
            Written::Offset { producer: Some(producer), partition, offset } if partition == wanted => {
                pending.insert(producer, (position, offset));
            }
            Written::Marker { producer, commit } => {
                if let Some(of) = pending.remove(&producer).filter(|_| commit) {
                    committed = Some(committed.map_or(of, |before| before.max(of)));
                }
            }
            Written::Tombstone { partition } if partition == wanted => {
                committed = None;
                pending.clear();
            }
            _ => {}
        }
    }
    (committed.map_or(-1, |(_, offset)| offset), !pending.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn offsets_are_what_the_log_of_a_real_broker_would_say(steps in prop::collection::vec(step(), 1..60)) {
        let mut f = Fixture::new();
        let mut log = Vec::new();
        for step in steps {
            match step {
                Step::Commit { partition, offset } => {
                    prop_assert_eq!(f.commit_as("", None, -1, commit(partition, offset)), ErrorCode::None);
                    log.push(Written::Offset { producer: None, partition, offset });
                }
                Step::TxnCommit { producer, partition, offset } => {
                    let code = f.txn_commit(Producer::new(producer, 0), commit(partition, offset));
                    prop_assert_eq!(code, ErrorCode::None);
                    log.push(Written::Offset { producer: Some(producer), partition, offset });
                }
                Step::Complete { producer, commit } => {
                    f.complete(Producer::new(producer, 0), commit);
                    log.push(Written::Marker { producer, commit });
                }
                Step::Delete { partition } => {
                    let mut out = Effects::new();
                    let partitions = [TopicPartition::new("t", partition)];
                    let _ = f.groups.delete_offsets(f.now, "g", &partitions, &mut out);
                    f.take(out);
                    log.push(Written::Tombstone { partition });
                }
                Step::Restart => f.restart(0),
            }
            for partition in 0..2 {
                let (offset, is_pending) = model(&log, partition);
                prop_assert_eq!(f.offset(partition, false), (offset, ErrorCode::None));
                let stable = match is_pending {
                    true => (-1, ErrorCode::UnstableOffsetCommit),
                    false => (offset, ErrorCode::None),
                };
                prop_assert_eq!(f.offset(partition, true), stable);
            }
        }
    }
}
