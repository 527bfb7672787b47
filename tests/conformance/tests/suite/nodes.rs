//! Several nodes: who leads, who coordinates, and what the others say.
//!
//! On the development broker with two virtual nodes, or on the real cluster if that has several: `scripts/kafka run 3`. A real
//! one of a single node has nothing to say about this.

use std::net::SocketAddr;

use flechtwerk_conformance::calls::topics::{new_topic, settings};
use flechtwerk_conformance::calls::transactions::Init;
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::{FindCoordinatorRequest, MetadataRequest};

/// A cluster, and a connection to each of its nodes by its id.
struct Cluster {
    nodes: Vec<(i32, Client)>,
    /// The development broker lives as long as this.
    _broker: Option<Broker>,
}

impl Cluster {
    fn get() -> Option<Cluster> {
        let broker =
            if Broker::get().is_real() { None } else { Some(Broker::dev(DevBroker::builder().nodes(2))) };
        let first = broker.as_ref().map_or_else(|| Broker::real_nodes()[0], Broker::address);
        let answer = Client::connect(first).call(&MetadataRequest::default().with_topics(Some(Vec::new())));
        if answer.brokers.len() < 2 {
            return None;
        }
        let connect = |node: &kafka_protocol::messages::metadata_response::MetadataResponseBroker| {
            let address: SocketAddr =
                format!("{}:{}", node.host.as_str(), node.port).parse().expect("an address");
            (node.node_id.0, Client::connect(address))
        };
        Some(Cluster { nodes: answer.brokers.iter().map(connect).collect(), _broker: broker })
    }

    /// A topic with one replica of each partition, and the leaders of the partitions.
    fn topic(&mut self, count: i32) -> (String, Vec<i32>) {
        let name = unique("topic");
        let topic = new_topic(&name, count).with_configs(settings(&[("min.insync.replicas", "1")]));
        let client = &mut self.nodes[0].1;
        assert_eq!(code(client.create(topic).error_code), Ok(()));
        let mut leaders = Vec::new();
        wait_for("all partitions have a leader", || {
            leaders = leaders_of(client, &name);
            leaders.len() == count as usize && leaders.iter().all(|leader| *leader >= 0)
        });
        for (partition, leader) in (0..).zip(&leaders) {
            let client = self.node(*leader);
            wait_for("the leader leads", || {
                client.list_offset(&name, partition, EARLIEST, UNCOMMITTED).is_ok()
            });
        }
        for (_, client) in &mut self.nodes {
            wait_for("every node knows the topic", || client.describe_topic(&name).error_code == 0);
        }
        (name, leaders)
    }

    fn node(&mut self, id: i32) -> &mut Client {
        &mut self.nodes.iter_mut().find(|(node, _)| *node == id).expect("a node").1
    }

    fn other(&mut self, id: i32) -> &mut Client {
        &mut self.nodes.iter_mut().find(|(node, _)| *node != id).expect("another node").1
    }

    fn coordinator(&mut self, kind: i8, name: &str) -> i32 {
        let request = FindCoordinatorRequest::default().with_key(text(name)).with_key_type(kind);
        let mut found = -1;
        let client = &mut self.nodes[0].1;
        wait_for("there is a coordinator", || {
            let answer = client.call(&request);
            found = answer.node_id.0;
            answer.error_code == 0
        });
        found
    }
}

/// The leaders of a topic's partitions, as a node knows them.
fn leaders_of(client: &mut Client, topic: &str) -> Vec<i32> {
    let mut partitions = client.describe_topic(topic).partitions;
    partitions.sort_by_key(|one| one.partition_index);
    partitions.iter().map(|one| one.leader_id.0).collect()
}

#[test]
fn every_node_names_the_same_nodes_leaders_and_coordinators() {
    let Some(mut cluster) = Cluster::get() else { return };
    let (topic, leaders) = cluster.topic(4);
    let (group, name) = (unique("group"), unique("tx"));
    let coordinators = (cluster.coordinator(0, &group), cluster.coordinator(1, &name));
    let count = cluster.nodes.len();
    for (_, client) in &mut cluster.nodes {
        assert_eq!(
            client.call(&MetadataRequest::default().with_topics(Some(Vec::new()))).brokers.len(),
            count
        );
        assert_eq!(leaders_of(client, &topic), leaders);
        let mut find = |kind, key: &str| {
            client.call(&FindCoordinatorRequest::default().with_key(text(key)).with_key_type(kind)).node_id.0
        };
        assert_eq!((find(0, &group), find(1, &name)), coordinators);
    }
}

#[test]
fn a_node_that_does_not_lead_a_partition_neither_writes_nor_reads_it() {
    let Some(mut cluster) = Cluster::get() else { return };
    let (topic, leaders) = cluster.topic(1);
    let elsewhere = Code::NotLeaderOrFollower;
    let other = cluster.other(leaders[0]);
    assert_eq!(other.produce(&topic, 0, &Batch::of(["a"])), Err(elsewhere));
    assert_eq!(other.fetch(&topic, 0, 0, UNCOMMITTED).expect_err("an error"), elsewhere);
    assert_eq!(other.list_offset(&topic, 0, LATEST, UNCOMMITTED), Err(elsewhere));
    assert_eq!(other.delete_records(&topic, 0, 0), Err(elsewhere));
    assert_eq!(cluster.node(leaders[0]).produce(&topic, 0, &Batch::of(["a"])), Ok(0));
}

#[test]
fn a_node_that_does_not_coordinate_a_group_says_so() {
    let Some(mut cluster) = Cluster::get() else { return };
    let (topic, _) = cluster.topic(1);
    let group = unique("group");
    let coordinator = cluster.coordinator(0, &group);
    let elsewhere = Code::NotCoordinator;
    let other = cluster.other(coordinator);
    assert_eq!(other.commit_offset(&group, &topic, 0, 5), Err(elsewhere));
    assert_eq!(other.fetch_offset(&group, &topic, 0, false), Err(elsewhere));
    assert_eq!(other.delete_group(&group), Err(elsewhere));
    assert_eq!(code(other.describe_group(&group).error_code), Err(elsewhere));
    let mut member = Member::new(other.another(), &group);
    assert_eq!(code(member.client.call(&member.join_request()).error_code), Err(elsewhere));
    assert_eq!(member.heartbeat(), Err(elsewhere));
    assert_eq!(member.sync(&[]), Err(elsewhere));
    assert_eq!(member.leave(), Err(elsewhere));
}

#[test]
fn a_node_that_does_not_coordinate_a_transaction_says_so() {
    let Some(mut cluster) = Cluster::get() else { return };
    let (topic, _) = cluster.topic(1);
    let name = unique("tx");
    let coordinator = cluster.coordinator(1, &name);
    let client = cluster.node(coordinator);
    wait_for("the coordinator is ready", || client.init_producer(&name, Init::default()).is_ok());
    let producer = client.producer_named(&name);
    let elsewhere = Err(Code::NotCoordinator);
    let other = cluster.other(coordinator);
    assert_eq!(other.init_producer(&name, Init::default()).map(|_| ()), elsewhere);
    assert_eq!(producer.add_once(other, &topic, &[0]), elsewhere);
    assert_eq!(producer.add_offsets(other, "group"), elsewhere);
    assert_eq!(producer.end_once(other, true), elsewhere);
    assert_eq!(other.describe_transaction(&name).map(|_| ()), elsewhere);
}

#[test]
fn a_transaction_goes_over_all_nodes() {
    let Some(mut cluster) = Cluster::get() else { return };
    let (topic, leaders) = cluster.topic(4);
    assert!(leaders.iter().any(|leader| *leader != leaders[0]), "leaders are spread: {leaders:?}");
    let name = unique("tx");
    let coordinator = cluster.coordinator(1, &name);
    let client = cluster.node(coordinator);
    wait_for("the coordinator is ready", || client.init_producer(&name, Init::default()).is_ok());
    let mut producer = client.producer_named(&name);
    for commit in [false, true] {
        for (partition, leader) in (0..).zip(&leaders) {
            producer.add(cluster.node(coordinator), &topic, &[partition]).expect("added");
            let value = if commit { "seen" } else { "gone" };
            producer.send(cluster.node(*leader), &topic, partition, &[value]).expect("written");
        }
        producer.end(cluster.node(coordinator), commit).expect("the end");
    }
    for (partition, leader) in (0..).zip(&leaders) {
        let client = cluster.node(*leader);
        client.await_stable(&topic, partition);
        assert_eq!(client.values(&topic, partition, COMMITTED), ["seen"]);
    }
}
