//! Starting, stopping, nodes that are down, and data folders.

mod support;

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use flechtwerk_dev_broker::{DevBroker, ErrorCode, NewTopic, StartError};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    BrokerId, FindCoordinatorRequest, MetadataRequest, MetadataResponse, OffsetForLeaderEpochRequest,
};
use support::{Client, batch, fetch, produce, text, topic, until};

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

// One test alone counts files and threads, so it has a process of its own: the others of this file would disturb it.
#[test]
fn a_thousand_starts_leave_nothing_behind() {
    if std::env::var_os("DEV_BROKER_ALONE").is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_thousand_starts_leave_nothing_behind", "--nocapture"])
            .env("DEV_BROKER_ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    drop(DevBroker::builder().start().unwrap());
    let (files, running) = (open_files(), threads());
    let mut address = None;
    for _ in 0..1_000 {
        let broker = DevBroker::builder().topic(("orders", 3)).start().unwrap();
        address = Some(broker.address());
        Client::connect(broker.address()).call(9, &MetadataRequest::default().with_topics(None));
    }
    assert_eq!((open_files(), threads()), (files, running));
    assert!(TcpStream::connect(address.unwrap()).is_err());
}

#[tokio::test]
async fn a_broker_can_be_started_and_dropped_in_async_code() {
    let broker = DevBroker::builder().start().unwrap();
    let _stream = tokio::net::TcpStream::connect(broker.address()).await.unwrap();
    drop(broker);
}

#[test]
fn stopping_closes_connections_that_wait() {
    let broker = DevBroker::builder().topic(("orders", 1)).start().unwrap();
    let mut client = Client::connect(broker.address());
    client.send(11, &fetch("orders", 0, 0, 600_000)).unwrap();
    broker.stop();
    assert!(client.is_closed());
}

#[test]
fn a_port_in_use_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = DevBroker::builder().listen(&address).start().unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }));
    assert!(error.to_string().contains(&address), "{error}");
    let error = DevBroker::builder().listen("nowhere").start().unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }));
}

// A process that is being started holds copies of all descriptors until it executes its program.
#[test]
fn folder_and_port_are_free_at_once_even_while_processes_are_started() {
    let folder = tempfile::tempdir().unwrap();
    let builder = DevBroker::builder().data_dir(folder.path());
    let broker = builder.clone().start().unwrap();
    let builder = builder.listen(broker.address().to_string());
    let done = AtomicBool::new(false);
    let restarted = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
        }
        let restarted = (0..300).try_fold(broker, |broker, _| {
            broker.kill();
            builder.clone().start()
        });
        done.store(true, Ordering::Relaxed);
        restarted
    });
    restarted.unwrap();
}

#[test]
fn what_makes_no_sense_does_not_start() {
    assert!(matches!(DevBroker::builder().nodes(0).start(), Err(StartError::Nodes { count: 0 })));
    let error = DevBroker::builder().topic(("a/b", 1)).start().unwrap_err();
    assert!(error.to_string().starts_with("can't create topic \"a/b\": "), "{error}");
}

#[test]
fn a_killed_broker_is_the_same_when_it_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let totals = NewTopic::new("totals", 2).config("cleanup.policy", "compact");
        DevBroker::builder().data_dir(folder.path()).topic(totals).start().unwrap()
    };
    let metadata = |broker: &DevBroker| -> MetadataResponse {
        Client::connect(broker.address()).call(12, &MetadataRequest::default().with_topics(None))
    };
    let broker = start();
    let before = metadata(&broker);
    Client::connect(broker.address()).call(9, &produce("totals", 1, keyed(b"k")));
    broker.kill();
    let broker = start();
    let after = metadata(&broker);
    assert_eq!(after.cluster_id, before.cluster_id);
    assert_eq!(after.topics[0].topic_id, before.topics[0].topic_id);
    assert_eq!(after.topics[0].partitions.len(), 2);
    let answer = Client::connect(broker.address()).call(11, &fetch("totals", 1, 0, 0));
    assert_eq!(answer.responses[0].partitions[0].high_watermark, 1);
    let in_use = DevBroker::builder().data_dir(folder.path()).start().unwrap_err();
    assert!(in_use.to_string().contains("in use"), "{in_use}");
    broker.stop();
    start().stop();
}

#[test]
fn a_broker_can_start_again_at_once_on_its_port() {
    let first = DevBroker::builder().start().unwrap();
    let address = first.address();
    let mut client = Client::connect(address);
    client.call(9, &MetadataRequest::default().with_topics(None));
    first.kill();
    // Another test may have been given the port meanwhile, and gives it back.
    let mut second = None;
    until("the port is free", || {
        second = DevBroker::builder().listen(address.to_string()).start().ok();
        second.is_some()
    });
    assert!(client.is_closed());
    Client::connect(second.unwrap().address()).call(9, &MetadataRequest::default().with_topics(None));
}

/// A batch whose only record has a key, as compacted topics want it.
fn keyed(key: &[u8]) -> bytes::Bytes {
    support::batch_with_key(Some(key), b"v")
}

#[test]
fn a_node_that_is_down_hands_over_and_comes_back() {
    let spread = NewTopic::new("spread", 6).replication(2);
    let broker = DevBroker::builder().nodes(3).topic(spread).topic(("single", 6)).start().unwrap();
    let addresses: Vec<std::net::SocketAddr> =
        broker.bootstrap().split(',').map(|address| address.parse().unwrap()).collect();
    assert_eq!(addresses.len(), 3);
    let metadata = |node: usize| -> MetadataResponse {
        Client::connect(addresses[node]).call(9, &MetadataRequest::default().with_topics(None))
    };
    let leaders = |metadata: &MetadataResponse, name: &str| -> Vec<i32> {
        let topic =
            metadata.topics.iter().find(|topic| topic.name.as_ref().unwrap().as_str() == name).unwrap();
        topic.partitions.iter().map(|partition| partition.leader_id.0).collect()
    };
    let all = metadata(0);
    assert_eq!(all.brokers.len(), 3);
    for id in 1..=3 {
        assert!(leaders(&all, "spread").contains(&id), "node {id} leads nothing");
    }

    let mut waiting = Client::connect(addresses[1]);
    broker.node_down(2).unwrap();
    assert!(waiting.is_closed());
    assert!(Client::connect(addresses[1]).is_closed());
    let two = metadata(0);
    assert_eq!(two.brokers.len(), 2);
    assert!(!leaders(&two, "spread").contains(&2) && !leaders(&two, "spread").contains(&-1));
    assert!(leaders(&two, "single").contains(&-1));
    for partition in two.topics.iter().flat_map(|topic| &topic.partitions) {
        let is_2 = |id: &BrokerId| id.0 == 2;
        assert!(!partition.isr_nodes.iter().any(is_2));
        assert_eq!(partition.offline_replicas.iter().any(is_2), partition.replica_nodes.iter().any(is_2));
    }

    broker.node_up(2).unwrap();
    let back = metadata(1);
    assert_eq!(back.brokers.len(), 3);
    assert!(!leaders(&back, "single").contains(&-1));
    assert!(broker.node_down(4).unwrap_err().to_string().contains("no node 4"));
}

#[test]
fn a_new_leader_has_a_new_epoch_and_knows_where_the_last_one_ended() {
    let topic_2 = NewTopic::new("orders", 1).replication(2);
    let broker = DevBroker::builder().nodes(2).topic(topic_2).start().unwrap();
    let addresses: Vec<std::net::SocketAddr> =
        broker.bootstrap().split(',').map(|address| address.parse().unwrap()).collect();
    let leader = || -> (i32, i32) {
        let up = addresses.iter().map(|address| Client::connect(*address));
        let request = MetadataRequest::default().with_topics(None);
        let answer = up.into_iter().find_map(|mut client| client.try_call(9, &request).ok()).unwrap();
        let partition = &answer.topics[0].partitions[0];
        (partition.leader_id.0, partition.leader_epoch)
    };
    let client = |node: i32| Client::connect(addresses[usize::from(node == 2)]);
    let (first, epoch) = leader();
    assert_eq!(epoch, 0);
    client(first).call(9, &produce("orders", 0, batch(b"x")));
    broker.node_down(first).unwrap();
    let (second, epoch) = leader();
    assert_ne!(second, first);
    assert_eq!(epoch, 1);

    let asked = |current, wanted| {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(current)
            .with_leader_epoch(wanted);
        let topic =
            OffsetForLeaderTopic::default().with_topic(topic("orders")).with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
        let answer = client(second).call(4, &request);
        let end = &answer.topics[0].partitions[0];
        (ErrorCode::new(end.error_code), end.leader_epoch, end.end_offset)
    };
    assert_eq!(asked(1, 0), (ErrorCode::NONE, 0, 1));
    assert_eq!(asked(0, 0).0, ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(asked(2, 0).0, ErrorCode::UNKNOWN_LEADER_EPOCH);
    client(second).call(9, &produce("orders", 0, batch(b"y")));
    assert_eq!(asked(1, 0), (ErrorCode::NONE, 0, 1));
    assert_eq!(asked(1, 1), (ErrorCode::NONE, 1, 2));
    // The one that comes back follows.
    broker.node_up(first).unwrap();
    assert_eq!(leader(), (second, 1));
}

/// Clients take metadata with an older leader epoch for outdated, and the partitions in it with it.
#[test]
fn a_broker_that_starts_again_has_higher_leader_epochs_than_ever() {
    let folder = tempfile::tempdir().unwrap();
    let start = || DevBroker::builder().data_dir(folder.path()).nodes(2).start().unwrap();
    let epochs = |broker: &DevBroker| -> Vec<i32> {
        let request = MetadataRequest::default().with_topics(None);
        let answer = Client::connect(broker.address()).call(9, &request);
        answer.topics[0].partitions.iter().map(|partition| partition.leader_epoch).collect()
    };
    let broker = start();
    broker.create_topic(NewTopic::new("orders", 4).replication(2)).unwrap();
    assert_eq!(epochs(&broker), [0; 4]);
    broker.kill();
    let broker = start();
    let mut before = epochs(&broker);
    assert!(before.iter().all(|epoch| *epoch > 0), "{before:?}");
    for _ in 0..2 {
        broker.node_down(2).unwrap();
        broker.node_up(2).unwrap();
        broker.node_down(1).unwrap();
        broker.node_up(1).unwrap();
    }
    let moved = epochs(&broker);
    assert!(moved.iter().zip(&before).all(|(moved, before)| moved > before), "{moved:?} after {before:?}");
    before = moved;
    let second = broker.bootstrap().split_once(',').unwrap().1.to_owned();
    broker.kill();
    let broker = start();
    let after = epochs(&broker);
    assert_eq!(broker.bootstrap().split_once(',').unwrap().1, second, "the second node's address");
    let highest = before.iter().max().unwrap();
    assert!(after.iter().all(|epoch| epoch > highest), "{after:?} after {before:?}");
    broker.create_topic(("another", 1)).unwrap();
    assert_eq!(epochs(&broker), [0]);
}

#[test]
fn only_the_leader_and_the_coordinator_serve() {
    let broker = DevBroker::builder().nodes(2).topic(("orders", 1)).start().unwrap();
    let addresses: Vec<std::net::SocketAddr> =
        broker.bootstrap().split(',').map(|address| address.parse().unwrap()).collect();
    let produced: Vec<ErrorCode> = addresses
        .iter()
        .map(|address| {
            let answer = Client::connect(*address).call(9, &produce("orders", 0, batch(b"x")));
            ErrorCode::new(answer.responses[0].partition_responses[0].error_code)
        })
        .collect();
    assert!(produced.contains(&ErrorCode::NONE) && produced.contains(&ErrorCode::NOT_LEADER_OR_FOLLOWER));

    let find = FindCoordinatorRequest::default().with_key(text("group")).with_key_type(0);
    let found: Vec<i32> =
        addresses.iter().map(|address| Client::connect(*address).call(2, &find).node_id.0).collect();
    assert_eq!(found[0], found[1]);
    broker.node_down(found[0]).unwrap();
    let other = usize::from(found[0] == 1);
    let moved = Client::connect(addresses[other]).call(2, &find).node_id.0;
    assert_ne!(moved, found[0]);
}
