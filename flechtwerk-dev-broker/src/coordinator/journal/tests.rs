//! Records come back as they were, and bytes that are none are told apart without harm.

use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zäß☃]{1,12}"]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

fn partition() -> impl Strategy<Value = TopicPartition> {
    (text(), any::<i32>()).prop_map(|(topic, partition)| TopicPartition { topic, partition })
}

fn producer() -> impl Strategy<Value = Producer> {
    (any::<i64>(), any::<i16>()).prop_map(|(id, epoch)| Producer { id, epoch })
}

fn offset() -> impl Strategy<Value = StoredOffset> {
    (any::<i64>(), any::<i32>(), text(), any::<i64>(), any::<u64>()).prop_map(
        |(offset, leader_epoch, metadata, committed_at, position)| StoredOffset {
            offset,
            leader_epoch,
            metadata,
            committed_at,
            position,
        },
    )
}

fn member() -> impl Strategy<Value = MemberRecord> {
    let ids = (text(), prop::option::of(text()), text(), text());
    (ids, any::<u64>(), any::<u64>(), bytes(), bytes()).prop_map(
        |(
            (member_id, instance_id, client_id, client_host),
            session_timeout,
            rebalance_timeout,
            metadata,
            assignment,
        )| {
            MemberRecord {
                member_id,
                instance_id,
                client_id,
                client_host,
                session_timeout,
                rebalance_timeout,
                metadata,
                assignment,
            }
        },
    )
}

fn group() -> impl Strategy<Value = GroupRecord> {
    let names = (prop::option::of(text()), prop::option::of(text()), prop::option::of(text()));
    (any::<i32>(), names, any::<i64>(), prop::collection::vec(member(), 0..4)).prop_map(
        |(generation, (protocol_type, protocol, leader), since, members)| GroupRecord {
            generation,
            protocol_type,
            protocol,
            leader,
            since,
            members,
        },
    )
}

fn transaction() -> impl Strategy<Value = TransactionRecord> {
    let numbers = (any::<i64>(), any::<i16>(), any::<i32>(), any::<i64>(), any::<i64>());
    let parts = (prop::collection::btree_set(partition(), 0..4), prop::collection::btree_set(text(), 0..4));
    (text(), producer(), numbers, prop::sample::select(&TransactionState::ALL[..]), parts).prop_map(
        |(
            transactional_id,
            producer,
            (previous_id, last_epoch, timeout_ms, start, updated),
            state,
            parts,
        )| {
            TransactionRecord {
                transactional_id,
                producer,
                previous_id,
                last_epoch,
                timeout_ms,
                state,
                partitions: parts.0,
                groups: parts.1,
                start,
                updated,
            }
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        (text(), group()).prop_map(|(group, value)| Entry::Group { group, value: Arc::new(value) }),
        text().prop_map(|group| Entry::GroupDeleted { group }),
        (text(), partition(), offset()).prop_map(|(group, partition, offset)| Entry::Offset {
            group,
            partition,
            offset
        }),
        (text(), producer(), partition(), offset()).prop_map(|(group, producer, partition, offset)| {
            Entry::PendingOffset { group, producer, partition, offset }
        }),
        (text(), partition()).prop_map(|(group, partition)| Entry::OffsetDeleted { group, partition }),
        (text(), any::<i64>(), any::<bool>()).prop_map(|(group, producer_id, commit)| Entry::PendingEnded {
            group,
            producer_id,
            commit
        }),
        transaction().prop_map(|transaction| Entry::Transaction(Arc::new(transaction))),
        text().prop_map(|transactional_id| Entry::TransactionDeleted { transactional_id }),
        any::<i64>().prop_map(Entry::NextProducerId),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_record_comes_back_as_it_was(entry in entry()) {
        let record = Record::from(entry);
        prop_assert!(Record::decode(record.encode()).as_ref() == Ok(&record));
    }

    #[test]
    fn a_record_that_is_cut_off_or_too_long_is_damaged(entry in entry(), at in any::<prop::sample::Index>()) {
        let bytes = Record::from(entry).encode();
        let cut = bytes.slice(..at.index(bytes.len()));
        let is_damaged = matches!(Record::decode(cut), Err(JournalError::Damaged { .. }));
        prop_assert!(is_damaged);
        let longer = Bytes::from([bytes.as_ref(), b"."].concat());
        prop_assert_eq!(Record::decode(longer), Err(JournalError::Damaged { place: "end" }));
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(
        kind in 0..12u8,
        rest in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => Just(255u8), 2 => any::<u8>()], 0..80),
    ) {
        let bytes = Bytes::from([&[1, kind], &rest[..]].concat());
        if let Ok(record) = Record::decode(bytes.clone()) {
            prop_assert_eq!(record.encode(), bytes);
        }
    }
}

#[test]
fn other_versions_and_kinds_are_named() {
    let decode = |bytes: &'static [u8]| Record::decode(Bytes::from_static(bytes)).unwrap_err();
    assert_eq!(decode(&[2, 1]), JournalError::Version { version: 2, known: 1 });
    assert_eq!(decode(&[1, 77]), JournalError::Kind { kind: 77 });
    assert_eq!(decode(&[]), JournalError::Damaged { place: "version" });
    // Four gigabytes of a group's name.
    assert_eq!(decode(&[1, 2, 255, 255, 255, 255]), JournalError::Damaged { place: "group" });
}

#[test]
fn the_bytes_of_a_version_never_change() {
    let partition = TopicPartition::new("t", 2);
    let offset =
        StoredOffset { offset: 3, leader_epoch: 4, metadata: "m".to_owned(), committed_at: 5, position: 6 };
    let record = Record::from(Entry::Offset { group: "g".to_owned(), partition, offset });
    let expected: Vec<u8> = [
        &[1, 3][..],
        &[0, 0, 0, 1, b'g'],
        &[0, 0, 0, 1, b't', 0, 0, 0, 2],
        &[0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4],
        &[0, 0, 0, 1, b'm'],
        &[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6],
    ]
    .concat();
    assert_eq!(record.encode(), expected);
}

#[test]
fn no_payload_is_in_the_debug_output() {
    let member = MemberRecord {
        member_id: "m".to_owned(),
        instance_id: None,
        client_id: "c".to_owned(),
        client_host: "h".to_owned(),
        session_timeout: 1,
        rebalance_timeout: 1,
        metadata: Bytes::from("secret"),
        assignment: Bytes::from("secret"),
    };
    let value = GroupRecord {
        generation: 1,
        protocol_type: None,
        protocol: None,
        leader: None,
        since: 0,
        members: vec![member],
    };
    let record = Record::from(Entry::Group { group: "g".to_owned(), value: Arc::new(value) });
    assert_eq!(format!("{record:?}"), r#"Group("g")"#);
}
