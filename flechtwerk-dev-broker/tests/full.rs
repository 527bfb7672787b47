//! A disk that is full: what was answered is there after a restart, and nothing is answered that isn't.

#[path = "support/program.rs"]
mod program;
mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{
    BrokerId, DescribeTransactionsRequest, InitProducerIdRequest, ListOffsetsRequest,
};

use program::{Running, program};
use support::transactions::Producer;
use support::*;

const STORAGE_ERROR: i16 = 56;

/// The program, no file of which can grow beyond so many blocks of 512 bytes.
fn cramped(folder: &Path, blocks: u32) -> Running {
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh"]).arg(program().get_program());
    command.args(["--listen", "127.0.0.1:0", "--topic", "abc:1", "--data-dir"]).arg(folder);
    Running::of(command.stderr(Stdio::piped()))
}

fn init(name: &str) -> InitProducerIdRequest {
    InitProducerIdRequest::default()
        .with_transactional_id(Some(text(name).into()))
        .with_transaction_timeout_ms(60_000)
}

#[test]
fn what_the_journal_has_no_room_for_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let broker = cramped(folder.path(), 8);
    let mut client = Client::connect(broker.address);
    let mut answered = Vec::new();
    for number in 0..10_000 {
        let name = format!("tx-{number}");
        match client.try_call(0, &init(&name)) {
            Ok(answer) => {
                assert_eq!(answer.error_code, 0);
                answered.push(name);
            }
            Err(_) => break,
        }
    }
    assert!((10..10_000).contains(&answered.len()), "{}", answered.len());
    let (status, said) = broker.ended();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("journal") && said.contains("make room"), "{said}");

    let broker = DevBroker::builder().data_dir(folder.path()).start().unwrap();
    let ids = answered.iter().map(|name| text(name).into()).collect();
    let request = DescribeTransactionsRequest::default().with_transactional_ids(ids);
    let known = Client::connect(broker.address()).call(0, &request).transaction_states;
    assert!(known.iter().all(|one| one.error_code == 0));
}

#[test]
fn a_marker_that_has_no_room_is_written_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let broker = cramped(folder.path(), 64);
    let mut producer = Producer::new(broker.address, "tx");
    assert_eq!(producer.add("abc", 0).unwrap(), 0);
    let mut written = 0;
    // Large ones first, then such that no marker fits behind them.
    for size in [1_000, 1] {
        let error = loop {
            match producer.send("abc", 0, &[(None, &vec![b'v'; size])]).unwrap() {
                Ok(_) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, STORAGE_ERROR);
    }
    assert!(written > 20, "{written}");
    producer.end(true).expect_err("what can't be kept is not answered");
    let (status, said) = broker.ended();
    assert_eq!(status, Some(1), "{said}");

    let broker = DevBroker::builder().data_dir(folder.path()).start().unwrap();
    let mut client = Client::connect(broker.address());
    let wanted = ListOffsetsPartition::default().with_timestamp(-1).with_current_leader_epoch(-1);
    let wanted = ListOffsetsTopic::default().with_name(topic("abc")).with_partitions(vec![wanted]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(1)
        .with_topics(vec![wanted]);
    let stable = client.call(2, &request).topics[0].partitions[0].offset;
    assert_eq!(stable, written + 1, "all records and the marker");
}
