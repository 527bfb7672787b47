//! Single requests broken on their way by a proxy, in front of whatever broker there is: what `faults_commit` and its like show on
//! the development broker holds on a real Kafka, too. What happens is told in `flechtwerk_tests::network`.

use flechtwerk_tests::{Proxied, network};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

#[test]
fn requests_of_a_transaction_are_lost_or_late() {
    network::transactions(Proxied::new(RIG));
}

#[test]
fn requests_arrive_in_the_next_transaction() {
    network::late_requests(Proxied::new(RIG));
}

#[test]
fn positions_arrive_after_the_transactions_time_out() {
    network::after_the_timeout(Proxied::new(RIG));
}

#[test]
fn requests_of_a_start_are_lost_or_late() {
    network::starts(Proxied::new(RIG));
}

#[test]
fn signs_of_life_are_lost_and_then_the_session() {
    network::signs_of_life(Proxied::new(RIG));
}

#[test]
fn records_come_late() {
    network::reading(Proxied::new(RIG));
}

#[test]
fn nodes_can_not_be_reached() {
    network::nodes(Proxied::new(RIG));
}
