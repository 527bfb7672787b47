//! A data folder in which a bit has flipped: the broker says which file it is, and never serves anything else than what was kept.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flechtwerk_dev_broker::{DevBroker, NewTopic, StartError};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteRecordsRequest, DescribeGroupsRequest, DescribeTransactionsRequest, JoinGroupRequest,
    MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};

use support::transactions::Producer;
use support::*;

/// Files by their paths in the folder, without the lock, in which nothing stands.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn start(folder: &Path) -> Result<DevBroker, StartError> {
    DevBroker::builder().data_dir(folder).start()
}

/// A folder with something of each kind that is kept.
fn filled(folder: &Path) {
    let broker = start(folder).unwrap();
    broker.create_topic(("abc", 2)).unwrap();
    broker.create_topic(NewTopic::new("totals", 1).config("cleanup.policy", "compact")).unwrap();
    let mut client = Client::connect(broker.address());
    for value in [b"1", b"2", b"3"] {
        client.call(9, &produce("abc", 0, batch(value)));
        client.call(9, &produce("totals", 0, batch_with_key(Some(b"k"), value)));
    }
    broker.compact("totals").unwrap();
    client.call(9, &produce("totals", 0, batch_with_key(Some(b"l"), b"4")));
    let partition = DeleteRecordsPartition::default().with_partition_index(0).with_offset(1);
    let delete = DeleteRecordsTopic::default().with_name(topic("abc")).with_partitions(vec![partition]);
    client.call(1, &DeleteRecordsRequest::default().with_topics(vec![delete]));

    let mut producer = Producer::new(broker.address(), "tx");
    producer.transaction("abc", 0, &[(None, b"committed")], true);
    producer.transaction("abc", 0, &[(None, b"aborted")], false);
    producer.transaction("totals", 0, &[(Some(b"k"), b"5")], true);
    assert_eq!(producer.add("abc", 1).unwrap(), 0);
    producer.send("abc", 1, &[(None, b"open")]).unwrap().unwrap();
    assert_eq!(producer.commit_offset("group", ("abc", 1), 7, "").unwrap(), 0);

    let committed = OffsetCommitRequestPartition::default().with_partition_index(0).with_committed_offset(2);
    let committed =
        OffsetCommitRequestTopic::default().with_name(topic("abc")).with_partitions(vec![committed]);
    let commit = OffsetCommitRequest::default()
        .with_group_id(text("group").into())
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![committed]);
    assert_eq!(client.call(2, &commit).topics[0].partitions[0].error_code, 0);
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"metadata"));
    let join = JoinGroupRequest::default()
        .with_group_id(text("members").into())
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let joined = client.call(3, &join);
    assert_eq!(joined.error_code, 0);
    let assignment = SyncGroupRequestAssignment::default()
        .with_member_id(joined.member_id.clone())
        .with_assignment(Bytes::from_static(b"all of it"));
    let sync = SyncGroupRequest::default()
        .with_group_id(text("members").into())
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id)
        .with_assignments(vec![assignment]);
    assert_eq!(client.call(3, &sync).error_code, 0);
    broker.kill();
}

fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                all.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(path).unwrap());
            }
        }
    }
    all
}

/// Writes a file in place: replacing it would wait for the disk on some systems.
fn write(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

/// All that clients see, but for what is new with each start.
fn served(broker: &DevBroker) -> Vec<String> {
    let mut client = Client::connect(broker.address());
    let mut all = Vec::new();
    let metadata = client.call(12, &MetadataRequest::default().with_topics(None));
    for topic in metadata.topics {
        let name = topic.name.unwrap();
        all.push(format!("{name:?} {} {}", topic.topic_id, topic.partitions.len()));
        for partition in 0..topic.partitions.len() as i32 {
            let from = i64::from(partition == 0 && name.as_str() == "abc");
            let request = fetch(&name, partition, from, 0).with_isolation_level(0);
            all.push(format!("{:?}", client.call(11, &request).responses));
            let request = fetch(&name, partition, from, 0).with_isolation_level(1);
            all.push(format!("{:?}", client.call(11, &request).responses));
        }
    }
    let ids = vec![text("tx").into()];
    all.push(format!(
        "{:?}",
        client.call(0, &DescribeTransactionsRequest::default().with_transactional_ids(ids))
    ));
    let groups = vec![text("group").into(), text("members").into()];
    all.push(format!("{:?}", client.call(4, &DescribeGroupsRequest::default().with_groups(groups))));
    let offsets = OffsetFetchRequest::default().with_group_id(text("group").into()).with_topics(None);
    all.push(format!("{:?}", client.call(5, &offsets)));
    all
}

#[test]
fn no_bit_flips_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let kept = files(folder.path());
    let before = served(&start(folder.path()).unwrap());
    assert!(kept.len() == 6 && before.len() == 11, "{} files, {} answers", kept.len(), before.len());

    let mut unnoticed = Vec::new();
    for (path, bytes) in &kept {
        // Two bits of each byte, other ones in the next.
        let bits = |at: usize| [at % 8, (at + 3) % 8].map(|bit| (at, bit));
        for (at, bit) in (0..bytes.len()).flat_map(bits) {
            for (path, bytes) in &kept {
                write(&folder.path().join(path), bytes);
            }
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            write(&folder.path().join(path), &damaged);
            match start(folder.path()) {
                Err(error) => {
                    // The version is of the folder, and says so; a file is named.
                    let named = folder.path().join(if path.ends_with("version") {
                        ""
                    } else {
                        path.to_str().unwrap()
                    });
                    let named = named.to_str().unwrap().trim_end_matches('/');
                    assert!(error.to_string().contains(named), "{}: {error}", path.display());
                    assert!(fs::read(folder.path().join(path)).unwrap() == damaged, "{}", path.display());
                }
                Ok(broker) if served(&broker) == before => {}
                Ok(_) => unnoticed.push(format!("bit {bit} of byte {at} of {}", path.display())),
            }
        }
    }
    assert!(
        unnoticed.is_empty(),
        "{} of them, such as {:?}",
        unnoticed.len(),
        &unnoticed[..unnoticed.len().min(20)]
    );
}
